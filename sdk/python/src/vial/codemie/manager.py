"""manager - the executors of this process, and the users' directories.

An executor ("pod", as it was) is a place to run one program at a time; there are so many of them.
Every program has a sandbox of its own: nothing passes from one to the next but the files in a
user's directory, which no other user's program can see.
"""
from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import logging
import os
import posixpath
import shutil
import tempfile
import threading
import time
import uuid
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from .._default import default, pick_image
from ..client import Sandbox
from ..errors import APIError, VialError
from ..results import Result
from .beneath import write_beneath
from .check import Violation, find_violations
from .config import DOCKER_IMAGE, CodeExecutorConfig
from .copies import Trial, will_do
from .exceptions import ToolException
from .policy import SecurityPolicy

logger = logging.getLogger(__name__)

ENVIRONMENTS = ("codemie", "python-data", "python")
STORAGE = "1g"
OUTPUT = "16m"  # whoever wants less cuts it
PLOTTING = "256Mi"  # instead of the usual limit, of which loading what plots would leave nothing
GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest")
INSIDE = "/opt/vial"  # where code finds what is in GUEST
FONTS = ".matplotlib"  # in a user's directory
LIST_FONTS = """
from matplotlib import font_manager
font_manager.json_dump(font_manager.fontManager,
                       "fontlist-v%s.json" % font_manager.FontManager.__version__)
"""


class ExecutorSession:
    """A place to run programs in, one at a time."""

    def __init__(self, pod_name: str, client: Sandbox) -> None:
        self.pod_name = pod_name
        self.is_open = True
        self._client = client

    def close(self) -> None:
        self.is_open = False

    @staticmethod
    def is_safe(code: str, policy: Optional[SecurityPolicy]) -> Tuple[bool, List[Violation]]:
        """Whether the policy lets the code pass, and what it objects to."""
        found = find_violations(code, policy)
        return not found, found

    def run(self, code: str, config: CodeExecutorConfig, workdir: str, directory: str,
            environment: Optional[str]) -> Result:
        """Run it in `workdir`, which is the host's `directory`."""
        options: Dict[str, Any] = {
            "environment": environment, "timeout": config.execution_timeout,
            "limits": {"memory": config.memory_limit, "cpus": config.cpu_limit,
                       "workspace": STORAGE, "output": OUTPUT}}
        if not self._client.is_local:
            trial = Trial(self._client, code, directory, options)
            if not trial.is_whole:
                logger.warning("Not all that the code left in its directory could be kept")
            return trial.keep()
        if will_do(code, workdir, directory):
            with contextlib.suppress(APIError):  # what there is to refuse is refused below, too
                trial = Trial(self._client, code, directory, options)
                # Who looked for the directory by its name will find it there.
                if trial.is_same and workdir not in trial.result.stderr:
                    return trial.keep()
        return self._run_there(code, workdir, directory, options)

    def _run_there(self, code: str, workdir: str, directory: str, options: Dict[str, Any]
                   ) -> Result:
        """In the directory itself."""
        env = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": "/tmp",
               "OPENBLAS_NUM_THREADS": "1",  # each more takes memory that small limits do not have
               "PYTHONPATH": "%s:%s" % (workdir, INSIDE)}
        if any(name in code for name in ("matplotlib", "pylab", "seaborn")):  # a mention will do
            env["MPLBACKEND"] = "module://vial_figures"
            env["MPLCONFIGDIR"] = "%s/%s" % (workdir, FONTS)
            if options["limits"]["memory"] == CodeExecutorConfig.memory_limit:
                options = {**options, "limits": {**options["limits"], "memory": PLOTTING}}
            for name, content in _fonts(self._client, options["environment"]).items():
                write_beneath(directory, "%s/%s" % (FONTS, name), content)
        return self._client.run(code, directory=directory, workdir=posixpath.normpath(workdir),
                                mounts={INSIDE: GUEST}, env=env, **options)


@functools.lru_cache(maxsize=16)
def _fonts(client: Sandbox, environment: Optional[str]) -> Mapping[str, bytes]:
    """The list of fonts that matplotlib makes for itself where it finds none.

    That takes seconds, and a good part of a small memory limit; a warm interpreter has it.
    """
    try:
        made = client.run(LIST_FONTS, environment=environment, exports=["fontlist-*.json"])
    except VialError:
        return {}
    return {item.path: item.content for item in made.exports if item.content is not None}


