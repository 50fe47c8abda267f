import sys, package.sub, importlib
print(package.sub.x, package.__file__, package.sub.__spec__)
try:
    import missing_module
except ImportError as e:
    print(e, e.name)
import random, json, re
print(random.__file__.endswith('random.py'), json.loads('[1]'), re.match('a', 'ab'))
print(importlib.import_module('main').__name__)
