# A pool of worker processes: map, starmap, imap, an exception, a future.
import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import Pool


def is_prime(number):
    return number > 1 and all(number % d for d in range(2, math.isqrt(number) + 1))


def fail(number):
    raise RuntimeError(f"worker refused {number}")


if __name__ == "__main__":
    with Pool(3) as pool:
        print([n for n, yes in zip(range(60), pool.map(is_prime, range(60))) if yes])
        print(pool.starmap(pow, [(2, 10), (3, 5), (7, 2)]))
        print(list(pool.imap(math.factorial, range(8), chunksize=2)))
        try:
            pool.apply(fail, (13,))
        except RuntimeError as error:
            print("from the worker:", error)
    with ProcessPoolExecutor(2) as executor:
        print(sum(executor.map(is_prime, range(1000), chunksize=100)))
