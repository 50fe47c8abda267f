"""Sessions: calls, beginnings and ends, guests that forge messages, many at once."""
import concurrent.futures
import json
import subprocess
import threading
import time

import daemon
from daemon import wait_until
from sessions import FORGE, LANGUAGES, Case, Stream


class Callbacks(Case):
    def run_with(self, session, code, handlers, **more):
        return Stream(self, session, code, callbacks=list(handlers), **more).finish(handlers)

    def test_values_and_errors(self):
        handlers = {"add": lambda a, b=0: a + b, "echo": lambda *args, **kwargs: [list(args), kwargs]}
        codes = {"python": "[add(1, b=2), echo('x', [None], k={'a': 2**65})]",
                 "javascript": "[await add(1, 2), await echo('x', [null])]",
                 "ruby": "[add(1, b: 2), echo('x', [nil])]"}
        for language, code in codes.items():
            with self.subTest(language):
                result, _ = self.run_with(self.open(language), code, handlers)
                kwargs = {"k": {"a": 2 ** 65}} if language == "python" else {}
                self.assertEqual(result["value"]["json"], [3, [["x", [None]], kwargs]], result)

    def test_an_error_is_raised_inside(self):
        for language, code, handler in (
                ("python", "try: f()\nexcept ValueError as e: print('got', e)", "ValueError"),
                ("javascript", "try { await f() } catch (e) { console.log('got', e.message) }", "TypeError"),
                ("ruby", "begin; f; rescue ArgumentError => e; puts \"got #{e.message}\"; end", "ArgumentError")):
            with self.subTest(language):
                stream = Stream(self, self.open(language), code, callbacks=["f"])
                call = stream.next()
                self.assertEqual((call["event"], call["name"], call["args"], call["kwargs"]), ("call", "f", [], {}))
                self.assertEqual(stream.answer(call["call"], error={"type": handler, "message": "n\u00f6"})[0], 200)
                self.assertEqual(stream.finish()[0]["stdout"], "got n\u00f6\n")

    def test_many_at_once_answered_in_any_order(self):
        code = ("import asyncio, threading\n"
                "async def all(): return await asyncio.gather(*[f(i) for i in range(20)])\n"
                "await all()")
        stream = Stream(self, self.open(), code, callbacks=["f"])
        calls = [stream.next() for _ in range(20)]
        for call in reversed(calls):
            stream.answer(call["call"], value=call["args"][0] * 2)
        self.assertEqual(stream.finish()[0]["value"]["json"], [i * 2 for i in range(20)])
        threads = ("from concurrent.futures import ThreadPoolExecutor\n"
                   "with ThreadPoolExecutor(8) as pool: got = list(pool.map(f, range(50)))\ngot")
        result, _ = self.run_with(self.open(), threads, {"f": lambda i: i + 1})
        self.assertEqual(result["value"]["json"], list(range(1, 51)))

    def test_answers_that_are_none(self):
        stream = Stream(self, self.open(), "f()", callbacks=["f"])
        call = stream.next()["call"]
        self.assert_refused(stream.answer(call + 1, value=1), 404, "gone")
        self.assert_refused(self.daemon.ask("POST", "/v1/runs/%s/calls/x" % stream.id, {"value": 1}), 404, "gone")
        self.assert_refused(self.daemon.ask("POST", "/v1/runs/nope/calls/1", {"value": 1}), 404, "gone")
        self.assert_refused(stream.answer(call), 400, "invalid", "value")
        self.assert_refused(stream.answer(call, value=1, error={"type": "E"}), 400, "invalid", "error")
        self.assert_refused(stream.answer(call, error={"message": "x"}), 400, "invalid", "error.type")
        self.assert_refused(stream.answer(call, error={"type": 1}), 400, "invalid", "error.type")
        self.assert_refused(stream.answer(call, valeu=1), 400, "invalid", "valeu")
        self.assertEqual(stream.answer(call, value=None)[1], {"answered": True})
        self.assert_refused(stream.answer(call, value=1), 404, "gone") # once
        self.assertEqual(stream.finish()[0]["exit_code"], 0)

    def test_a_caller_that_goes_away(self):
        code = ("seen = []\nfor i in range(3):\n  try: f(i)\n"
                "  except ConnectionError as e: seen.append(str(e))")
        session = self.open()
        stream = Stream(self, session, code, callbacks=["f"])
        stream.next()
        stream.hang_up()
        self.assertEqual(len(self.value(session, "seen")), 3)
        result = self.step(session, "f(1)") # declared, but nobody listens
        self.assertEqual(result["exception"]["type"], "ConnectionError")
        result = self.step(session, "f(1)", callbacks=[])
        self.assertEqual(result["exception"]["type"], "NameError")

    def test_they_need_a_stream(self):
        answer = self.post(self.open(), "runs", {"code": "1", "callbacks": ["f"]})
        self.assert_refused(answer, 400, "invalid", "callbacks", "stream")

    def test_their_number_is_limited(self):
        code = "n = 0\nwhile True:\n  f(); n += 1"
        session = self.open()
        result, events = self.run_with(session, code, {"f": lambda: None}, calls_max=5)
        self.assertEqual((result["exception"]["type"], len([e for e in events if e["event"] == "call"])),
                         ("RuntimeError", 5))
        self.assertEqual(self.value(session, "n"), 5)

    def test_time_passes_during_a_call(self):
        stream = Stream(self, self.open(), "f()", callbacks=["f"], timeout=3)
        stream.next()
        result, _ = stream.finish()
        self.assertEqual((result["outcome"], result["state"]), ("timed_out", "kept"))

    def test_a_death_during_a_call(self):
        session = self.open()
        stream = Stream(self, session, "import threading, os\n"
                        "threading.Timer(0.3, lambda: os._exit(5)).start()\nf()", callbacks=["f"])
        call = stream.next()["call"]
        result, _ = stream.finish()
        self.assertEqual((result["exit_code"], result["state"]), (5, "lost"))
        self.assert_refused(stream.answer(call, value=1), 404, "gone")


