import os, sys, __main__
print(sys.argv, __file__, sys.path[0], __main__.__loader__.path, getattr(sys, 'orig_argv', [0])[1:])
print(sorted(p for p in sys.path_importer_cache if p.startswith(os.getcwd())))
import beside
1 / 0
