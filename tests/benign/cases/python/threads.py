# Threads with a lock, a condition, thread-local data and a daemon.
import queue
import threading
import time

total, lock, local = 0, threading.Lock(), threading.local()


def add(amount, times):
    global total
    local.mine = 0
    for _ in range(times):
        with lock:
            total += amount
        local.mine += amount
    done.put((amount, local.mine))


done = queue.Queue()
threads = [threading.Thread(target=add, args=(n, 1000)) for n in range(1, 9)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(total, sorted(done.get() for _ in threads))

buffer, ready = [], threading.Condition()


def produce():
    for item in "abcde":
        with ready:
            buffer.append(item)
            ready.notify()


consumer = []
producer = threading.Thread(target=produce)
producer.start()
while len(consumer) < 5:
    with ready:
        ready.wait_for(lambda: buffer)
        consumer.append(buffer.pop(0))
producer.join()
print(consumer)
threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
timer = threading.Timer(0.01, print, ["timer"])
timer.start()
timer.join()
print(threading.current_thread().name, local.__dict__)
