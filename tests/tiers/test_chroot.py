"""A chroot, in which the kernel gives nobody a user namespace."""
import json
import os
import subprocess
import unittest

import tier

# The host's directories below one that is no mount point.  Mounts are shared, as systemd has them, but with nobody.
ENTER = """
set -e
mount --make-rshared /
mkdir "$1"
for place in usr etc dev proc sys run tmp var; do
    mkdir "$1/$place"
    mount --rbind "/$place" "$1/$place"
done
for link in bin sbin lib lib32 lib64; do
    [ ! -L "/$link" ] || cp -P "/$link" "$1/$link"
done
shift
exec chroot "$@"
"""


@unittest.skipIf(os.geteuid() != 0, "only root can change its root")
class Chroot(tier.Case):
    def enter(self, *command):
        root = os.path.join(self.dir, "root")
        return subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", ENTER, "sh", root, root,
                               *command], env=self.environment(), text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=tier.PATIENCE_S, check=False)

    def test_root_has_all_layers(self):
        done = self.enter(tier.VIAL, "doctor", "--json")
        report = json.loads(done.stdout)
        self.assertEqual(report["tier"], "full", done.stdout)

    def test_a_daemon(self):
        script = '''cd "$1"; "$2" serve --listen none >log 2>&1 & trap 'kill $!; wait' EXIT
            for _ in $(seq 300); do grep -q "is ready" log && break; sleep 0.1; done
            "$2" session open -l bash >id && "$2" session run "$(cat id)" -c 'echo hello' || cat log'''
        done = self.enter("/bin/sh", "-c", script, "sh", self.dir, tier.VIAL)
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"), done.stderr)

    def test_a_program_in_the_working_directory(self):
        with open(os.path.join(self.dir, "hello.sh"), "w", encoding="utf-8") as file:
            file.write("echo hello\n")
        done = self.enter("/bin/sh", "-c", 'cd "$1" && exec "$2" run hello.sh', "sh", self.dir, tier.VIAL)
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"), done.stderr)
