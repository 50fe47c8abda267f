"""Parts of the daemon are killed at random moments, under load."""
import collections
import re
import time
import unittest

import chaos
import leftovers
from chaos import CLIENTS, Daemon, Load, kill, moment, wait_until

# Patience, not promises: how soon is measured, where nobody else is at work.
GONE_S = 60      # for all of a daemon that was killed
BACK_S = 60      # for a part of it to be there again
IDLE_S = 5       # so that most kills come while it is; under load it may never be

# What a client may be told; and all that it may be told.
LOST = re.compile(r"the (sandbox|environment) was lost|the sandbox died before it was ready"
                  r"|the (warm interpreter|stem) of \w+ died|init died before it was ready")


class Killed(unittest.TestCase):
    def assert_none_wrong(self, load):
        self.assertEqual(load.wrong, [], "a result that is not this run's")


class Parts(Killed):
    """The daemon lives on, and at most what was under way is lost."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--listen", "none")
        cls.addClassCleanup(cls.daemon.close)
        with Load(cls.daemon.path) as load:  # until everything is there that will be
            assert load.wait_for_more(100, 10 * BACK_S), load.failed
        assert cls.daemon.settle()
        cls.before = cls.daemon.holdings()

    def kill_often(self, role):
        done = 0
        with Load(self.daemon.path) as load:
            while done < chaos.kills:
                time.sleep(moment.uniform(0, 0.2))
                found = self.daemon.find(role)
                if not found:  # it is being made
                    continue
                kill(moment.choice(found).pid)
                done += 1
                if moment.random() < 0.7:  # else the next one comes in the middle of it
                    self.assertTrue(load.wait_for_more(CLIENTS, BACK_S), "after a kill: nothing works")
                    self.assert_lives()
                    wait_until(lambda: self.is_idle(role), IDLE_S)
        self.assert_none_wrong(load)
        for _, why in load.failed:
            self.assertRegex(why, LOST)
        print("# %d kills: %d right, %d failed" % (done, load.right, len(load.failed)), flush=True)
        self.assertLessEqual(len(load.failed), done * CLIENTS, collections.Counter(
            why for _, why in load.failed))

    def is_idle(self, role):
        """There, and waiting for orders: a zygote that starts is at work."""
        looks = []
        for _ in range(3):
            looks += self.daemon.find(role) or [None]
            time.sleep(0.01)
        return all(look and look.state == "S" for look in looks)

    def assert_lives(self):
        self.assertIsNone(self.daemon.process.poll(), self.daemon.log())

    def assert_as_before(self):
        self.assertTrue(self.daemon.settle(), "it does not come to rest: %s" % self.daemon.pools())
        now = self.daemon.holdings()
        for kind, count in self.before.items():
            self.assertLessEqual(now.get(kind, 0), count + chaos.SLACK.get(kind, 0), kind)

    def check(self, role):
        self.kill_often(role)
        with Load(self.daemon.path) as load:
            self.assertTrue(load.wait_for_more(50, BACK_S))
        self.assertEqual((load.failed, load.wrong), ([], []))
        self.assert_lives()
        self.assert_as_before()

    def test_zygote(self):
        self.check("zygote")

    def test_stem(self):
        self.check("stem")

    def test_net_maker(self):
        self.check("net maker")

    def test_pid_1_of_a_nest(self):
        self.check("nest")

    def test_pid_1_of_a_sandbox(self):
        self.check("pid 1")


class Whole(Killed):
    """The keeper or the server: all is gone, and the next one starts at once."""

    def setUp(self):
        self.before = leftovers.Snapshot()
        self.daemon = None

    def tearDown(self):
        if self.daemon:
            self.daemon.close()

    def check(self, role):
        right = failed = 0
        for _ in range(chaos.kills):
            self.daemon = Daemon("--listen", "none")
            with Load(self.daemon.path) as load:
                time.sleep(moment.uniform(0, 0.5))
                kill(self.daemon.find(role)[0].pid)
                self.daemon.process.wait(GONE_S)
                after = Daemon("--listen", "none", path=self.daemon.path)
                ready = time.monotonic()
                self.addCleanup(after.close)
                self.assertEqual(chaos.wait_no_orphans(GONE_S, after.process.pid), [])
                self.assertTrue(load.wait_for_more(CLIENTS, BACK_S), "the next one does not work")
            self.assert_none_wrong(load)
            late = [why for began, why in load.failed if began > ready]
            self.assertEqual(late, [])
            right, failed = right + load.right, failed + len(load.failed)
            after.close()
            self.daemon.close()
            self.daemon = None
        print("# %d kills: %d right, %d failed" % (chaos.kills, right, failed), flush=True)
        self.assertEqual(leftovers.wait_clean(self.before, GONE_S)[1], [])

    def test_keeper(self):
        self.check("keeper")

    def test_server(self):
        self.check("server")
