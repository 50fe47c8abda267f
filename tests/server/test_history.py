"""What ran is kept, through every kind of death; and told to whom it belongs."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import test_tenants
from daemon import PATIENCE_S, Case, Daemon, inside, run_of, wait_until

KILLS = int(os.environ.get("HISTORY_KILLS", "4"))


def history(daemon, **filters):
    status, answer, _ = daemon.ask("GET", "/v1/history?" + urllib.parse.urlencode(filters))
    assert status == 200, answer
    return answer


def ids(daemon, **filters):
    """Those of all pages: a search that takes long ends one early."""
    found = []
    while True:
        answer = history(daemon, **filters)
        found += [record["id"] for record in answer["records"]]
        if not answer["next"]:
            return found
        filters["cursor"] = answer["next"]


def check_of(daemon):
    """What /readyz says of the history, and whether the server is ready."""
    answer = daemon.ask("GET", "/readyz")[1]
    return next(c for c in answer["checks"] if c["name"] == "history"), answer["ready"]


def helpers(daemon):
    """Pids of the warden and the scribe."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            found[int(pid)] = (name, int(rest.split()[1]), rest.split()[0])
        except OSError:
            pass
    server = daemon.server_pid()
    warden = next((p for p, v in found.items() if v[:2] == ("vial-warden", server)), None)
    scribe = next((p for p, v in found.items()
                   if v[:2] == ("vial-scribe", warden) and v[2] != "Z"), None)
    return warden, scribe


def ready_helpers(daemon):
    """When both are there: they are made after the server answers."""
    assert wait_until(lambda: None not in helpers(daemon))
    return helpers(daemon)


