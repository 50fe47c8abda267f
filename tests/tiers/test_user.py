"""The daemon of an ordinary user: namespaces, one uid, and here no cgroup."""
import json
import os
import signal
import unittest

import tier


def become():
    os.setgroups([])
    os.setresgid(tier.USER, tier.USER, tier.USER)
    os.setresuid(tier.USER, tier.USER, tier.USER)


def processes():
    """Of that user, zombies aside."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/status" % name, encoding="ascii", errors="replace") as status:
                lines = dict(line.split(":", 1) for line in status if ":" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if lines["Uid"].split()[0] == str(tier.USER) and lines["State"].split()[0] != "Z":
            found.append(lines["Name"].strip())
    return found


@unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
class Daemon(tier.Case):
    weak = "uid,cgroup"
    prepare = staticmethod(become)

    def test_what_is_missing_is_refused_with_the_option_that_does_without(self):
        done = self.vial("serve", "--listen", "none")
        self.assertEqual(done.returncode, tier.OURS)
        self.assertIn("--allow-weak uid,cgroup does without", done.stderr)
        done = self.vial("serve", "--listen", "none", "--allow-weak", "uid")
        self.assertEqual(done.returncode, tier.OURS)
        self.assertIn("cgroup", done.stderr)
        done = self.vial("serve", "--allow-weak", "colour")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown layer 'colour'", done.stderr)

    def test_runs_and_sessions(self):
        daemon = self.serve("--armed", "1")
        for language, code in (("python", "print(6 * 7)"), ("javascript", "console.log(6 * 7)"),
                               ("bash", "echo $((6 * 7))"), ("ruby", "puts 6 * 7")):
            done = self.vial("run", "-l", language, "-c", code)
            self.assertEqual((done.returncode, done.stdout), (0, "42\n"), done.stderr)
        done = self.vial("run", "--timeout", "0.3", "--json", "-l", "python", "-c", "while True: pass")
        self.assertEqual(json.loads(done.stdout)["outcome"], "timed_out")
        for language, first, second in (("python", "x = 6", "x * 7"), ("bash", "x=6", "echo $((x * 7))")):
            session = self.vial("session", "open", "-l", language).stdout.strip()
            self.assertEqual(self.vial("session", "run", "-c", first, session).returncode, 0)
            self.assertEqual(self.vial("session", "run", "-c", second, session).stdout, "42\n")
        self.assertIn("kind=run", self.log())
        self.end(daemon)
        self.assertTrue(tier.wait_until(lambda: not processes()), processes())

    def test_nothing_outlives_a_killed_keeper(self):
        daemon = self.serve("--armed", "1")
        session = self.vial("session", "open").stdout.strip()
        self.vial("session", "run", "-c", "import os\nif os.fork() == 0: os.setsid(); os.fork()", session)
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        self.assertTrue(tier.wait_until(lambda: not processes()), processes())

    def test_memory_is_looked_at_where_no_cgroup_counts_it(self):
        hog = "a = []\nwhile True: a.push(Buffer.alloc(1 << 20, 1))".replace("while True:", "for (;;)")
        result = self.run_code("javascript", hog, "--memory", "150m")
        self.assertEqual((result["outcome"], result["limit"]), ("out_of_memory", "memory"))
        hogs = "import os, time\nfor i in range(8):\n  if os.fork() == 0:\n    x = b'x' * (40 << 20); time.sleep(20)\ntime.sleep(20)"
        result = self.run_code("python", hogs, "--memory", "150m")
        self.assertEqual((result["outcome"], result["limit"]), ("out_of_memory", "memory"))
