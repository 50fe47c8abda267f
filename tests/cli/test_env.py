"""vial env: built from wheels that the tests make themselves, so without any network."""
import base64
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import zipfile

import cli

BACKEND = '''
import os, sys, time, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    %s
    name = "homemade-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("homemade.py", "built_by = %%r\\n" %% (os.getuid(),))
        meta = "homemade-1.0.dist-info/"
        wheel.writestr(meta + "METADATA", "Metadata-Version: 2.1\\nName: homemade\\nVersion: 1.0\\n")
        wheel.writestr(meta + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(meta + "RECORD", "homemade.py,,\\n")
    return name
'''


def is_for_guests(path):
    """Not below what they have for themselves, nor (in root's home) where only root may go."""
    parents = [path]
    while parents[-1] != "/":
        parents.append(os.path.dirname(parents[-1]))
    return not path.startswith(("/tmp/", "/var/tmp/")) and all(os.stat(each).st_mode & 0o001 for each in parents)


class Case(cli.Case):
    """Environments in a directory of the test's own."""

    def setUp(self):
        super().setUp()
        below = cli.BUILD if is_for_guests(os.path.realpath(cli.BUILD)) else "/var/lib"
        self.state = tempfile.mkdtemp(prefix="vial-test-", dir=below)
        os.chmod(self.state, 0o755)
        self.addCleanup(shutil.rmtree, self.state)
        self.root = os.path.join(self.state, "environments")
        self.config = self.put("vial.yaml", "environments: %s\n" % self.root)
        os.mkdir(self.path("wheels"))

    def env(self, verb, *args, **more):
        return self.vial("env", verb, "--config", self.config, *args, **more)

    def build(self, name, requirements=None, *options, **more):
        operands = [] if requirements is None else [requirements]
        return self.env("build", "--no-index", "--find-links", self.path("wheels"), *options, name,
                        *operands, **more)

    def wheel(self, name, version, code="", needs=(), files=None):
        """A wheel of one module that knows its version."""
        path = self.path("wheels", "%s-%s-py3-none-any.whl" % (name, version))
        meta = "%s-%s.dist-info/" % (name, version)
        contents = {name + ".py": "version = %r\n%s" % (version, code), **(files or {}),
                    meta + "METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n%s" % (
                        name, version, "".join("Requires-Dist: %s\n" % need for need in needs)),
                    meta + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
                                    "Tag: py3-none-any\n"}
        record = ""
        with zipfile.ZipFile(path, "w") as archive:
            for file, text in contents.items():
                archive.writestr(file, text)
                digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
                record += "%s,sha256=%s,%d\n" % (file, digest.decode().rstrip("="), len(text))
            archive.writestr(meta + "RECORD", record + meta + "RECORD,,\n")
        return path

    def sdist(self, wait="pass"):
        """A package that has to be built, by code of its own."""
        project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        with tarfile.open(self.path("wheels/homemade-1.0.tar.gz"), "w:gz") as archive:
            for name, text in (("pyproject.toml", project), ("backend.py", BACKEND % wait),
                               ("PKG-INFO", "Metadata-Version: 2.1\nName: homemade\nVersion: 1.0\n")):
                info = tarfile.TarInfo("homemade-1.0/" + name)
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))

    def run_in(self, name, code, *options, **more):
        return self.vial("run", "--config", self.config, "-E", name, *options, "-c", code, **more)

    def left(self):
        """What is in the directory of environments, hidden or not."""
        return sorted(os.listdir(self.root)) if os.path.exists(self.root) else []

    def show(self, name):
        return json.loads(self.env("show", "--json", name).stdout)


