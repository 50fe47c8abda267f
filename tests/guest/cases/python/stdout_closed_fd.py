import os, sys
print('a', flush=True)
os.close(1)
print('b')