class Lives(Case):
    def test_reset(self):
        for language in LANGUAGES:
            with self.subTest(language):
                session = self.open(language, files=[{"path": "given", "content": "g"}])
                self.step(session, "x=1; touch made" if language == "bash" else "x = 1")
                if language == "python":
                    self.step(session, "open('made', 'w').close()")
                status, answer, _ = self.post(session, "reset")
                self.assertEqual((status, answer["id"], answer["state"], answer["episodes"]),
                                 (200, session, "idle", 2))
                code = {"bash": "echo ${x:-gone} *", "python": "import os; ['x' in globals(), os.listdir()]",
                        "javascript": "[typeof x, require('fs').readdirSync('.')]",
                        "ruby": "[binding.local_variable_defined?(:x), Dir.children('.')]"}[language]
                result = self.step(session, code)
                if language == "bash":
                    self.assertEqual(result["stdout"], "gone given\n")
                else:
                    self.assertIn(result["value"]["json"], ([False, ["given"]], ["undefined", ["given"]]))

    def test_reset_ends_what_runs(self):
        session = self.open()
        running = self.later(session, "while True: pass")
        self.wait_running(session)
        queued = Stream(self, session, "x = 1")
        self.assertEqual(self.post(session, "reset")[0], 200)
        result = running()
        self.assertEqual((result["outcome"], result["state"]), ("cancelled", "lost"))
        self.assertEqual(queued.finish()[0]["error"]["code"], "gone")
        self.assertFalse(self.value(session, "'x' in globals()"))

    def test_max_episodes(self):
        session = self.open(max_episodes=2)
        self.step(session, "x = 1")
        self.assertEqual(self.post(session, "reset")[0], 200)
        self.step(session, "x = 2")
        self.assert_refused(self.post(session, "reset"), 409, "limit")
        self.assertEqual(self.value(session, "x"), 2)

    def test_idle_timeout_is_put_off_by_steps_only(self):
        used, looked_at = self.open(idle_timeout=5), self.open(idle_timeout=5)

        def is_over():
            self.assertEqual(self.value(used, "1"), 1)
            self.post(looked_at, "interrupt")
            self.post(looked_at, "runs", {"cod": "wrong"})
            self.daemon.ask("GET", "/v1/sessions/%s/files/a//b" % looked_at)
            return self.look(looked_at)[0] == 404

        self.assertTrue(wait_until(is_over, pause=0.3))
        self.assertFalse(self.step(used, "1")["fresh"])
        self.assert_refused(self.look(looked_at), 404, "gone")

    def test_a_running_step_is_not_idle(self):
        session = self.open(idle_timeout=4)
        running = self.hold(session)
        time.sleep(5)
        self.let_go(session, running)
        self.assertTrue(wait_until(lambda: self.look(session)[0] == 404))

    def test_lifetime(self):
        extended, session = self.open(lifetime=6), self.open(lifetime=6)
        self.assertEqual(self.post(extended, "extend", {"lifetime": 60})[0], 200)
        result = self.step(session, "while True: pass")
        self.assertEqual((result["outcome"], result["state"]), ("cancelled", "lost"))
        self.assertIn("lifetime", result["reason"])
        self.assertEqual(self.look(session)[0], 404)
        self.assertEqual(self.value(extended, "1"), 1)  # it is older than that
        self.assertEqual(self.post(extended, "extend", {"lifetime": 0.2})[0], 200)
        self.assertTrue(wait_until(lambda: self.look(extended)[0] == 404))

    def test_times_that_are_over_before_it_is_made(self):
        files = [{"path": "large", "content": "x" * (8 << 20)}]  # to read it takes longer
        for times, expected in (({"idle_timeout": 0.001}, 201), ({"lifetime": 0.001}, 404)):
            with self.subTest(times):
                status, answer, _ = self.daemon.ask("POST", "/v1/sessions", dict(times, language="python", files=files))
                self.assertEqual(status, expected, answer)
                self.assertTrue(wait_until(lambda: not self.daemon.ask("GET", "/v1/sessions")[1]["sessions"]))

    def test_closing(self):
        session = self.open()
        running = self.later(session, "while True: pass")
        self.wait_running(session)
        status, answer, _ = self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.assertEqual((status, answer["state"]), (200, "ended"))
        self.assertEqual(running()["outcome"], "cancelled")
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/reset"), ("POST", "/interrupt")):
            self.assert_refused(self.daemon.ask(method, "/v1/sessions/" + session + path), 404, "gone")
        self.assert_refused(self.post(session, "runs", {"code": "1"}), 404, "gone")

    def test_ids(self):
        ids = {self.open() for _ in range(5)}
        self.assertEqual(len(ids), 5)
        for session in ids:
            self.assertRegex(session, "^[0-9a-f]{32}$")

    def test_what_is_refused(self):
        ask = lambda **body: self.daemon.ask("POST", "/v1/sessions", body)
        self.assert_refused(ask(), 400, "invalid", "language")
        self.assert_refused(ask(language="c"), 400, "invalid", "language", "no sessions")
        self.assert_refused(ask(language="python", code="1"), 400, "invalid", "code")
        self.assert_refused(ask(language="python", idle_timeout=0), 400, "invalid", "idle_timeout")
        self.assert_refused(ask(language="python", lifetime="x"), 400, "invalid", "lifetime")
        self.assert_refused(ask(language="python", lifetime=1e9), 400, "invalid", "lifetime")
        self.assert_refused(ask(language="python", max_episodes=-1), 400, "invalid", "max_episodes")
        self.assert_refused(ask(language="python", policy=[]), 400, "invalid", "policy")
        self.assert_refused(ask(language="python", limits={"memory": "1"}), 400, "invalid", "limits.memory")
        session, bash = self.open(), self.open("bash")
        for field, body in (("code", {}), ("code", {"code": 1}), ("mode", {"mode": "x"}), ("name", {"name": "a\nb"}),
                            ("globals", {"globals": []}), ("callbacks", {"callbacks": "f"}),
                            ("callbacks[0]", {"callbacks": [1]}), ("calls_max", {"calls_max": -1}),
                            ("policy", {"policy": 1}), ("figures", {"figures": 1}), ("value_max", {"value_max": 0}),
                            ("timeout", {"timeout": 0}), ("timeout", {"timeout": 1e9}), ("cdoe", {"cdoe": 1})):
            body = dict({"code": "1"}, **body) if body else body
            self.assert_refused(self.post(session, "runs", body), 400, "invalid", field)
        for field, value in (("globals", {}), ("callbacks", []), ("policy", {}), ("mode", "function")):
            self.assert_refused(self.post(bash, "runs", {"code": "1", field: value}), 400, "invalid", field)
        self.assert_refused(self.post(bash, "runs", {"code": "a\0b"}), 400, "invalid", "code")
        self.assertEqual(self.post(session, "runs", "{nope")[0], 400)
        self.assertEqual(self.post(session, "runs", "[]")[0], 400)
        self.assertEqual(self.value(session, "1"), 1)

    def test_the_queue_has_an_end(self):
        session = self.open()
        first = self.hold(session)
        streams = [Stream(self, session, "1") for _ in range(64)]
        self.assert_refused(self.post(session, "runs", {"code": "1"}), 429, "busy")
        self.let_go(session, first)
        for stream in streams:
            self.assertEqual(stream.finish()[0]["state"], "kept")

    def test_sandboxes_do_not_pile_up(self):
        session = self.open()
        for _ in range(30):
            self.step(session, "import os; os._exit(0)")
            self.post(session, "reset")
        running = lambda: sum(row["pool"]["running"] for row in
                              self.daemon.ask("GET", "/v1/environments")[1]["environments"])
        self.assertTrue(wait_until(lambda: running() <= 1))
        self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.assertTrue(wait_until(lambda: running() == 0))


