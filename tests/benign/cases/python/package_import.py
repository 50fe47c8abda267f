# Modules and a package beside the program, data inside it, code in a zip.
import importlib
import sys
import zipfile

import helper
from shapes import Circle, area_of
from shapes.data import load

print(helper.greet("world"), helper.__name__)
print(area_of(Circle(2)), load())
with zipfile.ZipFile("bundle.zip", "w") as bundle:
    bundle.writestr("zipped/__init__.py", "VALUE = 'from a zip'\n")
sys.path.insert(0, "bundle.zip")
print(importlib.import_module("zipped").VALUE)
with open("late.py", "w") as late:
    late.write("version = 1\n")
importlib.invalidate_caches()
import late  # noqa: E402

print(late.version)
try:
    import no_such_module_at_all  # noqa: F401
except ModuleNotFoundError as error:
    print(error)
