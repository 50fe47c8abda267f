import os, sys
sys.stdout = open(1, 'w', closefd=False)
print('lost')
os.close(1)
