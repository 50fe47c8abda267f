"""A server behind TLS."""
import asyncio
import http.server
import json
import shutil
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
    pytest.importorskip("httpx")
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
