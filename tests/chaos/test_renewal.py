"""Warm interpreters are replaced, and nobody notices."""
import os
import signal
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


class Hung(unittest.TestCase):
    """One that does nothing any more is replaced as well, by the first who waits too long for it."""

    def start(self, *options):
        made = Daemon("--listen", "none", *options)
        self.addCleanup(made.close)
        for language in ("python", "sh"):
            self.assertEqual(made.ask("POST", "/v1/runs", chaos.run_of("1", language))[0], 200)
        self.assertTrue(made.settle())
        hung = made.find("zygote")[0].pid
        os.kill(hung, signal.SIGSTOP)
        return made, hung

    def assert_replaced(self, made, hung):
        self.assertTrue(wait_until(lambda: hung not in [p.pid for p in made.find("zygote")], 60))
        with Load(made.path) as load:
            self.assertTrue(load.wait_for_more(50, 60), load.failed)
        self.assertEqual((load.failed, load.wrong), ([], []))
        self.assertIn("does not answer: killed", made.log())

    def test_a_run_waits_for_the_next_one(self):
        made, hung = self.start("--armed", "0")
        answer = made.ask("POST", "/v1/runs", chaos.run_of("print(42)"))
        self.assertEqual(answer[1]["result"]["stdout"], "42\n", answer)
        self.assert_replaced(made, hung)

    def test_others_are_not_kept_waiting(self):
        made, hung = self.start("--armed", "100", "--max", "300")
        run = chaos.run_of("echo > f", "sh")  # whose files are for the keeper to open
        longest = 0.0
        with chaos.Workers([lambda: made.ask("POST", "/v1/runs", chaos.run_of("1"))] * 64):
            while hung in [p.pid for p in made.find("zygote")]:
                began = time.monotonic()
                self.assertEqual(made.ask("POST", "/v1/runs", run)[0], 200)
                longest = max(longest, time.monotonic() - began)
                time.sleep(0.3)  # or there would be none left that are armed
        print("# longest run of another language: %.1f s" % longest, flush=True)
        self.assertLess(longest, 15)
        self.assert_replaced(made, hung)

    def test_a_stem_with_more_orders_than_fit_does_not_hold_up_the_keeper(self):
        made = Daemon("--listen", "none", "--max", "200")
        self.addCleanup(made.close)
        session = made.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        self.assertTrue(wait_until(lambda: len(made.find("stem")) == 1))
        os.kill(made.find("stem")[0].pid, signal.SIGSTOP)
        answer = made.ask("POST", "/v1/sessions/%s/fork" % session, {"count": 64})
        self.assertGreaterEqual(answer[0], 400, answer)
        print("#", answer[1]["error"]["message"], flush=True)
        with Load(made.path) as load:
            self.assertTrue(load.wait_for_more(50, 60), load.failed)
        self.assertIn("its stem does not answer: killed", made.log())
