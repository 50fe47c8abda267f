"""Runs over HTTP: results, streams, clients that go, many at once."""
import base64
import concurrent.futures
import json
import os
import re
import subprocess
import threading

import daemon
from daemon import run_of, wait_until

# What no two runs have in common.
VARIES = ("wall_ms", "cpu_ms", "compile_ms", "peak_memory", "processes")


class Results(daemon.Case):
    def same(self, code, language="python", options=(), **more):
        """The result, which is that of `vial run --json` without a daemon."""
        got = self.run_ok(code, language, **more)
        done = subprocess.run([daemon.VIAL, "run", "--json", "-l", language, "--no-daemon", *options,
                               "-c", code], capture_output=True, check=False, stdin=subprocess.DEVNULL)
        want = json.loads(done.stdout)
        self.assertEqual(list(got), list(want))
        for key in VARIES: # known or not, on both ways
            self.assertEqual(got[key] is None, want[key] is None, key)
        self.assertEqual({k: v for k, v in got.items() if k not in VARIES},
                         {k: v for k, v in want.items() if k not in VARIES})
        return got

    def test_files_that_cannot_be(self):
        both = [{"path": "a", "content": ""}, {"path": "a/b", "content": ""}]
        self.assert_refused(self.daemon.ask("POST", "/v1/runs", daemon.run_of("1", files=both)), 400, "invalid")
        large = [{"path": "a", "content": "x" * 100000}]
        answer = self.daemon.ask("POST", "/v1/runs", daemon.run_of("1", files=large, limits={"workspace": "8k"}))
        self.assert_refused(answer, 413, "limit")
        self.assert_refused(self.daemon.ask("POST", "/v1/runs", daemon.run_of("1", files=[
            {"path": "main.py", "content": ""}])), 400, "invalid", None, "is the program")

    def test_streams_that_end_before_their_program(self):
        """While another task is there, so that somebody else reads them."""
        for language, code, wanted in (
                ("bash", "echo hi; sleep 100 & echo e >&2", ("hi\n", "e\n")),
                ("python", "import os, sys, time\nprint('hi', flush=True)\nos.close(1)\n"
                           "if os.fork() == 0: time.sleep(99)\nos.write(2, b'e\\n')\ntime.sleep(0.01)\nos._exit(0)",
                 ("hi\n", "e\n"))):
            for _ in range(30):
                result = self.run_ok(code, language)
                self.assertEqual((result["stdout"], result["stderr"]), wanted)

    def test_the_same_as_without_a_daemon(self):
        self.assertEqual(self.same("print('hello')")["outcome"], "exited")
        self.assertEqual(self.same("import sys; sys.exit(3)")["exit_code"], 3)
        self.assertEqual(self.same("1 / 0")["exception"]["type"], "ZeroDivisionError")
        self.assertEqual(self.same("echo hi >&2; exit 4", "bash")["stderr"], "hi\n")
        self.same("import os; os.kill(os.getpid(), 11)")
        self.same("open('made', 'w').write('x' * 10)")

    def test_guests_are_scheduled_as_others_are(self):
        """The keeper, and all that makes them, stand back for those who run."""
        self.assertEqual(os.sched_getscheduler(self.daemon.process.pid), os.SCHED_BATCH)
        self.assertEqual(os.sched_getscheduler(self.daemon.server_pid()), os.SCHED_OTHER)
        ask = "import os; print(os.sched_getscheduler(0))"
        for language, code in (("python", ask), ("bash", f"python3 -c '{ask}'")):
            self.assertEqual(self.same(code, language)["stdout"], f"{os.SCHED_OTHER}\n")

    def test_streams_have_names(self):
        for language, code in (("python", "open('/dev/stdout', 'w').write(open('/dev/stdin').read())"),
                               ("javascript", "const fs = require('fs'); "
                                              "fs.writeFileSync('/dev/stdout', fs.readFileSync('/dev/stdin'))"),
                               ("sh", "cat /dev/stdin > /dev/stdout")):
            with self.subTest(language):
                self.assertEqual(self.run_ok(code, language, stdin="yes")["stdout"], "yes")

    def test_a_read_only_workspace(self):
        """Its files are there, and nothing of theirs or of what brought them can be written."""
        tried = ("import glob, os\nprint(sorted(os.listdir()), open('main.py').read(9))\n"
                 "print(len(glob.glob('/proc/self/fd/*')))\n"
                 "for name in ('new', 'main.py', '../sandbox/new'):\n"
                 "    try:\n        open(name, 'w')\n"
                 "    except OSError as why:\n        print(why.errno)\n"
                 "open('/tmp/x', 'w').write('1')\n")
        for code, language in ((tried, "python"), ("echo x > a; mkdir b; ls", "bash"),
                               ("require('fs').writeFileSync('a', '')", "javascript"),
                               ("File.write('a', '')", "ruby"),
                               ("int main(void) { return 3; }", "c")):
            with self.subTest(language=language):
                result = self.same(code, language, writable=False, options=("--read-only",))
                self.assertEqual(result["files_changed"], [])
                if language == "python":
                    self.assertEqual(result["stdout"].split("\n")[-4:], ["30", "30", "30", ""])

    def test_what_is_usual_may_be_said(self):
        """A variable that an interpreter has anyway does not make it start afresh."""
        code = "import sys; print('uuid' in sys.modules, sys.flags.optimize)"
        for env, printed in (({}, "True 0\n"), ({"PYTHONUNBUFFERED": "1"}, "True 0\n"),
                             ({"PYTHONOPTIMIZE": "1"}, "False 1\n")):
            self.assertEqual(self.run_ok(code, env=env)["stdout"], printed)

    def test_limits(self):
        result = self.same("while True: pass", limits={"timeout": 0.3}, options=("--timeout", "0.3"))
        self.assertEqual((result["outcome"], result["limit"]), ("timed_out", "timeout"))
        result = self.run_ok("x = bytearray(10**9)", limits={"memory": "100m"})
        self.assertEqual((result["outcome"], result["oom"]), ("out_of_memory", True))

    @daemon.inside
    def test_more_memory_is_given_to_what_is_armed(self):
        def pool():
            return [e["pool"] for e in self.daemon.ask("GET", "/v1/environments")[1]["environments"]
                    if e["name"] == "python"][0]

        self.assertTrue(daemon.wait_until(lambda: pool()["armed"]))
        hits = pool()["armed_hits"]
        limits = {"timeout": 60, "cpu-time": 60}
        result = self.run_ok("print(len(bytes(700 << 20)))\ntry: bytes(1100 << 20)\nexcept MemoryError: print('told')",
                             limits={**limits, "memory": "1g"})
        self.assertEqual(result["stdout"], "%d\ntold\n" % (700 << 20))
        self.assertEqual(pool()["armed_hits"], hits + 1)
        # By its group, too; and those that come after have what is usual.
        hog = "import mmap, resource\nresource.setrlimit(resource.RLIMIT_DATA, (-1, -1))\nm = mmap.mmap(-1, %d << 20)\n" \
              "for i in range(0, len(m), 4096): m[i] = 1\nprint('all')"
        self.assertEqual(self.run_ok(hog % 700, limits={**limits, "memory": "1g"})["stdout"], "all\n")
        self.assertEqual(self.run_ok(hog % 1100, limits={**limits, "memory": "1g"})["outcome"], "out_of_memory")
        self.assertEqual(self.run_ok(hog % 700, limits=limits)["outcome"], "out_of_memory")
        result = self.same("print('x' * 100)", limits={"output": 10}, options=("--output", "10"))
        self.assertEqual((result["stdout"], result["stdout_dropped"]), ("x" * 10, 91))

    def test_everything_a_request_can_say(self):
        code = ("import os, sys\n"
                "print(sys.argv, os.environ['A'], sys.stdin.read(), open('d/f').read(), __file__)\n"
                "open('out.bin', 'wb').write(open('g', 'rb').read())\n")
        result = self.run_ok(
            code, name="tool.py", args=["one", "", "zwei\u00e4"], env={"A": "b c"}, stdin="in",
            files=[{"path": "d/f", "content": "F\u2713"},
                   {"path": "g", "content_base64": base64.b64encode(b"\0\xff").decode()}],
            exports=["*.bin", "missing"])
        self.assertEqual(result["stdout"], "['tool.py', 'one', '', 'zwei\u00e4'] b c in "
                                           "F\u2713 /sandbox/tool.py\n", result)
        exports = {row["path"]: row for row in result["exports"]}
        self.assertEqual(base64.b64decode(exports["out.bin"]["content_base64"]), b"\0\xff")
        self.assertIn("error", exports["missing"])
        self.assertNotIn("content_base64", exports["missing"])

    def test_environments(self):
        status, answer, _ = self.daemon.ask("GET", "/v1/environments")
        self.assertEqual(status, 200)
        rows = {row["name"]: row for row in answer["environments"]}
        self.assertEqual(rows["python"]["language"], "python")
        self.assertEqual(rows["python"]["warmth"], "fork")
        self.assertEqual(set(rows["python"]["pool"]),
                         {"armed", "arming", "running", "waiting", "runs", "armed_hits", "on_demand",
                          "refused", "failed"})
        self.assert_refused(self.daemon.ask("POST", "/v1/runs",
                                            {"environment": "nope", "code": "1"}),
                            400, "invalid", "environment")


