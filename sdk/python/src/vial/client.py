"""client - sandboxes for ordinary, blocking programs."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._callbacks import Callback, Callbacks
from ._core import Core, OnDisplay, OnOutput, SessionCore, Step, tell
from ._defaults import Defaults
from ._exchange import Progress
from ._net import Blocking, now
from ._request import Files, Limits
from ._steps import UNSET, Checkpoint, Policy, Rewind, SessionInfo, Unset
from ._talk import Talk
from .batch import Batch, Case
from .files import SessionFiles
from .results import Result
from .streams import Stream


class Sandbox:
    """Runs code that you did not write.

    Without a server, it finds the local daemon, or starts a private one for this process::

        sandbox = vial.Sandbox()
        print(sandbox.run("print(6 * 7)").stdout)

        with sandbox.session() as session:
            session.run("x = 6")
            assert session.run("x * 7").value == 42

    Args:
        server: `http://...`, `https://...`, or the path of a Unix socket. Default: VIAL_URL, the
            local daemon's socket, a private daemon.
        token: for a server that asks for one. Default: VIAL_TOKEN, with VIAL_URL.
        language, environment, timeout, limits, env, allow_hosts: defaults of every run and session.
        retries: how often a request is sent again that has not been carried out.

    One object can be used by any number of threads, and goes on working in a forked child.
    """

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None,
                 language: str = "python", environment: Optional[str] = None,
                 timeout: Optional[float] = None, limits: Optional[Limits] = None,
                 env: Optional[Mapping[str, str]] = None,
                 allow_hosts: Optional[Sequence[str]] = None, retries: int = 3) -> None:
        self._defaults = Defaults(server, token=token, language=language, environment=environment,
                                  timeout=timeout, limits=limits, env=env,
                                  allow_hosts=allow_hosts, retries=retries)
        self._core = Core(self._defaults, Blocking)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections.  It can be used again."""
        self._core.talk.close()

    @property
    def address(self) -> str:
        """Where its server is; a private one is started by asking."""
        return str(now(self._core.talk.address()))

    @property
    def is_local(self) -> bool:
        """Whether its server is on this machine."""
        return now(self._core.talk.address()).is_local

    # ---- runs ----

    def run(self, code: str, language: Optional[str] = None, *, environment: Optional[str] = None,
            files: Optional[Files] = None, args: Sequence[str] = (),
            env: Optional[Mapping[str, str]] = None, stdin: Union[str, bytes, None] = None,
            timeout: Optional[float] = None, limits: Optional[Limits] = None,
            workdir: Optional[str] = None, writable: Optional[bool] = None,
            exports: Sequence[str] = (), name: Optional[str] = None,
            directory: Optional[str] = None, mounts: Optional[Mapping[str, str]] = None,
            network: bool = False, allow_hosts: Optional[Sequence[str]] = None, check: bool = False,
            progress: Optional[Progress] = None) -> Result:
        """Run a program in a fresh sandbox, and wait for its end.

        Args:
            files: what the workspace holds, by name: text, bytes, or the path of a file here.
            limits: `memory`, `cpus`, `processes`...; see vial-run(1).
            exports: names or patterns of files to hand back in `Result.exports`.
            name: of the file that the code is in.
            workdir, writable: where the workspace is (/sandbox), and whether it can be written.
            directory: a directory of this machine as the workspace; only with a local server.
            mounts: others of this machine to be read, by where they appear; likewise.
            network: the host's network, where the operator permits it; only with a local server.
            allow_hosts: hosts that it may reach: "example.org", "*.example.com:8443"; the
                result's `network` says what became of it. Default: the server's, which is none.
            check: raise if the program fails; see `Result.check`.
            progress: is told (sent, total) bytes while the request is sent.
        """
        options = self._defaults.options(code, language, environment, files, args, env, stdin,
                                         timeout, limits, workdir, writable, exports, name,
                                         directory, network, mounts, allow_hosts)
        return now(self._core.run(options, progress, check))

    def stream(self, code: str, language: Optional[str] = None, *,
               environment: Optional[str] = None, files: Optional[Files] = None,
               args: Sequence[str] = (), env: Optional[Mapping[str, str]] = None,
               stdin: Union[str, bytes, None] = None, timeout: Optional[float] = None,
               limits: Optional[Limits] = None, workdir: Optional[str] = None,
               writable: Optional[bool] = None, exports: Sequence[str] = (),
               name: Optional[str] = None,
               allow_hosts: Optional[Sequence[str]] = None) -> Stream:
        """As run(), but tells what happens while it does::

            for event in sandbox.stream("print(1)"):
                print(event)
        """
        options = self._defaults.options(code, language, environment, files, args, env, stdin,
                                         timeout, limits, workdir, writable, exports, name,
                                         allow_hosts=allow_hosts)
        return Stream(self._core.talk, self._defaults.run_request(options, streamed=True),
                      is_run=True)

    def batch(self, code: Optional[str], runs: Sequence[Case], language: Optional[str] = None, *,
              environment: Optional[str] = None, files: Optional[Files] = None,
              args: Sequence[str] = (), env: Optional[Mapping[str, str]] = None,
              timeout: Optional[float] = None, limits: Optional[Limits] = None,
              exports: Sequence[str] = (), name: Optional[str] = None,
              compare: Optional[str] = None, tolerance: Optional[float] = None,
              parallel: Optional[int] = None, stop_on_failure: bool = False,
              detail: Optional[str] = None) -> Batch:
        """Run a program many times, each in a fresh sandbox, and judge what it prints::

            sandbox.batch("print(int(input()) ** 2)", [("2", "4"), ("3", "9")]).verdict

        Args:
            code: the program that they share; None: each has its own.
            runs: (stdin, expected) each, or a mapping with any members of a run, and `expected`,
                `label`, `compare`, `tolerance`.
            compare: "trimmed" (the default: blanks at the ends of lines do not count), "exact",
                "tokens" or "floats", which may differ by `tolerance`.
            parallel: how many at once.
            stop_on_failure: the first that is not accepted is the last.
            detail: "full", "failures" or "verdicts": which have their `result`.
        """
        shared = self._defaults.options(code, language, environment, files, args, env, None,
                                        timeout, limits, None, None, exports, name)
        return now(self._core.batch(shared, runs, compare=compare, tolerance=tolerance,
                                     parallel=parallel, stop_on_failure=stop_on_failure,
                                     detail=detail))

    def runs(self) -> List[Dict[str, Any]]:
        """Those under way."""
        return now(self._core.runs())

    def kill(self, id: str) -> bool:
        """End a run.  False: it is not under way."""
        return now(self._core.kill(id))

    # ---- the server ----

    def environments(self) -> List[Dict[str, Any]]:
        """What code can run in."""
        return now(self._core.environments())

    def is_healthy(self) -> bool:
        """Whether the server answers."""
        return now(self._core.is_healthy())

    # ---- sessions ----

    def session(self, language: Optional[str] = None, *, environment: Optional[str] = None,
                files: Optional[Files] = None, env: Optional[Mapping[str, str]] = None,
                timeout: Optional[float] = None, limits: Optional[Limits] = None,
                idle_timeout: Optional[float] = None, lifetime: Optional[float] = None,
                max_episodes: Optional[int] = None, policy: Union[Policy, Unset] = UNSET,
                allow_hosts: Optional[Sequence[str]] = None, rewind: Rewind = False,
                progress: Optional[Progress] = None) -> Session:
        """An interpreter that lives on between steps.  Leaving its `with` block closes it.

        Args:
            timeout: of each step.
            limits: of each step, and of the whole (`memory`, `processes`...).
            idle_timeout, lifetime: seconds until the server closes it by itself.
            policy: what the code may import and do; see docs/POLICY.md.
            allow_hosts: hosts that it may reach, as for run().
            rewind: a step that crashes, exits or hangs is taken back, and the session goes on
                (not JavaScript; a step then costs a fork).  `{"undo": 5}`: so are, when asked
                to, the last five good ones, instead of one.
        """
        request = self._defaults.session_request(language, environment, files, env, timeout, limits,
                                                 idle_timeout, lifetime, max_episodes, policy,
                                                 allow_hosts, rewind, progress)
        return Session(self._core.talk, now(self._core.open_session(request)))

    def sessions(self) -> List[SessionInfo]:
        """Those that are alive."""
        return now(self._core.sessions())

    def close_session(self, id: str) -> None:
        """Close the session of this id, if it is there."""
        now(self._core.close_session(id))

    def attach(self, id: str) -> Session:
        """The session of this id, which somebody else may have made."""
        return Session(self._core.talk, now(self._core.session_info(id)))


