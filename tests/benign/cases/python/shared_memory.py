# multiprocessing.shared_memory between two processes.
from multiprocessing import Process, shared_memory


def double(name, count):
    block = shared_memory.SharedMemory(name=name)
    for index in range(count):
        block.buf[index] *= 2
    block.close()


if __name__ == "__main__":
    block = shared_memory.SharedMemory(create=True, size=64)
    block.buf[:10] = bytes(range(10))
    worker = Process(target=double, args=(block.name, 10))
    worker.start()
    worker.join()
    print(worker.exitcode, list(block.buf[:10]))
    numbers = shared_memory.ShareableList([1, 2.5, "three", None, True])
    numbers[0] = 11
    print(list(numbers), len(numbers))
    numbers.shm.close()
    numbers.shm.unlink()
    block.close()
    block.unlink()
    try:
        shared_memory.SharedMemory(name=block.name)
    except FileNotFoundError as error:
        print(error.strerror)
