"""Manual pages, completions and examples say what the program does."""
import glob
import json
import os
import re
import subprocess

import cli

MAN = os.path.join(cli.ROOT, "docs/man")


def read(*names):
    with open(os.path.join(cli.ROOT, *names), encoding="utf-8") as file:
        return file.read()


def verbs():
    """As `vial --help` lists them."""
    text = subprocess.run([cli.VIAL, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\w+) ", text.split("\n  vial ")[0], re.M)


def commands():
    """Verbs, and the verbs below them."""
    found = verbs()
    for verb in ("config", "env", "session", "token"):
        text = subprocess.run([cli.VIAL, verb, "--help"], capture_output=True, text=True,
                              check=True).stdout
        found += [verb + " " + name for name in
                  re.findall(r"^  (\w+) ", text.split("\n  vial ")[0], re.M)]
    return found


class Manuals(cli.Case):
    def test_lint(self):
        pages = sorted(glob.glob(os.path.join(MAN, "*.[1-8]")))
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.returncode), ("", 0))

    def test_run_documents_every_flag_and_no_other(self):
        page = read("docs/man/vial-run.1")
        documented = set(re.findall(r"^\.It (?:Fl \w , )?Fl -([\w-]+)", page, re.M))
        self.assertEqual(documented, set(cli.flags("run")))

    def test_short_flags(self):
        usage = self.vial("run", "--help").stdout
        short = set(re.findall(r"^  -(\w), --([\w-]+)", usage, re.M))
        page = read("docs/man/vial-run.1")
        self.assertEqual(set(re.findall(r"^\.It Fl (\w) , Fl -([\w-]+)", page, re.M)), short)

    def test_defaults_of_limits(self):
        page = read("docs/man/vial-run.1")
        limits = page[page.index(".Ss Limits"):page.index(".Ss Isolation")]
        row = r"^\.It (?:Fl \w , )?Fl -([\w-]+)[^.]*\n(?:.*\n)*?Default: (.*)\.$"
        documented = dict(re.findall(row, limits, re.M))
        actual = {name: re.search(r"\(default: (.*?)( cores)?\)", text).group(1)
                  for name, text in cli.flags("run").items() if name in documented}
        self.assertEqual(len(documented), 11)
        self.assertEqual(documented, actual)

    def test_other_verbs(self):
        main = read("docs/man/vial.1")
        for verb in verbs():
            self.assertRegex(main, r"(?m)^\.It Cm %s$" % verb)
            own = glob.glob(os.path.join(MAN, "vial-%s.[18]" % {"repl": "session"}.get(verb, verb)))
            page = read(own[0]) if own else main
            for command in commands():
                for flag in cli.flags(command) if command.split()[0] == verb else ():
                    self.assertRegex(page + main, r"Fl -%s\b" % flag)


class Configuration(cli.Case):
    """vial.yaml(5) is made by hand, from the table that the program is made from."""

    def test_every_setting_is_there_and_no_other_with_its_default(self):
        page = read("docs/man/vial.yaml.5")
        env = {name: value for name, value in os.environ.items() if not name.startswith("VIAL_")}
        rows = json.loads(subprocess.run([cli.VIAL, "config", "show", "--json", "--config", os.devnull],
                                         capture_output=True, text=True, check=True, env=env).stdout)
        for section, after in (("server", "limits"), ("limits", "network")):
            part = page[page.index(".Ss %s\n" % section):page.index(".Ss %s\n" % after)]
            entries = dict(re.findall(r"^\.It Li ([\w-]+).*\n((?:(?!\.It|\.El).*\n)*)", part, re.M))
            known = {row["key"].split(".")[1]: row for row in rows if row["key"].startswith(section) and
                     row["key"].split(".")[1] not in ("quotas", "tenants")}  # which have parts of their own
            self.assertEqual(list(entries), list(known))
            for name, row in known.items():
                if section == "server":
                    self.assertEqual("\nLive.\n" in entries[name], row["live"], name)
                if row["value"] and name != "socket":
                    self.assertIn("\nDefault: %s.\n" % row["value"], entries[name])

    def test_examples_are_valid(self):
        for page, pattern in (("docs/man/vial.yaml.5", r"^\.Bd .*\n((?:.*\n)*?)\.Ed$"),
                              ("docs/DEPLOYMENT.md", r"^```yaml\n((?:.*\n)*?)```$"),
                              ("docs/INSTALL.md", r"^```yaml\n((?:.*\n)*?)```$")):
            examples = re.findall(pattern, read(page), re.M)
            self.assertTrue(examples, page)
            for text in examples:
                with self.subTest(page=page, text=text):
                    for name in ("cert.pem", "key.pem"):
                        text = text.replace("/etc/vial/" + name, self.put(name))
                    text = text.replace("/opt/python3.12/bin/python3", "/usr/bin/python3")  # in an odd place
                    done = self.vial("config", "check", self.put("vial.yaml", text))
                    self.assert_ok(done, "ok\n")