class Streams(daemon.Case):
    def events(self, response):
        """All that are not about its way there."""
        return [event for event in map(json.loads, response) if event["event"] not in daemon.PROGRESS]

    def test_lines_come_as_they_are_printed(self):
        response = self.stream("import time\nfor i in range(3):\n print(i, flush=True); time.sleep(0 if i else 3)")
        start = json.loads(response.readline())
        self.assertEqual(start["event"], "start")
        self.assertIn(start["id"], [run["id"] for run in self.daemon.runs()])
        first = next(event for event in map(json.loads, response)
                     if event["event"] not in daemon.PROGRESS)
        self.assertEqual((first["event"], first["stream"], first["data"][0]), ("output", "stdout", "0"))
        self.assertTrue(self.daemon.runs(), "it came when all was over")
        rest = self.events(response)
        self.assertEqual({e["event"] for e in rest[:-1]}, {"output"})
        self.assertEqual("".join(e["data"] for e in [first] + rest[:-1]), "0\n1\n2\n")
        self.assertEqual(rest[-1]["result"]["stdout"], "0\n1\n2\n")

    def test_two_streams(self):
        events = self.events(self.stream("import sys\nprint('out')\nprint('err', file=sys.stderr)"))
        said = {"stdout": "", "stderr": ""}
        for event in events[1:-1]:
            said[event["stream"]] += event["data"]
        self.assertEqual(said, {"stdout": "out\n", "stderr": "err\n"})

    def test_what_is_no_text_comes_as_base64(self):
        code = ("import sys, time\nw = sys.stdout.buffer\n"
                "for piece in (b'a\\xc3', b'\\xa4\\xe2', b'\\x82', b'\\xac', b'\\xff', b'z\\xf0\\x9f'):\n"
                "  time.sleep(2 if piece == b'\\xff' else 0.2); w.write(piece); w.flush()\n")
        events = [e for e in self.events(self.stream(code)) if e["event"] == "output"]
        got = b"".join(e["data"].encode() if "data" in e else base64.b64decode(e["data_base64"])
                       for e in events)
        self.assertEqual(got, b"a\xc3\xa4\xe2\x82\xac\xffz\xf0\x9f")
        # Characters are never cut in two, in however many pieces they came.
        self.assertTrue("".join(e.get("data", "") for e in events).startswith("a\u00e4\u20ac"), events)

    def test_a_large_output_is_whole(self):
        events = self.events(self.stream("for i in range(100000): print('line', i)",
                                         limits={"output": "4m"}))
        text = "".join(e["data"] for e in events if e["event"] == "output")
        self.assertEqual(text, "".join("line %d\n" % i for i in range(100000)))
        self.assertEqual(events[-1]["result"]["stdout"], text)

    def test_the_connection_is_kept(self):
        made = self.daemon.connect()
        self.addCleanup(made.close)
        for i in range(3):
            events = self.events(self.stream("print(%d)" % i, connection=made))
            self.assertEqual(events[-1]["result"]["stdout"], "%d\n" % i)

    def test_a_reader_that_does_not_read(self):
        response = self.stream("import sys\nwhile True: sys.stdout.write('x' * 65536)",
                               limits={"output": "1g", "timeout": 60, "cpu-time": 60, "memory": "200m"})
        response.readline()
        self.assert_no_runs() # cancelled, long before its time
        last = None
        for line in response:
            last = json.loads(line)
        self.assertEqual((last["event"], last["error"]["code"]), ("error", "limit"))


