"""A server that asks for tokens: VIAL_URL and VIAL_TOKEN, what is refused, what is whose."""
import os
import shutil
import socket
import subprocess
import tempfile
import time

import pytest

import vial
from vial import _daemon


@pytest.fixture(scope="module")
def guarded(binary):
    """(its address, a function that makes tokens)."""
    folder = tempfile.mkdtemp(prefix="vial-sdk-tokens-")
    config, path = os.path.join(folder, "vial.yaml"), os.path.join(folder, "s")
    with open(config, "w", encoding="utf-8") as file:
        file.write("server:\n  tokens: %s/tokens\n" % folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**os.environ, "STATE_DIRECTORY": folder, "VIAL_SOCKET": path}
    process = subprocess.Popen([binary, "serve", "--config", config, "--socket", path, "--armed", "1",
                                "--listen", "127.0.0.1:%d" % port], env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not _daemon.answers(path):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)

    def make(*options):
        return subprocess.run([binary, "token", "create", "--config", config, *options], env=env,
                              check=True, capture_output=True, text=True).stdout.strip()
    make("--tenant", "first")
    yield "http://127.0.0.1:%d" % port, make
    process.terminate()
    process.wait(30)
    shutil.rmtree(folder)


def test_the_environment_says_where_and_who(guarded, monkeypatch):
    url, make = guarded
    monkeypatch.setenv("VIAL_URL", url)
    with pytest.raises(vial.Denied) as caught, vial.Sandbox() as nobody:
        nobody.run("1")
    assert (caught.value.status, caught.value.code) == (401, "unauthorized")
    monkeypatch.setenv("VIAL_TOKEN", make("--tenant", "acme"))
    with vial.Sandbox() as sandbox:
        assert sandbox.run("print(1)").stdout == "1\n"


def test_a_token_that_is_good_for_something_else(guarded):
    url, make = guarded
    with vial.Sandbox(url, token=make("--tenant", "acme", "--scopes", "metrics")) as sandbox:
        with pytest.raises(vial.Denied) as caught:
            sandbox.run("1")
    assert (caught.value.status, caught.value.code) == (403, "forbidden")


def test_a_quota_is_waited_for_and_then_told(guarded):
    url, make = guarded
    token = make("--tenant", "idle", "--quota", "runs=0")
    with vial.Sandbox(url, token=token, retries=0) as sandbox:
        with pytest.raises(vial.Busy) as caught:
            sandbox.run("1")
    assert caught.value.status == 429