class Hostile(Case):
    """A guest that speaks for its driver."""

    def attack(self, code, **more):
        session = self.open()
        result = self.step(session, FORGE + code, **more)
        self.assertEqual(self.value(session, "40 + 2"), 42) # whatever it was
        return result

    def test_what_is_no_message_ends_it(self):
        for line in (b"", b"x", b"[]", b"{}", b'{"op":"run"}', b'{"op":"ready"}', b'{"op":"result","id":-1}',
                     b'{"op":"result","id":1,"value":3}', b'{"op":"display","id":1,"data":"\xff"}',
                     b'{"op":"result","id":1,"rolled_back":true}', b'{"op":"result","id":1,"signal":11}',
                     b'{"op":"result","id":1,"files_kept":true}', b'{"op":"result","id":1,"checkpoints":[]}',
                     b"[" * 100000, b'{"a":' * 5000, b"\0" * 100):
            with self.subTest(line[:40]):
                result = self.attack("say(%r)\ntime.sleep(9)" % line)
                self.assertEqual((result["state"], result["outcome"]), ("lost", "signaled"))
                self.assertIn("it sent", result["reason"])

    def test_a_line_without_end(self):
        result = self.attack("try:\n  while True: os.write(chan, b'x' * 65536)\nexcept OSError: time.sleep(9)",
                             timeout=20)
        self.assertEqual(result["state"], "lost")

    def test_results_of_other_steps_are_not_believed(self):
        result = self.attack("for i in (0, 2, 3, 99, 2**62): say({'op': 'result', 'id': i or 5, 'value': {'json': 'forged'}})\n7")
        self.assertEqual(result["value"]["json"], 7)

    def test_a_forged_result_has_the_promised_types(self):
        forged = {"op": "result", "id": 1, "value": {"json": 1, "data": "x", "type": 5},
                  "exception": {"type": 5, "message": None, "traceback": [], "line": "x", "frames": [1, {"line": {}}],
                                "cause": {"cause": {"type": {}}}}}
        result = self.attack("say(%r)\ntime.sleep(0.3)" % json.dumps(forged).encode())
        self.assertEqual(result["value"], {"json": 1})
        told = result["exception"]
        self.assertEqual((told["type"], told["message"], told["traceback"], told["line"]), ("", "", "", None))
        self.assertEqual([frame["line"] for frame in told["frames"]], [None, None])
        self.assertEqual(told["cause"]["cause"]["type"], "")

    def test_messages_between_steps(self):
        session = self.open()
        self.step(session, FORGE + "import threading\n"
                  "def run():\n  while not os.path.exists('go'): time.sleep(0.02)\n"
                  "  say({'op': 'result', 'id': 1}); say({'op': 'result', 'id': 2, 'value': {'json': 'forged'}})\n"
                  "  say({'op': 'display', 'id': 2, 'data': {}})\n  open('said', 'w').close()\n"
                  "threading.Thread(target=run).start()")
        self.put_file(session, "go")
        self.wait_for_file(session, "said")
        result = self.step(session, "8")
        self.assertEqual((result["value"]["json"], result["displays"], result["fresh"]), (8, [], False))

    def test_floods(self):
        for message in ({"op": "result", "id": 77}, {"op": "call", "id": 77, "call": 1, "name": "f", "args": [], "kwargs": {}}):
            result = self.attack("import threading, socket\nline = json.dumps(%r).encode()\n"
                                 "for i in range(30000): say(line)\ntime.sleep(9)" % message)
            self.assertEqual(result["state"], "lost", result)
            self.assertIsNotNone(result["reason"])
        result = self.attack("for i in range(200000): say(b'{\"op\":\"display\",\"id\":1,\"data\":{}}')")
        self.assertEqual((result["state"], len(result["displays"])), ("lost", 1000))

    def test_messages_that_are_dear_to_read(self):
        nested = b'{"cause":' * 100 + b'{"message":"' + b"x" * (15 << 20) + b'"}' + b"}" * 100
        began = time.monotonic()
        result = self.attack("said = b'{\"op\":\"result\",\"id\":1,\"exception\":' + b'{\"cause\":' * 100 + "
                             "b'{\"message\":\"' + b'x' * (15 << 20) + b'\"}' + b'}' * 101\nsay(said)")
        self.assertLess(len(json.dumps(result)), len(nested))
        self.assertLess(time.monotonic() - began, 30)
        result = self.attack("said = b'{\"op\":\"display\",\"id\":1,\"data\":{\"a\":\"' + b'x' * (15 << 20) + b'\"}}'\n"
                             "for i in range(1000): say(said)")
        self.assertEqual((result["state"], len(result["displays"])), ("lost", 2), result["reason"])

    def test_calls_beyond_what_is_allowed(self):
        code = FORGE + ("def call(n, name='f', args='[]'):\n"
                        "  say(('{\"op\":\"call\",\"id\":1,\"call\":%d,\"name\":\"%s\",\"args\":%s,\"kwargs\":{}}'"
                        " % (n, name, args)).encode())\n")
        session = self.open()
        stream = Stream(self, session, code + "call(1)\ncall(2)\ncall(3)\ncall(4, 'other')\n"
                        "call(5, 'f', '[' * 200 + ']' * 200)\ntime.sleep(0.5)", callbacks=["f"], calls_max=2)
        result, events = stream.finish()
        self.assertEqual([e["call"] for e in events if e["event"] == "call"], [1, 2])
        stream = Stream(self, self.open(), code + "call(1)\ncall(1)\ntime.sleep(9)", callbacks=["f"])
        self.assertEqual(stream.finish()[0]["state"], "lost")
        stream = Stream(self, self.open(), code + "call(1, 'f\\\\u0000g')\ntime.sleep(0.5)", callbacks=["f"])
        self.assertEqual([e for e in stream.finish()[1] if e["event"] == "call"], [])

    def test_calls_that_are_dear_to_look_up(self):
        slowest = []
        code = FORGE + ("line = b'{\"op\":\"call\",\"id\":1,\"call\":%d,\"name\":\"x\",\"args\":[],\"kwargs\":{}}'\n"
                        "for i in range(COUNT): say(line % (i + 1))\ntime.sleep(9)")
        long = {"name": "g", "kind": "sync", "doc": "x" * (14 << 20)}
        for calls, callbacks in ((300, ["f", long]), (30000, ["f"])):
            stream = Stream(self, self.open(), code.replace("COUNT", str(calls)), callbacks=callbacks,
                            calls_max=1000000, timeout=2)
            over = threading.Thread(target=stream.finish)
            over.start()
            while over.is_alive():
                began = time.monotonic()
                self.daemon.ask("GET", "/healthz")
                slowest.append(time.monotonic() - began)
                time.sleep(0.01)
        self.assertLess(max(slowest), 8)

    def test_text_that_is_none(self):
        stream = Stream(self, self.open(), "import json\nf('\\ud800')", callbacks=["f"])
        result, events = stream.finish({"f": lambda text: text})
        json.dumps([result, events]).encode() # it is, by now
        result = self.attack("say(b'{\"op\":\"display\",\"id\":1,\"data\":{\"text/plain\":\"\\\\ud800\"}}')")
        self.assertEqual(result["displays"], [{"text/plain": "\ufffd"}])