class Session:
    """A live interpreter: variables, functions, imports and files stay from step to step.

    Steps run in the order in which they were asked for, from whatever threads.
    """

    def __init__(self, talk: Talk, info: SessionInfo,
                 callbacks: Optional[Dict[str, Callback]] = None) -> None:
        self._core = SessionCore(talk, info, callbacks)
        self.id = info.id
        self.language = info.language
        self.environment = info.environment
        self.files = SessionFiles(self._core.files)

    def __repr__(self) -> str:
        return "<Session %s, %s>" % (self.id, self.environment or self.language)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def run(self, code: str, *, mode: Optional[str] = None, name: Optional[str] = None,
            globals: Optional[Mapping[str, Any]] = None, callbacks: Optional[Callbacks] = None,
            calls_max: Optional[int] = None, policy: Union[Policy, Unset] = UNSET,
            figures: Optional[bool] = None, value_max: Optional[int] = None,
            timeout: Optional[float] = None, on_output: Optional[OnOutput] = None,
            on_display: Optional[OnDisplay] = None, check: bool = False) -> Result:
        """Run a step, and wait for its end.

        Args:
            mode: "cell" (the default: the value of a last expression, top-level await), "script",
                or "function" (the body of an async function: `return` gives the value).
            globals: names to set before, to what JSON can say.
            callbacks: functions of this process that the code may call, by name. Plain ones run in
                this thread; asynchronous ones, which the code may await, in a loop of their own.
                Exceptions travel with their type. Absent: those of the step before.
            calls_max: how many calls the step may make.
            on_output, on_display: are told (stream, text), and what is shown, as it happens.
            check: raise if the step fails; see `Result.check`.
        """
        step = Step(self._core, code, callbacks, mode=mode, name=name, globals=globals,
                    calls_max=calls_max, policy=policy, figures=figures, value_max=value_max,
                    timeout=timeout)
        if step.callbacks or on_output or on_display:
            with Stream(self._core.talk, step.request(streamed=True), step.callbacks,
                        self.id) as stream:
                for event in stream:
                    tell(event, on_output, on_display)
                result = stream.result
        else:
            result = now(self._core.run(step))
        return result.check() if check else result

    def stream(self, code: str, *, mode: Optional[str] = None, name: Optional[str] = None,
               globals: Optional[Mapping[str, Any]] = None, callbacks: Optional[Callbacks] = None,
               calls_max: Optional[int] = None, policy: Union[Policy, Unset] = UNSET,
               figures: Optional[bool] = None, value_max: Optional[int] = None,
               timeout: Optional[float] = None) -> Stream:
        """As run(), but tells what happens while it does.  Calls are answered on the way."""
        step = Step(self._core, code, callbacks, mode=mode, name=name, globals=globals,
                    calls_max=calls_max, policy=policy, figures=figures, value_max=value_max,
                    timeout=timeout)
        return Stream(self._core.talk, step.request(streamed=True), step.callbacks, self.id)

    def interrupt(self) -> bool:
        """As Ctrl-C would.  False: no step was under way."""
        return now(self._core.interrupt())

    def fork(self, count: int = 1, *, deterministic: bool = False) -> Branches:
        """More sessions that are as this one is now, each in a sandbox of its own.

        This one goes on, too.  Random numbers differ between them unless they shall be
        `deterministic`.  What cannot be in two places (threads, child processes, sockets, pipes) is
        refused (Denied), and nothing has happened then.  With `rewind` branches have it, too; undo
        and checkpoints do not reach beyond the fork, in this one neither.

            with session.fork(8) as branches:   # closed at the end
                for branch in branches:
                    branch.run("...")
        """
        infos = now(self._core.fork(count, deterministic))
        return Branches(Session(self._core.talk, info, self._core.callbacks) for info in infos)

    def undo(self, steps: int = 1) -> Result:
        """Take back the last steps, with their files; `state` of the result is "rolled_back".

        It needs a session with `rewind`, which says how many can be: `rewind={"undo": 5}`.
        """
        return now(self._core.undo(steps))

    def checkpoint(self, name: str) -> Checkpoint:
        """Keep what the session is now, with its files, under a name.  It needs `rewind`."""
        return now(self._core.checkpoint(name))

    def restore(self, name: str) -> Result:
        """Be again what it was at a checkpoint, as often as you like.

        What came before cannot be undone any more.
        """
        return now(self._core.restore(name))

    def checkpoints(self) -> List[Checkpoint]:
        """Those there are: when memory is short the server's host may drop some."""
        return now(self._core.checkpoints())

    def forget(self, name: str) -> None:
        """Forget a checkpoint, and give its memory back."""
        now(self._core.forget(name))

    def reset(self) -> None:
        """A fresh interpreter and workspace, under the same id."""
        now(self._core.reset())

    def extend(self, lifetime: float) -> None:
        """Let it live for so many seconds from now."""
        now(self._core.post("/extend", {"lifetime": lifetime}))

    def info(self) -> SessionInfo:
        """What the server says about it."""
        return now(self._core.info())

    def close(self) -> None:
        """End it.  Once is enough; again does nothing."""
        now(self._core.close())


class Branches(List[Session]):
    """What a session was forked into; `with` closes them all."""

    def __enter__(self) -> Branches:
        return self

    def __exit__(self, *exc: Any) -> None:
        for branch in self:
            branch.close()