class Going(daemon.Case):
    """A client that goes takes its run with it."""
    code = "import time; time.sleep(60)"

    def test_while_it_waits(self):
        for tcp in (False, True):
            body = json.dumps(run_of(self.code)).encode()
            sock = self.daemon.raw(tcp)
            sock.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                         b"application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            self.assertTrue(wait_until(self.daemon.runs))
            sock.close()
            self.assert_no_runs()

    def test_within_a_stream(self):
        made = self.daemon.connect()
        response = self.stream("print(1, flush=True)\n" + self.code, connection=made)
        response.readline()
        response.readline()
        response.close()
        made.close()
        self.assert_no_runs()

    def test_in_crowds(self):
        body = json.dumps(run_of(self.code)).encode()
        socks = [self.daemon.raw() for _ in range(40)]
        for sock in socks:
            sock.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                         b"application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertTrue(wait_until(lambda: len(self.daemon.runs()) == 40))
        for sock in socks:
            sock.close()
        self.assert_no_runs()
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")

    def test_a_run_can_be_killed(self):
        response = self.stream(self.code)
        number = json.loads(response.readline())["id"]
        run = next(run for run in self.daemon.runs() if run["id"] == number)
        self.assertEqual(set(run), {"id", "tenant", "environment", "state", "seconds", "memory"})
        self.assertEqual(run["environment"], "python")
        self.assertEqual(self.daemon.ask("DELETE", "/v1/runs/" + number)[0], 200)
        events = [json.loads(line) for line in response]
        self.assertEqual(events[-1]["result"]["outcome"], "cancelled")
        self.assert_refused(self.daemon.ask("DELETE", "/v1/runs/" + number), 404, "gone")