class Many(Case):
    options = ("--armed", "2", "--max", "260")

    def test_two_hundred_at_once(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            sessions = list(pool.map(lambda _: self.open(limits={"memory": "64m"}), range(200)))
            self.assertEqual(len(set(sessions)), 200)
            list(pool.map(lambda pair: self.step(pair[1], "x = %d" % pair[0]), enumerate(sessions)))
            for _ in range(3):
                got = list(pool.map(lambda session: self.value(session, "x += 1000; x"), sessions))
        self.assertEqual(got, [3000 + i for i in range(200)])
        listed = self.daemon.ask("GET", "/v1/sessions")[1]["sessions"]
        self.assertEqual({row["id"] for row in listed}, set(sessions))
        for session in sessions:
            self.assertEqual(self.daemon.ask("DELETE", "/v1/sessions/" + session)[0], 200)
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")


class Full(Case):
    options = ("--armed", "0", "--max", "1", "--queue", "0")

    def open_later(self):
        """When what was there before has gone."""
        answers = []

        def is_open():
            answers.append(self.daemon.ask("POST", "/v1/sessions", {"language": "python"}))
            return answers[-1][0] == 201
        self.assertTrue(wait_until(is_open), answers[-1:])
        return answers[-1][1]["id"]

    def test_no_room(self):
        session = self.open_later()
        answer = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})
        self.assert_refused(answer, 503, "busy")
        self.assertEqual(self.value(session, "1"), 1)
        self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.open_later()

    def test_a_creator_that_goes(self):
        made = self.daemon.raw()
        body = json.dumps({"language": "python"})
        made.sendall(("POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      "Content-Length: %d\r\n\r\n%s" % (len(body), body)).encode())
        made.close()
        self.open_later()


class Ends(daemon.Case):
    def test_a_daemon_that_ends_takes_its_sessions_along(self):
        other = daemon.Daemon("--armed", "1")
        try:
            _, answer, _ = other.ask("POST", "/v1/sessions", {"language": "bash"})
            path = "/v1/sessions/%s/runs" % answer["id"]
            other.ask("POST", path, {"code": "sleep 8888 & disown"})
            done = threading.Thread(target=lambda: other.ask("POST", path, {"code": "sleep 2; echo x"}))
            done.start()
            wait_until(other.runs)
        finally:
            other.close()
        done.join(daemon.PATIENCE_S)
        self.assertFalse(done.is_alive())
        self.assertTrue(wait_until(lambda: subprocess.run(
            ["pgrep", "-f", "sleep 8888"], stdout=subprocess.DEVNULL, check=False).returncode != 0))
