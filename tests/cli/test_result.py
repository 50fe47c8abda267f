"""The object of docs/RESULT.md, as `vial run --json` prints it."""
import os
import re

import cli

TYPES = {"string": str, "int": int, "bool": bool, "number": (int, float), "array": list,
         "object": dict, "null": type(None)}


def documented():
    """{key: types} from the table in docs/RESULT.md."""
    with open(os.path.join(cli.ROOT, "docs/RESULT.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", file.read(), re.M)
    return {key: [TYPES[word] for word in types.split(" or ")]
            for keys, types in rows for key in re.findall(r"`(\w+)`", keys)}


class Json(cli.Case):
    PROGRAMS = (
        ("an ordinary end", "print('hi'); open('f', 'w').write('x')", ["--export", "f"]),
        ("an exception", "\nraise ValueError('bad ü')", []),
        ("a timeout", "import time; time.sleep(60)", ["--timeout", "0.3"]),
        ("a signal", "import os; os.abort()", []),
        ("memory", "bytearray(1 << 30)", ["--memory", "64m"]),
        ("much output", "print('x' * 100000)", ["--output", "10"]),
        ("an export that fails", "pass", ["--export", "nope"]),
    )

    def test_keys_and_types_are_the_documented_ones(self):
        self.assertGreater(len(documented()), 15)
        for name, program, options in self.PROGRAMS:
            with self.subTest(name):
                result, _ = self.result("python", program, *options)
                expected = documented()
                del expected["network"]  # only where hosts could be reached
                self.assertEqual(set(result), set(expected))
                for key, types in expected.items():
                    self.assertTrue(any(isinstance(result[key], kind) for kind in types),
                                    (key, result[key]))
                    if isinstance(result[key], bool):
                        self.assertIn(bool, types, key)

    def test_nothing_else_is_printed(self):
        done = self.code("sh", "echo out; echo err >&2; exit 3", "--json")
        self.assertEqual((done.returncode, done.stderr, done.stdout.count("\n")), (3, "", 1))

    def test_an_ordinary_end(self):
        result, code = self.result("sh", "echo out; echo err >&2; exit 3")
        expected = {"outcome": "exited", "stage": "run", "exit_code": 3, "signal": None,
                    "timed_out": False, "oom": False, "limit": None, "stdout": "out\n",
                    "stderr": "err\n", "stdout_dropped": 0, "stderr_dropped": 0,
                    "truncated": False, "exception": None, "compile_ms": 0, "files_changed": [],
                    "files_changed_cut": False, "exports": []}
        self.assertEqual({key: result[key] for key in expected}, expected)
        self.assertEqual(code, 3)
        self.assertGreater(result["wall_ms"], 0)

    def test_an_exception(self):
        result, code = self.result("python", "def f():\n    raise ValueError('bad ü')\nf()")
        exception = result["exception"]
        self.assertEqual((exception["type"], exception["message"], exception["line"], code),
                         ("ValueError", "bad ü", 2, 1))
        self.assertIn("Traceback", exception["traceback"])
        self.assertIn(exception["traceback"].strip(), result["stderr"])

    def test_bytes_that_are_not_text(self):
        program = r"import sys; sys.stdout.buffer.write(b'a\xff\x00\x1b\xe2\x82b\xf0')"
        result, _ = self.result("python", program)
        self.assertEqual(result["stdout"], "a\ufffd\x00\x1b\ufffdb\ufffd")

    def test_files_changed(self):
        self.put("given", "before")
        result, _ = self.result("python",
                                "import os\nos.mkdir('d')\nopen('d/ü [1].txt', 'w').write('abc')\n"
                                "open('new\\nline', 'w')\nopen('given').read()", "--file", "given")
        self.assertEqual(sorted((file["path"], file["size"]) for file in result["files_changed"]),
                         [("d/ü [1].txt", 3), ("new\nline", 0)])

    def test_an_export(self):
        result, code = self.result("python", "open('a', 'w').write('abc')", "--export", "a",
                                   "--export", "b", "--export-to", "out")
        by_path = {file["path"]: file for file in result["exports"]}
        self.assertEqual(by_path["a"], {"path": "a", "size": 3, "saved": "out/a"})
        self.assertEqual(set(by_path["b"]), {"path", "size", "error"})
        self.assertEqual((self.get("out/a"), code), ("abc", 0))

    def test_a_program_that_prints_a_result_of_its_own(self):
        result, code = self.result("sh", "echo '{\"outcome\":\"exited\",\"exit_code\":0}'; exit 9")
        self.assertEqual((result["exit_code"], code), (9, 9))
