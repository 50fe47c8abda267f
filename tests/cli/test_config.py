"""vial config: what the operator wrote, and what of it is in effect."""
import json
import os

import cli


class Config(cli.Case):
    def setUp(self):
        super().setUp()
        self.env = {"VIAL_CONFIG": os.devnull}

    def show(self, text=None, **env):
        options = ["--config", self.file(text)] if text is not None else []
        done = self.vial("config", "show", "--json", *options, env={**self.env, **env})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return {row["key"]: row for row in json.loads(done.stdout)}

    def file(self, text):
        self.put("vial.yaml", text)
        return self.path("vial.yaml")

    def check(self, text):
        return self.vial("config", "check", self.file(text), env=self.env)

    def test_a_file_without_a_mistake(self):
        self.assert_ok(self.check("server:\n  max: 8\n"), "ok\n")
        self.assert_ok(self.check("# nothing\n"), "ok\n")
        self.assert_ok(self.vial("config", "check", env=self.env), "ok\n")
        self.assert_ok(self.vial("config", "check", "--config", self.file("server: {}\n"), env=self.env), "ok\n")

    def test_mistakes_have_their_line(self):
        for text, says in (
                ("server:\n  max: 8\n  armd: 2\n",
                 "line 3: server has no key 'armd'; did you mean 'armed'?"),
                ("server:\n  max: 8\n\n  max: 9\n", "line 4: 'max' is given twice"),
                ("server:\n  max: lots\n", "line 2: max: 'lots' is not a whole number"),
                ("limits:\n  memory: 1g\n  timeout: soon\n", "line 3: limits: timeout: 'soon'"),
                ("server: 5\n", "line"),
                ("server:\n  listen: ['::1']\n", "line 2: listen: "),
                ("server:\n\tmax: 5\n", "line 2: "),
                ("languages:\n  - name: pyton\n", "line 2: languages: unknown language 'pyton'; did you mean 'python'?"),
                ("languages:\n  - name: js\n", "line 2: languages: 'js' is called 'javascript' here"),
                ("languages:\n  - name: ruby\n    command: /none/ruby\n",
                 "line 3: languages: ruby: /none/ruby: No such file"),
                ("server:\n  tls_certificate: /none\n  tls_key: /none\n",
                 ":2: tls_certificate: /none: No such file")):
            with self.subTest(text):
                done = self.check(text)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, r"^vial: .*vial\.yaml.*\n$")
                self.assertIn(says, done.stderr)

    def test_where_values_come_from(self):
        text = "server:\n  max: 8\n  queue: 9\nlimits:\n  memory: 1g\ncache: /var/tmp/c\n"
        rows = self.show(text, VIAL_QUEUE="10", VIAL_LISTEN="127.0.0.1:1, [::1]:2",
                         CODE_EXECUTOR_CPU_LIMIT="500m", OUTPUT_DATA_PATH="/srv/out")
        path = self.path("vial.yaml")
        for key, value, origin in (("server.max", "8", path + ":2"),
                                   ("server.queue", "10", "VIAL_QUEUE"),
                                   ("server.armed", "4", None),
                                   ("server.listen", "127.0.0.1:1, [::1]:2", "VIAL_LISTEN"),
                                   ("server.output_data_path", "/srv/out", "OUTPUT_DATA_PATH"),
                                   ("limits.memory", "1g", path + ":5"),
                                   ("limits.cpus", "500m", "CODE_EXECUTOR_CPU_LIMIT"),
                                   ("cache", "/var/tmp/c", path + ":6")):
            self.assertEqual((rows[key]["value"], rows[key]["origin"]), (value, origin), key)

    def test_quotas(self):
        rows = self.show("server:\n  quotas:\n    runs: 2\n    storage: 1g\n  tenants:\n    - name: them\n")
        path = self.path("vial.yaml")
        for key, value, origin in (("server.quotas.runs", "2", path + ":3"),
                                   ("server.quotas.storage", "1 GiB", path + ":4"),
                                   ("server.quotas.sessions", "none", None),
                                   ("server.quotas.window", "3600 s", None),
                                   ("server.tenants", "them", path + ":5")):
            self.assertEqual((rows[key]["value"], rows[key]["origin"]), (value, origin), key)

    def test_every_setting_has_a_variable(self):
        settings = {row["key"][7:]: row["value"] for row in self.show().values()
                    if row["key"].startswith("server.") and "." not in row["key"][7:] and row["value"]}
        self.assertLess(15, len(settings))
        names = {key: "VIAL_" + key.upper() for key in settings}
        rows = self.show(**{names[key]: value for key, value in settings.items()})
        for key, value in settings.items():
            row = rows["server." + key]
            self.assertEqual((row["value"], row["origin"]), (value, names[key]))

    def test_an_address_of_two_variables(self):
        self.assertEqual(self.show(SANDBOX_HOST="localhost")["server.listen"]["value"], "localhost:6000")
        self.assertEqual(self.show(SANDBOX_PORT="7000")["server.listen"]["value"], "127.0.0.1:7000")
        self.assertEqual(self.show(SANDBOX_PORT="7000", VIAL_LISTEN="127.0.0.1:1")
                         ["server.listen"]["value"], "127.0.0.1:1")

    def test_what_has_no_effect_is_named(self):
        rows = self.show(CODE_EXECUTOR_KEEP_TEMPLATE="true", CODE_EXECUTOR_MAX_POD_POOL_SIZE="5")
        self.assertEqual((rows["CODE_EXECUTOR_KEEP_TEMPLATE"]["value"],
                          rows["CODE_EXECUTOR_KEEP_TEMPLATE"]["ignored"]), ("true", True))
        self.assertEqual(rows["server.max"]["value"], "5")
        text = self.vial("config", "show", env={**self.env, "CODE_EXECUTOR_SANDBOX_MODE": "sandbox-jobs"}).stdout
        self.assertIn("CODE_EXECUTOR_SANDBOX_MODE\tsandbox-jobs\twithout effect here\n", text)

    def test_a_check_looks_at_variables_too(self):
        done = self.vial("config", "check", self.file("server: {}\n"), env={**self.env, "VIAL_MAX": "many"})
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("VIAL_MAX", done.stderr)

    def test_a_variable_that_is_wrong(self):
        done = self.vial("config", "show", env={**self.env, "VIAL_MAX": "many"})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "vial: VIAL_MAX: 'many' is not a whole number\n")

    def test_usage(self):
        self.assertEqual(self.vial("config", "check", "a", "b").returncode, 2)
        self.assertEqual(self.vial("config", "check", "--config", "a", "b").returncode, 2)
        self.assertEqual(self.vial("config", "show", "a").returncode, 2)
        self.assertEqual(self.vial("config", "shwo").returncode, 2)
