"""What the command line accepts, and how it refuses the rest."""
import os

import cli


class Refuses(cli.Case):
    def refuses(self, *args, says):
        self.assert_usage(self.vial("run", *args), says)

    def test_no_program(self):
        self.refuses(says="nothing to run")
        self.refuses("-l", "python", says="nothing to run")
        self.refuses("--", says="nothing to run")

    def test_unknown_options_and_guesses_what_was_meant(self):
        self.put("a.py")
        self.refuses("--timout", "3", "a.py",
                     says="unknown option --timout; did you mean --timeout?")
        self.refuses("--time=3", "a.py", says="did you mean --timeout?")
        self.refuses("--emv", "A=1", "a.py", says="did you mean --env?")
        self.refuses("--exprot", "x", "a.py", says="did you mean --export?")
        done = self.vial("run", "--nothing-like-it", "a.py")
        self.assert_usage(done, "unknown option --nothing-like-it")
        self.assertNotIn("did you mean", done.stderr)
        self.refuses("-x", "a.py", says="unknown option -x")

    def test_unknown_languages_and_guesses_what_was_meant(self):
        self.refuses("-l", "pyton", "-c", "1", says="'pyton'; did you mean 'python'?")
        self.refuses("-l", "cobol", "-c", "1", says="'cobol' (see 'vial env list')")

    def test_a_wrong_setting_is_named_as_it_was_written(self):
        for words, says in ((("--log-level", "x"), "vial: --log-level: 'x' is none of"),
                            (("--set", "log_level=x"), "vial: --set: log_level: 'x' is none of"),
                            (("--set", "log_levl=x"), "vial: --set: log_levl: there is no such")):
            self.assert_usage(self.vial("serve", *words), says, hint="Try 'vial serve --help'.")

    def test_values_that_are_missing_or_too_many(self):
        self.refuses("--timeout", says="--timeout needs a value: --timeout TIME")
        self.refuses("-t", says="-t needs a value: -t TIME")
        self.refuses("--json=yes", "a.py", says="--json takes no value")

    def test_values_that_are_no_values(self):
        self.put("a.py")
        for flag in sorted(self.limit_flags()):
            for value in ("", "x", "-1", "1e99", "nan", "0x10", "5 parsecs"):
                with self.subTest(flag=flag, value=value):
                    self.refuses("--%s=%s" % (flag, value), "a.py", says="--" + flag)

    def test_limits_out_of_range(self):
        self.put("a.py")
        for option in ("--timeout=0", "--memory=1k", "--memory=999999g", "--processes=0",
                       "--cpus=0", "--open-files=1", "--output=0", "--timeout=100000000"):
            with self.subTest(option):
                self.refuses(option, "a.py", says=option.split("=")[0])

    @staticmethod
    def limit_flags():
        others = {"language", "stdin", "dir", "workdir", "export-to", "network", "config"}
        return {name for name, text in cli.flags().items() if "default" in text} - others

    def test_every_limit_is_a_flag(self):
        self.assertEqual(self.limit_flags(), {
            "timeout", "cpu-time", "cpus", "memory", "processes", "open-files", "file-size",
            "workspace", "tmp", "files", "output"})

    def test_programs_that_cannot_be_read(self):
        self.refuses("nope.py", says="nope.py: No such file or directory")
        self.refuses(".", says=". is a directory")
        self.refuses("nope/nope.py", says="No such file")

    def test_languages_that_cannot_be_told(self):
        self.put("program.xyz", "hello")
        self.put("plain", "hello")
        for name in ("program.xyz", "plain"):
            done = self.vial("run", name)
            self.assert_usage(done, name, "which language?")
            for language in ("bash", "go", "javascript", "python", "ruby"):
                self.assertIn(language, done.stderr)
        self.assert_usage(self.vial("run", "-c", "print(1)"), "which language?")
        self.assert_usage(self.vial("run", "-", stdin=b"print(1)"), "which language?")

    def test_languages_that_do_not_exist(self):
        self.assert_usage(self.code("klingon", "x"), "klingon")
        self.assert_usage(self.code("", "x"))
        self.assert_usage(self.code("../python", "x"))

    def test_files_that_are_not_there_or_not_files(self):
        self.put("a.py")
        os.mkdir(self.path("d"))
        os.mkfifo(self.path("fifo"))
        self.refuses("--file", "nope", "a.py", says="--file: nope")
        self.refuses("--file", "x=nope", "a.py", says="nope")
        self.refuses("--file", "d", "a.py", says="--file: d")
        self.refuses("--file", "fifo", "a.py", says="--file: fifo")
        self.refuses("--stdin", "nope", "a.py", says="--stdin: nope")
        self.refuses("--stdin", "d", "a.py", says="--stdin: d is a directory")

    def test_file_names_that_leave_the_workspace(self):
        self.put("a.py")
        for name in ("../x", "/x", "a/../../x", "..", ".", "a//b", ""):
            with self.subTest(name):
                self.refuses("--file", name + "=a.py", "a.py", says="--file: ")

    def test_exports_that_leave_the_workspace(self):
        self.put("a.py")
        for name in ("../x", "/etc/passwd", "a/../../x", "..", "../*", ""):
            with self.subTest(name):
                self.refuses("--export", name, "a.py", says="--export: ")

    def test_directories(self):
        self.put("a.py")
        self.refuses("--dir", "nope", "a.py", says="--dir: nope")
        self.refuses("--dir", "a.py", "a.py", says="--dir: a.py")
        self.refuses("--dir", ".:x", "a.py", says="is not HOST")
        self.refuses("--dir", ":/x", "a.py", says="is not HOST")
        self.refuses("--dir", "", "a.py", says="is not HOST")
        self.refuses("--dir", ".:/../x", "a.py", says="--dir")
        self.refuses("--dir", ".:/proc", "a.py", says="--dir")
        self.refuses("--dir", ".:/usr/bin", "a.py", says="--dir")
        self.refuses("--dir", ".", "--dir", ".", "a.py", says="--dir")

    def test_variables(self):
        self.put("a.py")
        self.refuses("--env", "=x", "a.py", says="--env")
        self.refuses("--env", "", "a.py", says="--env")
        done = self.vial("run", "-e", "VIAL_NOT_SET", "a.py")
        self.assert_usage(done, "VIAL_NOT_SET is not set here")

    def test_other_values(self):
        self.put("a.py")
        self.refuses("--workdir", "relative", "a.py", says="--workdir")
        self.refuses("--workdir", "/proc", "a.py", says="--workdir")
        self.refuses("--workdir", "/a/../b", "a.py", says="--workdir")
        self.refuses("--network", "bridge", "a.py", says="--network")
        self.refuses("--allow-weak", "walls", "a.py", says="--allow-weak")
        self.refuses("--config", "nope.yaml", "a.py", says="nope.yaml")

    def test_contradictions(self):
        self.put("a.py")
        self.refuses("--read-only", "--dir", ".:rw", "a.py", says="--read-only contradicts --dir")
        self.refuses("--export-to", ".", "a.py", says="--export-to needs --export")
        self.refuses("--json", "--explain", "a.py", says="--explain")
        done = self.vial("run", "-l", "python", "--stdin", "-", "-", stdin=b"print(1)")
        self.assert_usage(done, "standard input is the program")

    def test_export_directories_that_cannot_be_one(self):
        self.put("a.py", "print('ran')")
        self.refuses("--export", "x", "--export-to", "a.py", "a.py", says="--export-to: a.py")
        self.refuses("--export", "x", "--export-to", "no/such", "a.py", says="--export-to: no/such")

    def test_names_stay_on_their_line(self):
        self.refuses("a\nb.py", says="a\\nb.py")
        self.refuses("\x1b[31mred.py", says="\\x1b[31mred.py")

    def test_a_broken_configuration(self):
        self.put("a.py")
        self.put("bad.yaml", "colour: blue\n")
        self.refuses("--config", "bad.yaml", "a.py", says="bad.yaml")
        done = self.vial("run", "a.py", env={"VIAL_CONFIG": self.path("bad.yaml")})
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertIn("bad.yaml", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_the_network_of_the_host_unless_the_operator_permits_it(self):
        done = self.code("python", "print('ran')", "--network", "host")
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertIn("--network", done.stderr)
        self.put("open.yaml", "network:\n  allow_host: true\n")
        done = self.code("python", "import os; print(os.path.exists('/sys/class/net') or 'ran')",
                         "--network", "host", "--config", self.path("open.yaml"))
        self.assert_ok(done)


class Accepts(cli.Case):
    def test_all_spellings_of_an_option(self):
        for option in (["--timeout", "9"], ["--timeout=9"], ["-t", "9"], ["-t9"]):
            with self.subTest(option):
                self.assert_ok(self.code("python", "print('hi')", *option), "hi\n")
        self.assert_ok(self.vial("run", "--language=python", "--code=print('hi')"), "hi\n")
        self.assert_ok(self.vial("run", "-lpython", "-cprint('hi')"), "hi\n")

    def test_the_last_of_several(self):
        self.assert_ok(self.code("python", "print('hi')", "--timeout", "0.001", "--timeout", "20"),
                       "hi\n")

    def test_units_as_people_write_them(self):
        for option in ("--memory=256m", "--memory=128Mi", "--memory=1g", "--memory=268435456",
                       "--timeout=5s", "--timeout=2.5", "--timeout=5000ms", "--timeout=1m",
                       "--cpus=500m", "--cpus=50%", "--cpus=50000/100000", "--cpus=1.5"):
            with self.subTest(option):
                self.assert_ok(self.code("sh", "echo hi", option), "hi\n")

    def test_a_program_whose_name_looks_like_an_option(self):
        self.put("-x.py", "import sys; print(sys.argv[1:])")
        self.assert_ok(self.vial("run", "--", "-x.py", "-y", "--", "-z"), "['-y', '--', '-z']\n")

    def test_help(self):
        for args in (["--help"], ["-h"], ["help"]):
            done = self.vial(*args)
            self.assert_ok(done)
            for verb in ("run", "languages", "doctor", "prepare"):
                self.assertRegex(done.stdout, r"(?m)^  %s " % verb)
        for verb in ("run", "languages", "doctor", "prepare"):
            done = self.vial(verb, "--help")
            self.assert_ok(done)
            self.assertTrue(done.stdout.startswith("usage: vial %s " % verb))
            self.assertEqual(done.stdout, self.vial("help", verb).stdout)
            self.assertLessEqual(max(map(len, done.stdout.split("\n"))), 80)

    def test_version(self):
        for flag in ("--version", "-V"):
            self.assertRegex(self.vial(flag).stdout, r"^vial \d+\.\d+\.\d+\n$")


class Verbs(cli.Case):
    def test_nothing_at_all_is_answered_with_the_usage(self):
        done = self.vial()
        self.assertEqual((done.returncode, done.stdout), (cli.USAGE, ""))
        self.assertIn("usage: vial", done.stderr)

    def test_unknown_verbs(self):
        hint = "Try 'vial --help'."
        self.assert_usage(self.vial("rum"), "unknown verb 'rum'; did you mean run?", hint=hint)
        self.assert_usage(self.vial("lang"), "did you mean languages?", hint=hint)
        self.assert_usage(self.vial("fly-to-the-moon"), "unknown verb", hint=hint)
        self.assert_usage(self.vial("--frob"), "unknown option --frob", hint=hint)
        self.put("a.py", "print('ran')")
        self.assert_usage(self.vial("a.py"), "did you mean vial run a.py?", hint=hint)

    def test_unexpected_arguments(self):
        for verb in ("languages", "doctor"):
            hint = "Try 'vial %s --help'." % verb
            self.assert_usage(self.vial(verb, "x"), "unexpected argument 'x'", hint=hint)
            self.assert_usage(self.vial(verb, "--jsno"), "did you mean --json?", hint=hint)
        hint = "Try 'vial prepare --help'."
        self.assert_usage(self.vial("prepare", "klingon"), "klingon", hint=hint)
