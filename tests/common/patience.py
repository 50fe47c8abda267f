"""patience - what every suite waits with, and asks by."""
import http.client
import socket
import time

PATIENCE_S = 60  # a hang, not a measure of speed


def wait_until(condition, seconds=PATIENCE_S, pause=0.02):
    """What it said when it came true, or False."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        said = condition()
        if said:
            return said
        time.sleep(pause)
    return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=PATIENCE_S):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)
