"""A server behind TLS."""
import asyncio
import base64
import contextlib
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

import vial

RESULT = {"outcome": "exited", "exit_code": 0, "stdout": "x"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer t":
            self.answer(403, {"error": {"code": "denied", "message": "no", "field": None}})
        elif self.headers["Accept"] == "application/x-ndjson":
            lines = [{"event": "start", "id": "1"}, {"event": "output", "stream": "stdout", "data": "x"},
                     {"event": "result", "result": RESULT}]
            self.send("application/x-ndjson", "".join(json.dumps(line) + "\n" for line in lines))
        else:
            self.answer(200, {"id": "1", "result": {**RESULT, "stdout": body["code"]}})

    def answer(self, status, told):
        self.send("application/json", json.dumps(told), status)

    def send(self, kind, text, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def secure(tmp_path, monkeypatch):
    """The URL of such a server, whose certificate is trusted."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    key, certificate = str(tmp_path / "key"), str(tmp_path / "certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
                    certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    yield "https://localhost:%d" % server.server_port
    server.shutdown()
    server.server_close()


def test_both_clients(secure, monkeypatch):
    monkeypatch.setenv("VIAL_URL", secure)
    monkeypatch.setenv("VIAL_TOKEN", "t")
    with vial.Sandbox() as sandbox:
        assert sandbox.run("hello").stdout == "hello"
        assert sandbox.stream("x").result.stdout == "x"
    with pytest.raises(vial.Denied):
        vial.Sandbox(secure, token="wrong").run("x")

    async def main():
        async with vial.AsyncSandbox() as other:
            assert (await other.run("hello")).stdout == "hello"
            assert (await other.stream("x").result()).stdout == "x"
    asyncio.run(main())


def test_a_certificate_that_is_not_trusted(secure, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(vial.ServerUnavailable) as caught:
        vial.Sandbox(secure, retries=0).run("x")
    assert not caught.value.was_sent


class Proxy(threading.Thread):
    """Carries bytes for those who ask with CONNECT, and say who they are."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.asked = []
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1000)
        self.asked.append(head.decode())
        if b"Proxy-Authorization: Basic " + base64.b64encode(b"me:p w") not in head:
            client.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
            client.close()
            return
        host, port = head.split()[1].decode().split(":")
        server = socket.create_connection((host, int(port)))
        client.sendall(b"HTTP/1.1 200 Yes\r\n\r\n")
        threading.Thread(target=self.pump, args=(server, client), daemon=True).start()
        self.pump(client, server)

    @staticmethod
    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy():
    made = Proxy()
    yield made
    made.listener.close()


def test_through_a_proxy(secure, proxy, monkeypatch):
    place = "127.0.0.1:%d" % proxy.listener.getsockname()[1]
    monkeypatch.setenv("https_proxy", "http://me:p%20w@" + place)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with vial.Sandbox(secure, token="t") as sandbox:
        assert sandbox.run("hello").stdout == "hello"

    async def main():
        async with vial.AsyncSandbox(secure, token="t") as other:
            assert (await other.run("hello")).stdout == "hello"
    asyncio.run(main())
    assert [head.split("\r\n")[0] for head in proxy.asked] == \
        ["CONNECT %s HTTP/1.1" % secure[len("https://"):]] * 2
    monkeypatch.setenv("https_proxy", place)
    with pytest.raises(vial.ServerUnavailable, match="the proxy answered 407") as caught:
        vial.Sandbox(secure, token="t", retries=0).run("x")
    assert not caught.value.was_sent
    monkeypatch.setenv("no_proxy", "localhost")
    with vial.Sandbox(secure, token="t") as sandbox:
        assert sandbox.run("hello").stdout == "hello"
