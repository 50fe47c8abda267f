"""What one run leaves, the next one does not find; and both are where a run without a daemon is."""
import json
import os
import subprocess
import unittest

import daemon
from chaos import Daemon
from daemon import run_of

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("files", "ipc", "network", "sockets", "processes", "self", "memory", "spend", "descriptors")
ROUNDS = 2
SLOTS = 12  # more than take turns while there is one client
MEMORY_MAX = 96 << 20


def program(name):
    with open(os.path.join(HERE, "programs", name), encoding="utf-8") as file:
        return file.read()


def differences(first, second, name=""):
    if type(first) is not type(second) or not isinstance(first, (dict, list)):
        if first != second:
            yield "%s: %r, %r" % (name, first, second)
    elif isinstance(first, dict):
        for key in sorted({*first, *second}):
            yield from differences(first.get(key), second.get(key), "%s.%s" % (name, key))
    else:
        for line in sorted(set(map(str, first)) ^ set(map(str, second))):
            yield "%s: only %s: %s" % (name, "first" if line in map(str, first) else "second", line)


class Reuse(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        # One at a time, so that the second gets what the first had.
        cls.daemon = Daemon("--listen", "none", "--armed", "1", "--max", "1")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def run_it(self, code, *args, **more):
        status, answer, _ = self.daemon.ask("POST", "/v1/runs", run_of(code, args=list(args), **more))
        self.assertEqual(status, 200, answer)
        return answer["result"]

    def census(self):
        result = self.run_it(program("census.py"))
        self.assertEqual((result["stderr"], result["exit_code"]), ("", 0))
        self.assertLess(result["peak_memory"], MEMORY_MAX)
        self.assertLess(result["cpu_ms"], 1000)
        return result["stdout"], result

    def run_in_slot(self, code, *args, **more):
        """Which slot it was in, and what it printed."""
        result = self.run_it("import os; print(os.readlink('/proc/self/ns/pid'))\n" + code, *args, **more)
        self.assertEqual(result["stderr"], "")
        slot, _, printed = result["stdout"].partition("\n")
        return slot, printed

    def runs_after(self, slot, code):
        """What the next ones print, up to the first that is in this slot; and whether there is one."""
        printed = []
        for _ in range(SLOTS):
            here, text = self.run_in_slot(code)
            printed.append(text)
            if here == slot:
                return printed, True
        return printed, False

    def test_nothing_is_found_of_the_last_run(self):
        census, again = program("census.py"), set()
        _, before = self.run_in_slot(census)
        for number in range(ROUNDS):
            for kind in KINDS:
                word = "left%s%d" % (kind, number)
                with self.subTest(word):
                    slot, left = self.run_in_slot(program("leave.py"), word, kind, stdin="x" * 100000)
                    self.assertEqual(left, "left\n")
                    printed, is_same = self.runs_after(slot, census)
                    again |= {kind} if is_same else set()
                    for after in printed:
                        self.assertNotIn(word, after)
                        found = differences(json.loads(before), json.loads(after))
                        self.assertEqual("\n".join(found), "")
        self.assertLessEqual({"files", "ipc", "sockets", "self", "descriptors"}, again)
        self.assertNotIn("processes", again)  # nobody can say what is left of them

    def test_numbers_begin_anew(self):
        """What the kernel counts in a slot, and a file of a name that a fresh one would not have."""
        slot, first = self.run_in_slot(program("numbers.py"))
        printed, is_same = self.runs_after(slot, program("numbers.py"))
        self.assertTrue(is_same)
        self.assertEqual(set(printed), {first})

    def test_slots_are_used_again(self):
        slots = [self.run_in_slot("")[0] for _ in range(40)]
        self.assertLess(len(set(slots)), SLOTS)

    def test_its_own_memory_holds_nothing_of_the_last_run(self):
        look = """
import re
word = bytes(reversed(b'%s'))
found = 0
for line in open('/proc/self/maps'):
    begin, end = (int(n, 16) for n in line.split()[0].split('-'))
    if 'r' in line.split()[1] and 'vvar' not in line and 'vsyscall' not in line:
        with open('/proc/self/mem', 'rb', 0) as memory:
            memory.seek(begin)
            try:
                found += memory.read(end - begin).count(word)
            except (OSError, ValueError):
                pass
print(found)
"""
        for number in range(ROUNDS):
            word = "remember-%d-this" % number
            self.run_it(program("leave.py"), word, "memory", stdin=word * 10000, env={"W": word},
                        files=[{"path": "f", "content": word * 10000}])
            # The word that is looked for is there itself, once or more: as often as another is.
            seen, never = (self.run_it(look % text[::-1]) for text in (word, "remember-%d-that" % number))
            self.assertEqual((seen["stdout"], seen["stderr"]), (never["stdout"], ""))

    def test_networks_are_used_again(self):
        """Else the other tests prove less than they seem to."""
        look = "import os; print(os.readlink('/proc/self/ns/net'))"
        seen = [self.run_it(look)["stdout"] for _ in range(40)]
        self.assertLess(len(set(seen)), len(seen) // 2)

    def test_of_networks_that_were_used_little_stays_open(self):
        """What is read of a network stays open in the net maker, also when it is never used again."""
        used = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); " \
               "socket.create_connection(s.getsockname()).close(); print('used')"
        for _ in range(80):
            self.assertEqual(self.run_it(used)["stdout"], "used\n")
        for maker in self.daemon.find("net maker"):
            self.assertLess(len(os.listdir("/proc/%d/fd" % maker.pid)), 32 * 15 + 40)

    def test_as_without_a_daemon(self):
        here = subprocess.run([daemon.VIAL, "run", "--no-daemon", "-l", "python", "-c",
                               program("census.py")], capture_output=True, text=True, check=True)
        there, _ = self.census()
        here, there = json.loads(here.stdout), json.loads(there)
        for facts in here, there:
            # What "/" lies on; /tmp of the nest, which is hidden by the sandbox's own; and how
            # many descriptors there is room for, which is no limit.
            facts["mounts"] = [row for row in facts["mounts"] if row.split()[1] not in ("/", "/tmp")
                               and not row.split()[0].endswith("/run/empty")]
            del facts["room"]["/"], facts["status"]["FDSize"]
            # What a zygote has loaded is no program's; slots know the ids of branches (ARCHITECTURE.md).
            del facts["numbers"]["limits"]["RLIMIT_DATA"], facts["own"]["uid_map"], facts["own"]["gid_map"]
        self.assertEqual("\n".join(differences(here, there)), "")