class Records(Case):
    options = ("--armed", "2")

    def run_id(self, code, language="python", **more):
        status, answer, _ = self.daemon.ask("POST", "/v1/runs", run_of(code, language, **more))
        self.assertEqual(status, 200, answer)
        return answer["id"]

    def record(self, name):
        status, answer, _ = self.daemon.ask("GET", "/v1/history/" + name)
        self.assertEqual(status, 200, answer)
        return answer

    def test_a_run_is_there_at_once(self):
        secret = "nobody-keeps-this"
        status, answer, headers = self.daemon.ask(
            "POST", "/v1/runs", run_of("print(input())", stdin=secret + "-in\n", env={"TOKEN": secret}))
        self.assertEqual(status, 200)
        got = self.record(answer["id"])
        self.assertEqual((got["kind"], got["outcome"], got["exit_code"]), ("run", "exited", 0))
        self.assertEqual((got["environment"], got["language"]), ("python", "python"))
        self.assertEqual(got["request_id"], headers["X-Request-Id"])
        self.assertEqual((got["code"], got["code_size"]), ("print(input())", 14))
        self.assertEqual(got["stdout"], secret + "-in\n")  # it was printed
        self.assertIsNone(got["diagnosis"])
        self.assertLessEqual(got["created"], got["ended"])
        self.assertNotIn(secret, json.dumps({**got, "stdout": ""}))

    def test_what_is_long_is_cut_and_counted(self):
        code = "print('x' * 20000)\n#" + "y" * 100000
        got = self.record(self.run_id(code))
        self.assertEqual(len(got["stdout"]), 16 << 10)
        self.assertEqual(got["stdout_size"], 20001)
        self.assertEqual(got["stdout_dropped"], 20001 - (16 << 10))
        self.assertEqual(got["code"], code[:64 << 10])
        self.assertEqual(got["code_dropped"], len(code) - (64 << 10))

    def test_bytes_that_are_no_text(self):
        got = self.record(self.run_id("printf '\\000\\377ok'", "bash"))
        self.assertEqual(got["stdout"], "\0\ufffdok")

    def test_steps_and_other_routes(self):
        session = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        step = self.daemon.ask("POST", "/v1/sessions/%s/runs" % session,
                               {"code": "a = 1\nraise KeyError('k\u00fc')"})[1]["id"]
        self.daemon.ask("POST", "/v1/sessions/%s/runs" % session, {"code": "print(a)"})
        self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.daemon.ask("POST", "/execute", {"generated_code": "print(7)", "language": "python",
                                             "timeout": 20})
        self.daemon.ask("POST", "/exec", {"code": "print(8)"})
        found = history(self.daemon, session=session, full=1)["records"]
        self.assertEqual([r["code"] for r in found], ["print(a)", "a = 1\nraise KeyError('k\u00fc')"])
        got = self.record(step)
        self.assertEqual((got["kind"], got["session"]), ("step", session))
        self.assertEqual(got["exception"]["type"], "KeyError")
        self.assertIn("raise KeyError", got["exception"]["traceback"])
        self.assertEqual(got["diagnosis"]["category"], "key")
        self.assertEqual([line["text"] for line in got["diagnosis"]["excerpt"]],
                         ["a = 1", "raise KeyError('k\u00fc')"])
        kinds = {r["kind"]: r for r in history(self.daemon, full=1)["records"]}
        self.assertEqual(kinds["execute"]["code"], "print(7)")
        self.assertEqual(kinds["exec"]["stdout"], "8\n")

    def test_diagnosis_in_every_language(self):
        rows = [("python", "x = 1\nprint(y)\n", "name", 2),
                ("python", "while True: pass", "timeout", None),
                ("javascript", "let a = 1;\nnull.x;\n", "type", 2),
                ("ruby", "a = 1\nputs 1 / 0\n", "arithmetic", 2),
                ("bash", "true\nnosuchcommand\n", "name", 2),
                ("sh", "true\nexit 3\n", "exit", None),
                ("c", "int main(void)\n{\n  return x;\n}\n", "name", 3),
                ("cpp", "#include <vector>\nint main() { return std::vector<int>().at(3); }\n",
                 "index", None),
                ("go", "package main\nfunc main() {\n\tvar p *int\n\t_ = *p\n}\n", "crash", 4)]
        installed = {row["name"] for row in self.daemon.ask("GET", "/v1/environments")[1]["environments"]}
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            def one(row):
                language, code, category, line = row
                limits = {"timeout": "0.5"} if category == "timeout" else {}
                got = self.record(self.run_id(code, language, limits=limits))["diagnosis"]
                return language, got["category"], got["line"], bool(got["suggestion"])
            found = list(pool.map(one, [row for row in rows if row[0] in installed]))
        self.assertEqual(found, [(row[0], row[2], row[3], True) for row in rows if row[0] in installed])

    def test_filters_and_pages(self):
        mark = "mark%d" % random.getrandbits(60)
        names = [self.run_id("import sys # %s\nsys.exit(%d)" % (mark, n % 2)) for n in range(5)]
        names.reverse()
        self.assertEqual(ids(self.daemon, text=mark.upper()), names)
        self.assertEqual(ids(self.daemon, text=mark, failed=1), [names[1], names[3]])
        self.assertEqual(ids(self.daemon, text=mark, outcome="timed_out"), [])
        self.assertEqual(ids(self.daemon, text=mark, kind="step"), [])
        self.assertEqual(ids(self.daemon, text=mark, environment="python"), names)
        pages = []

        def is_whole():
            pages.append(history(self.daemon, text=mark, limit=2))
            return [record["id"] for record in pages[-1]["records"]] == names[:2]
        self.assertTrue(wait_until(is_whole), pages[-1:])
        self.assertEqual(ids(self.daemon, text=mark, cursor=pages[-1]["next"]), names[2:])
        ended = self.record(names[0])["ended"]
        self.assertEqual(ids(self.daemon, text=mark, since=ended, until=ended)[:1], names[:1])
        self.assertEqual(ids(self.daemon, text=mark, until="1999-01-01"), [])
        # The other way round, for whoever follows.
        last = history(self.daemon)["last"]
        more = [self.run_id("1 # " + mark) for _ in range(2)]
        self.assertTrue(wait_until(lambda: ids(self.daemon, after=last, text=mark) == more))

    def test_forgotten(self):
        name = self.run_id("print('forget me')")
        self.assertEqual(self.daemon.ask("DELETE", "/v1/history/" + name)[0], 200)
        self.assertEqual(self.daemon.ask("GET", "/v1/history/" + name)[0], 404)
        self.assertEqual(self.daemon.ask("DELETE", "/v1/history/" + name)[0], 404)

    def test_usage(self):
        before = self.daemon.ask("GET", "/v1/usage")[1]
        self.run_id("print(1)")
        after = self.daemon.ask("GET", "/v1/usage")[1]
        self.assertEqual(after["total"]["runs"], before["total"]["runs"] + 1)
        self.assertGreater(after["total"]["wall_seconds"], before["total"]["wall_seconds"])
        self.assertEqual(after["tenant"], "local")
        for part in ("by_day", "by_kind", "by_outcome"):
            self.assertEqual(sum(row["runs"] for row in after[part]), after["total"]["runs"])

    def test_bad_questions(self):
        for query, field in (("limit=0", "limit"), ("limit=1001", "limit"), ("limit=101&full=1", "limit"),
                             ("since=yesterday", "since"), ("cursor=x", "cursor"), ("after=-1", "after"),
                             ("outcome=fine", "outcome"), ("failed=maybe", "failed"),
                             ("session=" + "a" * 65, "session")):
            status, answer, _ = self.daemon.ask("GET", "/v1/history?" + query)
            self.assertEqual((status, answer["error"]["field"]), (400, field), query)

    @inside
    def test_a_scribe_that_dies_is_replaced(self):
        warden, scribe = ready_helpers(self.daemon)
        os.kill(scribe, signal.SIGKILL)
        names = [self.run_id("print(%d)" % n) for n in range(3)]
        self.assertTrue(wait_until(lambda: check_of(self.daemon)[0]["ok"] and
                                   helpers(self.daemon)[1] not in (None, scribe)))
        self.assertEqual(helpers(self.daemon)[0], warden)
        self.assertTrue(wait_until(lambda: self.daemon.ask("GET", "/v1/history")[0] == 200))
        self.assertTrue(wait_until(lambda: set(names) <= set(ids(self.daemon))))
        found = ids(self.daemon)
        for name in names:
            self.assertEqual(found.count(name), 1)
        self.assertTrue(wait_until(lambda: "its process is gone" in self.daemon.log()))

    @inside
    def test_only_the_owner_of_the_directory_may_look(self):
        where = os.path.join(self.daemon.dir, "state/runs")
        self.assertEqual(os.stat(where).st_mode & 0o777, 0o700)
        for name in os.listdir(where):
            self.assertEqual(os.stat(os.path.join(where, name)).st_mode & 0o077, 0, name)


