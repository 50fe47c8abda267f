"""A container whose profile lets vial have user namespaces."""
import json
import unittest

import container
import tier


@unittest.skipIf(container.available(), container.available())
class Profile(unittest.TestCase):
    def vial(self, *args):
        return container.run([tier.BUILT, *args], profile=container.own_profile())

    def test_it_has_namespaces_then(self):
        report = json.loads(self.vial("doctor", "--json").stdout)
        states = {layer["name"]: layer["state"] for layer in report["layers"]}
        self.assertEqual((report["tier"], states["namespaces"], states["root"]), ("user", "active", "active"))
        done = self.vial("run", "--allow-weak", "uid,cgroup,proc", "-l", "python", "-c", "import os; print(os.getpid())")
        self.assertEqual((done.returncode, done.stdout), (0, "2\n"), done.stderr)
