import os, sys
print(sys.flags.optimize, sys.flags.dev_mode, os.environ.get('PYTHONPATH'), 'extra' in sys.path)
assert False