class Tenants(test_tenants.Case):
    options = ("--armed", "0")

    def test_each_finds_its_own(self):
        tokens = {name: self.daemon.token(name) for name in ("ann", "ben")}
        names = {}
        for name, token in tokens.items():
            status, answer, _ = self.as_(token, "POST", "/v1/runs", run_of("echo " + name, "sh"))
            self.assertEqual(status, 200, answer)
            names[name] = answer["id"]
        for name, token in tokens.items():
            found = self.as_(token, "GET", "/v1/history")[1]["records"]
            self.assertEqual([record["id"] for record in found], [names[name]])
            usage = self.as_(token, "GET", "/v1/usage")[1]
            self.assertEqual((usage["tenant"], usage["total"]["runs"]), (name, 1))
        for method in ("GET", "DELETE"):
            self.assertEqual(self.as_(tokens["ann"], method, "/v1/history/" + names["ben"])[0], 404)
        self.assertEqual(self.as_(tokens["ben"], "GET", "/v1/history/" + names["ben"])[0], 200)

    def test_it_takes_a_scope(self):
        token = self.daemon.token("cat", "--scopes", "run")
        for path in ("/v1/history", "/v1/history/1", "/v1/usage"):
            self.assertEqual(self.as_(token, "GET", path)[0], 403)


