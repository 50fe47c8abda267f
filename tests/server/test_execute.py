"""POST /execute and POST /exec: other systems' clients, their words."""
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

import daemon
from daemon import wait_until

TYPE = {"Content-Type": "application/json"}


def body_of(code, timeout=10, **more):
    return {"generated_code": code, "timeout": timeout, "language": "python", **more}


class Execute(daemon.Case):
    def ask(self, body, headers=None):
        return self.daemon.ask("POST", "/execute", body, headers)

    def execute(self, code, timeout=10, **more):
        status, answer, _ = self.ask(body_of(code, timeout, **more))
        self.assertEqual(status, 200, answer)
        self.assertEqual(set(answer), {"process_status", "stdout", "stderr"})
        return answer

    def assert_out(self, code, out, status="completed", **more):
        answer = self.execute(code, **more)
        self.assertEqual((answer["process_status"], answer["stdout"]), (status, out), answer)
        return answer


class Requests(Execute):
    def refused(self, body, text, headers=None):
        status, answer, got = self.ask(body, headers)
        self.assertEqual((status, answer),
                         (400, {"process_status": "error", "stdout": "", "stderr": text}))
        self.assertEqual(got["X-Frame-Options"], "SAMEORIGIN")

    def test_what_is_missed_in_which_order(self):
        self.refused({}, "Missing required field: generated_code")
        self.refused({"language": "java"}, "Missing required field: generated_code")
        self.refused({"generated_code": "1", "language": "java"}, "Missing required field: timeout")
        self.refused({"generated_code": "1", "timeout": 1}, "Missing required field: language")
        self.refused(body_of(None, None, language="java"), "Only python execution is supported")
        self.refused(body_of("1", language="Python"), "Only python execution is supported")
        self.refused(body_of("1", language=None), "Only python execution is supported")
        for body in ("[]", '"generated_code"', "7", "true"):
            self.refused(body, "Missing required field: generated_code")

    def test_what_is_no_json(self):
        for body in ("", "null", "{", "This", '{"a": NaN}', "{'a': 1}", "[" * 5000, b"\xff", '{} {}',
                     '{"generated_code": "1", "timeout": NaN, "language": "python"}'):
            self.refused(body, "Invalid JSON data", TYPE)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json", "",
                     "application/", "+json", "text/x+json"):
            self.refused(json.dumps(body_of("1")), "Request must be JSON", {"Content-Type": kind})
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.putrequest("POST", "/execute")
        made.putheader("Content-Length", "0")
        made.endheaders()
        self.assertEqual(json.load(made.getresponse())["stderr"], "Request must be JSON")

    def test_types_of_json(self):
        for kind in ("application/json;charset=utf-8", "Application/JSON ; x=y", "application/vnd.api+json",
                     "application/+json"):
            status, answer, _ = self.ask(json.dumps(body_of("print(1)")), {"Content-Type": kind})
            self.assertEqual((status, answer["stdout"]), (200, "1\n"))

    def test_types_of_members(self):
        for code in (None, 7, ["print(1)"], {}):
            self.refused(body_of(code), "generated_code must be a string")
        for timeout in ("5", None, True, [1]):
            self.refused(body_of("1", timeout), "timeout must be a number")
        for most in (-1, 1.5, "10", True):
            self.refused(body_of("1", max_output_characters=most),
                         "max_output_characters must be a whole number, not below 0")
        self.refused(body_of("{'generated_code': 5}"), "generated_code must be a string")

    def test_members_that_nobody_knows(self):
        self.assert_out("print(1)", "1\n", user="x", other={"deep": [[[[1]]]]})
        twice = json.dumps(body_of("print(1)"))[:-1] + ', "generated_code": "print(2)"}'
        self.assertEqual(self.ask(twice)[1]["stdout"], "2\n")
        self.assert_out("print(1)", "1\n", many=[{}] * 50000)

    def test_other_methods(self):
        for method in ("GET", "PUT", "DELETE"):
            status, answer, headers = self.daemon.ask(method, "/execute")
            self.assertEqual((status, answer["process_status"]), (405, "error"))
            self.assertEqual((headers["Allow"], headers["X-XSS-Protection"]), ("POST", "1; mode=block"))

    def test_headers(self):
        for answer in (self.ask(body_of("1")), self.daemon.ask("GET", "/"), self.ask("x"),
                       self.daemon.ask("GET", "/nobodys")):
            for name, value in (
                    ("Strict-Transport-Security", "max-age=31536000; includeSubDomains"),
                    ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "SAMEORIGIN"),
                    ("X-XSS-Protection", "1; mode=block"), ("Content-Type", "application/json")):
                self.assertEqual(answer[2][name], value)
        self.assertNotIn("X-Frame-Options", self.daemon.ask("GET", "/healthz")[2])

    def test_a_body_that_is_too_large(self):
        status, answer, _ = self.ask(body_of("#" * (33 << 20)))
        self.assertEqual((status, answer["process_status"]), (413, "error"))
        status, answer, _ = self.ask(body_of("#" * (17 << 20)))
        self.assertEqual((status, answer["process_status"]), (413, "error"))

    @daemon.inside
    def test_health(self):
        self.assertEqual(self.daemon.ask("GET", "/")[:2], (200, {"status": "ok"}))
        self.assertEqual(self.daemon.ask("GET", "/health")[:2], (200, {"status": "ok"}))
        self.assertIn(self.daemon.ask("GET", "/healthz")[1]["execute_environment"],
                      ("python", "python-data"))


