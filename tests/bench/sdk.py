"""What the Python SDK adds to a step of a session: beside a client that does as little as can be."""
import asyncio
import contextlib
import os
import pathlib
import socket
import statistics
import sys
import time

import peers

BAR = 2.0  # the SDK's step at p50, over that of the bare socket
CODE = "1 + 1"

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk/python/src"))


class Bare:
    """A socket, a request that is ready, an answer that is only read."""

    def __init__(self, path, session):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.request = peers.http({"code": CODE}, f"/v1/sessions/{session}/runs").encode()

    def __call__(self):
        self.sock.sendall(self.request)
        got = self.sock.recv(65536)
        while b"\r\n\r\n" not in got:
            got += self.sock.recv(65536)
        head, _, body = got.partition(b"\r\n\r\n")
        left = int(head.lower().split(b"content-length:")[1].split()[0]) - len(body)
        while left > 0:
            left -= len(self.sock.recv(65536))


def timed(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


async def in_a_loop(path, session, count):
    import vial
    async with vial.AsyncSandbox(path) as sandbox:
        one = await sandbox.attach(session)
        times = []
        for _ in range(count):
            start = time.perf_counter()
            await one.run(CODE)
            times.append(time.perf_counter() - start)
    return times


def measure(vial_path, scratch, count):
    """A line about `count` steps by each client, which take turns."""
    import vial
    path = os.path.join(scratch, "sdk.sock")
    with contextlib.ExitStack() as stack:
        reason = peers.start([vial_path, "serve", "--socket", path, "--listen", "none"], path, stack)
        if reason:
            return [f"left out: steps by the Python SDK: {reason}"]
        with vial.Sandbox(path) as sandbox, sandbox.session() as session:
            bare = Bare(path, session.id)
            clients = {"bare": bare, "sdk": lambda: session.run(CODE)}
            times = {name: [] for name in clients}
            for _ in range(count):
                for name, step in clients.items():
                    times[name].append(timed(step))
            times["asyncio"] = asyncio.run(in_a_loop(path, session.id, count))
            bare.sock.close()
    p50 = {name: statistics.median(found) * 1000 for name, found in times.items()}
    share = p50["sdk"] / p50["bare"]
    return [f"{'met' if share <= BAR else 'NOT MET'}: a step by the Python SDK: {p50['sdk']:.2f} ms at p50 "
            f"({p50['asyncio']:.2f} with asyncio), {share:.2f} of the bare socket's {p50['bare']:.2f}, "
            f"bar at most {BAR:g}"]
