"""vial token: made, listed, revoked; what is in the file, and what is not."""
import json
import os
import re

import cli

TOKEN = r"^vial_[0-9a-f]{12}_[0-9a-f]{64}\n$"


class Token(cli.Case):
    def setUp(self):
        super().setUp()
        self.config = self.put("vial.yaml", "server:\n  tokens: %s\n" % self.path("kept/tokens"))

    def token(self, *words):
        return self.vial("token", *words, env={"VIAL_CONFIG": self.config,
                                               "VIAL_SOCKET": self.path("nobody")})

    def test_made_listed_revoked(self):
        made = self.token("create", "--tenant", "acme", "--note", "for \x1b[31m the build")
        self.assert_ok(made)
        self.assertRegex(made.stdout, TOKEN)
        name = made.stdout.split("_")[1]
        text = self.get("kept/tokens")
        self.assertNotIn(made.stdout.strip().rsplit("_", 1)[1], text)
        self.assertEqual(os.stat(self.path("kept/tokens")).st_mode & 0o777, 0o600)
        row = self.token("list").stdout.rstrip("\n").split("\t")
        self.assertEqual(row[:3], [name, "acme", "run,sessions,files,history"])
        self.assertEqual(row[4], "never")
        self.assertNotIn("\x1b", row[5])
        listed, = json.loads(self.token("list", "--json").stdout)
        self.assertEqual((listed["id"], listed["expires"], listed["expired"]), (name, None, False))
        self.assert_ok(self.token("revoke", name), "")
        self.assert_ok(self.token("list"), "")

    def test_as_json(self):
        made = json.loads(self.token("create", "--tenant", "a", "--json", "--scopes", "admin",
                                     "--expires", "12h", "--quota", "runs=4,cpu=30m",
                                     "--quota", "weight=2").stdout)
        self.assertEqual(made["id"], made["token"].split("_")[1])
        text = self.get("kept/tokens")
        for words in ("runs: 4", "cpu: 30m", "weight: 2", "scopes: admin", "expires: 2"):
            self.assertIn(words, text)

    def test_what_makes_no_sense(self):
        hint = "Try 'vial token create --help'."
        for words, fragment in (((), "--tenant"), (("--tenant", "../x"), "letters"),
                                (("--tenant", "a", "--scopes", "fly"), "fly"),
                                (("--tenant", "a", "--expires", "soon"), "soon"),
                                (("--tenant", "a", "--quota", "runs"), "KEY=VALUE"),
                                (("--tenant", "a", "--quota", "speed=1"), "speed"),
                                (("--tenant", "a", "--quota", "runs=many"), "many")):
            with self.subTest(words):
                self.assert_usage(self.token("create", *words), fragment, hint=hint)
        self.assertFalse(os.path.exists(self.path("kept/tokens")))
        self.assert_usage(self.token("revoke", "0" * 12), "no token",
                          hint="Try 'vial token revoke --help'.")
        self.assert_usage(self.token("revoke"), "--tenant", hint="Try 'vial token revoke --help'.")

    def test_a_file_that_is_broken_is_not_written_over(self):
        self.put("kept/tokens", "tokens: 7\n")
        self.assertNotEqual(self.token("create", "--tenant", "a").returncode, 0)
        self.assertEqual(self.get("kept/tokens"), "tokens: 7\n")

    def test_many_at_once_are_all_there(self):
        import threading
        threads = [threading.Thread(target=self.token, args=("create", "--tenant", "t%d" % i))
                   for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = re.findall(r"tenant: (t\d)", self.get("kept/tokens"))
        self.assertEqual(sorted(found), ["t%d" % i for i in range(8)])
