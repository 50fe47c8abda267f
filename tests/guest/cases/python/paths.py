import os, sys
here = os.getcwd()
print(sys.path)
print([item for item in sys.path_importer_cache.items() if item[0].startswith(here)])
print(sys.path_hooks, sys.meta_path)
print(sys.prefix, sys.exec_prefix, sys.base_prefix, sys.executable)
