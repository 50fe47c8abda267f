"""Files on their way in and out."""
import os
import stat

import cli

NAMES = ("plain.txt", "with space.txt", "br[ac]kets.txt", "ünï-日本.txt", "new\nline.txt",
         "quote'\".txt", "-dash.txt", "back\\slash.txt", "sub/dir/deep.txt", "%s%n.txt", ".hidden")
SHOW = "import os, sys\nfor n in sys.argv[1:]: print(open(n).read(), end='')"


class Files(cli.Case):
    def test_by_its_own_name_or_another(self):
        self.put("d/in.txt", "content")
        self.assert_ok(self.code("python", SHOW, "--file", "d/in.txt", args=["in.txt"]), "content")
        self.assert_ok(self.code("python", SHOW, "--file", "x/y.txt=d/in.txt", args=["x/y.txt"]),
                       "content")

    def test_not_in_the_place_of_the_program(self):
        self.put("in", "print('another')")
        done = self.code("python", "print('this')", "--file", "main.py=in")
        self.assert_usage(done, "main.py is the program: a file needs another name")

    def test_names_of_all_kinds(self):
        for name in NAMES:
            with self.subTest(name):
                self.put("in", "content of " + name)
                done = self.code("python", SHOW, "--file=%s=in" % name, args=[name])
                self.assert_ok(done, "content of " + name)

    def test_large_and_binary(self):
        self.put("big", bytes(range(256)) * 20000)
        program = "d = open('big', 'rb').read(); print(len(d), d[:256] == bytes(range(256)))"
        done = self.code("python", program, "--file", "big")
        self.assert_ok(done, "5120000 True\n")

    def test_the_original_is_not_touched(self):
        self.put("in", "before")
        self.assert_ok(self.code("python", "open('in', 'w').write('after')", "--file", "in"))
        self.assertEqual(self.get("in"), "before")

    def test_a_read_only_workspace(self):
        self.put("in", "content")
        done = self.code("python", "print(open('in').read())\ntry: open('out', 'w')\n"
                         "except OSError as e: print('refused')", "--file", "in", "--read-only")
        self.assert_ok(done, "content\nrefused\n")


