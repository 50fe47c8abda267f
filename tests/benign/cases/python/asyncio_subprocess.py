# Child processes and signals under asyncio.
import asyncio
import os
import signal


async def main():
    child = await asyncio.create_subprocess_exec(
        "cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    print(await child.communicate(b"through cat"), child.returncode)
    child = await asyncio.create_subprocess_shell(
        "echo oops >&2; exit 6", stderr=asyncio.subprocess.PIPE)
    print((await child.communicate())[1], child.returncode)
    children = [await asyncio.create_subprocess_exec("sleep", "60") for _ in range(3)]
    for child in children:
        child.kill()
    print(await asyncio.gather(*(child.wait() for child in children)))
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(heard.wait(), 10)
    print("signal heard")


asyncio.run(main())
