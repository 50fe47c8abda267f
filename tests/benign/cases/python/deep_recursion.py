# Recursion: the limit is an exception, a raised limit holds, threads have stacks of their own.
import sys
import threading


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


def forever():
    return forever() + 1


try:
    forever()
except RecursionError as error:
    print(error)
sys.setrecursionlimit(20000)
print(depth(9000))
threading.stack_size(64 * 1024 * 1024)
sys.setrecursionlimit(60000)
results = []
thread = threading.Thread(target=lambda: results.append(depth(50000)))
thread.start()
thread.join()
print(results)
nested = []
for _ in range(100000):
    nested = [nested]
print(len(nested))