class Programs(Execute):
    def test_forms(self):
        for code in ("print('x')", "{'generated_code': 'print(\"x\")'}",
                     '{"generated_code": "print(\'x\')"}', "```python\nprint('x')\n```",
                     "\n```\nprint('x')\n```\n", "```print('x')```", "`print('x')`",
                     "So:\n```py\na = 'x'\n```\nand\n```Python3\nprint(a)\n```\nDone.",
                     "{'generated_code': '```python\\nprint(\"x\")\\n```'}"):
            with self.subTest(code=code):
                self.assert_out(code, "x\n")

    def test_programs_are_never_altered(self):
        self.assert_out("python_version = 3\nprint(python_version)", "3\n")
        self.assert_out("text = '''\n```python\nprint(1)\n```\n'''\nprint(len(text))", "24\n")
        self.assert_out("# `x`\nprint('`y`', \"```\")", "`y` ```\n")
        self.assert_out("print(f'`{1}`')", "`1`\n")
        self.assert_out("{'a': 1}", "")

    def test_python_is_asked_where_only_it_can_tell(self):
        """A block within what looks like a string, in a text that is no program."""
        self.assert_out("See ''' here: \n```python\nprint('inner')\n```\n''' there", "inner\n")
        answer = self.execute("print('```x'\n")
        self.assertIn("SyntaxError", answer["stderr"])

    def test_a_program_that_fails_runs_once(self):
        code = ("'''\n```\nprint('second')\n```\n'''\nopen('ran', 'a').write('x')\n"
                "raise SyntaxError('made up')")
        self.assertEqual(self.execute(code)["process_status"], "error")
        self.assert_out("print(open('ran').read()); import os; os.remove('ran')", "x\n")

    def test_errors(self):
        answer = self.execute("print('before')\n1/0")
        self.assertEqual((answer["process_status"], answer["stdout"]), ("error", "before\n"))
        self.assertRegex(answer["stderr"], r"^Traceback[\s\S]*ZeroDivisionError: division by zero\n$")
        for code, kind in (("x x", "SyntaxError"), ("if 1:\nx", "IndentationError"), ("print('\n", "Syntax")):
            answer = self.execute(code)
            self.assertEqual((answer["process_status"], answer["stdout"]), ("error", ""))
            self.assertRegex(answer["stderr"], r"^Traceback \(most recent call last\):\n  File[\s\S]*" + kind)

    def test_what_cannot_be_compiled_has_a_head_like_all_else(self):
        head = "Traceback (most recent call last):\n"
        for code, end in (("x = \"Traceback (most recent call last):", "SyntaxError"),
                          (head + '  File "x.py", line 1, in f\nNameError: x', "SyntaxError"),
                          ("-" * 100000 + "1", "MemoryError\n"),
                          ("x" + ".a" * 100000, "RecursionError: maximum recursion depth exceeded during compilation\n")):
            with self.subTest(code[:40]):
                stderr = self.execute(code)["stderr"]
                self.assertTrue(stderr.startswith(head), stderr)
                self.assertEqual(stderr.count("\n" + head), 0)
                self.assertIn(end, stderr)

    def test_what_others_cannot_compile_is_as_they_said_it(self):
        code = ("'''\n```python\nprint('doc')\n```\n'''\nimport subprocess, sys\n"
                "sys.exit(subprocess.run([sys.executable, '-c', '1+']).returncode)")
        answer = self.assert_out(code, "", "error")
        self.assertTrue(answer["stderr"].startswith('  File "<string>", line 1\n'), answer)

    def test_ends(self):
        for code, status in (("import sys; sys.exit(0)", "completed"), ("raise SystemExit", "completed"),
                             ("import sys; sys.exit(3)", "error"), ("import os; os._exit(3)", "error"),
                             ("raise KeyboardInterrupt", "error"), ("", "completed"), ("1 + 1", "completed")):
            self.assert_out(code, "", status)
        answer = self.execute("import os; os.kill(os.getpid(), 11)")
        self.assertEqual((answer["process_status"], answer["stderr"]),
                         ("error", "Killed by signal 11 (SIGSEGV)\n"))
        self.assertIn("fatal", self.execute("import sys; sys.exit('fatal')")["stderr"])
        self.assertIn("EOFError", self.execute("input()")["stderr"])
        answer = self.execute("x = b'x' * (1 << 40)")
        self.assertEqual(answer["process_status"], "error")
        self.assertIn("MemoryError", answer["stderr"])

    def test_more_memory_than_is_usual(self):
        for code in ("print(len(bytes(700 << 20)))",
                     "try: print(len(bytes(700 << 20)))\nexcept MemoryError: print('no')",
                     "import subprocess, sys\n"
                     "subprocess.run([sys.executable, '-c', 'print(len(bytes(700 << 20)))'])"):
            self.assert_out(code, "%d\n" % (700 << 20), timeout=60)

    def test_timeouts(self):
        late = {"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}
        for timeout in (0, -5, -0.0, 1e-300, 0.05):
            self.assertEqual(self.execute("print(1)\nwhile True: pass", timeout), late)
        self.assertEqual(self.execute("import time; print(1, flush=True); time.sleep(9)", 0.3), late)
        self.assert_out("print(1)", "1\n", timeout=1e300)
        self.assert_out("print(1)", "1\n", timeout=10 ** 400)

    def test_output(self):
        self.assert_out("print('x' * 100000)", "x" * 100000 + "\n")
        self.assert_out("import os; os.write(1, b'a\\xff\\xc3')", "a\ufffd\ufffd")
        answer = self.execute("import sys; sys.stdout.write('\u00e9' * (1 << 20))")
        self.assertEqual(answer["stdout"], "\u00e9" * (1 << 19) + "<output cut>")
        answer = self.execute("import os; os.write(1, b'x' + '\u00e9'.encode() * (1 << 20))")
        self.assertEqual(answer["stdout"], "x" + "\u00e9" * ((1 << 19) - 1) + "<output cut>")

    def test_output_is_cut_when_asked(self):
        answer = self.execute("import sys; print('\u00e9' * 50); print('b', file=sys.stderr)",
                              max_output_characters=10)
        self.assertEqual((answer["stdout"], answer["stderr"]),
                         ("\u00e9" * 10 + "<output cut>\n", "b\n\n"))
        self.assertEqual(self.execute("1", max_output_characters=10)["stdout"], "")
        self.assertEqual(self.execute("print(1)", max_output_characters=0)["stdout"], "<output cut>\n")
        self.assertEqual(self.execute("print(1)", max_output_characters=None)["stdout"], "1\n")
        self.assertEqual(self.execute("print(12)", max_output_characters=1.0)["stdout"], "1<output cut>\n")
        self.assertEqual(self.execute("print(1)", max_output_characters=10 ** 30)["stdout"], "1\n\n")
        self.assertEqual(self.execute("import os; os.kill(os.getpid(), 9)", max_output_characters=6)["stderr"],
                         "Killed<output cut>\n")

    def test_a_client_that_goes(self):
        sock = self.daemon.raw()
        body = json.dumps(body_of("import time; time.sleep(60)", 60)).encode()
        sock.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.assertTrue(wait_until(self.daemon.runs))
        sock.close()
        self.assert_no_runs()


class Files(Execute):
    def test_they_stay(self):
        self.assert_out("import os\nos.makedirs('d/e')\nopen('d/e/f', 'wb').write(bytes(range(256)))", "")
        self.assert_out("import os\nprint(sorted(os.listdir()), open('d/e/f', 'rb').read()[255])",
                        "['d', 'main.py'] 255\n")
        self.assert_out("open('d/e/f', 'a').write('+')", "")
        self.assert_out("import os\nprint(os.path.getsize('d/e/f')); os.remove('d/e/f')", "257\n")
        self.assert_out("import os\nprint(os.path.exists('d/e/f'))", "False\n")

    def test_they_stay_when_the_program_fails(self):
        self.execute("open('left', 'w').write('x')\n1/0")
        self.execute("open('late', 'w').write('y')\nwhile True: pass", 3)
        self.assert_out("import os\nprint(open('left').read(), open('late').read())\n"
                        "os.remove('left'); os.remove('late')", "x y\n")

    def test_modules_are_what_they_are_now(self):
        for number in (1, 2):
            self.assert_out("open('mod.py', 'w').write('value = %d')" % number, "")
            self.assert_out("import mod; print(mod.value)", "%d\n" % number)
        self.assert_out("import os; os.remove('mod.py')", "")

    def test_a_file_becomes_a_directory(self):
        self.assert_out("open('thing', 'w').write('x')", "")
        self.assert_out("import os\nos.remove('thing'); os.mkdir('thing'); open('thing/in', 'w').write('y')", "")
        self.assert_out("import shutil\nprint(open('thing/in').read()); shutil.rmtree('thing')", "y\n")

    def test_many_at_once(self):
        failed = []

        def work(number):
            answer = self.execute("open('many-%d', 'w').write('%d')" % (number, number))
            if answer["process_status"] != "completed":
                failed.append(answer)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assert_out("import glob, os\nnames = sorted(glob.glob('many-*'))\nprint(len(names))\n"
                        "for name in names: os.remove(name)", "8\n")

    def test_what_does_not_fit_is_said(self):
        answer = self.execute("open('huge', 'wb').write(b'x' * (70 << 20))")
        self.assertEqual(answer["process_status"], "completed")
        self.assertIn("huge was not kept", answer["stderr"])
        self.assert_out("import os; print(os.path.exists('huge'))", "False\n")

    def test_names(self):
        self.assert_out("import os\nos.makedirs('a/b/c/d/e')\n"
                        "for name in ('a/b/c/d/e/f', '.hidden', '[x]*.txt', '-', 'caf\u00e9 1'):\n"
                        "    open(name, 'w').write(name)", "")
        look = "import glob, os; print(sorted(glob.glob('**', recursive=True, include_hidden=True)))"
        names = ["", "-", ".hidden", "[x]*.txt", "a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e", "a/b/c/d/e/f", "caf\u00e9 1",
                 "main.py"]
        self.assert_out(look, "%s\n" % names[1:])
        self.assert_out("import os, shutil\nfor name in ('[x]*.txt', '.hidden', '-', 'caf\u00e9 1'): os.remove(name)\n"
                        "shutil.rmtree('a')", "")
        self.assert_out(look, "['main.py']\n")

    def test_links_are_not_followed(self):
        self.assert_out("import os; os.symlink('/etc/passwd', 'link')", "")
        self.assert_out("import os; print(os.path.lexists('link'))", "False\n")

    def test_one_with_the_name_of_a_program(self):
        self.assert_out("open('main.py', 'w').write('V = 7')", "")
        self.assert_out("import main; print(main.V, open('main.py').read(), 1 + 1)", "7 V = 7 2\n")
        self.assert_out("import os; os.remove('main.py'); print(1)", "1\n")
        self.assert_out("import os; print(os.listdir())", "['main.py']\n")
        for _ in range(3):  # each program is its own, whatever those before it made of themselves
            self.assert_out("open(__file__, 'w').write('print(666)')", "")
            self.assert_out("print(1)", "1\n")
        self.assert_out("import os\nfor name in os.listdir(): os.remove(name)", "")
        self.assert_out("import os; os.remove('main.py'); os.mkdir('main.py'); open('main.py/x', 'w').close()", "")
        self.assert_out("import os; print(os.listdir('main.py'))", "['x']\n")
        self.assert_out("import shutil; shutil.rmtree('main.py')", "")

    def test_one_that_looks_as_old_as_another(self):
        self.assert_out("open('a', 'w').write('A'); open('b', 'w').write('B')", "")
        self.assert_out("import shutil; shutil.copy2('a', 'b')", "")
        self.assert_out("import os; print(open('b').read()); os.rename('a', 'b')", "A\n")
        self.assert_out("import os; print(os.listdir()); os.remove('b')", "['b', 'main.py']\n")

    def test_one_that_is_removed_beside_many_new_ones(self):
        self.assert_out("open('old', 'w').write('x')", "")
        said = self.execute("import os; os.remove('old'); os.mkdir('new')\n"
                            "for i in range(1500): open('new/%d' % i, 'w').close()")["stderr"]
        self.assertRegex(said, "new/[0-9]+ was not kept: there are too many files\n")
        self.assert_out("import os, shutil; print(os.path.exists('old'), len(os.listdir('new')) > 250)\n"
                        "shutil.rmtree('new')", "False True\n")

    def test_one_that_nobody_can_look_at(self):
        self.assert_out("import os; os.mkdir('d'); open('d/f', 'w').write('x')", "")
        self.assertIn("could not be looked at", self.execute("import os; os.chmod('d', 0)")["stderr"])

    def test_one_that_there_was_no_room_to_read(self):
        self.assert_out("open('old', 'wb').write(b'o' * (40 << 20))", "")
        said = self.execute("open('new', 'wb').write(b'n' * (40 << 20))")["stderr"]
        self.assertRegex(said, "^new was not kept: ")
        self.assert_out("import os; print(os.listdir('.'), os.path.getsize('old'))\nos.remove('old')",
                        "['old', 'main.py'] %d\n" % (40 << 20))

    def test_other_routes_do_not_see_them(self):
        self.assert_out("open('mine', 'w').write('x')", "")
        self.assertEqual(self.run_ok("import os; print(os.path.exists('mine'))")["stdout"], "False\n")
        self.assertEqual(self.daemon.ask("POST", "/exec", {"code": "import os; print(os.listdir())"})[1],
                         {"output": "['main.py']\n"})
        self.assert_out("import os; os.remove('mine')", "")


class OutputPath(Execute):
    """OUTPUT_DATA_PATH: what programs leave is there, and what is there they find."""
    owner = 12345

    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.mkdtemp(prefix="vial-output-")
        os.chmod(cls.tmp, 0o755)
        cls.path = os.path.join(cls.tmp, "made/here")
        os.makedirs(os.path.join(cls.path, "sub"))
        for name in ("data.csv", "sub/x", ".hidden"):
            with open(os.path.join(cls.path, name), "w", encoding="utf-8") as file:
                file.write("of " + name)
        os.symlink("/etc/passwd", os.path.join(cls.path, "link"))
        if os.geteuid() == 0:
            for path, _, names in os.walk(cls.path):
                for name in ["."] + names:
                    os.chown(os.path.join(path, name), cls.owner, cls.owner, follow_symlinks=False)
        os.environ["OUTPUT_DATA_PATH"] = cls.path
        try:
            super().setUpClass()
        finally:
            del os.environ["OUTPUT_DATA_PATH"]

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.tmp)

    def read(self, name):
        with open(os.path.join(self.path, name), encoding="utf-8") as file:
            return file.read()


