# The environment as a program sees it, changes it, and hands it on.
import os
import subprocess

for name in ("PATH", "HOME", "LANG"):
    print(name, os.environ.get(name))
print(os.environ.get("NO_SUCH_NAME", "default"))
os.environ["BENIGN_COLOUR"] = "grün"
print(subprocess.run(["sh", "-c", "echo $BENIGN_COLOUR"], capture_output=True).stdout)
del os.environ["BENIGN_COLOUR"]
print(subprocess.run(["sh", "-c", "echo ${BENIGN_COLOUR-unset}"], capture_output=True).stdout)
print(os.path.expanduser("~/notes"), os.path.expandvars("$HOME/x"))
secrets = [n for n in os.environ if n.startswith(("AWS_", "GITHUB_", "SSH_", "SUDO_"))]
print(secrets)
