"""What it costs that steps can be taken back: beside sessions without, and beside a bare fork."""
import contextlib
import os
import statistics
import time

import peers
from crowd import Client

HEAPS = (("fresh", "pass"), ("100 MB of arrays", "held = bytearray(100 << 20)"))
FORKS = 30
FORK = f"""
import os
def forks():
    for _ in range({FORKS}):
        child = os.fork()
        if child == 0: os._exit(0)
        os.waitpid(child, 0)
forks()"""
CHANGED_MB = (0, 10, 100)


class Session:
    def __init__(self, client, **more):
        self.client = client
        self.path = "/v1/sessions/" + client.post("/v1/sessions", {
            "language": "python", "limits": {"memory": "2g"}, **more})["id"]

    def ask(self, what, body=None):
        """(milliseconds, the result)."""
        start = time.perf_counter()
        answer = self.client.post(self.path + what, body)
        return (time.perf_counter() - start) * 1000, answer.get("result")

    def step(self, code):
        return self.ask("/runs", {"code": code})


def steps(plain, rewound, count):
    """Wall and processor time of each, interleaved: what else the machine does hits both."""
    taken = {plain: ([], []), rewound: ([], [])}
    for number in range(count):
        for one in (plain, rewound) if number % 2 else (rewound, plain):
            wall, result = one.step(f"x = {number}")
            taken[one][0].append(wall)
            taken[one][1].append(result["cpu_ms"])
    return [statistics.median(figures) for one in (plain, rewound) for figures in taken[one]]


def heap(client, title, code, rounds):
    plain, rewound = Session(client), Session(client, rewind=True)
    for one in (plain, rewound):
        one.step(code)
    lines = []
    for when in ("from step 1", "after 100 steps"):
        wall, cpu, wall_back, cpu_back = steps(plain, rewound, rounds)
        bare = plain.step(FORK)[1]["cpu_ms"] / FORKS
        lines.append(f"rewind, {title}, {when}: a step {wall_back:.2f} ms (without: {wall:.2f}); processor time "
                     f"{cpu_back - cpu:.2f} ms more, {(cpu_back - cpu) / bare:.2f} times a bare fork "
                     f"({bare:.2f} ms; bar: 1.5)")
        for number in range(100 - rounds):
            rewound.step(f"x = {number}")
    undos = []
    for number in range(10):
        rewound.step("x = 0")
        undos.append(rewound.ask("/undo")[0])
    rewound.ask("/checkpoints", {"name": "a"})
    restores = [rewound.ask("/checkpoints/a/restore")[0] for _ in range(10)]
    lines.append(f"rewind, {title}: undo {statistics.median(undos):.2f} ms, restore of a checkpoint "
                 f"{statistics.median(restores):.2f} ms (p50)")
    return lines


def files(client):
    taken = []
    for size in CHANGED_MB:
        session = Session(client, rewind=True)
        session.step("open('still', 'wb').write(bytes(20 << 20))")
        walls = []
        for number in range(5):
            session.step(f"{size} and open('f', 'wb').write(bytes({size} << 20))")
            time.sleep(0.02)  # what changed a moment ago is looked at again
            walls.append(session.step("pass")[0])
        taken.append(f"{size} MB {statistics.median(walls):.1f} ms")
        session.client.request("DELETE", session.path)
        session.client.getresponse().read()
    return ["rewind, the step after one that changed files (20 MB of others unchanged), p50: " + ", ".join(taken)]


def measure(vial, scratch, is_quick):
    path = os.path.join(scratch, "past.sock")
    with contextlib.ExitStack() as stack:
        reason = peers.start([vial, "serve", "--socket", path, "--listen", "none", "--armed", "4"],
                             path, stack)
        if reason:
            return [f"left out: rewind: {reason}"]
        client = Client(path)
        lines = [line for title, code in HEAPS
                 for line in heap(client, title, code, 10 if is_quick else 50)]
        lines += files(client)
        client.close()
    return lines
