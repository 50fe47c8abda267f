import threading, time, _thread
def f(n):
    time.sleep(0.05); print('thread', n, threading.current_thread().name)
for n in range(3):
    t = threading.Thread(target=f, args=(n,)); t.start(); t.join()
last = threading.Thread(target=f, args=('last',)); last.start()
m = threading.main_thread()
print(m, m.name, m is threading.current_thread(), m.is_alive(), m.daemon) if False else None
print(m.ident == threading.get_ident(), m.native_id == threading.get_native_id(), threading.active_count(), _thread._count())
print('main done')