class Directory(OutputPath):
    def test_what_is_there_is_found(self):
        self.assert_out("import os\nprint(os.path.exists('.hidden'), os.path.lexists('link'),\n"
                        "      open('data.csv').read(), open('sub/x').read())",
                        "False False of data.csv of sub/x\n")

    def test_what_is_left_is_there_with_the_answer(self):
        inode = None
        for number in range(5):
            self.assert_out("import os\nos.makedirs('d/e', exist_ok=True)\n"
                            "open('d/e/f', 'w').write('%d' * 100000)" % number, "")
            self.assertEqual(self.read("d/e/f"), str(number) * 100000)
            about = os.stat(os.path.join(self.path, "d/e/f"))
            self.assertEqual(about.st_ino, inode or about.st_ino) # the same file, written anew
            inode = about.st_ino
        self.assertLess(abs(about.st_mtime - time.time()), 60)
        self.assertEqual(about.st_mode & 0o7777, 0o644)
        if os.geteuid() == 0:
            self.assertEqual(about.st_uid, self.owner)
        self.assert_out("import os; os.remove('d/e/f')", "")
        self.assertFalse(os.path.exists(os.path.join(self.path, "d")))
        self.assertEqual(self.read(".hidden"), "of .hidden")

    def test_what_is_hidden_or_far_down_is_not_touched(self):
        self.assert_out("import os\nos.makedirs('.ssh'); os.makedirs('1/2/3/4/5')\n"
                        "for name in ('.hidden', '.ssh/keys', '1/2/3/4/5/f'): open(name, 'w').write('mine')", "")
        self.assertEqual(self.read(".hidden"), "of .hidden")
        self.assertFalse({".ssh", "1"} & set(os.listdir(self.path)))
        self.assert_out("print(open('.hidden').read(), open('.ssh/keys').read(), open('1/2/3/4/5/f').read())",
                        "mine mine mine\n")
        self.assert_out("import os; os.remove('.hidden')", "")
        self.assertEqual(self.read(".hidden"), "of .hidden")

    @daemon.inside
    def test_nothing_is_written_through_a_link(self):
        os.symlink(self.tmp, os.path.join(self.path, "way-out"))
        self.assert_out("import os; os.mkdir('way-out'); open('way-out/f', 'w').write('x')", "")
        self.assertFalse(os.path.exists(os.path.join(self.tmp, "f")))
        self.assertTrue(wait_until(lambda: "was not written" in self.daemon.log()))
        self.assert_out("print(open('way-out/f').read())", "x\n") # but it is kept


