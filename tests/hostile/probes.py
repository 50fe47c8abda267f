"""probes - what the harness does beside a run: a neighbour at work, a knock from outside."""
import os
import socket
import threading
import time

BASELINE_RUNS = 5


class _Probe:
    """Repeats self.once() in a thread between start() and stop()."""

    def __init__(self):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()

    def _loop(self):
        while not self._stop.is_set():
            self.once()


class Neighbour(_Probe):
    """Another client whose hello must not notice the case."""

    def __init__(self, vial, directory):
        super().__init__()
        self.vial = vial
        self.directory = os.path.join(directory, "neighbour")
        self.samples = []
        self.failed = 0
        for _ in range(BASELINE_RUNS):
            self.once()
        self.baseline, self.samples = sorted(self.samples), []

    def once(self):
        elapsed = self._hello()
        if elapsed is None:
            self.failed += 1
        else:
            self.samples.append(elapsed)
        time.sleep(0.05)

    def facts(self):
        if not self.samples or not self.baseline or self.failed:
            return {"failed": self.failed}
        samples = sorted(self.samples)
        usual = self.baseline[len(self.baseline) // 2]
        p95 = samples[min(len(samples) - 1, int(len(samples) * 0.95))]
        return {"runs": len(samples), "usual_ms": round(usual, 1), "p95_ms": round(p95, 1),
                "added_p95_ms": max(0.0, p95 - usual)}

    def _hello(self):
        run = self.vial.hello(self.directory)
        return run.elapsed_ms if run.says_hi() else None


class Connector(_Probe):
    """Tries to reach ports that a guest may listen on.  attempts: {port: (tried, reached)}"""

    def __init__(self, ports):
        super().__init__()
        self.attempts = {port: (0, 0) for port in ports}

    def once(self):
        for port, (tried, reached) in list(self.attempts.items()):
            for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                reached += _connects(family, host, port)
            self.attempts[port] = (tried + 1, reached)
        time.sleep(0.1)


def _connects(family, host, port):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(0.3)
        return client.connect_ex((host, port)) == 0
