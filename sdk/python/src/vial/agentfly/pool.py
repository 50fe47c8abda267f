"""pool - environments that are kept warm."""
from __future__ import annotations

import asyncio
import contextlib
from typing import Any, AsyncIterator, Callable, List, Optional

from .env import PythonSandboxEnv

SIZE = 16       # per host
RESET_S = 8.0


class EnvironmentPool:
    """So many environments at once; the one that was given back last is taken first.

    Args:
        size: how many there may be; acquire() waits for one when all are taken.
        factory: makes one. It is started by the pool.
    """

    def __init__(self, size: int = SIZE,
                 factory: Callable[[], PythonSandboxEnv] = PythonSandboxEnv) -> None:
        if size < 1:
            raise ValueError("size must be at least 1")
        self.size = size
        self._factory = factory
        self._idle: List[PythonSandboxEnv] = []
        self._taken: List[PythonSandboxEnv] = []
        self._places: Optional[asyncio.Semaphore] = None

    async def __aenter__(self) -> EnvironmentPool:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.aclose()

    def _semaphore(self) -> asyncio.Semaphore:
        if self._places is None:  # it belongs to the loop that is running now
            self._places = asyncio.Semaphore(self.size)
        return self._places

    async def warm(self, count: Optional[int] = None) -> None:
        """Start environments now that will be needed later."""
        wanted = min(self.size if count is None else count, self.size)
        missing = wanted - len(self._idle) - len(self._taken)
        made = [self._factory() for _ in range(max(missing, 0))]
        await asyncio.gather(*[env.start() for env in made])
        self._idle += made

    async def acquire(self) -> PythonSandboxEnv:
        """An environment that is started and fresh."""
        await self._semaphore().acquire()
        try:
            env = self._idle.pop() if self._idle else None
            if env is None:
                env = self._factory()
                await env.start()
            self._taken.append(env)
            return env
        except BaseException:
            self._semaphore().release()
            raise

    async def release(self, env: PythonSandboxEnv) -> None:
        """Give one back: it is reset, or replaced if that fails.  Again does nothing."""
        if env not in self._taken:
            return
        self._taken.remove(env)
        try:
            await asyncio.wait_for(env.reset(), RESET_S)
            self._idle.append(env)
        except Exception:
            await env.aclose()
        finally:
            self._semaphore().release()

    @contextlib.asynccontextmanager
    async def environment(self) -> AsyncIterator[PythonSandboxEnv]:
        """acquire() and release()."""
        env = await self.acquire()
        try:
            yield env
        finally:
            await self.release(env)

    async def aclose(self) -> None:
        """Destroy all of them."""
        envs = self._idle + self._taken
        self._idle, self._taken = [], []
        await asyncio.gather(*[env.aclose() for env in envs])
