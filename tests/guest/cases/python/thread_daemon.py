import threading, time
def f():
    while True: time.sleep(0.01)
threading.Thread(target=f, daemon=True).start()
class D:
    def __del__(self): print('del')
d = D()
print('main done')
