"""POST /execute with a session_id: what one program leaves, the next one of that name finds."""
import threading

import daemon
from daemon import wait_until


class Sessions(daemon.Case):
    def ask(self, code, session="s", timeout=20, headers=None, **more):
        return self.daemon.ask("POST", "/execute",
                               {"generated_code": code, "timeout": timeout, "language": "python",
                                "session_id": session, **more}, headers)

    def execute(self, code, session="s", **more):
        status, answer, _ = self.ask(code, session, **more)
        self.assertEqual(status, 200, answer)
        self.assertEqual(set(answer), {"process_status", "stdout", "stderr", "session_id"})
        self.assertEqual(answer["session_id"], session)
        return answer

    def named(self, name):
        listed = self.daemon.ask("GET", "/v1/sessions")[1]["sessions"]
        return [item for item in listed if item.get("name") == name]

    def test_what_is_left_is_found(self):
        self.execute("import math\ndef f(x):\n    return x * math.floor(2.5)\nx = 21\nopen('a', 'w').write('1')",
                     "keeps")
        answer = self.execute("print(f(x), open('a').read(), __name__)", "keeps")
        self.assertEqual((answer["process_status"], answer["stdout"], answer["stderr"]),
                         ("completed", "42 1 __main__\n", ""))
        answer = self.execute("print(x)", "another")
        self.assertEqual(answer["process_status"], "error")
        self.assertRegex(answer["stderr"], r"(?s)^Traceback \(most recent call last\):\n.*"
                                           r"\nNameError: name 'x' is not defined\n$")
        self.assertEqual(len(self.named("keeps")), 1)

    def test_it_is_not_a_prompt(self):
        self.assertEqual(self.execute("1 + 1\n'x'")["stdout"], "")
        self.assertEqual(self.execute("")["process_status"], "completed")
        self.assertRegex(self.execute("input()")["stderr"], r"\nEOFError: [^\n]*\n$")

    def test_errors(self):
        answer = self.execute("y = 7\nprint('before')\n1/0")
        self.assertEqual((answer["process_status"], answer["stdout"]), ("error", "before\n"))
        self.assertTrue(answer["stderr"].endswith("\nZeroDivisionError: division by zero\n"), answer)
        self.assertEqual(self.execute("print(y)")["stdout"], "7\n")  # an error ends nothing
        answer = self.execute("def f(:")
        self.assertEqual(answer["process_status"], "error")
        self.assertTrue(answer["stderr"].startswith("Traceback (most recent call last):\n"), answer)
        self.assertIn("SyntaxError", answer["stderr"])
        self.assertEqual(self.execute("print(1)\0")["stderr"], "Traceback (most recent call last):\n"
                         "ValueError: source code string cannot contain null bytes\n")
        answer = self.execute("import sys\nsys.stderr.write('e\\n')\nraise SystemExit(3)")
        self.assertEqual((answer["process_status"], answer["stderr"]), ("error", "e\n"))
        self.assertEqual(self.execute("import sys; sys.exit(0)")["process_status"], "completed")
        self.assertIn("NameError", self.execute("print(y)")["stderr"])  # an exit does

    def test_a_warning_is_said_each_time(self):
        for _ in range(2):
            self.assertIn("UserWarning: w", self.execute("import warnings; warnings.warn('w')", "warned")["stderr"])

    def test_more_memory_than_is_usual(self):
        self.assertEqual(self.execute("print(len(bytes(700 << 20)))", "much", timeout=60)["stdout"],
                         "%d\n" % (700 << 20))

    def test_a_timeout_keeps_what_was(self):
        self.execute("z = 1", "slow")
        answer = self.execute("z = 2\nprint('lost')\nwhile True: pass", "slow", timeout=2)
        self.assertEqual((answer["process_status"], answer["stdout"], answer["stderr"]),
                         ("timeout", "", "Timed out\n"))
        self.assertEqual(self.execute("print(z)", "slow")["stdout"], "2\n")
        self.assertEqual(self.execute("pass", "never", timeout=0)["process_status"], "timeout")
        self.assertEqual(self.named("never"), [])

    def test_the_forms_that_a_program_may_have(self):
        self.execute("{'generated_code': 'd = 1'}", "forms")
        self.execute("```python\nd += 1\n```", "forms")
        self.execute("Here it is:\n```python\nd += 1\n```\nThat was it.", "forms")
        self.execute("f'{d['`']}' ```d += 1```", "forms")  # only Python can tell: read twice
        self.assertEqual(self.execute("print(d)", "forms")["stdout"], "4\n")

    def test_output_is_cut_as_asked(self):
        answer = self.execute("print('x' * 50)", max_output_characters=10)
        self.assertEqual(answer["stdout"], "x" * 10 + "<output cut>\n")

    def test_names(self):
        for name in ("with blanks / and ü", "x" * 256):
            self.execute("n = 1", name)
            self.assertEqual(self.execute("print(n)", name)["stdout"], "1\n")
        for name in (7, True, [], {}, "x" * 257, "nul\0"):
            status, answer, _ = self.ask("1", name)
            self.assertEqual((status, answer["process_status"]), (400, "error"))
            self.assertIn("session_id must be", answer["stderr"])
        for nothing in (None, ""):
            status, answer, _ = self.ask("print(1)", nothing)
            self.assertEqual((status, answer),
                             (200, {"process_status": "completed", "stdout": "1\n", "stderr": ""}))

    def test_an_answer_is_one_object_whatever_is_accepted(self):
        status, answer, headers = self.ask("print(1)", headers={"Accept": "application/x-ndjson"})
        self.assertEqual((status, answer["stdout"]), (200, "1\n"))
        self.assertEqual(headers["X-Frame-Options"], "SAMEORIGIN")

    def test_at_once(self):
        got = []

        def work(number):
            got.append(self.execute("n = globals().get('n', 0) + 1\nprint('end', %d, n)" % number, "many"))
        threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(int(one["stdout"].split()[2]) for one in got), list(range(1, 13)))
        self.assertEqual(len(self.named("many")), 1)

    def test_a_client_that_goes(self):
        self.execute("w = 0", "gone")
        made = self.daemon.connect()
        made.request("POST", "/execute", '{"generated_code": "import time; time.sleep(0.5); w = 1", '
                     '"timeout": 20, "language": "python", "session_id": "gone"}',
                     {"Content-Type": "application/json"})
        wait_until(lambda: self.named("gone")[0]["state"] == "running")
        made.close()
        wait_until(lambda: self.named("gone")[0]["state"] == "idle")
        self.assertEqual(self.execute("print(w)", "gone")["stdout"], "1\n")

    def test_one_that_was_closed_begins_anew(self):
        self.execute("v = 1", "closed")
        self.daemon.ask("DELETE", "/v1/sessions/" + self.named("closed")[0]["id"])
        self.assertIn("NameError", self.execute("print(v)", "closed")["stderr"])
