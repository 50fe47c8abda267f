"""websocket - a client of our own, so that it can also do what none should."""
import base64
import hashlib
import os
import struct
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Closed(Exception):
    """The server has said goodbye: code and reason."""


class WebSocket:
    def __init__(self, sock, path, headers=(), host="localhost"):
        self.sock, self.buffer = sock, b""
        key = base64.b64encode(os.urandom(16))
        fields = {"Host": host, "Connection": "Upgrade", "Upgrade": "websocket",
                  "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key.decode(), **dict(headers)}
        lines = ["GET %s HTTP/1.1" % path] + ["%s: %s" % item for item in fields.items() if item[1]]
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        self.head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.status = int(self.head.split()[1])
        if self.status == 101:
            accept = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
            assert b"sec-websocket-accept: " + accept.lower() in self.head.lower(), self.head

    def _more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise ConnectionError("closed")
        self.buffer += piece

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, data, opcode=BINARY, masked=True, final=True):
        head = bytes([opcode | (0x80 if final else 0)])
        mark = 0x80 if masked else 0
        if len(data) < 126:
            head += bytes([mark | len(data)])
        elif len(data) < 65536:
            head += bytes([mark | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([mark | 127]) + struct.pack(">Q", len(data))
        if masked:
            key = os.urandom(4)
            data = bytes(byte ^ key[i % 4] for i, byte in enumerate(data))
            head += key
        self.sock.sendall(head + data)

    def frame(self):
        first, second = self._take(2)
        length = second & 0x7f
        assert not second & 0x80, "a server does not mask"
        if length == 126:
            length, = struct.unpack(">H", self._take(2))
        elif length == 127:
            length, = struct.unpack(">Q", self._take(8))
        return first & 0x0f, self._take(length)

    def receive(self):
        """The next bytes of the terminal."""
        while True:
            opcode, data = self.frame()
            if opcode == CLOSE:
                raise Closed(struct.unpack(">H", data[:2])[0] if data else None, data[2:].decode())
            if opcode == PING:
                self.send(data, PONG)
            elif opcode == BINARY:
                return data

    def until(self, wanted, seconds=60):
        seen, deadline = b"", time.monotonic() + seconds
        while wanted not in seen:
            if time.monotonic() > deadline:  # questions whether we are there keep it going
                raise TimeoutError(seen[-500:])
            seen += self.receive()
        return seen.decode(errors="replace")

    def closing(self):
        """(code, reason) of the close that follows, whatever is said before."""
        try:
            while True:
                self.receive()
        except Closed as told:
            return told.args
