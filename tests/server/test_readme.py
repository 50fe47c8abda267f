"""The README's blocks, pasted: each line as it stands there, beside a daemon."""
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

import daemon

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ELSEWHERE = r"make |vial serve|vial env build|vial repl|vial session attach"  # starts, builds, talks to people
ENDS = {"raise \"no\"": 1, "os._exit(1)": 0}  # by what is in them; others end well
FILES = {"hello.py": "print('hello')\n", "data.csv": "a,b\n1,2\n", "solution.py": "print(int(input()) * 2)\n",
         "plot.py": "import os\nos.mkdir('out')\nopen('out/a.png', 'w').write(open('data.csv').read())\n",
         "project/Makefile": "all:\n\techo made > made\n", "tests/1.in": "4\n", "tests/1.out": "8\n"}


def blocks(language):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return re.findall(r"```%s\n(.*?)```" % language, file.read(), re.S)


def commands(block):
    """Its lines; one whose quotes are open goes on in the next."""
    whole = ""
    for line in block.splitlines():
        whole += line + "\n"
        if whole.count("'") % 2 == 0:
            yield whole.strip()
            whole = ""


class Readme(daemon.Case):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="vial-readme-")
        self.addCleanup(shutil.rmtree, self.place)
        for name, content in FILES.items():
            path = os.path.join(self.place, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        self.env = {**os.environ, "PATH": os.path.dirname(daemon.VIAL) + ":" + os.environ["PATH"],
                    "VIAL_SOCKET": self.daemon.path, "VIAL_URL": self.daemon.path, "VIAL_BINARY": daemon.VIAL,
                    "PYTHONPATH": os.path.join(ROOT, "sdk/python/src"), "PYTHONDONTWRITEBYTECODE": "1"}

    def paste(self, words):
        return subprocess.run(words, cwd=self.place, env=self.env, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=120)

    def test_what_is_typed(self):
        languages = self.daemon.ask("GET", "/v1/languages")[1]["languages"]
        missing = "|".join("-l %s " % item["name"] for item in languages if not item["installed"]) or "^$"
        environments = [item["name"] for item in self.daemon.ask("GET", "/v1/environments")[1]["environments"]]
        if "python-data" not in environments:
            missing += "|python-data"
        for block in blocks("sh"):
            lines = [line for line in commands(block)
                     if not re.match(ELSEWHERE, line) and not re.search(missing, line)]
            script = "".join("%s\necho $? >>ends\n" % line for line in lines)
            script = script.replace("127.0.0.1:6000", "127.0.0.1:%d" % self.daemon.port)
            done = self.paste(["bash", "-c", "touch ends\n" + script.replace("vial top;", "vial top --once;")])
            with open(os.path.join(self.place, "ends"), encoding="utf-8") as file:
                ends = [int(line) for line in file]
            os.remove(file.name)
            want = [next((ends for part, ends in ENDS.items() if part in line), 0) for line in lines]
            self.assertEqual(dict(zip(lines, ends)), dict(zip(lines, want)), done.stdout + done.stderr)
            if "--rewind" in block:
                self.assertEqual(done.stdout.split(), ["42", "6"])

    def test_what_is_programmed(self):
        for block in blocks("python"):
            done = self.paste([sys.executable, "-c", block])
            self.assertEqual((done.stdout, done.stderr),
                             ("42\n\n42.0\n%s\n" % ([math.pi] * 3), ""))

