"""Many sessions alive at once: whether each answers for itself, and what memory they take."""
import contextlib
import http.client
import json
import os
import socket
import time

import peers

SPARE = 32  # sandboxes that the daemon may have beside them


class Client(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.request(method, path, text, {"Content-Type": "application/json"} if text else {})
        answer = self.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {text.decode()[:200]}")
        return json.loads(text)

    def post(self, path, body=None):
        return self.ask("POST", path, body)

    def has_environment(self, name):
        rows = self.ask("GET", "/v1/environments")["environments"]
        return any(row["name"] == name and not row.get("error") for row in rows)

    def value(self, session, code):
        result = self.post(f"/v1/sessions/{session}/runs", {"code": code})["result"]
        return (result["value"] or {}).get("json")


def measure(vial, scratch, count):
    """Lines about `count` sessions that each hold a number of their own."""
    path = os.path.join(scratch, "crowd.sock")
    with contextlib.ExitStack() as stack:
        reason = peers.start([vial, "serve", "--socket", path, "--listen", "none", "--armed", "4",
                              "--max", str(count + SPARE)], path, stack)
        if reason:
            return [f"left out: {count} sessions at once: {reason}"]
        client = Client(path)
        before = len(peers.guest_memory())
        start = time.monotonic()
        names = [client.post("/v1/sessions", {"language": "python"})["id"] for _ in range(count)]
        for number, name in enumerate(names):
            client.value(name, f"mine = {number}")
        opened = time.monotonic() - start
        sizes = sorted(peers.guest_memory())[before:]
        start = time.monotonic()
        right = sum(client.value(name, "mine") == number for number, name in enumerate(names))
        asked = time.monotonic() - start
        client.close()
    return [f"{count} sessions alive at once, opened in {opened:.1f} s with a step each: {right} of them "
            f"answer with what is theirs, {count / asked:.0f} steps/s in turn",
            f"memory (PSS) of an idle session: {sum(sizes) / max(1, len(sizes)):.1f} MiB on average, "
            f"{sizes[-1]:.1f} at most, {sum(sizes):.0f} MiB in all (bar: 4 MB each)"]