class Life(Case):
    def test_from_requirements_to_a_run_and_away(self):
        self.wheel("alpha", "1.0", needs=["beta>=2"])
        path = self.wheel("beta", "2.5")
        done = self.build("mine", self.put("r.txt", "alpha\n"), "--preload", "alpha,json")
        self.assert_ok(done)
        self.assertTrue(done.stdout.endswith("mine: built\n"), done.stdout)
        self.assertIn("install 2/2", done.stdout)
        code = ("import alpha, beta, sys; print(alpha.version, beta.version)\n"
                "print(sys.executable); print(alpha.__cached__ and 1)")
        self.assert_ok(self.run_in("mine", code),
                       "1.0 2.5\n%s/mine/venv/bin/python3\n1\n" % self.root)
        self.assert_ok(self.run_in(" MINE ", "print(1)"), "1\n")
        shown = self.show("mine")
        self.assertEqual(shown["preload"], ["alpha", "json"])
        self.assertEqual([(row["name"], row["version"]) for row in shown["packages"]],
                         [("alpha", "1.0"), ("beta", "2.5")])
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual(shown["packages"][1]["hash"], "sha256:" + digest)
        self.assertEqual((shown["language"], shown["problem"]), ("python", None))
        self.assertGreater(shown["bytes"], 10000)
        self.assertEqual(self.left(), ["mine"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.root, "mine"))),
                         ["build.log", "environment.yaml", "requirements.lock",
                          "requirements.txt", "venv"])
        self.assert_ok(self.env("remove", "mine"), "")
        self.assertEqual(self.left(), [])
        self.assert_usage(self.run_in("mine", "print(1)"), "mine")

    def test_the_same_is_not_built_again(self):
        self.wheel("alpha", "1.0")
        requirements = self.put("r.txt", "alpha\n")
        self.assert_ok(self.build("mine", requirements))
        before = self.show("mine")
        self.assert_ok(self.build("mine", requirements), "mine: nothing to do\n")
        self.assertEqual(self.show("mine"), before)
        self.assert_ok(self.build("mine", requirements, "--preload", "alpha"))
        self.assertEqual(self.show("mine")["preload"], ["alpha"])
        self.assertIn("built", self.build("mine", requirements).stdout)

    def test_options_may_follow_the_name(self):
        self.wheel("alpha", "1.0")
        requirements = self.put("r.txt", "alpha\n")
        self.assert_ok(self.vial("env", "build", "mine", requirements, "--config", self.config,
                                 "--no-index", "--find-links", self.path("wheels")))
        self.assertEqual(self.left(), ["mine"])

    def test_nothing_at_all_is_an_environment_too(self):
        self.assert_ok(self.build("bare", self.put("r.txt", "# none\n")))
        done = self.run_in("bare", "import sys; print([p for p in sys.path if 'packages' in p])")
        self.assert_ok(done, "['%s/bare/venv/lib/python%s/site-packages']\n" % (
            self.root, ".".join(self.show("bare")["built_with"].split()[1].split(".")[:2])))

    def test_two_of_them_do_not_meet(self):
        self.wheel("alpha", "1.0")
        self.wheel("alpha", "2.0")
        self.assert_ok(self.build("one", self.put("r1.txt", "alpha==1.0\n")))
        self.assert_ok(self.build("two", self.put("r2.txt", "alpha==2.0\n")))
        for name, version in (("one", "1.0"), ("two", "2.0")):
            self.assert_ok(self.run_in(name, "import alpha; print(alpha.version)"), version + "\n")
        self.assertEqual(self.code("python", "import alpha").returncode, 1)

    def test_guests_cannot_write_there_nor_see_the_rest(self):
        self.wheel("alpha", "1.0")
        self.assert_ok(self.build("mine", self.put("r.txt", "alpha\n")))
        code = ("import alpha, os\n"
                "for path in (alpha.__file__, os.path.dirname(alpha.__file__) + '/new'):\n"
                "    try: open(path, 'w')\n"
                "    except OSError as error: print(error.errno)\n"
                "print(os.listdir('%s/mine'), os.listdir('%s'))" % (self.root, self.root))
        done = self.run_in("mine", code)
        self.assertRegex(done.stdout, r"\A(30|13)\n(30|13)\n\['venv'\] \['mine'\]\n\Z")

    def test_a_directory_with_a_definition(self):
        self.wheel("alpha", "1.0")
        self.put("def/requirements.txt", "alpha\n")
        self.put("def/environment.yaml", "language: python\npreload: [alpha]\n")
        self.assert_ok(self.build("mine", self.path("def")))
        self.assertEqual(self.show("mine")["preload"], ["alpha"])
        self.put("def/environment.yaml", "language: python\npreloads: [alpha]\n")
        done = self.build("mine", self.path("def"))
        self.assertEqual(done.returncode, cli.USAGE)
        self.assertRegex(done.stderr, "environment.yaml: line 2: .*preloads")


