"""Warm interpreters are replaced, and nobody notices."""
import time
import unittest

import chaos
from chaos import Daemon, Load, wait_until

LAYOUT = "print(next(line.split('-')[0] for line in open('/proc/self/maps') if 'libc.so' in line))"


class Renewal(unittest.TestCase):
    def start(self, *options):
        made = Daemon("--listen", "none", *options)
        self.addCleanup(made.close)
        self.assertTrue(made.settle())
        return made

    def check(self, made, count, seconds):
        """Under load, so many different ones, and not one run that fails."""
        seen = set()
        with Load(made.path) as load:
            deadline = time.monotonic() + seconds
            while len(seen) < count and time.monotonic() < deadline:
                seen |= {found.pid for found in made.find("zygote")}
                time.sleep(0.02)
        self.assertEqual((load.failed, load.wrong), ([], []))
        self.assertGreaterEqual(len(seen), count)
        self.assertGreater(load.right, 0)
        self.assertTrue(wait_until(lambda: len(made.find("zygote")) == 1), "an old one stays")
        print("# %d interpreters, %d runs" % (len(seen), load.right), flush=True)

    def test_after_so_many_runs(self):
        self.check(self.start("--renew-runs", "20"), count=chaos.kills, seconds=20 * chaos.kills)

    def test_after_each_run(self):
        self.check(self.start("--renew-runs", "1"), count=chaos.kills, seconds=20 * chaos.kills)

    def test_after_a_time(self):
        self.check(self.start("--renew-time", "1s"), count=4, seconds=60)

    def test_at_rest_after_a_time(self):
        made = self.start("--renew-time", "1s")
        first = {found.pid for found in made.find("zygote")}
        self.assertTrue(wait_until(lambda: not first & {found.pid for found in made.find("zygote")}))

    def test_the_next_one_is_laid_out_anew(self):
        made = self.start("--renew-runs", "10", "--armed", "1")
        seen = set()  # the next one takes its time to start, and the last one goes on meanwhile

        def are_three():
            answer = made.ask("POST", "/v1/runs", chaos.run_of(LAYOUT))[1]
            seen.add(answer["result"]["stdout"])
            return len(seen) > 2
        self.assertTrue(wait_until(are_three), seen)
