"""In a container that forbids namespaces: what is refused, what runs, and what it cannot do."""
import json
import os
import signal
import subprocess
import sys

import tier

WEAK = "namespaces,root,uid,cgroup,proc"


def others():
    """Processes that are not ours, nor of those above us."""
    ours, pid = set(), os.getpid()
    while pid:
        ours.add(pid)
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as stat:
            pid = int(stat.read().rpartition(")")[2].split()[1])
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="ascii", errors="replace") as stat:
                text = stat.read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(name) not in ours and text.rpartition(")")[2].split()[0] != "Z":
            found.append(text)
    return found


class Bare(tier.Case):
    weak = WEAK

    def left(self):
        place = os.path.join(self.dir, "vial")
        return [name for name in os.listdir(place) if name.startswith("box-")]

    def assert_nothing_left(self):
        self.assertTrue(tier.wait_until(lambda: not others()), others())
        self.assertTrue(tier.wait_until(lambda: not self.left()), self.left())


class Layers(Bare):
    def test_doctor_says_what_there_is(self):
        done = self.vial("doctor", "--json")
        report = json.loads(done.stdout)
        states = {layer["name"]: layer["state"] for layer in report["layers"]}
        self.assertEqual((done.returncode, report["tier"]), (1, "bare"))
        self.assertEqual([name for name, state in states.items() if state == "missing"], WEAK.split(","))
        self.assertIn("--allow-weak " + WEAK, self.vial("doctor").stdout)

    def test_each_missing_layer_must_be_named(self):
        for verb in (["run", "-l", "sh", "-c", "echo ran"], ["serve", "--listen", "none"]):
            for missing in ["", *WEAK.split(",")]:
                named = ",".join(name for name in WEAK.split(",") if missing and name != missing)
                done = self.vial(verb[0], *(["--allow-weak", named] if named else []), *verb[1:])
                self.assertEqual((done.returncode, done.stdout), (tier.OURS, ""), done.stderr)
                self.assertIn("--allow-weak %s does without" % WEAK, done.stderr)

    def test_what_takes_namespaces_is_refused(self):
        for args in (["--dir", self.dir], ["--network", "host"], ["--workdir", "/work"]):
            done = self.vial("run", "--allow-weak", WEAK, *args, "-l", "sh", "-c", "echo ran")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")


class Runs(Bare):
    def test_languages(self):
        for language, code in (
                ("python", "import tempfile, subprocess\ntempfile.TemporaryFile()\nsubprocess.run(['echo', '42'])"),
                ("javascript", "console.log(6 * 7)"), ("bash", "cat <(echo 42)"),
                ("ruby", "puts 6 * 7"), ("c", '#include <stdio.h>\nint main(void) { puts("42"); }')):
            result = self.run_code(language, code)
            self.assertEqual((result["outcome"], result["stdout"]), ("exited", "42\n"), result)
        self.assert_nothing_left()

    def test_files_and_exceptions(self):
        result = self.run_code("python", "open('a', 'w').write('x')\nraise ValueError('no')")
        self.assertEqual(result["exception"]["type"], "ValueError")
        self.assertEqual(result["exception"]["line"], 2)
        self.assertEqual([file["path"] for file in result["files_changed"]], ["a"])

    def test_limits(self):
        for code, args, want in (
                ("while True: pass", ["--timeout", "0.5"], ("timed_out", "timeout")),
                ("import os\nos.fork()\nos.fork()\nwhile True: pass", ["--cpu-time", "0.5"], ("timed_out", "cpu-time")),
                ("x = bytearray(1 << 30)", ["--memory", "100m"], ("out_of_memory", "memory")),
                ("for i in range(999): open(str(i), 'wb').write(b'x' * 100000); __import__('time').sleep(.01)",
                 ["--workspace", "1m"], ("out_of_disk", "workspace"))):
            result = self.run_code("python", code, *args)
            self.assertIn(result["limit"], want, result)
        bomb = "import os\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: __import__('time').sleep(9)\n    n += 1\nexcept OSError: print(n)"
        result = self.run_code("python", bomb, "--processes", "20")
        self.assertLessEqual(int(result["stdout"]), 20)
        self.assert_nothing_left()