class Writer(OutputPath):
    @daemon.inside
    def test_it_can_go(self):
        with open("/proc/%d/task/%d/children" % ((self.daemon.server_pid(),) * 2), encoding="ascii") as file:
            writer = int(file.read().split()[0])
        os.kill(writer, 9)
        self.assert_out("open('later', 'w').write('x')", "")
        self.assert_out("print(open('later').read())", "x\n")
        self.assertTrue(wait_until(lambda: "not written any more" in self.daemon.log()))


class Exec(daemon.Case):
    def ask(self, code):
        status, answer, _ = self.daemon.ask("POST", "/exec", {"code": code})
        return status, answer

    def test_output(self):
        self.assertEqual(self.ask("print('hi')"), (200, {"output": "hi\n"}))
        self.assertEqual(self.ask("print('x' * 20000)"), (200, {"output": "x" * 16384}))
        self.assertEqual(self.ask("print('\u00e9' * 20000)"), (200, {"output": "\u00e9" * 16384}))
        self.assertEqual(self.ask("import sys\nprint('e', file=sys.stderr)"), (200, {"output": ""}))

    def test_errors_are_one_line(self):
        for code, line in (
                ("print(1)\n1/0", "ZeroDivisionError: division by zero\n"),
                ("raise ValueError", "ValueError: \n"), ("raise ValueError('a\\nb')", "ValueError: a\nb\n"),
                ("class E(Exception): pass\nraise E('x')", "E: x\n"), ("{}['k']", "KeyError: 'k'\n"),
                ("import json; json.loads('')",
                 "JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"),
                ("try: 1/0\nexcept Exception: raise OSError('y')", "OSError: y\n"),
                ("import sys; sys.exit(0)", "SystemExit: 0\n"), ("exit('why')", "SystemExit: why\n"),
                ("raise SystemExit(3)", "SystemExit: 3\n"), ("import os; os._exit(3)", "SystemExit: 3\n"),
                ("total = 1\nprint(totl)", "NameError: name 'totl' is not defined\n"),
                ("import math\nmath.sqr(1)", "AttributeError: module 'math' has no attribute 'sqr'\n"),
                ("e = ValueError('x')\ne.add_note('n')\nraise e", "ValueError: x\n"),
                ("exec('x = = 1')", "SyntaxError: invalid syntax (<string>, line 1)\n"),
                ("raise KeyboardInterrupt", "KeyboardInterrupt: \n"),
                ("import traceback\ntry: 1/0\nexcept Exception: raise OSError(traceback.format_exc())",
                 "OSError: Traceback (most recent call last):\n  File \"<user>\", line 2, in <module>\n"
                 "ZeroDivisionError: division by zero\n\n"),
                ("import atexit\natexit.register(lambda: 1/0)\nraise ValueError('first')", "ValueError: first\n"),
                ("class A:\n  def __del__(self): 1/0\na = A()\nraise ValueError('v')", "ValueError: v\n"),
                ("import threading, time\nthreading.Thread(target=time.sleep, args=[60]).start()\n1/0",
                 "ZeroDivisionError: division by zero\n"),
                ("import sys; sys.stderr.write('x' * 2000000); 1/0", "ZeroDivisionError: division by zero\n"),
                ("import os; os.close(2); 1/0", "ZeroDivisionError: division by zero\n"),
                ("import os; os.closerange(0, 500); os.chdir('/'); 1/0", "ZeroDivisionError: division by zero\n"),
                ("x = b'x' * (1 << 40)", "Memory limit exceeded\n")):
            with self.subTest(code=code):
                self.assertEqual(self.ask(code), (400, {"detail": line}))
        for code, line in (
                ("x = 1\nx x", "SyntaxError: invalid syntax (<user>, line 2)\n"),
                (" x = 1", "IndentationError: unexpected indent (<user>, line 1)\n"),
                ("exit() x", "SyntaxError: invalid syntax (<user>, line 1)\n")):
            with self.subTest(code=code):
                self.assertEqual(self.ask(code), (400, {"detail": line}))
        status, answer = self.ask("raise ValueError('y' * 20000)")
        self.assertEqual((status, answer["detail"]), (400, ("ValueError: " + "y" * 20000)[:8192]))

    def test_a_program_is_the_main_one(self):
        self.assertEqual(self.ask("def f(n): return n and n + f(n - 1)\n"
                                  "if __name__ == '__main__': print(f(3), '_run' in globals())"),
                         (200, {"output": "6 False\n"}))
        self.assertEqual(self.ask("# coding: foo\nprint('\u00e9')"), (200, {"output": "\u00e9\n"}))

    def test_memory(self):
        self.assertEqual(self.ask("print(len(bytes(900 << 20)))"), (200, {"output": "%d\n" % (900 << 20)}))
        self.assertEqual(self.ask("try: print(len(bytes(900 << 20)))\nexcept MemoryError: print('no')"),
                         (200, {"output": "%d\n" % (900 << 20)}))
        self.assertEqual(self.ask("print(len(bytes(1100 << 20)))"), (400, {"detail": "Memory limit exceeded\n"}))

    def test_many_threads(self):
        code = ("import threading\ngo = threading.Event()\n"
                "all = [threading.Thread(target=go.wait) for _ in range(200)]\n"
                "for t in all: t.start()\ngo.set()\nprint(len(all))")
        self.assertEqual(self.ask(code), (200, {"output": "200\n"}))

    def test_requests_that_are_refused(self):
        for body, kind, member in (('{"cod": 1}', "missing", ["body", "code"]),
                                   ('{"code": 17}', "string_type", ["body", "code"]),
                                   ("{", "json_invalid", ["body"]), ("[]", "model_attributes_type", ["body"])):
            status, answer, _ = self.daemon.ask("POST", "/exec", body)
            self.assertEqual(status, 422, answer)
            self.assertEqual(set(answer["detail"][0]), {"type", "loc", "msg"})
            self.assertEqual((answer["detail"][0]["type"], answer["detail"][0]["loc"]), (kind, member))
        self.assertEqual(self.daemon.ask("POST", "/exec", "x", {"Content-Type": "text/plain"})[0], 422)
        status, answer, _ = self.daemon.ask("GET", "/exec")
        self.assertEqual((status, set(answer)), (405, {"detail"}))

    def test_what_has_no_type_is_read(self):
        made = self.daemon.connect()
        made.request("POST", "/exec", '{"code": "print(1)"}')
        answer = made.getresponse()
        self.assertEqual((answer.status, json.loads(answer.read())), (200, {"output": "1\n"}))
        made.close()