class SandboxSessionManager:
    """The executors of this process.  There is one manager: constructing it again gives the same.

    Args:
        config: of executors that are made without settings of their own.
    """

    _instance: Optional[SandboxSessionManager] = None
    _lock = threading.Lock()
    _is_initialized = False

    def __new__(cls, config: Optional[CodeExecutorConfig] = None) -> SandboxSessionManager:
        with cls._lock:
            if cls._instance is None:
                cls._instance = super().__new__(cls)
            return cls._instance

    def __init__(self, config: Optional[CodeExecutorConfig] = None) -> None:
        with self._lock:
            if self._is_initialized:
                return
            self._is_initialized = True
            self._config = config or CodeExecutorConfig.from_env()
            self._client: Optional[Sandbox] = None
            self._environments: Dict[str, Optional[str]] = {}
            self._sessions: Dict[str, ExecutorSession] = {}
            self._session_timestamps: Dict[str, float] = {}
            self._session_locks: Dict[str, threading.Lock] = {}
            self._changed = threading.Condition()
            self._pid = os.getpid()
            self._root: Optional[str] = None
        atexit.register(self._remove_files)

    # ---- executors ----

    @property
    def pool_size(self) -> int:
        """How many executors there are."""
        return len(self._sessions)

    def _get_or_create_lock(self, pod_name: str) -> threading.Lock:
        """Held by whoever runs something there."""
        return self._session_locks.setdefault(pod_name, threading.Lock())

    @contextlib.contextmanager
    def lease(self, config: Optional[CodeExecutorConfig] = None) -> Iterator[ExecutorSession]:
        """An executor for oneself: one that is free, a new one, or the next to become free.

        Raises:
            ToolException: none became free within `default_timeout`.
        """
        config = config or self._config
        session, lock = self._take(config)
        try:
            yield session
        finally:
            with self._changed:
                lock.release()  # the one taken: close_all() may have forgotten it meanwhile
                self._changed.notify()

    def _take(self, config: CodeExecutorConfig) -> Tuple[ExecutorSession, threading.Lock]:
        deadline = time.monotonic() + config.default_timeout
        with self._changed:
            while True:
                session = self._take_free(config) or self._take_new(config)
                if session is not None:
                    return session, self._get_or_create_lock(session.pod_name)
                left = deadline - time.monotonic()
                if left <= 0:
                    most = config.max_pod_pool_size
                    raise ToolException("Code executor is at capacity (%d/%d Jobs). Please retry."
                                        % (self.pool_size, most))
                self._changed.wait(left)

    def _take_free(self, config: CodeExecutorConfig) -> Optional[ExecutorSession]:
        for name in list(self._sessions):
            lock = self._get_or_create_lock(name)
            if not lock.acquire(blocking=False):
                continue
            if self._is_session_healthy(name, config) \
                    and self.pool_size <= config.max_pod_pool_size:
                return self._sessions[name]
            self._drop(name)
            lock.release()
        return None

    def _take_new(self, config: CodeExecutorConfig) -> Optional[ExecutorSession]:
        if self.pool_size >= config.max_pod_pool_size:
            return None
        if self._client is None:
            self._client = default()
        name = config.pod_name_prefix + uuid.uuid4().hex[:8]
        session = ExecutorSession(name, self._client)
        self._sessions[name] = session
        self._session_timestamps[name] = time.time()
        self._get_or_create_lock(name).acquire()
        logger.debug("New executor: %s (%d of %d)", name, self.pool_size, config.max_pod_pool_size)
        return session

    def _is_session_healthy(self, name: str, config: CodeExecutorConfig) -> bool:
        age = time.time() - self._session_timestamps[name]
        return self._sessions[name].is_open and age < config.session_timeout

    def _drop(self, name: str) -> None:
        self._sessions.pop(name).close()
        self._session_timestamps.pop(name, None)
        self._session_locks.pop(name, None)

    def close_all(self) -> None:
        """Close every executor, and remove the users' files."""
        with self._changed:
            for name in list(self._sessions):
                self._drop(name)
            self._remove_files()

    # ---- users ----

    def directory(self, workdir: str, user_id: str = "") -> str:
        """Where on this machine a user's working directory lies.

        By the id as it was given: `a/b` and `a_b` work in directories of one name, and must not
        find each other's files there.
        """
        with self._changed:
            if self._root is None:
                self._root = tempfile.mkdtemp(prefix="vial-codemie-")
            whose = repr((workdir, user_id)).encode("utf-8", "backslashreplace")
            path = os.path.join(self._root, hashlib.sha256(whose).hexdigest()[:32])
            os.makedirs(path, mode=0o755, exist_ok=True)
            return path

    def environment(self, image: str) -> Optional[str]:
        """Of that image; for the usual one, with its libraries if the server has them."""
        if image not in self._environments:
            client = self._client or default()
            self._environments[image] = pick_image(client.environments(), image, DOCKER_IMAGE,
                                                   ENVIRONMENTS)
        return self._environments[image]

    def _remove_files(self) -> None:
        root, self._root = self._root, None
        if root is not None and self._pid == os.getpid():
            shutil.rmtree(root, ignore_errors=True)


def _after_fork() -> None:
    SandboxSessionManager._lock = threading.Lock()
    SandboxSessionManager._instance = None


os.register_at_fork(after_in_child=_after_fork)
