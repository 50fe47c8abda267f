"""Finding a server; servers that misbehave; a private daemon."""
import json
import os
import re
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import vial
from vial._address import Address
from vial._daemon import answers

OK = json.dumps({"id": "1", "result": {"outcome": "exited", "exit_code": 0, "stdout": "x"}})


class Fake:
    """A server that answers as told, one connection after the other."""

    def __init__(self, path, *answers):
        self.requests = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        self.answers = list(answers)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while self.answers:
            connection, _ = self.socket.accept()
            with connection:
                self.requests.append(connection.recv(1 << 16))
                connection.sendall(self.answers.pop(0))


def answer(status, body, *headers):
    lines = ["HTTP/1.1 %d X" % status, "Content-Length: %d" % len(body), "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def busy(code=503):
    return answer(code, json.dumps({"error": {"code": "busy", "message": "full"}}), "Retry-After: 0")


def test_what_was_refused_is_tried_again(tmp_path):
    fake = Fake(tmp_path / "s", busy(), busy(429), answer(200, OK))
    assert vial.Sandbox(str(tmp_path / "s")).run("1").stdout == "x"
    assert len(fake.requests) == 3


def test_not_for_ever(tmp_path):
    Fake(tmp_path / "s", busy(), busy())
    with pytest.raises(vial.Busy):
        vial.Sandbox(str(tmp_path / "s"), retries=1).run("1")


def key_of(request):
    return re.search(rb"\r\nIdempotency-Key: ([0-9a-f]{32})\r\n", request).group(1)


def test_what_may_have_run_is_asked_for_by_its_key(tmp_path):
    under_way = answer(409, json.dumps({"error": {"code": "busy", "message": "under way"}}),
                       "Retry-After: 0")
    fake = Fake(tmp_path / "s", b"", *[under_way] * 5, answer(200, OK))
    assert vial.Sandbox(str(tmp_path / "s"), retries=1).run("1").stdout == "x"
    assert len(fake.requests) == 7
    assert len({key_of(request) for request in fake.requests}) == 1


def test_each_run_has_a_key_of_its_own(tmp_path):
    fake = Fake(tmp_path / "s", answer(200, OK), answer(200, OK))
    sandbox = vial.Sandbox(str(tmp_path / "s"))
    sandbox.run("1")
    sandbox.run("1")
    assert key_of(fake.requests[0]) != key_of(fake.requests[1])


def test_what_nobody_waits_for_is_ended(tmp_path):
    fake = Fake(tmp_path / "s", b"", answer(200, "{}"))
    with pytest.raises(vial.ServerUnavailable) as caught:
        vial.Sandbox(str(tmp_path / "s"), retries=0).run("1")
    assert caught.value.was_sent
    assert fake.requests[1].startswith(b"DELETE /v1/runs/%s " % key_of(fake.requests[0]))


def test_a_step_that_may_have_run_is_not_tried_again(tmp_path):
    session = json.dumps({"id": "5", "environment": "python", "language": "python", "state": "idle"})
    fake = Fake(tmp_path / "s", answer(201, session), b"", answer(200, OK))
    made = vial.Sandbox(str(tmp_path / "s")).session()
    with pytest.raises(vial.ServerUnavailable):
        made.run("1")
    assert len(fake.requests) == 2


def test_a_token_is_sent(tmp_path):
    fake = Fake(tmp_path / "s", answer(200, OK))
    vial.Sandbox(str(tmp_path / "s"), token="secret").run("1")
    assert b"Authorization: Bearer secret\r\n" in fake.requests[0]
    assert "secret" not in repr(Address("x", token="secret"))


def test_addresses():
    assert Address.parse("http://[::1]:6000/api/").url == "http://[::1]:6000/api"
    assert Address.parse("unix:///run/x").path == "/run/x"
    assert Address.parse("https://h").is_plain is False
    with pytest.raises(ValueError, match="not the address"):
        Address.parse("ftp://x")


PROGRAM = """
import os, sys, time
import vial
sandbox = vial.Sandbox()
print(sandbox.run("print('hi')").stdout, end="")
print(sandbox.address, flush=True)
%s
"""


def start(binary, then=""):
    env = {k: v for k, v in os.environ.items() if k not in ("VIAL_SOCKET", "XDG_RUNTIME_DIR")}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(PROGRAM % then)],
                            env={**env, "VIAL_BINARY": binary}, stdout=subprocess.PIPE, text=True)


def gone(path):
    deadline = time.monotonic() + 15
    while answers(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(answers("/run/vial/vial.sock"), reason="a daemon is there")
@pytest.mark.parametrize("then", ["", "time.sleep(60)"])
def test_a_private_daemon_ends_with_its_process(binary, then):
    with start(binary, then) as process:
        assert process.stdout.readline() == "hi\n"
        path = process.stdout.readline().strip()
        if then:
            assert answers(path)
            process.kill()
    assert gone(path)


@pytest.mark.skipif(answers("/run/vial/vial.sock"), reason="a daemon is there")
def test_a_private_daemon_that_died_is_replaced(binary):
    then = """
    from vial import _daemon
    _daemon._private.process.kill()
    _daemon._private.process.wait()
    print(sandbox.run("print('again')").stdout, end="")
    """
    with start(binary, textwrap.dedent(then)) as process:
        _, path, again = (line.strip() for line in process.stdout)
    assert again == "again"
    assert not os.path.exists(os.path.dirname(path))


def test_no_command(monkeypatch):
    monkeypatch.setenv("VIAL_BINARY", "/nonexistent/vial")
    from vial import _daemon
    with pytest.raises(vial.DaemonError):
        _daemon.Daemon()
