"""Guests that attack the fork itself: they may lose it, or their own session, and nothing else."""
import threading
import unittest

from test_fork import Case

# A child of the guest that waits until its parent is stopped by a tracer, and then does something to it.
CHILD = """
import os, signal, time
parent = os.getpid()
child = os.fork()
if child == 0:
    end = time.time() + 10
    while time.time() < end:
        state = open('/proc/%%d/stat' %% parent).read().rsplit(')', 1)[1].split()[0]
        if state == 't':
            %s
            break
    os._exit(0)
"""
# Its driver's channel, as sessions.FORGE finds it.
CHANNEL = """
import os, stat
chan = [fd for fd in range(3, 1024) if os.path.exists('/proc/self/fd/%d' % fd)
        and stat.S_ISSOCK(os.fstat(fd).st_mode)][0]
"""


class Attacks(Case):
    def attack(self, code, tries=6):
        """Fork a session again and again that does that; another one must not notice."""
        other = self.open()
        self.step(other, "x = 5")
        session = self.open()
        self.step(session, code)
        statuses = []
        for _ in range(tries):
            status, answer, _ = self.post(session, "fork", {"count": 2})
            statuses.append(status)
            for branch in answer.get("branches", []):
                self.daemon.ask("DELETE", "/v1/sessions/" + branch["id"])
            self.assertEqual(self.value(other, "x"), 5)
            if self.step(session, "1")["fresh"]:  # it is lost: another that does the same
                self.step(session, code)
        for branch in self.fork(other):
            self.assertEqual(self.value(branch, "x"), 5)
        self.assertEqual(set(statuses) - {201, 409, 500, 503}, set())
        return statuses

    def test_a_child_kills_its_stopped_parent(self):
        self.assertEqual(self.attack(CHILD % "os.kill(parent, signal.SIGKILL)")[0], 409)

    def test_a_child_wakes_its_stopped_parent(self):
        self.assertNotEqual(self.attack(CHILD % "[os.kill(parent, n) for n in (18, 19, 18, 5, 12)]")[0], 201)

    def test_a_child_traces_and_rewrites_its_stopped_parent(self):
        self.assertNotEqual(self.attack(CHILD % """
            import ctypes
            libc = ctypes.CDLL(None)
            for request in (16, 0x4206): libc.ptrace(request, parent, 0, 0)
            try:
                with open('/proc/%d/mem' % parent, 'r+b', 0) as mem:
                    for line in open('/proc/%d/maps' % parent):
                        if ' rw' in line:
                            mem.seek(int(line.split('-')[0], 16)); mem.write(b'\\\\xff' * 64)
            except (OSError, ValueError): pass""")[0], 201)

    def test_patched_code(self):
        """Whatever the guest's memory says, nobody with power runs it: it is no longer the guest's choice."""
        statuses = self.attack("""
import ctypes
libc = ctypes.CDLL(None)
for name in ('setns', 'unshare', 'setresuid', 'prctl', 'capset', 'dup3', 'openat', 'fork'):
    try: at = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
    except AttributeError: continue
    if name in ('setns', 'unshare', 'setresuid', 'capset') and \\
            libc.mprotect(ctypes.c_void_p(at & -4096), ctypes.c_size_t(8192), 7) == 0:
        ctypes.memset(at, 0xcc, 8)
""", 2)
        self.assertEqual(statuses, [201, 201])

    def test_signals_without_end(self):
        """Handlers of the guest's do not run while somebody acts for it."""
        self.attack("import signal\nhits = 0\n"
                    "def hit(*_):\n    global hits\n    hits += 1\n"
                    "signal.signal(signal.SIGALRM, hit); signal.signal(signal.SIGTRAP, hit)\n"
                    "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)", 3)

    def test_forged_messages(self):
        """What it says in its driver's name while it is forked is about itself alone."""
        for said in ('{"op":"forked"}', '{"id":1,"result":{}}', "x" * 100, '{"branches":[1]}'):
            self.attack(CHANNEL + "os.write(chan, %r)" % (said.encode() + b"\n"), 1)

    def test_a_driver_that_is_ready_to_be_forked_twice(self):
        """The second time it is being forked already: whoever waits for the first must not be forgotten."""
        statuses = self.attack("""
import gc
channel = next(type(one) for one in gc.get_objects() if type(one).__name__ == 'Channel')
send = channel.send_bytes
channel.send_bytes = lambda self, data: send(self, data + b'\\n' + data)
""")
        self.assertEqual(set(statuses), {409})

    def test_namespaces_that_are_held(self):
        """A way back into the sandbox that was is none: it is refused."""
        session = self.open()
        self.step(session, "import os; held = os.open('/proc/self/ns/net', os.O_RDONLY)")
        self.refuse(session)
        self.step(session, "os.close(held); held = os.open('/', os.O_RDONLY)")
        branch = self.fork(session)[0]
        self.step(session, "open('/sandbox/mine', 'w').close()")
        self.assertEqual(self.value(branch, "os.listdir('/proc/self/fd/%d/sandbox' % held)"), [])

    def test_many_at_once_exhaust_nothing(self):
        """Forks of many sessions that want all memory: each is held to its own limit, and others go on."""
        other = self.open()
        self.step(other, "x = 5")
        greedy = [self.open(limits={"memory": "64m"}) for _ in range(3)]

        def grow(session):
            branches = [one["id"] for one in self.post(session, "fork", {"count": 4})[1].get("branches", [])]
            for one in (session, *branches):
                self.post(one, "runs", {"code": "held = []\nwhile True: held.append(bytearray(1 << 20))"})

        crowd = [threading.Thread(target=grow, args=(session,)) for session in greedy]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        self.assertEqual(self.value(self.fork(other)[0], "x"), 5)


if __name__ == "__main__":
    unittest.main()
