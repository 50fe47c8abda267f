# Forty threads alive at once, each with its own stack: they reserve 8 MiB each of the memory limit.
import threading

barrier = threading.Barrier(41)
depths = []


def dig(level):
    return level if level == 200 else dig(level + 1)


def work(number):
    depths.append(dig(0) + number)
    barrier.wait()


threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(40)]
for thread in threads:
    thread.start()
barrier.wait()
for thread in threads:
    thread.join()
print(len(depths), min(depths), max(depths), sum(depths))
