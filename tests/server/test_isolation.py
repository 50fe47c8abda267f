"""What one guest of the pool can do to another, or to those who serve both."""
import json
import os
import re
import subprocess
import unittest

import daemon
from daemon import wait_until

INOTIFY = ("import ctypes, time\n"
           "libc = ctypes.CDLL(None)\n"
           "n = 0\n"
           "while n < 900 and libc.inotify_init1(0) >= 0: n += 1\n"
           "print(n, flush=True)\n")


def children(served):
    """/proc/PID/status of all that the keeper made, and whose their memory is."""
    keeper, found = served.process.pid, []
    with open("/proc/%d/task/%d/children" % (keeper, keeper), encoding="ascii") as file:
        pids = file.read().split()
    for pid in pids:
        try:
            with open("/proc/%s/status" % pid, encoding="ascii") as file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            found.append({**status, "owner": os.stat("/proc/%s/mem" % pid).st_uid})
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@unittest.skipUnless(os.getuid() == 0, "an ordinary user's sandboxes share his budgets")
class Budgets(daemon.Case):
    def beside(self, hog, code):
        """What a run says while another holds what it could get."""
        with_hog = self.stream(hog + "time.sleep(20)\n")
        self.assertIn(b'"start"', with_hog.readline())
        held = next(line for line in with_hog
                    if json.loads(line)["event"] not in daemon.PROGRESS)
        self.assertIn(b'"output"', held)
        return self.run_ok(code)["stdout"]

    def test_inotify_instances_of_one_are_not_missing_to_another(self):
        self.assertGreaterEqual(int(self.beside(INOTIFY, INOTIFY)), 4)


POSTURE = """import ctypes, os
fields = ("Cap", "NoNewPrivs", "Seccomp:", "Groups", "Sig", "Shd", "Uid", "Gid", "Umask", "Threads", "Cpus_allowed:")
print([line for line in open("/proc/self/status") if line.startswith(fields)])
for name in ("limits", "oom_score_adj", "setgroups", "cgroup", "timers", "loginuid", "coredump_filter"):
    print(name, open("/proc/self/" + name).read())
print("securebits", ctypes.CDLL(None).prctl(27, 0, 0, 0, 0), "dumpable", ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
print(os.getpid(), os.getppid(), os.getsid(0), os.getpgid(0), os.nice(0), os.getcwd())
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd")))
print([line for line in open("/proc/self/maps") if line.split()[1] == "rw-s"])
"""


def without_data(posture):
    """The posture but for the limit on data, and that limit."""
    data = re.search(r"Max data size +(\d+) +", posture)
    return posture.replace(data.group(), ""), int(data[1])


class Posture(daemon.Case):
    def test_a_warm_guest_has_given_up_what_a_cold_one_has(self):
        cold = subprocess.run([daemon.VIAL, "run", "--no-daemon", "-l", "python", "-c", POSTURE],
                              capture_output=True, text=True, check=True).stdout
        self.assertIn("'CapBnd:\\t0000000000000000\\n'", cold)
        warm, warm_data = without_data(self.run_ok(POSTURE)["stdout"])
        cold, cold_data = without_data(cold)
        self.assertEqual(warm, cold)
        # Above that of a program which starts with nothing: what the zygote had loaded.
        self.assertTrue(4 << 20 < warm_data - cold_data < 64 << 20, (warm_data, cold_data))

    @unittest.skipUnless(os.getuid() == 0, "of another user")
    @daemon.inside
    def test_what_loads_packages_is_filtered(self):
        """A zygote has power over its nest; the kernel is not for its packages to play with."""
        self.run_ok("")
        zygotes = [status for status in children(self.daemon) if status["Name"] == "python3" and
                   int(status["CapEff"], 16)] # and guests on their way in
        self.assertIn(1 << 18 | 1 << 21, [int(status["CapPrm"], 16) for status in zygotes])
        self.assertEqual({status["Seccomp"] for status in zygotes}, {"2"})


