"""Many sessions of one process at the same time."""
import asyncio

import pytest

import vial
from vial import _daemon

COUNT = 200


@pytest.fixture
def large(binary):
    """The socket of a daemon that has room for them."""
    made = _daemon.Daemon(["--max", str(COUNT + 20)])
    yield made.path
    made.stop()


def test_all_alive_at_once(large):
    async def one(sandbox, number, alive, complete):
        async with sandbox.session() as session:
            await session.run("x = %d" % number)
            alive.append(number)
            if len(alive) == COUNT:
                complete.set()
            await complete.wait()  # nobody goes before all have come
            return (await session.run("x * 2")).value

    async def main():
        async with vial.AsyncSandbox(large, retries=20) as sandbox:
            alive, complete = [], asyncio.Event()
            values = await asyncio.gather(*[one(sandbox, n, alive, complete) for n in range(COUNT)])
            assert values == [2 * n for n in range(COUNT)]
            assert await sandbox.sessions() == []
    asyncio.run(asyncio.wait_for(main(), 240))
