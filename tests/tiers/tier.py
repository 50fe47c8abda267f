"""tier - vial as these tests start it."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
from patience import PATIENCE_S, wait_until

VIAL = BUILT = None  # set by `run`: where every user can run it, and where a container has it
OURS = 125
USER = 65533     # belongs to nobody here


class Case(unittest.TestCase):
    """A directory of its own, and vial in it; `weak` names what is missing here."""
    weak = ""
    prepare = None  # becomes somebody else

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vial-tier-")
        os.chmod(self.dir, 0o777)
        self.addCleanup(shutil.rmtree, self.dir, True)

    def environment(self):
        return {"PATH": os.environ["PATH"], "HOME": self.dir, "XDG_RUNTIME_DIR": self.dir,
                "LC_ALL": "C.UTF-8", "VIAL_SOCKET": os.path.join(self.dir, "s")}

    def vial(self, *args):
        return subprocess.run([VIAL, *args], env=self.environment(), cwd=self.dir, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
                              preexec_fn=self.prepare, check=False)

    def run_code(self, language, code, *args):
        """The result of a run without a daemon."""
        done = self.vial("run", "--no-daemon", "--allow-weak", self.weak, "--json", *args,
                         "-l", language, "-c", code)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def serve(self, *args):
        """A daemon, which ends with the test."""
        with open(os.path.join(self.dir, "log"), "w", encoding="utf-8") as log:
            daemon = subprocess.Popen([VIAL, "serve", "--listen", "none", "--allow-weak", self.weak,
                                       *args], env=self.environment(), cwd=self.dir, stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log, preexec_fn=self.prepare)
        self.addCleanup(self.end, daemon)
        ready = wait_until(lambda: daemon.poll() is not None or "is ready" in self.log())
        self.assertTrue(ready and daemon.poll() is None, self.log())
        return daemon

    def log(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8") as log:
            return log.read()

    @staticmethod
    def end(daemon):
        daemon.terminate()
        daemon.wait(PATIENCE_S)
