"""Programs, their input, arguments, environment and limits; how they end and what is said."""
import json
import os
import subprocess

import cli


class Programs(cli.Case):
    def test_a_file_by_its_extension(self):
        self.put("a.py", "print('python')")
        self.put("a.sh", "echo shell")
        self.assert_ok(self.vial("run", "a.py"), "python\n")
        self.assert_ok(self.vial("run", "./a.sh"), "shell\n")
        self.assert_ok(self.vial("run", self.path("a.py")), "python\n")

    def test_a_file_by_its_first_line(self):
        self.put("tool", "#!/usr/bin/env python3\nprint('python')")
        self.assert_ok(self.vial("run", "tool"), "python\n")

    def test_a_file_whose_language_is_said(self):
        self.put("a.txt", "print('python')")
        self.assert_ok(self.vial("run", "-l", "python3", "a.txt"), "python\n")

    def test_text(self):
        self.assert_ok(self.code("python", "print('hi')"), "hi\n")
        self.assert_ok(self.code("PY", "print('hi')"), "hi\n")
        self.assert_ok(self.code("python", ""), "")

    def test_standard_input(self):
        self.assert_ok(self.vial("run", "-l", "python", "-", stdin=b"print('hi')"), "hi\n")
        done = self.vial("run", "-l", "sh", "-", "a", "b c", stdin=b'printf "%s;" "$@"')
        self.assert_ok(done, "a;b c;")

    def test_one_feeds_another(self):
        line = '"$0" run -l sh -c "echo print\\(6*7\\)" | "$0" run -l python - | ' \
               '"$0" run -l sh --stdin - -c cat'
        done = subprocess.run(["bash", "-c", line, cli.VIAL], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("42\n", "", 0))

    def test_tracebacks_show_the_name_of_the_file(self):
        self.put("deep/down/broken.py", "\n\n1 / 0\n")
        done = self.vial("run", "deep/down/broken.py")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r'broken\.py", line 3')
        self.assertNotIn("deep", done.stderr)

    def test_names_of_all_kinds(self):
        for name in ("with space.py", "br[ac]kets.py", "ünï-日本.py", "new\nline.py",
                     "quote'\".py", "-dash.py", "*.py", "percent%s%i.py", "{b,r}.py", "$(id).py",
                     "semi;colon.py", "back\\slash.py"):
            with self.subTest(name):
                self.put(name, "import os, sys; print(os.path.basename(sys.argv[0]), sys.argv[1:])")
                done = self.vial("run", "--", name, name)
                self.assert_ok(done, "%s %s\n" % (name, [name]))

    def test_a_name_that_is_not_utf8(self):
        path = os.path.join(os.fsencode(self.dir), b"caf\xe9.py")
        with open(path, "wb") as file:
            file.write(b"print('hi')")
        done = subprocess.run([cli.VIAL, "run", path], capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"hi\n", b""))

    def test_arguments_arrive_as_given(self):
        args = ["", " ", "a b", "-x", "--json", "--", "ü", "new\nline", "*", "$HOME", "%s", "'",
                '"']
        done = self.code("python", "import sys, json; print(json.dumps(sys.argv[1:]))", args=args)
        self.assertEqual(json.loads(done.stdout), args)

    def test_arguments_after_text_that_look_like_options(self):
        done = self.vial("run", "-l", "sh", "-c", "echo \"$@\"", "-t", "9", "--", "-t", "x")
        self.assert_ok(done, "-t x\n")

    def test_a_language_that_is_not_installed_is_not_bad_usage(self):
        self.put("conf.yaml", "languages:\n  - name: python\n    command: /no/such/python\n")
        done = self.code("python", "print(1)", "--config", self.path("conf.yaml"))
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertIn("/no/such/python", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)


class Input(cli.Case):
    CAT = "import sys; sys.stdout.write(sys.stdin.read())"

    def test_is_empty_by_default(self):
        self.assert_ok(self.code("python", self.CAT, stdin=b"not for you"), "")

    def test_from_a_file(self):
        self.put("in", "from a file\n")
        self.assert_ok(self.code("python", self.CAT, "--stdin", "in"), "from a file\n")

    def test_from_our_own(self):
        big = b"0123456789abcdef" * 20000
        done = self.code("python", "import sys; print(len(sys.stdin.read()))", "--stdin", "-",
                         stdin=big)
        self.assert_ok(done, "%d\n" % len(big))

    def test_nobody_has_to_read_it(self):
        self.assert_ok(self.code("python", "print('hi')", "--stdin", "-", stdin=b"x" * 1000000),
                       "hi\n")

    def test_an_endless_one_ends_with_the_program(self):
        self.assert_ok(self.code("sh", "head -c 3 | tr '\\0' x", "--stdin", "/dev/zero"), "xxx")


