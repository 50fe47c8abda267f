"""cli - the command, and the scripts beside it."""
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

import daemon
from expect import check_seconds, fill, short

SCRIPTS = "tools/local-sandbox"
SERVER = "start_local_sandbox.sh" # does not end by itself
PATIENCE_S = 180
KNOWN = {"exit_code", "exit_code_not", "stdout", "stderr", "stdout_regex", "stderr_regex", "exists",
         "absent", "max_seconds", "min_seconds"}


class Adapter:
    def __init__(self, context):
        self.context = context

    def close(self):
        pass

    def command(self, given, tmp):
        """The words to run, and the environment."""
        env = {**os.environ, "VIAL": self.context.vial, **given.get("env", {})}
        if given["command"] != "run":
            return [os.path.join(self.context.root, SCRIPTS, given["command"]),
                    *given.get("argv", [])], env
        options = given.get("options", {})
        words = [self.context.vial, "run", "-l", given["language"]]
        if "timeout" in options:
            words += ["--timeout", str(options["timeout"])]
        for name, value in options.get("env", {}).items():
            words += ["-e", "%s=%s" % (name, value)]
        for number, (name, text) in enumerate(options.get("files", {}).items()):
            path = os.path.join(tmp, "file-%d" % number)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            words += ["--file", "%s=%s" % (name, path)]
        if "memory" in options:
            words += ["--memory", str(options["memory"])]
        if "stdin" in given or "stdin" in options:
            words += ["--stdin", "-"]
        return [*words, "-c", given["code"]], env

    def check(self, done, seconds, expect):
        wrong = ["the case expects %s, which is unknown here" % key for key in set(expect) - KNOWN]
        for path in expect.get("exists", []):
            if not os.path.exists(path):
                wrong.append("%s is not there" % path)
        for path in expect.get("absent", []):
            if os.path.exists(path):
                wrong.append("%s is there" % path)
        if done.returncode != expect.get("exit_code", done.returncode):
            wrong.append("exit code %d, expected %d" % (done.returncode, expect["exit_code"]))
        if done.returncode == expect.get("exit_code_not"):
            wrong.append("exit code %d" % done.returncode)
        for stream in ("stdout", "stderr"):
            text = getattr(done, stream)
            if text != expect.get(stream, text):
                wrong.append("%s is %s, expected %s" % (stream, short(text), short(expect[stream])))
            if not re.search(expect.get(stream + "_regex", ""), text):
                wrong.append("%s is %s, does not match /%s/" % (
                    stream, short(text), expect[stream + "_regex"]))
        return wrong + check_seconds(seconds, expect, self.context.slack)

    def serve(self, words, env, tmp):
        """A server: it ends well if it answers before it is told to end."""
        port = env.setdefault("SANDBOX_PORT", str(daemon.free_port()))

        def answers():
            try:
                with urllib.request.urlopen("http://127.0.0.1:%s/" % port, timeout=5) as answer:
                    return answer.status == 200
            except OSError:
                return False
        process = subprocess.Popen(words, env=env, cwd=tmp, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ready = daemon.wait_until(lambda: process.poll() is not None or answers())
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(words, process.returncode if ready else 1, out, err)

    def one(self, given, expect, tmp):
        words, env = self.command(given, tmp)
        text = given.get("stdin", given.get("options", {}).get("stdin", ""))
        start = time.monotonic()
        try:
            if given["command"] == SERVER:
                return self.check(self.serve(words, env, tmp), time.monotonic() - start, expect)
            done = subprocess.run(words, env=env, cwd=tmp, input=text, text=True, errors="replace",
                                  capture_output=True, timeout=PATIENCE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return [str(problem)]
        return self.check(done, time.monotonic() - start, expect)

    def run(self, case):
        tmp = tempfile.mkdtemp(prefix="vial-conformance-")
        try:
            given, expect = fill(case["input"], {"{TMP}": tmp}), fill(case["expect"], {"{TMP}": tmp})
            if "runs" not in given:
                return self.one(given, expect, tmp)
            wrong = []
            for number, (part, want) in enumerate(zip(given["runs"], expect["runs"]), 1):
                part = {"command": given["command"], **part}
                wrong += ["run %d: %s" % (number, why) for why in self.one(part, want, tmp)]
            return wrong
        finally:
            shutil.rmtree(tmp)
