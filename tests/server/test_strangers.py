"""Clients that do nothing, stop half-way or vanish, in crowds."""
import json
import os
import random
import resource
import socket
import struct

import daemon
from daemon import run_of, wait_until

COUNT = int(os.environ.get("IDLE_CONNECTIONS", "5000"))
HEAD = b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
# What they have sent when they stop.
HALVES = (b"", b"POST /v1/runs HT", HEAD, HEAD + b"Content-Length: 1000\r\n\r\n{\"code\":",
          HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"co",
          b"PUT /v1/sessions/none/files/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")


def vanish(sock):
    """Without a goodbye: its other side learns of it by a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class Strangers(daemon.Case):
    OPTIONS = ("--armed", "2")

    def figure(self, name):
        made = self.daemon.connect()
        made.request("GET", "/metrics")
        lines = made.getresponse().read().decode().splitlines()
        made.close()
        return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))

    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < COUNT + 100:
            self.skipTest("%d descriptors are not enough" % hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, COUNT + 100), hard))

    def test_a_crowd_that_only_sits_there(self):
        self.run_ok("print(1)")
        fds, memory = self.figure("process_open_fds"), self.figure("process_resident_memory_bytes")
        crowd = []
        try:
            for number in range(COUNT):
                sock = self.daemon.raw(tcp=True)
                crowd.append(sock)
                sock.sendall(HALVES[number % len(HALVES)])
            self.assertTrue(wait_until(lambda: self.figure("vial_http_connections") > COUNT))
            for _ in range(5):  # the others are served as if they were alone
                self.assertEqual(self.run_ok("print(6 * 7)")["stdout"], "42\n")
            taken = self.figure("process_resident_memory_bytes") - memory
            self.assertLess(taken / COUNT, 64 << 10)
        finally:
            for number, sock in enumerate(crowd):
                vanish(sock) if number % 2 else sock.close()
        self.assertTrue(wait_until(lambda: self.figure("vial_http_connections") <= 2))
        self.assertTrue(wait_until(lambda: self.figure("process_open_fds") < fds + COUNT / 20))
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")

    def test_readers_that_vanish(self):
        """In the middle of a stream, or before the first byte of it: their runs end."""
        body = json.dumps(run_of("import time\nprint('x' * 1000, flush=True)\ntime.sleep(600)")).encode()
        for number in range(24):
            sock = self.daemon.raw(tcp=True)
            sock.sendall(HEAD + b"Accept: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            if number % 3:
                sock.recv(random.choice((1, 100, 4096)))
            vanish(sock) if number % 2 else sock.close()
        self.assert_no_runs()
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")
