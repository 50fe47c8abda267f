# Coroutines, task groups, timeouts, cancellation, queues and threads.
import asyncio


async def square(number, delay):
    await asyncio.sleep(delay)
    return number * number


async def stubborn():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled")
        raise


async def pipeline():
    queue = asyncio.Queue(maxsize=2)

    async def produce():
        for item in range(5):
            await queue.put(item)
        await queue.put(None)

    producer = asyncio.create_task(produce())
    items = []
    while (item := await queue.get()) is not None:
        items.append(item)
    await producer
    return items


async def main():
    print(await asyncio.gather(*(square(n, 0.01 * (4 - n)) for n in range(4))))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(square(n, 0)) for n in (5, 6)]
    print([task.result() for task in tasks])
    try:
        async with asyncio.timeout(0.02):
            await stubborn()
    except TimeoutError:
        print("timed out")
    print(await pipeline())
    print(await asyncio.to_thread(sum, range(1000)))
    lock, order = asyncio.Lock(), []

    async def enter(name):
        async with lock:
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(enter(name) for name in "abc"))
    print(order)
    print(await asyncio.gather(square("x", 0), square(2, 0), return_exceptions=True))


asyncio.run(main())
