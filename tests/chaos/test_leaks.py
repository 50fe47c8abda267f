"""Many runs through one daemon: nothing grows."""
import time
import unittest

import chaos
from chaos import Daemon, Load

WARM_UP = 300
ROUNDS = 4
MEMORY_KB = 512  # what an allocator may keep, however many runs there were


class Leaks(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon("--listen", "none")
        self.addCleanup(self.daemon.close)

    def run_many(self, count):
        start = time.monotonic()
        with Load(self.daemon.path) as load:
            self.assertTrue(load.wait_for_more(count, 60 + count / 10), "it has become slow")
        self.assertEqual((load.failed, load.wrong), ([], []))
        return load.right, load.right / (time.monotonic() - start)

    def measure(self):
        self.assertTrue(self.daemon.settle(), self.daemon.pools())
        memory = {role: self.daemon.memory_kb(role) for role in ("keeper", "server")}
        return self.daemon.holdings(), memory

    def test_nothing_grows(self):
        self.run_many(WARM_UP)
        before, memory_before = self.measure()
        total = 0
        for _ in range(ROUNDS):
            done, rate = self.run_many(chaos.runs // ROUNDS)
            total += done
            now, memory = self.measure()
            print("# %d runs, %.0f/s, KiB: %s" % (total, rate, memory), flush=True)
            more = {kind: now.get(kind) for kind in before
                    if now.get(kind, 0) > before[kind] + chaos.SLACK.get(kind, 0)}
            self.assertEqual(more, {}, "more than %s" % before)
            for role, kb in memory.items():
                self.assertLessEqual(kb, memory_before[role] + MEMORY_KB, role)
