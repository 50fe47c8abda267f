import threading
def f(): raise ValueError('in thread')
t = threading.Thread(target=f, name='worker'); t.start(); t.join()