class Networks(daemon.Case):
    """The pool uses network namespaces again, if nothing in them tells that they were used."""

    def namespaces(self, code, count):
        """Their cookies: numbers in /proc are given again when one is gone."""
        code = "import socket, struct\n%s\nprint(socket.socket().getsockopt(1, 71, 8).hex())" % code
        results = [self.run_ok(code) for _ in range(count)]
        if any("Protocol not available" in result["stderr"] for result in results):
            self.skipTest("a kernel without SO_NETNS_COOKIE")
        return [result["stdout"] for result in results]

    def assert_used_once(self, code):
        used = self.namespaces(code, 3)
        self.assertEqual(len(set(used)), 3)
        self.assertFalse(set(used) & set(self.namespaces("", 20)))

    @daemon.inside
    def test_one_that_was_not_used_is_used_again(self):
        self.assertTrue(wait_until(lambda: len(set(self.namespaces("", 20))) < 20))

    def test_packets(self):
        self.assert_used_once("socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))")

    def test_packets_that_went_nowhere(self):
        self.assert_used_once("s = socket.socket(type=socket.SOCK_DGRAM)\n"
                              "try: s.sendto(b'x', ('192.0.2.1', 9))\n"
                              "except OSError: pass")

    def test_labels_of_which_the_host_has_one_table_are_refused(self):
        result = self.run_ok(
            "import socket, struct\n"
            "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
            "try:\n    s.setsockopt(41, 32, socket.inet_pton(socket.AF_INET6, '::1') + struct.pack('>I', 77) +\n"
            "                 struct.pack('=BBHHHI', 0, 1, 1, 60, 60, 0))\n"
            "except PermissionError: print('refused')")
        self.assertEqual(result["stdout"], "refused\n")

    def test_a_key_for_quick_openings(self):
        self.assert_used_once("socket.socket().setsockopt(6, 23, 5)")


@unittest.skipUnless(os.getuid() == 0, "whose a process is, is root's to see")
class Memory(daemon.Case):
    def owners(self):
        """Whose the memory of each guest is that is still a copy of the keeper."""
        return [status["owner"] for status in children(self.daemon) if status["Name"] == "vial-stem" and
                status["NSpid"].endswith("\t2") and len(status["NSpid"].split()) == 3]

    @daemon.inside
    def test_copies_of_the_keeper_cannot_be_looked_into(self):
        """A guest that waits for its code with the keeper's memory is not dumpable: it is root's."""
        self.run_ok("true", "sh") # others are armed now
        self.assertTrue(daemon.wait_until(lambda: len(self.owners()) == 4))
        self.assertEqual(self.owners(), [0] * 4)


class Numpy(daemon.Case):
    """Its generator is drawn anew by us (src/guest/python_random.c), and is numpy's own from then on."""

    CODE = """import numpy, json
seen = [numpy.random.randint(1 << 62), numpy.random.random(), numpy.random.randn(), numpy.random.get_state()[1].tolist()]
numpy.random.seed(1)
print(json.dumps(seen + [numpy.random.random(), numpy.random.randn()]))"""

    def setUp(self):
        there = [item["name"] for item in self.daemon.ask("GET", "/v1/environments")[1]["environments"]]
        if "python-data" not in there:
            self.skipTest("the environment python-data is not built")

    def draw(self):
        status, answer, _ = self.daemon.ask("POST", "/v1/runs", {"environment": "python-data", "code": self.CODE})
        self.assertEqual(status, 200, answer)
        return json.loads(answer["result"]["stdout"])

    def test_its_random_numbers_are_each_guests_own(self):
        found = [self.draw() for _ in range(12)]
        for column in range(4):
            self.assertEqual(len({json.dumps(row[column]) for row in found}), len(found), column)

    def test_a_seed_gives_what_it_gives_elsewhere(self):
        self.assertEqual(self.draw()[4:], [0.417022004702574, -0.8021728386486427])