class Scripts(daemon.Case):
    """tools/local-sandbox against this daemon."""

    def script(self, name, *words):
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        return subprocess.run([os.path.join(root, "tools/local-sandbox", name), *words],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def test_all_scenarios(self):
        there = [item["name"] for item in self.daemon.ask("GET", "/v1/environments")[1]["environments"]]
        if "python-data" not in there:
            self.skipTest("the environment python-data is not built")
        url = "http://127.0.0.1:%d/execute" % self.daemon.port
        done = self.script("test_code_execution_sandbox.sh", "-u", url, "-t", "60")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "22 passed, 0 failed"), done)
        done = self.script("curl_request.sh", url)
        answer = json.loads(done.stdout)
        self.assertEqual((done.returncode, answer["process_status"]), (0, "completed"), answer["stderr"])
        self.assertEqual(json.loads(answer["stdout"])["data"][0]["y"], [4, 5, 6])

    def test_malformed(self):
        done = self.script("test_code_execution_sandbox.sh", "-m", "-u",
                           "http://127.0.0.1:%d/execute" % self.daemon.port)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "6 passed, 0 failed"), done)

    def test_a_mismatch_is_a_failure(self):
        done = self.script("test_code_execution_sandbox.sh", "--malformed", "--url",
                           "http://127.0.0.1:%d/healthz" % self.daemon.port)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 6 failed"), done)
        self.assertEqual(self.script("test_code_execution_sandbox.sh", "--nonsense").returncode, 2)
