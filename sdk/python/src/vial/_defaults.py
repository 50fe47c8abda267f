"""_defaults - what both clients have in common: their defaults, and requests made of them."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _request
from ._discover import Server
from ._exchange import Progress, Request
from ._request import Files, Limits
from ._steps import Policy, Rewind, Unset, session_body
from .errors import InvalidRequest

REFUSED = "not over HTTP"  # how the server begins when only the command can


class Options(Dict[str, Any]):
    """The arguments of a run, complete: for `_request.run_body`, or for `_command.run`."""

    command_only: bool = False


class Defaults:
    """Of a client."""

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None,
                 language: str = "python", environment: Optional[str] = None,
                 timeout: Optional[float] = None, limits: Optional[Limits] = None,
                 env: Optional[Mapping[str, str]] = None,
                 allow_hosts: Optional[Sequence[str]] = None, retries: int = 3) -> None:
        self.server = Server(server, token)
        self.language = language
        self.environment = environment
        self.limits = _request.merge_limits(limits, timeout=timeout)
        self.env = dict(env or {})
        self.allow_hosts = allow_hosts
        self.retries = retries
        self.refused: List[frozenset[str]] = []  # what the server would not do, so far

    def _where(self, language: Optional[str], environment: Optional[str]
               ) -> tuple[Optional[str], Optional[str]]:
        if language is not None or environment is not None:
            return language, environment
        return (None, self.environment) if self.environment else (self.language, None)

    def options(self, code: Optional[str], language: Optional[str], environment: Optional[str],
                files: Optional[Files], args: Sequence[str], env: Optional[Mapping[str, str]],
                stdin: Union[str, bytes, None], timeout: Optional[float],
                limits: Optional[Limits], workdir: Optional[str], writable: Optional[bool],
                exports: Sequence[str], name: Optional[str], directory: Optional[str] = None,
                network: bool = False, mounts: Optional[Mapping[str, str]] = None,
                allow_hosts: Optional[Sequence[str]] = None) -> Options:
        language, environment = self._where(language, environment)
        made = Options(
            code=code, language=language, environment=environment, files=files, args=args,
            env={**self.env, **(env or {})}, stdin=stdin, workdir=workdir, writable=writable,
            limits=_request.merge_limits(self.limits, limits, timeout=timeout), exports=exports,
            name=name, allow_hosts=self.allow_hosts if allow_hosts is None else allow_hosts)
        if directory is not None or network or mounts:
            made.update(directory=directory, network=network, mounts=mounts)
            made.command_only = True
        return made

    def needs_command(self, options: Options) -> bool:
        return options.command_only or self._peculiar(options) in self.refused

    def refuses(self, options: Options, why: InvalidRequest) -> bool:
        """Whether the server has said that it does not do this; then it is not asked again."""
        if not why.message.startswith(REFUSED):
            return False
        peculiar = self._peculiar(options)
        if peculiar and peculiar not in self.refused:
            self.refused.append(peculiar)
        return True

    @staticmethod
    def _peculiar(options: Options) -> frozenset[str]:
        found = set()
        if options["workdir"] is not None:
            found.add("workdir")
        if options["writable"] is False:
            found.add("read-only")
        return frozenset(found)

    @staticmethod
    def run_request(options: Options, *, streamed: bool = False,
                    progress: Optional[Progress] = None) -> Request:
        wait = None if streamed else _request.wait_of(options["limits"])
        return _request.post("/v1/runs", _request.run_body(**options), wait, streamed=streamed,
                             progress=progress, once=not streamed)

    def session_request(self, language: Optional[str], environment: Optional[str],
                        files: Optional[Files], env: Optional[Mapping[str, str]],
                        timeout: Optional[float], limits: Optional[Limits],
                        idle_timeout: Optional[float], lifetime: Optional[float],
                        max_episodes: Optional[int], policy: Union[Policy, Unset],
                        allow_hosts: Optional[Sequence[str]] = None, rewind: Rewind = False,
                        progress: Optional[Progress] = None) -> Request:
        language, environment = self._where(language, environment)
        merged = _request.merge_limits(self.limits, limits, timeout=timeout)
        body = session_body(language=language, environment=environment, files=files,
                            env={**self.env, **(env or {})}, limits=merged,
                            idle_timeout=idle_timeout, lifetime=lifetime,
                            max_episodes=max_episodes, policy=policy, rewind=rewind,
                            allow_hosts=self.allow_hosts if allow_hosts is None else allow_hosts)
        return _request.post("/v1/sessions", body, _request.PATIENCE_S * 2, progress=progress,
                             once=True)
