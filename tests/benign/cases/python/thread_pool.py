# concurrent.futures: map, as_completed, exceptions, cancellation.
import concurrent.futures as futures
import zlib


def checksum(number):
    if number == 5:
        raise ValueError("five")
    return zlib.crc32(str(number).encode() * 1000)


with futures.ThreadPoolExecutor(max_workers=4) as pool:
    print(list(pool.map(checksum, range(5))))
    jobs = {pool.submit(checksum, n): n for n in range(8)}
    results = {}
    for job in futures.as_completed(jobs):
        results[jobs[job]] = job.exception() or job.result()
for number in sorted(results):
    print(number, repr(results[number]))