class Locks(Case):
    def setUp(self):
        super().setUp()
        self.wheel("alpha", "1.0")
        self.requirements = self.put("r.txt", "alpha\n")
        self.assert_ok(self.build("mine", self.requirements))
        self.lock = os.path.join(self.root, "mine/requirements.lock")

    def version(self):
        return self.show("mine")["packages"][0]["version"]

    def test_locked_is_the_same_again(self):
        self.wheel("alpha", "2.0")
        self.assert_ok(self.build("mine", None, "--locked", "--force"))
        self.assertEqual(self.version(), "1.0")
        self.assert_ok(self.build("mine", None, "--force"))
        self.assertEqual(self.version(), "2.0")

    def test_a_lock_of_another_place_is_followed(self):
        saved = shutil.copy(self.lock, self.path("my.lock"))
        self.wheel("alpha", "2.0")
        self.assert_ok(self.build("other", saved, "--locked"))
        self.assertEqual(self.show("other")["packages"][0]["version"], "1.0")

    def test_a_lock_beside_its_requirements_is_followed_while_it_fits(self):
        self.put("def/environment.yaml", "language: python\n")
        self.put("def/requirements.txt", "alpha\n")
        shutil.copy(self.lock, self.path("def/requirements.lock"))
        self.wheel("alpha", "2.0")
        self.assert_ok(self.build("kept", self.path("def")))
        self.assertEqual(self.show("kept")["packages"][0]["version"], "1.0")
        self.put("def/requirements.txt", "alpha>=1\n")
        self.assert_ok(self.build("kept", self.path("def")))
        self.assertEqual(self.show("kept")["packages"][0]["version"], "2.0")

    def test_other_bytes_under_the_same_name_are_refused(self):
        self.wheel("alpha", "1.0", code="evil = True\n")
        done = self.build("mine", None, "--locked", "--force")
        self.assertEqual(done.returncode, cli.OURS)
        self.assertIn("DO NOT MATCH THE HASHES", done.stderr)
        self.assert_ok(self.run_in("mine", "import alpha; print(hasattr(alpha, 'evil'))"),
                       "False\n")

    def test_what_is_no_lock(self):
        for text in ("alpha\n", "alpha>=1\n", "alpha==1.0 --hash=md5:00\n", "-r x\n"):
            with self.subTest(text):
                done = self.build("other", self.put("l", text), "--locked")
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(self.left(), ["mine"])
        done = self.build("never", None, "--locked")
        self.assert_usage(done, "never", hint="Try 'vial env build --help'.")


