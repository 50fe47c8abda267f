import threading, atexit
def f(): print('at exit', threading.main_thread().is_alive(), threading.current_thread() is threading.main_thread())
atexit.register(f)
