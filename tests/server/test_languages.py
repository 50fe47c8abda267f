"""GET /v1/languages."""
import daemon
from daemon import wait_until


class Languages(daemon.Case):
    def languages(self):
        status, answer, _ = self.daemon.ask("GET", "/v1/languages")
        self.assertEqual(status, 200)
        return {item["name"]: item for item in answer["languages"]}

    def test_what_there_is(self):
        found = self.languages()
        python = found["python"]
        self.assertEqual((python["title"], python["warmth"], python["compiled"],
                          python["sessions"], python["installed"]),
                         ("Python", "fork", False, True, True))
        self.assertIn("py", python["aliases"])
        self.assertIn(".py", python["extensions"])
        self.assertIn("python", python["environments"])
        self.assertEqual((found["c"]["compiled"], found["c"]["sessions"], found["c"]["warmth"]),
                         (True, False, "cold"))

    def test_versions_come_by_themselves(self):
        self.assertTrue(wait_until(lambda: all(item["version"] for item in
                                               self.languages().values() if item["installed"])))
        told = self.run_ok("import platform; print(platform.python_version())")["stdout"].strip()
        self.assertEqual(self.languages()["python"]["version"], "Python " + told)

    def test_a_language_without_sessions_says_which_have(self):
        self.assert_refused(self.daemon.ask("POST", "/v1/sessions", {"language": "c"}), 400,
                            "invalid", "language", "C has no sessions (bash, javascript, python, ruby have)")
