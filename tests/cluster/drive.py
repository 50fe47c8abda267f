"""drive - build/cluster-drive, which is a backend by hand."""
import os
import re
import subprocess
import threading

import plane as planes

PROGRAM = None  # set by `run`


class Drive:
    def __init__(self, env):
        self.lines, self.heard = [], threading.Condition()
        self.process = subprocess.Popen([PROGRAM, "kubernetes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env={**os.environ, **env})
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.heard:
                self.lines.append(line.rstrip("\n"))
                self.heard.notify_all()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def mark(self):
        with self.heard:
            return len(self.lines)

    def wait(self, pattern, since=0, seconds=planes.PATIENCE_S):
        """The first line since then that matches all of it; an error shows what came instead."""
        def find():
            return next((line for line in self.lines[since:] if re.fullmatch(pattern, line)), None)
        with self.heard:
            if not self.heard.wait_for(find, seconds):
                raise AssertionError("no %r in:\n%s" % (pattern, "\n".join(self.lines[since:])))
            return find()

    def do(self, line, answer, seconds=planes.PATIENCE_S):
        since = self.mark()
        self.say(line)
        return self.wait(answer, since, seconds)

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(20)
        self.reader.join()
        self.process.stdout.close()
        return code
