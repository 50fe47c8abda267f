"""The server as a process: what it may do, and how it ends."""
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import daemon
from daemon import run_of, wait_until


def is_there(pid):
    """Alive: a zombie is not."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


LEASE_OF_NOBODY = 4095
LATENCY = "/dev/cpu_dma_latency"  # how long processors may take to wake up, in microseconds


def beside_own_groups():
    """A name for a group beside the one we are in, for each tree where we are not at the top."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        rows = [row.rstrip("\n").split(":", 2) for row in file]
    places = [("/sys/fs/cgroup/" + names, path) for _, names, path in rows if path != "/"]
    return [os.path.join(tree + os.path.dirname(path), "beside-%d" % os.getpid())
            for tree, path in places if os.path.isdir(tree + path)]


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return None


class LockedIn(daemon.Case):
    def status(self):
        with open("/proc/%d/status" % self.daemon.server_pid(), encoding="ascii") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)

    def test_it_has_no_rights(self):
        status = self.status()
        if os.getuid() == 0 and not daemon.WORKERS:  # a dispatcher reads its tokens again, as whoever it was started by
            self.assertNotIn("0", status["Uid"].split())
            self.assertNotIn("0", status["Gid"].split())
            self.assertEqual(status["Groups"].strip(), "")
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(int(status[name], 16), 0, name)
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(status["Seccomp"], "2")
        self.assertEqual(status["Threads"], "1")

    def test_it_holds_no_file_for_writing_but_the_journals(self):
        """And that which keeps processors awake, in which there is nothing but a number."""
        pid = self.daemon.server_pid()
        for number in os.listdir("/proc/%d/fd" % pid):
            try:
                target = os.readlink("/proc/%d/fd/%s" % (pid, number))
                with open("/proc/%d/fdinfo/%s" % (pid, number), encoding="ascii") as file:
                    flags = int(next(row for row in file if row.startswith("flags:")).split()[1], 8)
            except FileNotFoundError: # closed meanwhile
                continue
            if target.startswith("/") and int(number) > 2 and "/history.journal-" not in target \
                    and target != LATENCY:
                self.assertEqual(flags & os.O_ACCMODE, os.O_RDONLY, target)

    def test_nothing_piles_up(self):
        pid = self.daemon.server_pid()

        def settled():
            """How many descriptors it has when all that is kept armed is."""
            counts = [0, -1]
            while counts[-1] != counts[-2]:
                time.sleep(0.5)
                counts.append(len(os.listdir("/proc/%d/fd" % pid)))
            return counts[-1]

        self.run_ok("pass")
        before = settled()
        for i in range(50):
            self.assertEqual(self.run_ok("print(%d)" % i)["stdout"], "%d\n" % i)
        self.assertTrue(wait_until(lambda: settled() <= before + 40))


@unittest.skipUnless(os.access(LATENCY, os.R_OK | os.W_OK) and os.cpu_count() <= 16,
                     "processors of this host cannot be kept awake, or shall not be")
class Wakeful(unittest.TestCase):
    def serve(self, *options):
        made = daemon.Daemon(*options)
        self.addCleanup(made.close)
        folder = "/proc/%d/fd" % made.server_pid()
        return made, [os.readlink(os.path.join(folder, number)) for number in os.listdir(folder)]

    @staticmethod
    def latency():
        with open(LATENCY, "rb", buffering=0) as file:
            return int.from_bytes(file.read(4), "little")

    def test_processors_stay_awake_while_somebody_asks(self):
        made, files = self.serve()
        self.assertIn(LATENCY, files)
        over = threading.Event()

        def ask():
            connection = made.connect()
            while not over.is_set():
                made.ask("GET", "/healthz", connection=connection)
            connection.close()
        client = threading.Thread(target=ask)
        client.start()
        try:
            self.assertTrue(wait_until(lambda: self.latency() == 0))
        finally:
            over.set()
            client.join()
        self.assertTrue(wait_until(lambda: self.latency() != 0), "they are not let go")

    def test_not_in_a_crowd(self):
        """Whoever waits for a processor has one that is awake; those that wait would be in the way."""
        made, _ = self.serve()
        self.assertTrue(wait_until(lambda: self.latency() != 0))
        for _ in range(2):
            body = json.dumps(daemon.run_of("import time; time.sleep(1000)")).encode()
            sock = made.raw()
            self.addCleanup(sock.close)
            sock.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(body) + body)
        connection = made.connect()
        self.addCleanup(connection.close)
        self.assertTrue(wait_until(lambda: len(made.ask("GET", "/v1/runs", connection=connection)[1]["runs"]) == 2))
        self.assertTrue(wait_until(lambda: self.latency() != 0))
        for _ in range(200):
            made.ask("GET", "/healthz", connection=connection)
            self.assertNotEqual(self.latency(), 0)

    def test_not_where_the_operator_says_so(self):
        _, files = self.serve("--set", "wakeful=false")
        self.assertNotIn(LATENCY, files)


