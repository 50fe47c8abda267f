"""Attacks through what a caller gives: host directories, signals, streams."""
import os
import signal
import stat
import subprocess

import cli


class HostDirectories(cli.Case):
    def test_no_set_id_program_is_made(self):
        attempts = {
            "chmod": "import os; open('e', 'w').close(); os.chmod('e', 0o6755)",
            "create": "import os; os.open('e', os.O_CREAT | os.O_WRONLY, 0o4755)",
            "fchmod": "import os; os.fchmod(os.open('e', os.O_CREAT | os.O_WRONLY), 0o2755)",
            "mknod": "import os, stat; os.mknod('e', stat.S_IFREG | 0o4755)",
        }
        for name, code in attempts.items():
            with self.subTest(name):
                where = self.path(name)
                os.mkdir(where)
                done = self.code("python", code, "--dir", where + ":rw")
                self.assertIn("PermissionError", done.stderr)
                for entry in os.scandir(where):
                    self.assertFalse(entry.stat().st_mode & (stat.S_ISUID | stat.S_ISGID))

    def test_a_directory_that_grows_too_large_ends_the_run(self):
        grow = "import os\n%s\nfor i in range(10**6):\n    open(str(i), 'wb').write(bytes(1 << 20))"
        for name, first in {"plain": "", "hidden": "os.mkdir('h'); os.chdir('h'); os.chmod('.', 0o300)"}.items():
            with self.subTest(name):
                where = self.path(name)
                os.mkdir(where)
                result, _ = self.result("python", grow % first, "--dir", where + ":rw", "--workspace", "8m")
                self.assertEqual((result["outcome"], result["limit"]), ("out_of_disk", "workspace"))

    def test_a_file_that_changes_its_name_all_the_time_is_counted(self):
        code = ("import os\nos.mkdir('a')\n"
                "for i in range(32): open('a/%d' % i, 'wb').write(bytes(1 << 20))\n"
                "while True: os.rename('a', 'b'); os.rename('b', 'a')")
        os.mkdir(self.path("data"))
        result, _ = self.result("python", code, "--dir", self.path("data") + ":rw",
                                "--workspace", "8m", "--timeout", "20")
        self.assertEqual((result["outcome"], result["limit"]), ("out_of_disk", "workspace"))

    def test_files_that_come_and_go_are_no_offence(self):
        code = ("import os, time\nend = time.time() + 2\n"
                "while time.time() < end:\n"
                "    for i in range(50): open(str(i), 'w').close()\n"
                "    for i in range(50): os.rename(str(i), 'x%d' % i); os.unlink('x%d' % i)")
        os.mkdir(self.path("data"))
        result, _ = self.result("python", code, "--dir", self.path("data") + ":rw")
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)

    def test_a_second_directory_is_watched_too(self):
        os.mkdir(self.path("data"))
        result, _ = self.result("sh", "cd /data; while :; do head -c 1048576 /dev/zero >f$((i+=1)); done",
                                "--dir", self.path("data") + ":/data:rw", "--workspace", "8m")
        self.assertEqual(result["outcome"], "out_of_disk")

    def test_a_link_does_not_lead_a_mount_outside(self):
        os.makedirs(self.path("tree"))
        os.mkdir(self.path("other"))
        os.mkdir(self.path("outside"))
        os.symlink(self.path("outside"), self.path("tree", "link"))
        done = self.code("sh", "true", "--dir", self.path("tree") + ":/data:rw", "--dir",
                         self.path("other") + ":/data/link/x")
        self.assertEqual(done.returncode, cli.OURS)
        self.assertEqual(os.listdir(self.path("outside")), [])

    def test_places_of_the_sandbox_itself_are_refused(self):
        for place in ("/run", "/run/vial", "/var/tmp/x", "/etc", "/usr/x", "/proc", "/sbin"):
            with self.subTest(place):
                self.assert_usage(self.code("sh", "true", "--dir", self.dir + ":" + place), "belongs to the sandbox")


class Ends(cli.Case):
    def test_a_parent_that_ignores_sigchld(self):
        done = self.code("sh", "exit 7", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 7)

    def test_a_stream_handed_to_another_sandbox_does_not_hold_ours(self):
        give = "import array, socket\ns = socket.socket(socket.AF_UNIX); s.connect('s')\n" \
               "s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1]))])\n" \
               "import time; time.sleep(60)"
        take = "import socket, time\ns = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen()\n" \
               "print('up', flush=True); c, _ = s.accept(); keep = c.recvmsg(1, 64); time.sleep(60)"
        taker = self.start("run", "--dir", self.dir + ":rw", "-l", "python", "-c", take)
        self.assertEqual(taker.stdout.read(3), b"up\n")
        done = self.code("python", give, "--dir", self.dir + ":rw", "--timeout", "1")
        self.assertEqual(done.returncode, cli.TIMEOUT)
        self.assertIsNone(taker.poll())

    def test_a_core_helper_is_not_started(self):
        done = self.code("python", "import resource, os, signal\n"
                                   "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
                                   "print(resource.getrlimit(resource.RLIMIT_CORE))")
        self.assert_ok(done, "(1, 1)\n")

    def test_a_forged_cpu_signal_is_no_timeout(self):
        result, code = self.result("sh", "kill -XCPU $$")
        self.assertEqual((result["outcome"], code), ("signaled", 128 + signal.SIGXCPU))

    def test_a_process_lost_to_memory_ends_the_run(self):
        result, code = self.result("bash", "head -c 100000000 /dev/zero >/dev/shm/big; sleep 20",
                                   "--memory", "32m", "--tmp", "200m")
        self.assertEqual((result["outcome"], result["oom"], code), ("out_of_memory", True, cli.KILLED))

    def test_ulimit_works_as_scripts_expect(self):
        done = subprocess.run([cli.VIAL, "run", "-l", "bash", "-c", "ulimit -c 0 && ulimit -c && ulimit -n 64 && ulimit -n"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr), ("0\n64\n", ""))
