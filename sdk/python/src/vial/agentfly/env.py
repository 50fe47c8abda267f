"""env - PythonSandboxEnv: an interpreter to be stepped through episodes."""
from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NamedTuple, Optional

from .. import errors
from .._default import close_with, default_async, pick_image, run_or_interrupt
from ..aio import AsyncSandbox, AsyncSession
from ..client import Sandbox
from ..results import Result

IMAGE = "reasonwang/python-http-env:latest"
STEP_S = 10.0        # of one snippet
RESET_S = 20.0
PROCESSES = 256
OUTPUT_MAX = 16384   # characters
ERROR_MAX = 8192
IDLE_S = 3600.0
LIFETIME_S = 86400.0

# An exit is an error like any other, and ends nothing; exit() closes the input before it raises one.
STEP = """
try:
    exec(compile(__snippet__, "<user>", "exec"))
except SystemExit as __exit:
    import sys as __sys
    if __sys.stdin.closed:
        __sys.stdin = open("/dev/null")
    del __sys
    raise type("SystemExit", (Exception,), {})(__exit) from None
"""


class Observation(NamedTuple):
    """What a snippet left: its output, or the one line of its error."""

    text: str
    is_error: bool


class PythonSandboxEnv:
    """A Python sandbox: variables stay from step to step, until reset().

    Args:
        image: a container image that an environment of the server is made of (`vial env build NAME
            --image IMAGE`). The default one need not be there: its libraries are.
        runtime, host_ip, container_port: accepted and kept; there is no container.
        cpu: cores.
        mem: memory, such as "2g".
        start_timeout: how long start() may take, in seconds.
        max_episodes: after so many episodes the sandbox is replaced by a new one. An episode ends
            with reset(); between two steps nothing is replaced.
        client: the vial.AsyncSandbox to use. Default: that of this process.
    """

    def __init__(self, image: str = IMAGE, runtime: str = "runc",
                 cpu: float = 2, mem: str = "2g", start_timeout: float = 60.0,
                 max_episodes: int = 100, host_ip: str = "127.0.0.1", container_port: int = 8000,
                 *, client: Optional[AsyncSandbox] = None) -> None:
        self.image, self.runtime = image, runtime
        self.cpu, self.mem = cpu, mem
        self.start_timeout, self.max_episodes = start_timeout, max_episodes
        self.host_ip, self.container_port = host_ip, container_port
        self._client = client
        self._session: Optional[AsyncSession] = None
        self._address = ""
        self._episodes = 0

    # ---- life ----

    async def __aenter__(self) -> PythonSandboxEnv:
        await self.start()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.aclose()

    @staticmethod
    async def acquire() -> PythonSandboxEnv:
        """An environment that is started and reset."""
        env = PythonSandboxEnv()
        await env.start()
        await env.reset()
        return env

    async def start(self) -> None:
        """Make the sandbox; it is ready when this returns.

        Raises:
            RuntimeError: it was not, within `start_timeout`.
        """
        if self._session is not None:
            return
        # Not wait_for(), which may lose the end of the time to a cancellation further down.
        opening = asyncio.ensure_future(self._open())
        try:
            done, _ = await asyncio.wait([opening], timeout=self.start_timeout)
            if not done:
                raise asyncio.TimeoutError
            await opening
        except (asyncio.TimeoutError, asyncio.CancelledError, errors.VialError) as why:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            await self.aclose()  # it may have come late
            if isinstance(why, asyncio.CancelledError):
                raise
            raise RuntimeError("Sandbox did not become ready within %ss.\n%s"
                               % (self.start_timeout, why)) from why

    async def _open(self) -> None:
        client = self._client or default_async()
        self._address = await client.address()
        environment = pick_image(await client.environments(), self.image, IMAGE,
                                 ["python-data", "python"])
        self._session = await client.session(
            environment=environment, timeout=STEP_S,
            limits={"cpus": self.cpu, "memory": self.mem, "processes": PROCESSES},
            idle_timeout=IDLE_S, lifetime=LIFETIME_S)
        self._episodes = 0
        close_with(self, self._address, self._session.id)

    async def aclose(self) -> None:
        """Destroy the sandbox.  Again does nothing."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(errors.VialError):
                await session.aclose()

    def close(self) -> None:
        """aclose() without an event loop."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(errors.VialError):
                Sandbox(self._address).close_session(session.id)

    async def _restart(self) -> None:
        await self.aclose()
        await self.start()

    # ---- episodes ----

    async def reset(self, env_args: Any = None) -> str:
        """End the episode: forget all state.  `env_args` is accepted and not used."""
        session = self._require()
        self._episodes += 1
        if self.max_episodes and self._episodes >= self.max_episodes:
            await self._restart()
            return ""
        try:
            await asyncio.wait_for(session.reset(), RESET_S)
        except (asyncio.TimeoutError, errors.VialError):
            await self._restart()
        return ""

    async def step(self, code: str) -> str:
        """Run code, and give back what it printed, or `Type: message` if it failed.

        Raises:
            TimeoutError: it ran out of time. The environment has been restarted, and is empty.
        """
        return (await self.observe(code)).text

    async def observe(self, code: str) -> Observation:
        """step(), and whether what it gives back is an error."""
        session = self._require()
        try:
            result = await self._run(session, code)
        except errors.NotFound:  # the server has closed it
            await self._restart()
            result = await self._run(self._require(), code)
        if result.timed_out:
            await self._forget(session)
            raise TimeoutError("Execution timed out")
        error = _error_line(result)
        if error is not None:
            return Observation(error[:ERROR_MAX], True)
        return Observation(result.stdout[:OUTPUT_MAX], False)

    @staticmethod
    async def _run(session: AsyncSession, code: str) -> Result:
        return await run_or_interrupt(session, STEP, mode="script",
                                      globals={"__snippet__": code}, timeout=STEP_S)

    async def _forget(self, session: AsyncSession) -> None:
        try:
            await asyncio.wait_for(session.reset(), RESET_S)
        except (asyncio.TimeoutError, errors.VialError):
            if self._session is session:
                await self._restart()

    def _require(self) -> AsyncSession:
        if self._session is None:
            raise RuntimeError("PythonSandboxEnv not started (no HTTP client)")
        return self._session


def _error_line(result: Result) -> Optional[str]:
    """One line, or None: all went well."""
    told = result.exception
    if result.oom or (told is not None and told.type == "MemoryError"):
        return "Memory limit exceeded\n"
    if told is not None:
        return "%s: %s\n" % (told.type, told.message)
    if result.signal is not None:
        return "RuntimeError: signal %d ended the interpreter\n" % result.signal
    if result.interrupted:
        return "KeyboardInterrupt: \n"
    if result.state == "lost" and result.exit_code is not None:
        return "SystemExit: %d\n" % result.exit_code
    return None
