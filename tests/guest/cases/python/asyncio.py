import asyncio
async def f(n):
    await asyncio.sleep(0.01 * n)
    return n
async def main():
    print(await asyncio.gather(*map(f, range(4))))
    p = await asyncio.create_subprocess_exec('echo', 'sub', stdout=asyncio.subprocess.PIPE)
    print(await p.communicate())
    asyncio.create_task(f(100))
    raise RuntimeError('in coroutine')
asyncio.run(main())
