import sys
try:
    sys.exit(4)
except SystemExit as e:
    print('caught', e.code)