class Environment(cli.Case):
    SHOW = "import os; print(os.environ.get('COLOUR'), os.environ.get('OTHER'))"

    def test_set_and_passed_on(self):
        done = self.code("python", self.SHOW, "-e", "COLOUR=a=b c", "--env", "OTHER",
                         env={"OTHER": "ours"})
        self.assert_ok(done, "a=b c ours\n")
        self.assert_ok(self.code("python", self.SHOW, "-e", "COLOUR="), " None\n")
        self.assert_ok(self.code("python", self.SHOW, "-e", "COLOUR=1", "-e", "COLOUR=2"),
                       "2 None\n")

    def test_nothing_of_ours_by_itself(self):
        self.assert_ok(self.code("python", self.SHOW, env={"COLOUR": "secret"}), "None None\n")

    def test_workdir(self):
        done = self.code("sh", "pwd; touch x && echo writable", "--workdir", "/home/me")
        self.assert_ok(done, "/home/me\nwritable\n")
        self.assert_ok(self.code("sh", "pwd"), "/sandbox\n")

    def test_signals_are_not_inherited(self):
        line = "trap '' INT PIPE TERM USR1; exec \"$0\" run -l sh -c " \
               "'grep -E \"Sig(Ign|Blk)\" /proc/self/status'"
        done = subprocess.run(["bash", "-c", line, cli.VIAL], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.stdout.split(), ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16])

    def test_closed_standard_descriptors(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                line = "\"$0\" run -l sh -c 'echo out; echo err >&2; ls /proc/self/fd' %s" % closed
                done = subprocess.run(["bash", "-c", line, cli.VIAL], capture_output=True,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_lets_a_python_end_is_not_passed_on(self):
        text = "import os; print(os.getenv('LD_PRELOAD'), 'end.so' in open('/proc/self/maps').read()); " \
               "os.system('echo \"${LD_PRELOAD-none}\"')"
        self.assert_ok(self.code("python", text), "None True\nnone\n")
        self.assert_ok(self.code("python", text, "--dir", "."), "None True\nnone\n")
        self.assert_ok(self.code("python", text, "--env", "PYTHONHASHSEED=1"), "None False\nnone\n")
        self.assert_ok(self.code("sh", "echo ${LD_PRELOAD-none}"), "none\n")


class Ends(cli.Case):
    def test_what_is_no_program_does_not_compile(self):
        done = self.vial("run", "--no-daemon", "--json", "-l", "go", "-c", "package other\nfunc main() {}")
        result = json.loads(done.stdout)
        self.assertEqual((done.returncode, result["stage"], result["exit_code"]), (1, "compile", 1))
        self.assertIn("main package", result["stderr"])

    def test_exit_codes_are_the_programs(self):
        for code in (0, 1, 2, 42, 124, 125, 137, 255):
            with self.subTest(code):
                done = self.code("sh", "exit %d" % code)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (code, "", ""))

    def test_signals(self):
        for name, number in (("SEGV", 11), ("KILL", 9), ("ABRT", 6), ("TERM", 15)):
            with self.subTest(name):
                done = self.code("sh", "echo before; kill -%s $$" % name)
                self.assertEqual((done.returncode, done.stdout), (128 + number, "before\n"))
                self.assertEqual(done.stderr, "vial: ended by SIG%s\n" % name)
                result, code = self.result("sh", "kill -%s $$" % name)
                self.assertEqual((result["outcome"], result["signal"], result["exit_code"], code),
                                 ("signaled", number, None, 128 + number))

    def test_wall_time(self):
        done = self.code("sh", "echo before; sleep 60", "--timeout", "3")
        self.assertEqual((done.returncode, done.stdout), (cli.TIMEOUT, "before\n"))
        self.assertRegex(done.stderr, r"^vial: killed after [\d.]+ s \(timeout\)\n$")
        result, code = self.result("sh", "echo before; sleep 60", "--timeout", "3")
        self.assertEqual((result["outcome"], result["limit"], result["timed_out"],
                          result["exit_code"]),
                         ("timed_out", "timeout", True, None))
        self.assertEqual((result["stdout"], code), ("before\n", cli.TIMEOUT))

    def test_cpu_time(self):
        done = self.code("python", "while True: pass", "--cpu-time", "0.3")
        self.assertEqual((done.returncode, done.stdout), (cli.TIMEOUT, ""))
        self.assertRegex(done.stderr, r"^vial: killed after .* of CPU time \(cpu-time\)\n$")

    def test_memory_that_the_kernel_takes_back(self):
        hog = "echo before; exec head -c 1G /dev/zero > /dev/shm/x"
        done = self.code("sh", hog, "--memory", "32m")
        self.assertEqual((done.returncode, done.stdout), (cli.KILLED, "before\n"))
        self.assertEqual(done.stderr, "vial: killed: out of memory (memory)\n")
        result, code = self.result("sh", hog, "--memory", "32m")
        self.assertEqual((result["outcome"], result["oom"], result["limit"], result["exit_code"],
                          code),
                         ("out_of_memory", True, "memory", None, cli.KILLED))

    def test_memory_that_the_language_refuses(self):
        done = self.code("python", "x = bytearray(400 << 20)", "--memory", "64m")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("MemoryError", done.stderr)
        self.assertTrue(done.stderr.endswith("vial: ran out of memory (memory)\n"), done.stderr)
        result, code = self.result("python", "x = bytearray(400 << 20)", "--memory", "64m")
        self.assertEqual((result["outcome"], result["oom"], result["exit_code"], code),
                         ("out_of_memory", True, 1, 1))
        caught = "try:\n  bytearray(400 << 20)\nexcept MemoryError: print('caught')"
        self.assert_ok(self.code("python", caught, "--memory", "64m"), "caught\n")

    def test_memory_in_pieces(self):
        program = "import os\nx = []\nos.fork()\nwhile True: x.append(bytearray(b'x' * (1 << 20)))"
        result, code = self.result("python", program, "--memory", "48m")
        self.assertEqual((result["outcome"], result["oom"], result["limit"]),
                         ("out_of_memory", True, "memory"))
        self.assertIn(code, (1, cli.KILLED))

    def test_output_beyond_the_limit_is_cut_and_the_run_goes_on(self):
        done = self.code("sh", "seq 1000; echo end >&2", "--output", "100")
        self.assertEqual((done.returncode, len(done.stdout)), (0, 100))
        self.assertEqual(done.stderr, "end\nvial: stdout was cut at 100 B (3793 bytes dropped)\n")
        result, _ = self.result("sh", "seq 1000 >&2", "--output", "1k")
        self.assertEqual((len(result["stderr"]), result["stderr_dropped"], result["truncated"]),
                         (1024, 3893 - 1024, True))

    def test_a_limit_of_the_workspace(self):
        done = self.code("sh", "dd if=/dev/zero of=big bs=64k count=64 2>&1 | grep -o 'No space'",
                         "--workspace", "1m")
        self.assert_ok(done, "No space\n")

    def test_a_limit_of_tmp(self):
        done = self.code("sh",
                         "dd if=/dev/zero of=/tmp/big bs=64k count=64 2>&1 | grep -o 'No space'",
                         "--tmp", "1m")
        self.assert_ok(done, "No space\n")

    def test_a_limit_of_a_file(self):
        done = self.code("python", "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                         "try: open('big', 'wb').write(bytes(1 << 20))\n"
                         "except OSError as e: print(e.errno)",
                         "--file-size", "64k")
        self.assert_ok(done, "27\n")

    def test_a_limit_of_files(self):
        done = self.code("python", "try:\n for i in range(99): open(str(i), 'w').close()\n"
                         "except OSError as e: print(e.errno, i < 40)", "--files", "32")
        self.assert_ok(done, "28 True\n")

    def test_a_limit_of_descriptors(self):
        done = self.code("python",
                         "x = []\ntry:\n for i in range(99): x.append(open('/dev/null'))\n"
                         "except OSError as e: print(e.errno, i < 32)", "--open-files", "32")
        self.assert_ok(done, "24 True\n")

    def test_a_limit_of_processes(self):
        done = self.code("python", "import os, time\ntry:\n for i in range(99):\n"
                         "  if os.fork() == 0: time.sleep(60)\n"
                         "except OSError as e: print(e.errno, i < 16)", "--processes", "16")
        self.assert_ok(done, "11 True\n")

    def test_a_share_of_the_cpu_is_what_libraries_count(self):
        done = self.code("sh", "echo $OMP_NUM_THREADS", "--cpus", "2.5")
        self.assert_ok(done, "3\n")

    @cli.needs("c")
    def test_a_program_that_does_not_compile(self):
        done = self.code("c", "int main(void) { return x; }")
        self.assertNotIn(done.returncode, (0, cli.OURS))
        self.assertIn("main.c:1", done.stderr)
        result, _ = self.result("c", "int main(void) { return x; }")
        self.assertEqual((result["outcome"], result["stage"]), ("exited", "compile"))

    @cli.needs("c")
    def test_a_compiled_program_is_timed_apart_from_its_compiler(self):
        result, code = self.result("c", "int main(void) { return 7; }")
        self.assertEqual((result["stage"], result["exit_code"], code), ("run", 7, 7))
        self.assertGreater(result["compile_ms"], 0)


class Explain(cli.Case):
    def test_shows_the_plan_and_runs_nothing(self):
        done = self.code("python", "open('made', 'w')", "--explain", "--memory", "77m", "--timeout",
                         "9", "--dir", self.dir + ":rw")
        self.assert_ok(done)
        self.assertEqual(os.listdir(self.dir), [])
        for word in ("77 MiB", "9 s", "/sandbox", "seccomp", "/usr", "python"):
            self.assertIn(word, done.stdout)

    def test_refuses_what_a_run_would_refuse(self):
        self.assert_usage(self.code("python", "x", "--explain", "--timeout", "x"), "--timeout")