class Completions(cli.Case):
    FILES = ("vial.bash", "_vial", "vial.fish")

    def test_every_flag_of_every_verb_is_there_and_no_other(self):
        known = {flag for command in commands() for flag in cli.flags(command)}
        known.add("version")
        for name in self.FILES:
            with self.subTest(name):
                pattern = r"(?<!set) -l ([\w-]+)" if name.endswith("fish") else r"--([a-z][\w-]+)"
                self.assertEqual(set(re.findall(pattern, read("completions", name))), known)

    def test_every_verb_and_layer_is_there(self):
        for name in self.FILES:
            text = read("completions", name)
            for word in verbs():
                self.assertRegex(text, r"\b%s\b" % word)
            self.assertIn(" ".join(self.layers()), text)

    def layers(self):
        return [line.split("\t")[1] for line in self.vial("doctor").stdout.splitlines()
                if "\t" in line and line.split("\t")[1]]

    def complete(self, *words):
        script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vial\n' \
                 'printf "%s\\n" "${COMPREPLY[@]}"'
        env = dict(os.environ, PATH=os.path.dirname(cli.VIAL) + ":" + os.environ["PATH"])
        done = subprocess.run(["bash", "-c", script,
                               os.path.join(cli.ROOT, "completions/vial.bash"), "vial", *words],
                              capture_output=True, text=True, cwd=self.dir, env=env, check=True)
        return done.stdout.split()

    def test_bash(self):
        self.put("prog.py")
        self.assertEqual(self.complete("d"), ["doctor"])
        self.assertEqual(self.complete("run", "--tim"), ["--timeout"])
        self.assertEqual(self.complete("run", "--timeout", "3", "--mem"), ["--memory"])
        self.assertEqual(self.complete("run", "--timeout", "=", "3", "--mem"), ["--memory"])
        self.assertEqual(self.complete("run", "-l", "pyth"), ["python"])
        self.assertEqual(self.complete("run", "--network", ""), ["none", "host"])
        self.assertEqual(self.complete("run", "pro"), ["prog.py"])
        self.assertEqual(self.complete("run", "prog.py", "--mem"), [])
        self.assertEqual(self.complete("doctor", "--j"), ["--json"])
        self.assertEqual(self.complete("env", "b"), ["build"])
        self.assertEqual(self.complete("env", "build", "x", "--lo"), ["--locked"])
        self.assertEqual(self.complete("env", "show", "pyth")[0], "python")
        self.assertEqual(self.complete("run", "-E", "rub"), ["ruby"])


class Examples(cli.Case):
    def test_the_library_through_pkg_config(self):
        if not os.path.isdir(os.path.join(cli.BUILD, "meson-info")):
            self.skipTest("no build directory: --build")
        subprocess.run(["meson", "install", "-C", cli.BUILD, "--no-rebuild", "--quiet"], check=True,
                       env=dict(os.environ, DESTDIR=self.path("root")), stdout=subprocess.DEVNULL)
        found, = glob.glob(self.path("root/**/vial.pc"), recursive=True)
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(found),
                   PKG_CONFIG_SYSROOT_DIR=self.path("root"),
                   LD_LIBRARY_PATH=os.path.dirname(os.path.dirname(found)))
        line = 'cc -Wall -Werror "$0" $(pkg-config --cflags --libs vial) -o hello && ./hello'
        done = subprocess.run(["sh", "-c", line, os.path.join(cli.ROOT, "examples/c/hello.c")],
                              cwd=self.dir, env=env, capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr, done.returncode),
                         ("exited with code 0\nstdout: hello from inside\nanswer.txt: 42\n", "", 0))

    def test_the_header_is_good_for_cplusplus_and_strict_c(self):
        self.put("a.c", "#include <vial/vial.h>\nint main(void) { return 0; }\n")
        for command in (["cc", "-std=c99", "-pedantic"], ["c++", "-x", "c++"]):
            done = subprocess.run([*command, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                                   os.path.join(cli.ROOT, "include"), self.path("a.c")],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.stderr, done.returncode), ("", 0))

    def test_the_tour(self):
        done = subprocess.run([os.path.join(cli.ROOT, "tools/tour"), cli.VIAL],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("hello from Python", done.stdout)
        self.assertNotIn("reached", done.stdout)


class Readme(cli.Case):
    def test_its_console_shows_what_happens(self):
        with open(os.path.join(cli.ROOT, "README.md"), encoding="utf-8") as file:
            block = re.search(r"```console\n(.*?)```", file.read(), re.S).group(1)
        path = os.path.dirname(cli.VIAL) + ":" + os.environ["PATH"]
        examples = re.split(r"^\$ ", block, flags=re.M)[1:]
        self.assertGreater(len(examples), 2)
        for example in examples:
            command, expected = example.split("\n", 1)
            with self.subTest(command):
                done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, text=True,
                                      stderr=subprocess.STDOUT, env=dict(os.environ, PATH=path),
                                      check=False)
                said = re.sub(r"after (\d+)\.\d s", r"after \1 s", done.stdout)  # a busy machine is late
                self.assertEqual(said, expected)
