"""In a container whose profile lets vial have user namespaces, with a masked /proc: a warm daemon."""
import json
import os
import shutil
import sys
import tempfile

import container
import tier


class Daemon(tier.Case):
    weak = "uid,cgroup,proc"
    data = ""  # where environments can lie, if any are built

    def environment(self):
        return {**super().environment(), "XDG_DATA_HOME": self.data or self.dir}

    def test_a_proc_that_cannot_be_mounted_must_be_named(self):
        done = self.vial("run", "--no-daemon", "--allow-weak", "uid,cgroup", "-l", "sh", "-c", "echo ran")
        self.assertEqual((done.returncode, done.stdout), (tier.OURS, ""))
        self.assertIn("proc", done.stderr)

    def test_warm_runs_and_sessions(self):
        self.serve("--armed", "1", "--max", "6")
        for _ in range(3):
            done = self.vial("run", "--json", "-l", "python", "-c", "import os; print(os.getpid(), os.listdir('/proc'))")
            result = json.loads(done.stdout)
            self.assertEqual((result["stdout"], result["stderr"]), ("2 []\n", ""), result)  # nobody of the container's
        session = self.vial("session", "open").stdout.strip()
        self.assertEqual(self.vial("session", "run", "-c", "x = 6", session).returncode, 0)
        self.assertEqual(self.vial("session", "run", "-c", "x * 7", session).stdout, "42\n")
        self.assertNotIn("warm interpreter", self.log())  # that it died

    def test_languages(self):
        self.serve("--armed", "1", "--max", "6")
        for language, code in (("javascript", "console.log(6 * 7)"), ("bash", "echo $((6 * 7))"), ("ruby", "puts 6 * 7"),
                               ("c", '#include <stdio.h>\nint main(void) { puts("42"); }')):
            done = self.vial("run", "-l", language, "-c", code)
            self.assertEqual((done.returncode, done.stdout), (0, "42\n"), done.stderr)

    def test_an_image_is_unpacked_without_proc(self):
        sys.path.append(os.path.join(container.ROOT, "tests/cli"))
        import images
        layer = images.busybox().dir("a/b/c").add("a/b/c/d", b"x").bytes()
        self.data = tempfile.mkdtemp(dir="/data")
        self.addCleanup(shutil.rmtree, self.data)
        done = self.vial("env", "build", "box", "--image", images.saved(os.path.join(self.dir, "box.tar"), [layer]))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.vial("run", "--no-daemon", "--allow-weak", self.weak, "-E", "box", "-c", "cat /a/b/c/d")
        self.assertEqual((done.returncode, done.stdout), (0, "x"), done.stderr)


if __name__ == "__main__":
    sys.exit("run by tests/tiers/run")