class Failures(Case):
    def assert_refused(self, done, *fragments):
        self.assert_usage(done, *fragments, hint="Try 'vial env build --help'.")
        self.assertEqual(self.left(), [])

    def test_names(self):
        for name in ("", "..", ".x", "a/b", "-", "ä", "x" * 64, "a b", "python", "PY", "node"):
            with self.subTest(name):
                done = self.vial("env", "build", "--config", self.config, "--", name,
                                 self.put("r.txt"))
                self.assertEqual(done.returncode, cli.USAGE, done.stderr)
        self.assertEqual(self.left(), [])

    def test_arguments(self):
        requirements = self.put("r.txt", "alpha\n")
        self.assert_refused(self.build("mine", self.path("nope")), "nope: No such file")
        self.assert_refused(self.env("build", "--find-links", "nope", "mine", requirements), "nope")
        self.assert_refused(self.build("mine"), "name a requirements file")
        self.assert_refused(self.build("mine", requirements, "--language", "ruby"), "only Python")
        self.assert_refused(self.build("mine", requirements, "--language", "x"), "unknown language")
        self.assert_refused(self.build("mine", requirements, "--preload", "os; x"), "preload")
        self.assert_refused(self.env("build", "mine", requirements, "more"), "unexpected", "more")
        self.assert_refused(self.env("build"), "which environment?")
        for text in ("alpha\n-r other\n", "./alpha\n", "-e .\n"):
            self.put("bad.txt", text)
            self.assert_refused(self.build("mine", self.path("bad.txt")), "bad.txt: line ")

    def test_other_verbs(self):
        for verb, hint in (("show", "show"), ("remove", "remove")):
            done = self.env(verb, "nope")
            self.assert_usage(done, "no environment 'nope'", hint="Try 'vial env %s --help'." % hint)
            self.assert_usage(self.env(verb), "which", hint="Try 'vial env %s --help'." % hint)
        self.assertEqual(self.env("remove", "python").returncode, cli.USAGE)
        self.assert_usage(self.vial("env", "lsit"), "did you mean env list?",
                          hint="Try 'vial env --help'.")
        self.assertEqual(self.vial("env").returncode, cli.USAGE)

    def test_a_package_that_is_not_there(self):
        done = self.build("mine", self.put("r.txt", "no-such-package\n"))
        self.assertEqual(done.returncode, cli.OURS)
        self.assertTrue(done.stderr.endswith(
            "vial: No matching distribution found for no-such-package\n"), done.stderr)
        self.assertEqual(self.left(), [])

    def test_a_module_that_cannot_be_preloaded(self):
        self.wheel("alpha", "1.0", code="raise RuntimeError('not today')\n")
        done = self.build("mine", self.put("r.txt", "alpha\n"), "--preload", "alpha")
        self.assertEqual(done.returncode, cli.OURS)
        self.assertIn("RuntimeError: not today", done.stderr)
        self.assertEqual(self.left(), [])

    def test_a_failed_rebuild_leaves_the_old_one(self):
        self.wheel("alpha", "1.0")
        self.assert_ok(self.build("mine", self.put("r.txt", "alpha\n")))
        self.assertEqual(self.build("mine", self.put("r.txt", "beta\n")).returncode, cli.OURS)
        self.assert_ok(self.run_in("mine", "import alpha; print(alpha.version)"), "1.0\n")
        self.assertEqual(self.left(), ["mine"])

    def test_places_that_guests_have_for_themselves(self):
        for place in ("/tmp/x-vial-env", "/usr/x-vial-env", "/run/x-vial-env"):
            with self.subTest(place):
                self.put("vial.yaml", "environments: %s\n" % place)
                done = self.build("mine", self.put("r.txt"))
                self.assertFalse(os.path.exists(place))
                self.assertEqual(done.returncode, cli.USAGE)
                self.assertIn("cannot lie in", done.stderr)

    def test_what_is_damaged_is_told_and_can_be_removed(self):
        self.wheel("alpha", "1.0")
        self.assert_ok(self.build("mine", self.put("r.txt", "alpha\n")))
        link = os.path.join(self.root, "mine/venv/bin/python3")
        os.remove(link)
        os.symlink("/bin/sh", link)
        done = self.run_in("mine", "print(1)")
        self.assertEqual(done.returncode, cli.OURS)
        self.assertIn("rebuild it", done.stderr)
        rows = {line.split("\t")[0]: line for line in self.env("list").stdout.splitlines()}
        self.assertIn("rebuild it", rows["mine"])
        self.assertIn("rebuild it", self.show("mine")["problem"])
        self.assert_ok(self.build("mine", self.path("r.txt")))
        self.assert_ok(self.run_in("mine", "import alpha; print(alpha.version)"), "1.0\n")

    def test_a_language_that_is_not_its_own(self):
        self.assert_ok(self.build("mine", self.put("r.txt")))
        done = self.run_in("mine", "1", "-l", "ruby")
        self.assert_usage(done, "environment 'mine' is not for Ruby")
        self.assert_ok(self.run_in("mine", "print(1)", "-l", "py"), "1\n")
        self.assert_ok(self.run_in("sh", "echo 1"), "1\n")


