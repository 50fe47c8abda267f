"""vial run --allow-host: a run's own proxy, without a daemon."""
import os
import socket
import subprocess
import sys
import time
import unittest

import cli

sys.path.insert(0, os.path.join(cli.ROOT, "tests/server"))
import outside

CODE = """
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=20).read().decode())
    except OSError as error:
        print(error)
"""


def proxies():
    """Those there are, by their pid."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % pid, encoding="utf-8", errors="replace") as name:
                if name.read() == "vial-egress\n":
                    found.add(pid)
        except OSError:
            pass
    return found


def children(pid):
    done = subprocess.run(["pgrep", "-P", str(pid), "vial-egress"], capture_output=True, check=False)
    return done.stdout.split()


# Runs a program that cannot install a filter: seccomp() is refused by one that is there already.
WITHOUT_FILTERS = """
import ctypes, os, struct, sys
number = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50000 | 22), (6, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(text))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.dup2(int(sys.argv[1]), 3)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Filter(unittest.TestCase):
    def start(self, *more):
        """A proxy whose channel is closed at once; on its own it ends well then."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.close()
        with far:
            return subprocess.run(
                [sys.executable, "-c", WITHOUT_FILTERS, str(far.fileno()),
                 os.path.join(os.path.dirname(cli.VIAL), "vial-egress"), "0", "", *more], capture_output=True,
                text=True, pass_fds=[far.fileno()], timeout=60, check=False)

    def test_a_proxy_without_one_only_where_its_owner_has_none(self):
        refused = self.start()
        self.assertEqual(refused.returncode, 1)
        self.assertIn("vial-egress: seccomp", refused.stderr)
        done = self.start("unfiltered")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Egress(cli.Case):
    def setUp(self):
        super().setUp()
        self.web = outside.Web("127.0.0.5")
        self.addCleanup(self.web.close)
        self.put("a.py", CODE)

    def url(self, host="127.0.0.5", path="/x"):
        return "http://%s:%d%s" % (host, self.web.port, path)

    def run_here(self, *args, **more):
        return self.vial("run", "--no-daemon", *args, **more)

    def test_a_second_address_of_this_machine_is_its_own_too(self):
        script = self.put("own.sh", """
            ip link set lo up; ip addr add 11.1.1.1/24 dev lo; ip addr add 11.1.1.2/24 dev lo
            ip addr add 2a00::1/64 dev lo nodad; ip addr add 2a00::2/64 dev lo nodad
            python3 -m http.server --bind 11.1.1.2 8099 >/dev/null 2>&1 & server=$!
            for i in 1 2 3 4 5 6 7 8 9; do (: </dev/tcp/11.1.1.2/8099) 2>/dev/null && break; sleep 0.3; done
            "$@"; status=$?
            kill $server; exit $status""")
        done = subprocess.run(["unshare", "-n", "bash", script, cli.VIAL, "run", "--no-daemon", "--allow-host", "*:8099",
                               os.path.join(self.dir, "a.py"), *["http://%s:8099/" % host for host in (
                                   "11.1.1.1", "11.1.1.2", "[2a00::1]", "[2a00::2]", "[::ffff:11.1.1.2]")]],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line[:15] for line in done.stdout.splitlines()], ["HTTP Error 403:"] * 5, done.stdout)
        self.assertEqual(done.stderr.count("this very machine"), 5, done.stderr)

    def test_what_is_allowed_and_what_is_not(self):
        done = self.run_here("--allow-host", "127.0.0.5:%d" % self.web.port, "a.py", self.url(),
                             self.url("127.0.0.7"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[0], "hello /x")
        self.assertIn("403", done.stdout.splitlines()[1])
        self.assertEqual(done.stderr, "vial: network: 127.0.0.7:%d is not among allow_hosts: add \"127.0.0.7:%d\" "
                         "to reach it\n" % (self.web.port, self.web.port))

    def test_the_result_says_so(self):
        result, _ = self.result("python", CODE, "--no-daemon", "--allow-host", "127.0.0.5:*",
                                args=(self.url(), "http://a.test/"))
        self.assertEqual(result["network"]["allowed"], 1)
        self.assertEqual([r["reason"] for r in result["network"]["refusals"]], ["host"])
        result, _ = self.result("python", "1", "--no-daemon")
        self.assertNotIn("network", result)

    def test_names_by_a_resolver_of_the_operators(self):
        names = outside.Names({"web.test": [["127.0.0.5"]], "away.test": [["127.0.0.9"]]})
        self.addCleanup(names.close)
        conf = self.put("vial.yaml", 'egress:\n  resolvers: ["%s"]\n  allow: ["*.test:*", "127.0.0.5:*"]\n'
                        % names.address)
        hosts = ("--allow-host", "*.test:*", "--allow-host", "127.0.0.5:*")
        done = self.run_here("--config", conf, *hosts, "a.py", self.url("web.test"), self.url("away.test"))
        self.assertEqual(done.stdout.splitlines()[0], "hello /x", done.stderr)
        self.assertIn("away.test is at 127.0.0.9, which is not public", done.stderr)
        done = self.run_here("--config", conf, "--allow-host", "127.0.0.6", "a.py")
        self.assertEqual(done.returncode, cli.OURS)
        self.assertIn("the operator allows other hosts", done.stderr)

    def test_what_is_no_host(self):
        for wrong in ("http://a", "a b", "", "1.2.3.4/40", "a:0"):
            with self.subTest(wrong):
                self.assertEqual(self.run_here("--allow-host", wrong, "a.py").returncode, cli.USAGE)
        conf = self.put("vial.yaml", "egress:\n  allow:\n    - example.com\n    - a b\n")
        done = self.run_here("--config", conf, "a.py")
        self.assertIn("line 4", done.stderr)

    def test_the_plan_shows_it(self):
        done = self.run_here("--explain", "--allow-host", "*.example.com:8080", "a.py")
        self.assertIn("network\n  loopback only\n  *.example.com:8080, by a proxy\n", done.stdout)
        self.assertIn("HTTPS_PROXY=http://127.0.0.1:3128\n", done.stdout)

    def test_the_proxy_ends_with_the_run_however_that_ends(self):
        process = self.start("run", "--no-daemon", "--allow-host", "127.0.0.5:*", "a.py", self.url(path="/wait"))
        self.assertTrue(self.web.waiting.wait(cli.PATIENCE_S))
        mine = {pid.decode() for pid in children(process.pid)}
        self.assertEqual(len(mine), 1)
        process.kill()
        process.wait()
        self.assertTrue(self.web.left.wait(cli.PATIENCE_S))
        deadline = time.monotonic() + cli.PATIENCE_S
        while mine & proxies() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertFalse(mine & proxies())
