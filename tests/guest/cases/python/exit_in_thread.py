import threading, sys
def f(): sys.exit(3)
t = threading.Thread(target=f); t.start(); t.join()
print('on')