class Ending(unittest.TestCase):
    def setUp(self):
        self.daemon = daemon.Daemon()
        self.addCleanup(self.daemon.close)
        self.server = self.daemon.server_pid()

    def run_in_thread(self, code):
        answers = []

        def work():
            try:
                answers.append(self.daemon.ask("POST", "/v1/runs", run_of(code)))
            except (OSError, ValueError) as problem:
                answers.append(problem)
        thread = threading.Thread(target=work)
        thread.start()
        self.assertTrue(wait_until(lambda: any(run["state"] == "running" and "session" not in run
                                               for run in self.daemon.runs())))
        return thread, answers

    def assert_all_gone(self, *pids):
        self.assertTrue(wait_until(lambda: not any(map(is_there, pids))), "still there")

    def test_a_term_signal_lets_runs_finish(self):
        thread, answers = self.run_in_thread("import time; time.sleep(3); print('finished')")
        idle = self.daemon.raw()
        self.addCleanup(idle.close)
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(idle.recv(100), b"") # whoever only sits there is sent away
        self.assertTrue(wait_until(lambda: not self.daemon.answers())) # and nobody new is let in
        self.assertTrue(thread.is_alive())
        thread.join()
        self.assertEqual(answers[0][1]["result"]["stdout"], "finished\n")
        self.assertEqual(self.daemon.process.wait(daemon.PATIENCE_S), 0)
        self.assert_all_gone(self.server)

    def test_what_a_terminal_says_is_said_once(self):
        """Ctrl-C goes to all of a process group; what is told twice would end what is under way."""
        thread, answers = self.run_in_thread("import time; time.sleep(3); print('finished')")
        keeper = self.daemon.process.pid
        for pid in (keeper, self.server):
            if os.getpgid(pid) == os.getpgid(keeper):
                os.kill(pid, signal.SIGINT)
        thread.join()
        self.assertEqual(answers[0][1]["result"]["stdout"], "finished\n")
        self.assertEqual(self.daemon.process.wait(daemon.PATIENCE_S), 0)

    def test_what_does_not_finish_is_cancelled_and_told_of(self):
        self.daemon.close()
        self.daemon = daemon.Daemon("--set", "drain_grace=4s")  # to print it is enough
        self.addCleanup(self.daemon.close)
        self.server = self.daemon.server_pid()
        session = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        step = threading.Thread(target=lambda: steps.append(self.daemon.ask(
            "POST", "/v1/sessions/%s/runs" % session, {"code": "import time; time.sleep(60)", "timeout": 60})))
        steps = []
        step.start()
        thread, answers = self.run_in_thread("import time; print(1, flush=True); time.sleep(60)")
        self.assertTrue(wait_until(lambda: [run["state"] for run in self.daemon.runs()] == ["running"] * 2))
        self.daemon.process.send_signal(signal.SIGTERM)
        thread.join()
        step.join()
        result = answers[0][1]["result"]
        self.assertEqual((result["outcome"], result["stdout"]), ("cancelled", "1\n"))
        self.assertIn("shutting down", steps[0][1]["result"]["reason"])
        self.assertEqual(self.daemon.process.wait(daemon.PATIENCE_S), 0)

    def test_a_second_signal_is_an_order_too(self):
        thread, answers = self.run_in_thread("import time; time.sleep(60)")
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: not self.daemon.answers()))
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.process.wait(daemon.PATIENCE_S), 0)
        thread.join()
        self.assertIsInstance(answers[0], Exception)
        self.assert_all_gone(self.server)

    def test_without_runs_it_ends_at_once(self):
        start = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.process.wait(daemon.PATIENCE_S), 0)
        self.assertLess(time.monotonic() - start, 20)
        self.assertFalse(os.path.exists(self.daemon.path))

    def test_the_server_goes_with_the_keeper(self):
        thread, answers = self.run_in_thread("import time; time.sleep(60)")
        self.daemon.process.kill()
        thread.join()
        self.assertIsInstance(answers[0], Exception)
        self.assert_all_gone(self.server)

    @daemon.inside
    def test_who_asks_for_versions_goes_with_the_server(self):
        folder = tempfile.mkdtemp(prefix="vial-test-", dir="/var/lib")  # of what sandboxes have no own
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        subprocess.run(["cc", "-x", "c", "-o", folder + "/ruby", "-"], check=True, text=True,
                       input="#include <unistd.h>\nint main(void) { return (int)sleep(60); }")
        with open(folder + "/vial.yaml", "w", encoding="ascii") as config:
            config.write("languages: [{name: ruby, command: %s/ruby, mounts: [%s]}]\n" % (folder, folder))
        made = daemon.Daemon("--config", folder + "/vial.yaml")
        self.addCleanup(made.close)
        server = made.server_pid()

        def waiting():
            """Who waits for the slow one: children of the server that have it."""
            return [pid for pid in children(server) if any(name_of(one) == "ruby" for one in children(pid))]

        asker = wait_until(waiting)
        self.assertTrue(asker)
        made.process.kill()
        self.assertTrue(wait_until(lambda: not is_there(asker[0]), 20))

    def test_the_keeper_goes_with_the_server(self):
        thread, answers = self.run_in_thread("import time; time.sleep(60)")
        os.kill(self.server, signal.SIGKILL)
        thread.join()
        self.assertIsInstance(answers[0], Exception)
        self.assertNotEqual(self.daemon.process.wait(daemon.PATIENCE_S), 0)

    def test_the_next_one_removes_what_was_left_beside_its_own_group(self):
        places = beside_own_groups()
        if not places:
            self.skipTest("our groups are at the top here: nobody is beside them")
        stale = [os.path.join(place, "vial-%d" % LEASE_OF_NOBODY) for place in places]
        for place, path in zip(places, stale):
            os.mkdir(place)
            self.addCleanup(os.rmdir, place)
            os.mkdir(path)
        made = daemon.Daemon()
        self.addCleanup(made.close)
        self.assertEqual([path for path in stale if os.path.exists(path)], [])

    def test_a_stream_that_is_cut_says_nothing_false(self):
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.request("POST", "/v1/runs", json.dumps(run_of("import time; time.sleep(60)")),
                     {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        response = made.getresponse()
        self.assertEqual(json.loads(response.readline())["event"], "start")
        self.daemon.process.kill()
        rest = b""
        try:
            rest = response.read()
        except (OSError, ValueError, http.client.HTTPException):
            pass
        self.assertNotIn(b'"result"', rest)