class Deaths(unittest.TestCase):
    """Whatever is killed, whenever: what was answered is there once."""

    def setUp(self):
        self.state = tempfile.mkdtemp(prefix="vial-state-")
        self.addCleanup(lambda: wait_until(self.is_removed))

    def is_removed(self):
        shutil.rmtree(self.state, ignore_errors=True)
        return not os.path.exists(self.state)

    def load(self, daemon, answered, seconds):
        """Clients until the daemon is dead; `answered` gets the marks of the runs that were."""
        end = time.monotonic() + seconds

        def client(number):
            link = None
            while time.monotonic() < end:
                mark = "m%x" % random.getrandbits(64)
                try:
                    link = link or daemon.connect()
                    status, _, _ = daemon.ask("POST", "/v1/runs", run_of("true # " + mark, "sh"),
                                              connection=link)
                except (OSError, ValueError, http.client.HTTPException):
                    return
                if status == 200:
                    answered.append(mark)

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(client, range(3)))

    def kill(self, daemon, what):
        """-9, for one of them or for all at once."""
        warden, scribe = ready_helpers(daemon)
        server = daemon.server_pid()
        pids = {"server": [server], "keeper": [daemon.process.pid], "scribe and server": [scribe, server],
                "all": [daemon.process.pid, server, scribe, warden]}[what]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:  # they go with each other
                pass

    @inside
    def test_nothing_that_was_answered_is_lost_or_doubled(self):
        answered = []
        ways = ["all", "server", "scribe and server", "keeper"]
        for n in range(KILLS):
            daemon = Daemon("--armed", "2", state=self.state)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                clients = pool.submit(self.load, daemon, answered, PATIENCE_S)
                time.sleep(0.1 + random.random() * 0.4)
                wait_until(lambda: answered)
                self.kill(daemon, ways[n % len(ways)])
                clients.result()
            daemon.process.wait(PATIENCE_S)
            daemon.close()
        daemon = Daemon("--armed", "0", state=self.state)  # stores what was left
        daemon.close()
        wait_until(lambda: set(answered) <= {code.split()[-1] for code in self.stored()})
        with sqlite3.connect(os.path.join(self.state, "runs/history.db")) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            kept = [bytes(row[0]).decode().split()[-1] for row in db.execute("SELECT code FROM runs")]
            numbers = [row[0] for row in db.execute("SELECT id FROM runs")]
        db.close()
        print("# %d kills: %d answered, %d kept" % (KILLS, len(answered), len(kept)), flush=True)
        self.assertTrue(answered)
        self.assertEqual(len(kept), len(set(kept)))
        self.assertEqual(set(answered) - set(kept), set())
        self.assertEqual(len(numbers), len(set(numbers)))  # ids go on after a restart

    @inside
    def test_numbers_of_a_worker_go_on(self):
        numbers = []
        for _ in range(3):
            daemon = Daemon("--armed", "0", "--set", "node=worker-1", state=self.state)  # has large ones
            try:
                self.assertEqual(daemon.ask("POST", "/v1/runs", run_of("echo 1", "sh"))[0], 200)
                self.assertTrue(wait_until(lambda: len(ids(daemon)) == len(numbers) + 1))
                numbers = [int(number) for number in ids(daemon)]
            finally:
                daemon.close()
        self.assertEqual(len(set(numbers)), 3)
        self.assertEqual({number >> 32 for number in numbers}, {min(numbers) >> 32})
        self.assertEqual(len(str(min(numbers))), 19)

    def stored(self):
        """The code of each record.  Who keeps them may be about to make the tables, or to write the last."""
        try:
            with contextlib.closing(sqlite3.connect(
                    "file:%s/runs/history.db?mode=ro" % self.state, uri=True)) as db:
                return [bytes(row[0]).decode() for row in db.execute("SELECT code FROM runs")]
        except sqlite3.OperationalError:
            return []

    @inside
    def test_somebody_who_waits_holds_it_up_for_a_moment_only(self):
        daemon = Daemon("--armed", "0", state=self.state)
        try:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                waits = pool.submit(daemon.ask, "POST", "/v1/runs", run_of("sleep 30", "sh"))
                self.assertTrue(wait_until(lambda: daemon.runs()))
                self.assertEqual(daemon.ask("POST", "/v1/runs", run_of("echo 1", "sh"))[0], 200)
                self.assertTrue(wait_until(lambda: self.stored() == ["echo 1"]))
                self.assertFalse(waits.done())
                daemon.ask("DELETE", "/v1/runs/" + daemon.runs()[0]["id"])
        finally:
            daemon.close()

    @inside
    def test_two_daemons_and_one_place(self):
        first = Daemon("--armed", "0", state=self.state)
        second = Daemon("--armed", "0", state=self.state)
        try:
            self.assertEqual(second.ask("POST", "/v1/runs", run_of("echo 1", "sh"))[0], 200)
            self.assertTrue(wait_until(lambda: "another daemon keeps it" in (check_of(second)[0]["reason"] or "")),
                            check_of(second))
            self.assertTrue(check_of(second)[1])
            self.assertEqual(second.ask("GET", "/v1/history")[0], 503)
            first.close()
            self.assertTrue(wait_until(lambda: check_of(second)[0]["ok"]))
            self.assertEqual(second.ask("POST", "/v1/runs", run_of("echo 2", "sh"))[0], 200)
            self.assertTrue(wait_until(lambda: len(ids(second)) == 1))
        finally:
            second.close()

    @inside
    def test_what_is_no_database_any_more_is_put_aside(self):
        place = os.path.join(self.state, "runs")
        os.makedirs(place, mode=0o700)
        with open(os.path.join(place, "history.db"), "wb") as file:
            file.write(b"no database at all\n" * 400)
        daemon = Daemon("--armed", "0", state=self.state)
        try:
            self.assertTrue(wait_until(lambda: "history.db.damaged" in daemon.log()))
            self.assertTrue(wait_until(lambda: daemon.ask("GET", "/v1/history")[0] == 200))
            self.assertEqual(ids(daemon), [])
            self.assertIn("history.db.damaged", os.listdir(place))
        finally:
            daemon.close()