class Directories(cli.Case):
    TRY = "import sys\ntry:\n open(sys.argv[1], 'w').write('new')\n print('written')\n" \
          "except OSError: print('refused')"

    def setUp(self):
        super().setUp()
        self.put("data/file", "content")

    def test_as_the_workspace(self):
        self.assert_ok(self.code("python", SHOW, "--dir", "data", args=["file"]), "content")
        self.assert_ok(self.code("sh", "pwd; ls", "--dir", "data"), "/sandbox\nfile\n")

    def test_as_the_workspace_by_its_name(self):
        """The program is not put among its files, nor in the place of one."""
        self.put("data/main.sh", "precious")
        self.assert_ok(self.code("sh", "ls", "--dir", "data:/sandbox:rw"), "file\nmain.sh\n")
        self.assert_ok(self.code("sh", "ls", "--dir", "data:/sandbox"), "file\nmain.sh\n")
        self.assert_ok(self.code("sh", "ls", "--dir", "data:/w:rw", "--workdir", "/w"), "file\nmain.sh\n")
        with open(self.path("data/main.sh"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")
        self.assertEqual(self.code("sh", "ls", "--dir", "data", "--dir", "data:/sandbox").returncode, 2)

    def test_what_is_too_much_is_seen_at_the_end_at_the_latest(self):
        """However fast it was, or out of sight while we looked."""
        done = self.code("sh", "for f in a b c; do head -c 900000 /dev/zero >$f; done; echo done", "--dir", "data:rw",
                         "--workspace", "1m")
        self.assertEqual((done.returncode, "workspace" in done.stderr), (137, True), done)

    def test_at_a_path(self):
        self.assert_ok(self.code("python", SHOW, "--dir", "data:/data", args=["/data/file"]),
                       "content")
        self.assert_ok(self.code("python", SHOW, "--dir", "data:/opt/x/y:ro",
                                 args=["/opt/x/y/file"]), "content")

    def test_are_read_only_unless_said(self):
        for option in ("data", "data:ro"):
            self.assert_ok(self.code("python", self.TRY, "--dir", option, args=["made"]),
                           "refused\n")
        for option in ("data:/d", "data:/d:ro"):
            self.assert_ok(self.code("python", self.TRY, "--dir", option, args=["/d/made"]),
                           "refused\n")
        self.assertEqual(os.listdir(self.path("data")), ["file"])

    def test_writable_ones_keep_what_was_written_and_their_owner(self):
        self.assert_ok(self.code("python", self.TRY, "--dir", "data:rw", args=["made"]),
                       "written\n")
        self.assert_ok(self.code("python", self.TRY, "--dir", "data:/d:rw", args=["/d/other"]),
                       "written\n")
        owner = os.stat(self.path("data"))
        for name in ("made", "other"):
            self.assertEqual(self.get("data", name), "new")
            made = os.stat(self.path("data", name))
            self.assertEqual((made.st_uid, made.st_gid), (owner.st_uid, owner.st_gid))

    def test_the_program_itself_is_not_left_there(self):
        self.put("prog.py", "import os; print(sorted(os.listdir('.')))")
        self.assert_ok(self.vial("run", "--dir", "data:rw", "prog.py"), "['file']\n")
        self.assertEqual(os.listdir(self.path("data")), ["file"])

    def test_names_with_blanks(self):
        self.put("my data/file", "content")
        self.assert_ok(self.code("python", SHOW, "--dir", "my data:/in side",
                                 args=["/in side/file"]), "content")


class Exports(cli.Case):
    def saves(self, program, *options, code=0):
        done = self.code("python", program, *options, "--export-to", "out")
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def found(self):
        base = self.path("out")
        return sorted(os.path.relpath(os.path.join(at, name), base)
                      for at, _, names in os.walk(base) for name in names)

    def test_names_of_all_kinds(self):
        program = "import os\nfor n in %r:\n" \
                  " os.makedirs(os.path.dirname(n) or '.', exist_ok=True)\n" \
                  " open(n, 'w').write('content of ' + n)" % (NAMES,)
        self.assertEqual(self.saves(program, *("--export=" + name for name in NAMES)), "")
        self.assertEqual(self.found(), sorted(NAMES))
        for name in NAMES:
            self.assertEqual(self.get("out", name), "content of " + name)

    def test_a_pattern_leaves_out_what_was_given_and_not_changed(self):
        self.put("prog.py", "open('made', 'w'); open('changed', 'a').write('x')")
        self.put("given")
        self.put("changed")
        done = self.vial("run", "--file", "given", "--file", "changed", "--export", "*",
                         "--export-to", "out", "prog.py")
        self.assert_ok(done)
        self.assertEqual(self.found(), ["changed", "made"])

    def test_patterns(self):
        program = "import os\nos.mkdir('d')\n" \
                  "for n in ('a.txt', 'b.txt', 'c.csv', 'd/e.txt'): open(n, 'w')"
        self.saves(program, "--export", "*.txt", "--export", "d/?.txt", "--export", "*.nothing")
        self.assertEqual(self.found(), ["a.txt", "b.txt", "d/e.txt"])

    def test_into_the_current_directory_by_default(self):
        self.assert_ok(self.code("sh", "echo hi > a", "--export", "./a"))
        self.assertEqual(self.get("a"), "hi\n")

    def test_a_name_replaces_a_pattern_does_not(self):
        self.put("out/a.txt", "old")
        error = self.saves("open('a.txt', 'w').write('new')", "--export", "*.txt", code=cli.OURS)
        self.assertEqual(error, "vial: a.txt: not saved: exists; a pattern never replaces a file\n")
        self.assertEqual(self.get("out/a.txt"), "old")
        self.assertEqual(self.saves("open('a.txt', 'w').write('new')", "--export", "a.txt"), "")
        self.assertEqual(self.get("out/a.txt"), "new")

    def test_a_name_with_brackets_is_a_name(self):
        self.put("out/x[1].txt", "old")
        self.assertEqual(self.saves("open('x[1].txt', 'w').write('new')", "--export", "x[1].txt"),
                         "")
        self.assertEqual(self.get("out/x[1].txt"), "new")

    def test_links_in_our_directory_are_not_followed(self):
        self.put("secret/file", "ours")
        os.mkdir(self.path("out"))
        os.symlink("../secret", self.path("out/sub"))
        os.symlink("../secret/file", self.path("out/link"))
        program = "import os; os.mkdir('sub'); open('sub/file', 'w').write('evil')\n" \
                  "open('sub/x', 'w'); open('link', 'w').write('evil')"
        error = self.saves(program, "--export", "sub/file", "--export", "sub/*", "--export", "link",
                           code=cli.OURS)
        self.assertEqual(error.count("not saved"), 3, error)
        self.assertEqual(self.get("secret/file"), "ours")
        self.assertEqual(os.listdir(self.path("secret")), ["file"])
        self.assertTrue(os.path.islink(self.path("out/link")))

    def test_only_regular_files_leave(self):
        self.put("host", "ours")
        os.chmod(self.path("host"), 0o644)
        program = "import os; os.symlink('/etc/passwd', 'link'); os.mkfifo('fifo')\n" \
                  "os.mkdir('dir'); os.symlink('/etc', 'linkdir'); open('good', 'w')"
        self.saves(program, "--export", "*", "--export", "linkdir/*")
        self.assertEqual(self.found(), ["good"])
        for name in ("link", "fifo", "dir", "linkdir/passwd"):
            with self.subTest(name):
                error = self.saves(program, "--export", name, code=cli.OURS)
                self.assertIn("vial: %s: not saved: " % name, error)
        self.assertEqual(self.found(), ["good"])

    def test_a_name_that_is_not_there_fails_a_run_that_did_not(self):
        self.assertIn("vial: nope: not saved: ", self.saves("pass", "--export", "nope",
                                                            code=cli.OURS))
        self.assertIn("vial: nope: not saved: ", self.saves("exit(3)", "--export", "nope", code=3))

    def test_modes_and_leftovers(self):
        self.saves("import os; open('a', 'w'); os.chmod('a', 0o1777)", "--export", "a")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("out/a")).st_mode) & 0o7111, 0)
        self.assertEqual(self.found(), ["a"])

    def test_what_a_failed_run_left_is_saved_too(self):
        self.saves("open('a', 'w').write('kept'); exit(3)", "--export", "a", code=3)
        self.assertEqual(self.get("out/a"), "kept")
        done = self.code("sh", "echo kept > b; sleep 60", "-t", "3", "--export", "b")
        self.assertEqual((done.returncode, self.get("b")), (cli.TIMEOUT, "kept\n"))

    def test_a_terminal_sees_no_control_characters(self):
        program = r"open('a\n\x1b[2Jb\u202ec', 'w')"
        code, seen = self.terminal("run", "-l", "python", "--export", "*", "--export-to", "out",
                                   "-c", program, only_stderr=True)
        self.assertEqual(code, 0)
        self.assertIn(r"vial: saved out/a\n\x1b[2Jb\u202ec", seen)
        self.assertNotIn("\x1b", seen)