class Source(Case):
    def test_code_of_packages_runs_only_when_asked_and_only_inside(self):
        secret = self.put("secret", "x")
        self.sdist("assert not os.path.exists(%r) and not os.path.exists('/etc/shadow')" % secret)
        requirements = self.put("r.txt", "homemade\n")
        self.assertEqual(self.build("mine", requirements).returncode, cli.OURS)
        self.assertEqual(self.left(), [])
        self.assert_ok(self.build("mine", requirements, "--source"))
        self.assert_ok(self.run_in("mine", "import homemade; print(homemade.built_by)"), "1000\n")
        for path, _, files in os.walk(self.root):
            for name in files:
                self.assertEqual(os.lstat(os.path.join(path, name)).st_uid, os.getuid())


    def test_a_build_has_every_layer_that_is_there(self):
        there = self.run_in("python", "print(open('/proc/self/cgroup').read(), end='')")
        self.assertEqual(there.returncode, 0, there.stderr)
        self.sdist("assert open('/proc/self/cgroup').read() == %r" % there.stdout)
        self.assert_ok(self.build("mine", self.put("r.txt", "homemade\n"), "--source"))


class Together(Case):
    def start_slow(self, **more):
        """A build that waits for the end of time, once it is on its way."""
        self.sdist("time.sleep(1000)")
        process = self.start("env", "build", "--config", self.config, "--no-index", "--find-links",
                             self.path("wheels"), "--source", "mine",
                             self.put("r.txt", "homemade\n"), **more)
        while b"resolve homemade" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        return process

    def test_signals_end_a_build_and_leave_nothing(self):
        for signo in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signo):
                process = self.start_slow()
                process.send_signal(signo)
                self.assertEqual(process.wait(cli.PATIENCE_S), 128 + signo)
                self.assertEqual(self.left(), [])
                self._end(process)

    def test_what_a_killed_build_left_does_not_matter(self):
        process = self.start_slow()
        process.kill()
        process.wait()
        self.assertEqual(self.left(), [".mine.new"])
        self.assertEqual(json.loads(self.env("list", "--json").stdout)[-1]["path"], None)
        self.wheel("alpha", "1.0")
        self.assertTrue(cli.wait_until(
            lambda: self.build("mine", self.put("r2.txt", "alpha\n")).returncode == 0))
        self.assertEqual(self.left(), ["mine"])

    def test_one_builder_at_a_time(self):
        process = self.start_slow()
        done = self.build("mine", self.put("r2.txt", ""))
        self.assertEqual((done.returncode, done.stderr),
                         (cli.OURS, "vial: environment 'mine' is being built by another\n"))
        self.assert_ok(self.build("other", self.path("r2.txt")))
        process.send_signal(signal.SIGINT)
        process.wait(cli.PATIENCE_S)
        self.assert_ok(self.build("mine", self.path("r2.txt")))
        self.assertEqual(self.left(), ["mine", "other"])

    def test_runs_keep_what_they_began_with(self):
        self.wheel("alpha", "1.0")
        self.wheel("late", "1.0")
        self.assert_ok(self.build("mine", self.put("r.txt", "alpha==1.0\nlate==1.0\n")))
        code = ("import alpha, sys; print('begun', flush=True); sys.stdin.readline()\n"
                "import late; print(alpha.version, late.version)")
        process = self.start("run", "--config", self.config, "-E", "mine", "--stdin", "-", "-c",
                             code, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"begun\n")
        done = self.env("remove", "mine")
        self.assertEqual((done.returncode, done.stderr),
                         (cli.OURS, "vial: environment 'mine' is in use\n"))
        self.wheel("alpha", "2.0")
        self.wheel("late", "2.0")
        self.assert_ok(self.build("mine", self.put("r.txt", "alpha==2.0\nlate==2.0\n")))
        self.assert_ok(self.run_in("mine", "import late; print(late.version)"), "2.0\n")
        self.assertEqual(len(self.left()), 2)
        out, err = process.communicate(b"go\n", timeout=cli.PATIENCE_S)
        self.assertEqual((out, err, process.returncode), (b"1.0 1.0\n", b"", 0))
        self.assert_ok(self.env("remove", "mine"))
        self.assertEqual(self.left(), [])


