"""A real daemon for all tests: VIAL_BINARY, else the one that the source tree has built."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import pytest

from vial import _daemon, _default

ROOT = pathlib.Path(__file__).resolve().parents[3]


def find_binary():
    named = os.environ.get("VIAL_BINARY")
    built = ROOT / "build" / "vial"
    return named or (str(built) if built.exists() else shutil.which("vial"))


@pytest.fixture(scope="session")
def binary():
    found = find_binary()
    if found is None:
        pytest.skip("there is no vial command: build it, or set VIAL_BINARY")
    os.environ["VIAL_BINARY"] = found
    return found


@pytest.fixture(scope="session")
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def url(daemon, port):
    return "http://127.0.0.1:%d" % port


@pytest.fixture(scope="session")
def daemon(binary, port):
    """The socket of a daemon."""
    folder = tempfile.mkdtemp(prefix="vial-sdk-")
    path = os.path.join(folder, "s")
    with open(os.path.join(folder, "log"), "wb") as log:
        process = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:%d" % port,
                                    "--socket", path, "--armed", "2"], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, env={**os.environ, "STATE_DIRECTORY": folder})
    deadline = time.monotonic() + 30
    while not _daemon.answers(path):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail("vial serve did not start: " + pathlib.Path(log.name).read_text())
        time.sleep(0.02)
    yield path
    process.terminate()
    process.wait(30)
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def local(daemon, monkeypatch):
    """Clients without an address find that daemon, and nothing of the host's."""
    for name in list(os.environ):
        if name.startswith(("VIAL_URL", "VIAL_TOKEN", "CODE_EXECUTOR_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("VIAL_SOCKET", daemon)
    _default.default.cache_clear()
    _default.default_async.cache_clear()


@pytest.fixture
def sandbox(daemon):
    import vial
    with vial.Sandbox(daemon) as made:
        yield made
