import os, atexit
atexit.register(print, 'never')
print('out', flush=True)
os._exit(9)
