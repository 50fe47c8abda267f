import sys
print(sys.argv, getattr(sys, 'orig_argv', None) and sys.orig_argv[1:])