class Shipped(cli.Case):
    """What lies in environments/."""

    MODULES = ("bs4 IPython markitdown matplotlib.pyplot numpy openpyxl pandas PIL.Image plotly.express "
               "py7zr PyPDF2 docx pptx requests scipy.stats seaborn sympy tabulate tenacity xlrd")

    @staticmethod
    def pinned(name, file):
        with open(os.path.join(cli.ROOT, "environments", name, file), encoding="utf-8") as lines:
            return [line.split()[0].lower() for line in lines if not line.startswith("#")]

    def built(self, name):
        listed = json.loads(self.vial("env", "list", "--json").stdout)
        for env in listed:
            if env["name"] == name:
                return env
        return self.skipTest("%s is not built here: tools/build-environments" % name)

    def test_locks_hold_what_is_required(self):
        for name in os.listdir(os.path.join(cli.ROOT, "environments")):
            with self.subTest(name):
                required = self.pinned(name, "requirements.txt")
                self.assertLessEqual(set(required), set(self.pinned(name, "requirements.lock")))
                self.assertTrue(all("==" in line for line in required))
                path = os.path.join(cli.ROOT, "environments", name)
                with open(os.path.join(path, "requirements.txt"), "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                with open(os.path.join(path, "requirements.lock"), encoding="utf-8") as file:
                    self.assertIn(digest, file.readline())

    def test_python_data_has_what_it_promises(self):
        env = self.built("python-data")
        self.assertEqual(env["problem"], None)
        self.assertEqual(env["preload"], ["numpy", "pandas", "matplotlib.pyplot"])
        self.assertLessEqual(set(self.pinned("python-data", "requirements.txt")),
                             {"%s==%s" % (row["name"], row["version"]) for row in env["packages"]})
        code = "for name in %r.split(): __import__(name)\nprint('all')" % self.MODULES
        self.assert_ok(self.vial("run", "-E", "python-data", "-m", "2g", "-c", code), "all\n")

    def test_python_data_works(self):
        self.built("python-data")
        code = ("import numpy as np, pandas as pd, matplotlib.pyplot as plt\n"
                "frame = pd.DataFrame({'x': np.arange(5), 'y': np.arange(5) ** 2})\n"
                "frame.plot(x='x', y='y'); plt.savefig('plot.png')\n"
                "frame.to_excel('table.xlsx')\n"
                "print(pd.read_excel('table.xlsx')['y'].sum())")
        done = self.vial("run", "-E", "python-data", "--export", "plot.png", "-c", code)
        self.assert_ok(done, "30\n")
        with open(self.path("plot.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")


class Listing(Case):
    def test_a_pipe_gets_lines_with_tabs(self):
        self.assert_ok(self.build("mine", self.put("r.txt")))
        done = self.env("list")
        self.assert_ok(done)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        listed = json.loads(self.env("list", "--json").stdout)
        self.assertEqual([row[0] for row in rows], [env["name"] for env in listed])
        self.assertEqual(rows[-1][:3], ["mine", "python", "0"])
        self.assertEqual({len(row) for row in rows}, {6})
        self.assertNotIn("\x1b", done.stdout)
        for env in listed:
            self.assertEqual(set(env), {"name", "language", "tool", "path", "problem", "preload",
                                        "image", "workdir", "built_at", "built_with", "bytes",
                                        "packages"})
            self.assertEqual(env["path"] is None, env["name"] != "mine")

    def test_languages_are_shown_by_any_name(self):
        self.assertEqual(self.show("python3"), self.show("python"))
        self.assertIsNone(self.show("python")["path"])
        self.assertIn("language\tpython\n", self.env("show", "py").stdout)

    def test_a_terminal_gets_a_bar(self):
        self.wheel("alpha", "1.0")
        code, seen = self.terminal("env", "build", "--config", self.config, "--no-index",
                                   "--find-links", self.path("wheels"), "mine",
                                   self.put("r.txt", "alpha\n"))
        self.assertEqual(code, 0, seen)
        self.assertIn("\rmine  install   ", seen)
        self.assertIn("━" * 24 + "  1/1  alpha", seen)
        self.assertTrue(seen.endswith("\r\x1b[Kmine: built\n"), seen)
        code, seen = self.terminal("env", "list", "--config", self.config)
        self.assertIn("PRELOAD", seen)

    def test_hostile_names_stay_on_their_line(self):
        os.makedirs(os.path.join(self.root, "a\x1b[31m\nb"), 0o755)
        done = self.env("list")
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("a\\x1b[31m\\nb", done.stdout)