class Hostile(Bare):
    def test_nobody_is_left_however_they_hide(self):
        hiding = """
import os, time
for i in range(3):              # away from parents, group and session
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(1)
        os._exit(0)
if os.fork() == 0:              # and never the same for long
    os.setsid()
    while True:
        if os.fork() > 0: os._exit(0)
time.sleep(0.5)
"""
        for _ in range(3):
            self.run_code("python", hiding)
            self.assert_nothing_left()

    def test_signals_do_not_get_out(self):
        victim = subprocess.Popen(["sleep", "60"])
        self.addCleanup(victim.kill)
        code = """
import os
told = []
for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
    if pid != os.getpid():
        try: os.kill(pid, 9); told.append(pid)
        except PermissionError: pass
print(told)
os.kill(-1, 15)
"""
        result = self.run_code("python", code)
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", "[]\n"), result)
        self.assertIsNone(victim.poll())
        victim.kill()
        victim.wait()

    def test_what_is_not_its_own_cannot_be_opened(self):
        secret = os.path.join(self.dir, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write("secret")
        code = """
import os
for path in (%r, "/tmp", "/", %r, "/proc/%d/environ", "/proc/%d/fd/0", "/proc/1/mem", "/dev/shm/x"):
    for mode in (os.O_RDONLY, os.O_RDWR | os.O_CREAT):
        try: os.open(path, mode); print("opened", path)
        except OSError: pass
try: os.rename("main.py", %r); print("renamed")
except OSError: pass
""" % (secret, os.path.join(self.dir, "vial", "leases"), os.getpid(), os.getpid(), secret)
        self.assertEqual(self.run_code("python", code)["stdout"], "")

    def test_no_network_and_nobody_elses_limits(self):
        code = """
import os, resource, socket
def refused(what, *args):
    try: what(*args); print("done:", what)
    except OSError: pass
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16, 40):
    refused(socket.socket, family)
refused(socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)
refused(resource.prlimit, %d, resource.RLIMIT_NOFILE, (3, 3))
refused(os.setpriority, os.PRIO_PROCESS, %d, 19)
refused(os.sched_setaffinity, %d, [0])
a, b = socket.socketpair()
a.send(b"x"); print(b.recv(1))
""" % ((os.getpid(),) * 3)
        self.assertEqual(self.run_code("python", code)["stdout"], "b'x'\n")

    def test_a_deep_tree_without_rights_is_removed(self):
        code = "import os\nfor i in range(3000):\n  os.mkdir('d'); os.chdir('d')\nopen('f', 'w')\nos.chmod('.', 0)"
        self.run_code("python", code)
        self.assert_nothing_left()

    def test_nothing_outlives_a_killed_keeper(self):
        code = "import os, time\nif os.fork() == 0: os.setsid()\nelse: print('on', flush=True)\ntime.sleep(60)"
        keeper = subprocess.Popen([tier.VIAL, "run", "--no-daemon", "--allow-weak", WEAK, "-l", "python", "-c", code],
                                  env=self.environment(), cwd=self.dir, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        self.assertEqual(keeper.stdout.readline(), b"on\n")
        keeper.send_signal(signal.SIGKILL)
        keeper.wait()
        keeper.stdout.close()
        self.assert_nothing_left()


class Daemon(Bare):
    """The same by a daemon: guests wait for their code, each in a box of its own."""

    def setUp(self):
        super().setUp()
        self.daemon = self.serve("--armed", "1", "--max", "6")

    def tearDown(self):
        self.end(self.daemon)
        self.assert_nothing_left()

    def ask(self, language, code, *args):
        done = self.vial("run", "--json", *args, "-l", language, "-c", code)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def test_runs_of_all_languages(self):
        for language, code in (("python", "print(6 * 7)"), ("javascript", "console.log(6 * 7)"),
                               ("bash", "echo $((6 * 7))"), ("ruby", "puts 6 * 7"),
                               ("c", '#include <stdio.h>\nint main(void) { puts("42"); }')):
            result = self.ask(language, code)
            self.assertEqual((result["outcome"], result["stdout"], result["stderr"]), ("exited", "42\n", ""), result)
        tier.wait_until(lambda: self.log().count("kind=run") >= 5)
        self.assertEqual(self.log().count("kind=run"), 5)

    def test_files_and_exceptions(self):
        result = self.ask("python", "open('a', 'w').write('x')\nraise ValueError('no')")
        self.assertEqual((result["exception"]["type"], result["exception"]["line"]), ("ValueError", 2))
        self.assertEqual([file["path"] for file in result["files_changed"]], ["a"])

    def test_limits(self):
        for code, args, limit in (
                ("while True: pass", ["--timeout", "0.5"], "timeout"),
                ("while True: pass", ["--cpu-time", "1"], "cpu-time"),
                ("x = bytearray(1 << 30)", ["--memory", "100m"], "memory"),
                ("for i in range(9999): open(str(i), 'wb').write(b'x' * 100000); __import__('time').sleep(.01)",
                 ["--workspace", "1m"], "workspace")):
            result = self.ask("python", code, *args)
            self.assertEqual(result["limit"], limit, result)
        bomb = "import os\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: __import__('time').sleep(9)\n    n += 1\nexcept OSError: print(n)"
        self.assertLess(int(self.ask("python", bomb, "--processes", "20")["stdout"]), 60)

    def test_sessions(self):
        for language, first, second in (("python", "x = 6", "x * 7"), ("bash", "x=6", "echo $((x * 7))"),
                                        ("javascript", "x = 6", "x * 7"), ("ruby", "x = 6", "x * 7")):
            session = self.vial("session", "open", "-l", language).stdout.strip()
            self.assertEqual(self.vial("session", "run", "-c", first, session).returncode, 0)
            self.assertEqual(self.vial("session", "run", "-c", second, session).stdout, "42\n")

    def test_what_takes_namespaces_is_refused_in_words(self):
        self.assertIn("takes the namespaces layer", self.vial("session", "open", "--rewind").stderr)
        session = self.vial("session", "open").stdout.strip()
        self.assertIn("takes the namespaces layer", self.vial("session", "attach", session).stderr)

    def test_one_does_not_reach_another(self):
        """Tenants share a uid here: Landlock and the filter are between them."""
        session = self.vial("session", "open").stdout.strip()
        where = self.vial("session", "run", "-c", "import os\nopen('secret', 'w').write('x')\nos.getcwd()", session)
        place = json.loads(where.stdout.strip().replace("'", '"'))
        code = """
import os, signal
def tried(what, *args):
    try: print("done:", what(*args))
    except OSError: pass
def look(path): # of a dead process there is nothing to be seen
    if not os.read(os.open(path, os.O_RDONLY), 1): raise OSError
    return path
for path in (%r, %r):
    for mode in (os.O_RDONLY, os.O_RDWR | os.O_CREAT):
        tried(os.open, path, mode)
tried(os.unlink, %r)
for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
    if pid != os.getpid():
        tried(os.kill, pid, 0)
        for name in ("mem", "environ", "fd/0", "cwd/secret", "maps"):
            tried(look, "/proc/%%d/%%s" %% (pid, name))
""" % (place, place + "/secret", place + "/secret")
        result = self.ask("python", code)
        self.assertEqual((result["stdout"], result["stderr"]), ("", ""))
        self.assertEqual(self.vial("session", "run", "-c", "open('secret').read()", session).stdout, "'x'\n")

    def test_nobody_is_left_however_they_hide(self):
        hiding = "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    while True: time.sleep(1)\n  os._exit(0)\nprint(1)"
        for _ in range(3):
            self.assertEqual(self.ask("python", hiding)["stdout"], "1\n")
        self.assertTrue(tier.wait_until(lambda: not [text for text in others() if "python" in text]), others())

    def test_nothing_outlives_a_killed_keeper(self):
        session = self.vial("session", "open").stdout.strip()
        self.vial("session", "run", "-c", "import os\nif os.fork() == 0: os.setsid(); os.fork()", session)
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()
        self.assert_nothing_left()


class Faults(Bare):
    def test_each_system_call_fails_once_and_leaves_nothing(self):
        sweep = os.path.join(os.path.dirname(tier.VIAL), "fault-sweep")
        done = subprocess.run([sweep, WEAK, os.path.join(self.dir, "vial")], env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=200, check=False)
        self.assertRegex(done.stdout, r"\n[1-9]\d\d+ passed, 0 failed\n$")
        self.assert_nothing_left()


if __name__ == "__main__":
    sys.exit("run by tests/tiers/run")
