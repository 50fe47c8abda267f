"""vial languages, vial doctor, vial prepare: what people and machines read."""
import json
import os

import cli

STATES = {"active": "✓", "degraded": "~", "missing": "✗"}


class Languages(cli.Case):
    def test_a_pipe_gets_lines_with_tabs(self):
        done = self.vial("languages")
        self.assert_ok(done)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        listed = json.loads(self.vial("languages", "--json").stdout)
        self.assertEqual([row[0] for row in rows], [language["name"] for language in listed])
        for row, language in zip(rows, listed):
            self.assertEqual(row, [language["name"], ", ".join(language["aliases"]) or "-",
                                   language["version"] or "not installed", language["tool"] or "-",
                                   language["note"]])
        self.assertNotIn("\x1b", done.stdout)

    def test_json(self):
        listed = {row["name"]: row for row in json.loads(self.vial("languages", "--json").stdout)}
        self.assertLessEqual({"bash", "c", "cpp", "go", "javascript", "python", "ruby", "sh"},
                             set(listed))
        for row in listed.values():
            self.assertEqual(set(row), {"name", "title", "aliases", "extension", "compiled", "tool",
                                        "version", "note"})
            self.assertEqual(row["tool"] is None, row["version"] is None)
        self.assertIn("python3", listed["python"]["aliases"])
        self.assertTrue(listed["go"]["compiled"])

    def test_each_name_and_alias_is_accepted(self):
        for row in cli.languages().values():
            for name in [row["name"], *row["aliases"]]:
                with self.subTest(name):
                    self.assertEqual(self.code(name, "", "--explain").returncode, 0)

    def test_a_terminal_gets_a_table(self):
        code, seen = self.terminal("languages")
        self.assertEqual(code, 0)
        self.assertIn("LANGUAGE", seen)
        self.assertIn("\x1b[", seen)
        code, seen = self.terminal("languages", env={"NO_COLOR": "1"})
        self.assertNotIn("\x1b", seen)
        self.assertNotIn("\t", seen)
        lines = seen.splitlines()
        column = lines[0].index("ALIASES")
        self.assertTrue(all(line[column - 1] == " " and line[column] != " " for line in lines),
                        seen)
        self.assertNotIn("\x1b", self.terminal("languages", env={"TERM": "dumb"})[1])


class Doctor(cli.Case):
    def report(self):
        done = self.vial("doctor", "--json")
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout), done.returncode

    def test_json(self):
        report, code = self.report()
        self.assertEqual(set(report), {"version", "ok", "tier", "layers", "live_forks"})
        self.assertEqual(code, 0 if report["ok"] else 1)
        self.assertEqual(report["ok"], not any(layer["required"] and layer["state"] == "missing"
                                               for layer in report["layers"]))
        self.assertLessEqual({"namespaces", "root", "uid", "cgroup", "creds", "seccomp",
                              "landlock"},
                             {layer["name"] for layer in report["layers"]})
        for layer in report["layers"]:
            self.assertEqual(set(layer), {"name", "title", "state", "required", "detail", "fix"})
            self.assertIn(layer["state"], STATES)
            self.assertTrue(layer["detail"], layer)
            self.assertEqual(layer["state"] == "active", layer["fix"] == "", layer)

    def test_people_get_a_line_per_layer_and_a_verdict(self):
        report, code = self.report()
        done = self.vial("doctor", env={"LC_ALL": "C.UTF-8"})
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        lines = done.stdout.splitlines()
        for layer in report["layers"]:
            at = next(i for i, line in enumerate(lines) if line.split("\t")[1:2] == [layer["name"]])
            self.assertEqual(lines[at].split("\t")[:3],
                             [STATES[layer["state"]], layer["name"], layer["state"]])
            if layer["fix"]:
                self.assertEqual(lines[at + 1], "\t\t\tfix: " + layer["fix"])
        self.assertTrue(lines[-1].startswith("Ready." if report["ok"] else "Runs are refused here"),
                        lines[-1])

    def test_live_forks_are_possible_or_it_says_why_not(self):
        forks = self.report()[0]["live_forks"]
        self.assertEqual(set(forks), {"possible", "why_not"})
        self.assertEqual(forks["possible"], forks["why_not"] == "")
        said = next(line for line in self.vial("doctor").stdout.splitlines() if line.startswith("Live forks: "))
        self.assertIn("yes" if forks["possible"] else forks["why_not"], said)

    def test_ascii_where_the_locale_has_nothing_else(self):
        done = self.vial("doctor", env={"LC_ALL": "C"})
        marks = {line[0] for line in done.stdout.splitlines() if "\t" in line}
        self.assertLessEqual(marks, set("+~x\t"))

    def test_colours_on_a_terminal_only(self):
        self.assertIn("\x1b[", self.terminal("doctor")[1])
        self.assertNotIn("\x1b", self.vial("doctor", env={"TERM": "xterm"}).stdout)
        self.assertNotIn("\x1b", self.terminal("doctor", env={"NO_COLOR": "1"})[1])

    def test_a_run_is_accepted_where_the_doctor_says_so(self):
        report, _ = self.report()
        done = self.code("sh", "echo hi")
        if report["ok"]:
            self.assert_ok(done, "hi\n")
        else:
            self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
            self.assertIn("vial doctor", done.stderr)


class Prepare(cli.Case):
    def test_a_language_without_a_cache(self):
        self.assert_ok(self.vial("prepare", "python", "sh"),
                       "python: nothing to prepare\nsh: nothing to prepare\n")

    def test_a_compiler_that_fails(self):
        self.put("conf.yaml", "cache: %s\nlanguages:\n  - name: go\n    command: /bin/false\n" %
                 self.path("cache"))
        done = self.vial("prepare", "--config", self.path("conf.yaml"), "go")
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertRegex(done.stderr, r"^vial: .*\n$")
        self.assertEqual(sorted(os.listdir(self.dir)), ["cache", "conf.yaml"])
        self.assertEqual(os.listdir(self.path("cache")), [])
