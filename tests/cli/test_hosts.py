"""vial on other kinds of hosts: an ordinary user, a container, a place without namespaces."""
import ctypes
import json
import os
import shutil
import subprocess
import unittest

import cli

USER = 65533  # belongs to nobody here
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
POSTURE = r"""
import os
facts = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(*(facts[key].strip().lstrip("0") or 0 for key in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")),
      os.getpid(), os.getuid(), os.access("/", os.W_OK), os.path.exists("/etc/shadow"))
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root to become others")
class Host(cli.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o777)
        self.binary = self.path("bin", "vial")  # where everybody can reach it
        os.mkdir(self.path("bin"))
        shutil.copy(cli.VIAL, self.binary)

    def run_as(self, prepare, *args):
        """Run vial in a process that `prepare` has changed."""
        environment = {"PATH": os.environ["PATH"], "HOME": self.dir, "XDG_RUNTIME_DIR": self.dir,
                       "LC_ALL": "C.UTF-8"}
        return subprocess.run([self.binary, *args], preexec_fn=prepare, env=environment, cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=cli.PATIENCE_S, check=False)

    def layers(self, prepare):
        done = self.run_as(prepare, "doctor", "--json")
        return {row["name"]: row for row in json.loads(done.stdout)["layers"]}, done.returncode


class OrdinaryUser(Host):
    @staticmethod
    def become():
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)

    def vial_run(self, *args):
        return self.run_as(self.become, "run", "--allow-weak", "uid,cgroup", *args)

    def test_what_is_missing_is_refused_by_name(self):
        done = self.run_as(self.become, "run", "-l", "sh", "-c", "echo ran")
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertIn("uid", done.stderr)
        self.assertIn("vial doctor", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_doctor_says_so(self):
        layers, code = self.layers(self.become)
        self.assertEqual(code, 1)
        self.assertEqual(layers["uid"]["state"], "missing")
        self.assertTrue(layers["uid"]["fix"])
        for name in ("namespaces", "root", "creds", "seccomp", "proc"):
            self.assertEqual(layers[name]["state"], "active", name)

    def test_every_other_layer_holds(self):
        self.assert_ok(self.vial_run("-l", "python", "-c", POSTURE), "0 0 1 2 2 1000 False False\n")

    def test_pid_1_is_out_of_reach_though_it_has_the_same_uid(self):
        attack = "import os\n" \
                 "for path in ('mem', 'fd/0', 'environ', 'root', 'cwd', 'maps'):\n" \
                 "    try: os.open('/proc/1/' + path, os.O_RDONLY); print('opened', path)\n" \
                 "    except OSError: pass\n" \
                 "import signal\n" \
                 "for s in (9, 19, 15, 2, 11):\n" \
                 "    try: os.kill(1, s)\n" \
                 "    except OSError: pass\n" \
                 "print('alive')"
        self.assert_ok(self.vial_run("-l", "python", "-c", attack), "alive\n")

    def test_limits_fall_back_to_rlimits(self):
        done = self.vial_run("--memory", "100m", "-l", "python", "-c", "bytearray(10**9)")
        self.assertEqual(done.returncode, 1)
        self.assertIn("MemoryError", done.stderr)
        bomb = "import os\nn = 0\ntry:\n    while n < 100:\n        if os.fork() == 0: os.pause() if 0 else " \
               "__import__('time').sleep(30)\n        n += 1\nexcept BlockingIOError: pass\nprint(n < 20)"
        self.assert_ok(self.vial_run("--processes", "16", "-l", "python", "-c", bomb), "True\n")
        done = self.vial_run("--timeout", "0.3", "-l", "sh", "-c", "sleep 100 & sleep 100")
        self.assertEqual(done.returncode, cli.TIMEOUT)

    def test_files_written_to_a_directory_are_the_users(self):
        done = self.vial_run("--dir", self.dir + ":rw", "-l", "sh", "-c", "echo x >new")
        self.assert_ok(done)
        self.assertEqual(os.stat(self.path("new")).st_uid, USER)

    def test_a_compiled_language(self):
        self.assert_ok(self.vial_run("-l", "c", "-c", "int main(void) { return 0; }"))


class Container(Host):
    """Root of a user namespace with 65536 ids, as a container's root is."""

    def contained(self, mask=()):
        """What to run between fork and exec; the maps are written by a helper outside."""
        libc = ctypes.CDLL(None, use_errno=True)

        def check(result):
            if result < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

        def enter():
            check(libc.unshare(CLONE_NEWNS))
            check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
            check(libc.mount(b"tmpfs", b"/run", b"tmpfs", 0, b"uid=1000000,gid=1000000"))
            for path in mask:
                check(libc.mount(b"/dev/null", path, None, MS_BIND, None))
            ask, answer = os.pipe(), os.pipe()
            me = os.getpid()
            if os.fork() == 0:
                os.read(ask[0], 1)
                for name in ("uid_map", "gid_map"):
                    with open("/proc/%d/%s" % (me, name), "w", encoding="ascii") as file:
                        file.write("0 1000000 65536")
                os.write(answer[1], b"x")
                os._exit(0)
            check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
            os.write(ask[1], b"x")
            os.read(answer[0], 1)
            os.wait()
            for fd in (*ask, *answer):
                os.close(fd)
            os.setgroups([])
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        return enter

    def setUp(self):
        super().setUp()
        os.chown(self.dir, 1000000, 1000000)

    def vial_run(self, weak, *args, mask=()):
        return self.run_as(self.contained(mask), "run", "--allow-weak", weak, *args)

    def test_it_has_uids_to_give(self):
        done = self.vial_run("cgroup", "-l", "python", "-c", POSTURE)
        self.assert_ok(done, "0 0 1 2 2 1000 False False\n")

    def test_a_masked_proc_is_refused_and_then_done_without(self):
        mask = (b"/proc/keys",)
        done = self.vial_run("cgroup", "-l", "sh", "-c", "echo ran", mask=mask)
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertIn("proc", done.stderr)
        done = self.vial_run("cgroup,proc", "-l", "sh", "-c", "ls /proc; echo ran", mask=mask)
        self.assert_ok(done, "ran\n")


class NoNamespaces(cli.Case):
    """Inside a sandbox of our own nothing may make another: a place without namespaces."""

    def inside(self, *args):
        words = " ".join(args)
        return self.vial("run", "--file", "vial=" + cli.VIAL, "--memory", "1g", "--timeout", "20", "-l", "sh",
                         "-c", "cp vial /tmp/v && chmod +x /tmp/v && XDG_RUNTIME_DIR=/tmp /tmp/v " + words)

    def test_there_is_no_sandbox_and_that_is_said(self):
        done = self.inside("run --allow-weak uid,cgroup,proc -l sh -c 'echo ran'")
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertIn("new namespaces", done.stderr)

    def test_doctor_says_what_to_do(self):
        done = self.inside("doctor --json")
        self.assertEqual(done.returncode, 1, done.stderr)
        layers = {row["name"]: row for row in json.loads(done.stdout)["layers"]}
        self.assertEqual(layers["namespaces"]["state"], "missing")
        self.assertIn("seccomp", layers["namespaces"]["fix"])
