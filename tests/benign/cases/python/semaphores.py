# Semaphores, locks, events, barriers and queues across processes.
import multiprocessing as mp


def add(counter, lock, gate, times):
    with gate:
        for _ in range(times):
            with lock:
                counter.value += 1


def relay(inbox, outbox):
    while (item := inbox.get()) is not None:
        outbox.put(item * item)
    outbox.put(None)


def meet(barrier, event, outbox):
    event.wait()
    outbox.put(barrier.wait() >= 0)


if __name__ == "__main__":
    counter, lock, gate = mp.Value("i", 0, lock=False), mp.Lock(), mp.Semaphore(2)
    workers = [mp.Process(target=add, args=(counter, lock, gate, 500)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(counter.value, [worker.exitcode for worker in workers])

    inbox, outbox = mp.Queue(), mp.Queue()
    worker = mp.Process(target=relay, args=(inbox, outbox))
    worker.start()
    for number in [1, 2, 3, 4, None]:
        inbox.put(number)
    print(list(iter(outbox.get, None)))
    worker.join()

    barrier, event = mp.Barrier(3), mp.Event()
    workers = [mp.Process(target=meet, args=(barrier, event, outbox)) for _ in range(3)]
    for worker in workers:
        worker.start()
    event.set()
    print([outbox.get() for _ in workers])
    for worker in workers:
        worker.join()