class Many(daemon.Case):
    options = ("--max", "8", "--queue", "16")

    def in_threads(self, count, work):
        failures = []

        def guarded(number):
            try:
                work(number)
            except Exception as problem:  # pylint: disable=broad-except
                failures.append((number, problem))
        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_results_are_never_swapped(self):
        def work(number):
            made = self.daemon.connect()
            for turn in range(15):
                mark = "client %d turn %d" % (number, turn)
                code = "import sys, time; time.sleep(%f); print(sys.stdin.read(), %r)" % (
                    (number * 7 + turn * 3) % 5 / 100, mark)
                body = run_of(code, stdin=mark)
                if turn % 2:
                    status, answer, _ = self.daemon.ask("POST", "/v1/runs", body, connection=made)
                    self.assertEqual(status, 200, answer)
                    result = answer["result"]
                else:
                    events = [json.loads(line) for line in
                              self.stream(code, stdin=mark, connection=made)]
                    result = events[-1]["result"]
                    self.assertEqual("".join(e["data"] for e in events if e["event"] == "output"),
                                     result["stdout"])
                self.assertEqual(result["stdout"], "%s %s\n" % (mark, mark), result)
            made.close()
        self.in_threads(12, work)

    def waiting(self):
        """How many wait for room.  A dispatcher lists only what has a worker, but it counts the others."""
        if not daemon.WORKERS:
            return [run["state"] for run in self.daemon.runs()].count("waiting")
        made = self.daemon.connect()
        made.request("GET", "/metrics")
        text = made.getresponse().read().decode()
        made.close()
        return int(re.search(r"^vial_dispatch_waiting (\d+)", text, re.M)[1])

    def test_beyond_the_queue_is_refused_at_once(self):
        places = 8 * (daemon.WORKERS or 1)
        running = [self.stream("import time; time.sleep(60)", limits={"timeout": 60}) for _ in range(places)]
        names = [json.loads(response.readline())["id"] for response in running]
        if not daemon.WORKERS:  # those leave some room to their other tenants
            self.assertTrue(wait_until(lambda: [r["state"] for r in self.daemon.runs()] == ["running"] * places))
        pool = concurrent.futures.ThreadPoolExecutor(16)
        self.addCleanup(pool.shutdown)
        waiters = [pool.submit(self.daemon.ask, "POST", "/v1/runs", run_of("print(1)")) for _ in range(16)]
        self.assertTrue(wait_until(lambda: self.waiting() == 16))
        for _ in range(20):
            answer = self.daemon.ask("POST", "/v1/runs", run_of("print(1)"))
            self.assert_refused(answer, 503, "busy")
            self.assertEqual(answer[2]["Retry-After"], "1")
        self.assertEqual((self.waiting(), len(self.daemon.runs())), (16, places + (0 if daemon.WORKERS else 16)))
        for name, response in zip(names, running):
            self.assertEqual(self.daemon.ask("DELETE", "/v1/runs/" + name)[0], 200)
            self.assertEqual([json.loads(line) for line in response][-1]["result"]["outcome"], "cancelled")
        for waiter in waiters:
            status, answer, _ = waiter.result(daemon.PATIENCE_S)
            self.assertEqual((status, answer["result"]["stdout"]), (200, "1\n"), answer)
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")