@unittest.skipIf(os.geteuid() != 0, "needs a file system of its own")
class FullDisk(unittest.TestCase):
    @inside
    def test_runs_go_on_and_the_history_heals(self):
        state = tempfile.mkdtemp(prefix="vial-state-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", state], check=True)
        daemon = None
        try:
            daemon = Daemon("--armed", "1", state=state)
            self.run_one(daemon, "before")
            with open(os.path.join(state, "ballast"), "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * 4096)
                except OSError:
                    pass
            self.assertTrue(wait_until(lambda: self.run_one(daemon, "x" * 30000) and
                                       not check_of(daemon)[0]["ok"]))
            self.assertIn("No space left", check_of(daemon)[0]["reason"])
            self.assertTrue(wait_until(lambda: check_of(daemon)[1]))  # ready all the same
            os.unlink(os.path.join(state, "ballast"))
            self.assertTrue(wait_until(lambda: self.run_one(daemon, "later") and
                                       check_of(daemon)[0]["ok"]))
            self.run_one(daemon, "after")
            codes = [r["code"] for r in history(daemon, full=1, limit=100)["records"]]
            self.assertEqual((codes[0], codes[-1]), ("true # after", "true # before"))
            self.assertIn("No space left", daemon.log())
            self.assertIn("again", daemon.log())
        finally:
            if daemon:
                daemon.close()
            subprocess.run(["umount", "-l", state], check=True)
            os.rmdir(state)

    def run_one(self, daemon, mark):
        status, answer, _ = daemon.ask("POST", "/v1/runs", run_of("true # " + mark, "sh"))
        self.assertEqual((status, answer["result"]["exit_code"]), (200, 0))
        return True


if __name__ == "__main__":
    unittest.main()
