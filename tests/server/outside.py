"""outside - hosts for sandboxes to reach, all of them addresses of our own loopback: HTTP, TLS, DNS."""
import http.server
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Closes", self.headers.get("Connection", ""))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.seen.append((self.path, self.headers.get("Host"), dict(self.headers)))
        if self.path.startswith("/bytes/"):
            self.answer(b"x" * int(self.path[7:]))
        elif self.path == "/to-there":
            self.send_response(302)
            self.send_header("Location", self.server.leads_to)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/wait":
            self.server.waiting.set()
            self.rfile.read(1)  # until whoever asked is gone
            self.server.left.set()
            self.close_connection = True
        else:
            self.answer(b"hello " + self.path.encode())

    def do_POST(self):
        self.server.seen.append((self.path, self.headers.get("Host"), dict(self.headers)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(b"%d bytes" % len(body))

    def log_message(self, *_):
        pass


class Web(http.server.ThreadingHTTPServer):
    """A web server on an address; `certificate`: over TLS."""
    daemon_threads = True

    def __init__(self, address, certificate=None):
        super().__init__((address, 0), Handler)
        self.seen, self.leads_to = [], ""
        self.waiting, self.left = threading.Event(), threading.Event()
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def port(self):
        return self.server_address[1]

    def handle_error(self, request, client_address):
        pass

    def close(self):
        self.shutdown()
        self.server_close()


class Names(socketserver.ThreadingUDPServer):
    """A name server; `answers`: lists of addresses for a name, one after the other, the last for ever."""
    daemon_threads = True

    def __init__(self, answers):
        self.answers, self.asked, self.lock = answers, [], threading.Lock()
        super().__init__(("127.0.0.1", 0), None)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.server_address[1]

    def finish_request(self, request, client_address):
        data, sock = request
        at, labels = 12, []
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode())
            at += 1 + data[at]
        name, kind = ".".join(labels).lower(), struct.unpack(">H", data[at + 1:at + 3])[0]
        found = []
        with self.lock:
            if kind == 1:
                self.asked.append(name)
            if kind == 1 and name in self.answers:
                found = self.answers[name][0]
                if len(self.answers[name]) > 1:
                    self.answers[name].pop(0)
        code = 0 if name in self.answers else 3
        answer = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(found), 0, 0) + data[12:at + 5]
        for address in found:
            answer += struct.pack(">HHHIH", 0xc00c, 1, 1, 0, 4) + socket.inet_aton(address)
        sock.sendto(answer, client_address)

    def close(self):
        self.shutdown()
        self.server_close()


def make_certificate(directory):
    """A file with a key and a certificate that its maker signed."""
    path = os.path.join(directory, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=tls.test", "-keyout", path, "-out", path + ".crt"],
                   check=True, stdin=subprocess.DEVNULL, capture_output=True)
    with open(path + ".crt", encoding="ascii") as certificate, open(path, "a", encoding="ascii") as both:
        both.write(certificate.read())
    return path
