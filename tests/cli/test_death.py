"""What is left when vial itself is killed: nothing that runs, and nothing after the next run."""
import os
import random
import signal
import subprocess
import time

import cli
import test_daemon


def groups():
    """What vial left below our own control groups; others may be at work elsewhere."""
    found = []
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            top = "/sys/fs/cgroup/" + (names or "") + (path if "memory" in names else "/vial")
            if os.path.isdir(top):
                found += [top + "/" + name for name in os.listdir(top) if name.startswith("vial-")]
    with open("/proc/locks", encoding="ascii") as file:
        locked = {line.split()[-3].rpartition(":")[2] for line in file if "FLOCK" in line}
    return {path for path in found if not is_locked(path, locked)}


def is_locked(group, inodes):
    """Whoever lives has the locks of his groups; asked for without taking one."""
    try:
        return str(os.stat(group).st_ino) in inodes
    except OSError:
        return True  # it is gone meanwhile


class Killed(cli.Case):
    def assert_no_groups(self):
        """What comes and goes belongs to somebody else's run."""
        left = groups()

        def is_gone():
            left.intersection_update(groups())
            return not left
        self.assertTrue(cli.wait_until(is_gone), left)

    marker = "98.7654"  # for sleep; so that it and all above it carry the word

    def setUp(self):
        super().setUp()
        test_daemon.WithDaemon.end_daemon()  # whose groups are where ours are

    def gone(self):
        return not cli.processes(self.marker)

    def test_a_killed_vial_takes_its_guest_along(self):
        process = self.start("run", "-l", "sh", "-c", "sleep $1 & echo up; exec sleep $1", self.marker)
        self.assertEqual(process.stdout.read(3), b"up\n")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertTrue(cli.wait_until(self.gone))

    def test_the_next_run_removes_its_groups(self):
        process = self.start("run", "-l", "sh", "-c", "echo up; exec sleep $1", self.marker)
        self.assertEqual(process.stdout.read(3), b"up\n")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertTrue(cli.wait_until(self.gone))
        self.assert_ok(self.code("sh", "true"))
        self.assert_no_groups()

    def test_killed_at_any_moment(self):
        for moment in range(60):
            process = subprocess.Popen([cli.VIAL, "run", "-l", "sh", "-c", "sleep $1", self.marker],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, 0.02))
            process.kill()
            process.wait()
            with self.subTest(moment):
                self.assertTrue(cli.wait_until(self.gone))
        self.assert_ok(self.code("sh", "echo on"), "on\n")
        self.assert_no_groups()
