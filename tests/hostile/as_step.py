"""as_step - what `vial run --daemon --json` does, as a step of a session.

    as_step.py [--policy PROFILE] [--rewind] [--fork] [OPTION...] FILE | -c CODE

It takes the options that the suite passes to `vial run`.
With --passing FILE the session is left to the next call with the same
FILE, which resets it first.  What sessions do not have (a language, a host directory, exports) is refused in the words of
`vial run --daemon`, so that the case is run as it would be without.  The session is closed before
this ends: what a step left running must go with it.
"""
import argparse
import base64
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
sys.dont_write_bytecode = True

from daemon import UnixConnection  # noqa: E402

LIMITS = ("timeout", "cpu-time", "memory", "processes", "open-files", "workspace", "file-size",
          "output")
SPEAKS = ("python", "javascript", "bash", "ruby")
PATIENCE_S = 90


def refuse(why):
    sys.stderr.write("vial: --daemon: %s\n" % why)
    sys.exit(125)


def parse(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--policy")
    parser.add_argument("--rewind", action="store_true")
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("--passing", metavar="FILE")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-l", dest="language")
    parser.add_argument("-c", dest="code")
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--dir", action="append", default=[])
    parser.add_argument("--export", action="append", default=[])
    parser.add_argument("--export-to")
    parser.add_argument("--allow-weak")
    parser.add_argument("source", nargs="?")
    for name in LIMITS:
        parser.add_argument("--" + name)
    return parser.parse_args(words)


def file_of(word):
    name, _, path = word.rpartition("=")
    with open(path, "rb") as file:
        return {"path": name or os.path.basename(path),
                "content_base64": base64.b64encode(file.read()).decode("ascii")}


def code_of(options):
    if options.code is not None:
        return options.code
    with open(options.source, "rb") as file:
        raw = file.read()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        refuse("a step is text")


class Session:
    def __init__(self, options):
        self.connection = UnixConnection(os.environ["VIAL_SOCKET"])
        self.connection.timeout = PATIENCE_S
        self.passing = options.passing
        self.is_last = bool(self.passing) and os.path.exists(self.passing)
        if self.is_last:
            with open(self.passing, encoding="ascii") as file:
                self.path = file.read()
            self.ask("POST", self.path + "/reset")
        else:
            self.open(options)

    def open(self, options):
        limits = {name: value for name in LIMITS
                  if (value := getattr(options, name.replace("-", "_")))}
        request = {"language": options.language, "limits": limits,
                   "env": dict(word.split("=", 1) for word in options.env),
                   "files": [file_of(word) for word in options.file]}
        if options.policy and options.language == "python":
            request["policy"] = {"profile": options.policy}
        if options.rewind and options.language == "python":
            request["rewind"] = True
        self.path = "/v1/sessions/" + self.ask("POST", "/v1/sessions", request)["id"]
        if options.fork and options.language != "javascript":  # the step is a branch's
            origin = self.path
            branch = self.ask("POST", origin + "/fork", {"count": 1})["branches"][0]
            self.path = "/v1/sessions/" + branch["id"]
            self.ask("DELETE", origin)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body),
                                {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.status >= 300:
            refuse(answer["error"]["message"])
        return answer

    def step(self, code):
        return self.ask("POST", self.path + "/runs", {"code": code, "mode": "script"})["result"]

    def close(self):
        if self.passing and not self.is_last:
            with open(self.passing, "w", encoding="ascii") as file:
                file.write(self.path)
            return
        self.ask("DELETE", self.path)


def exit_status(result):
    if result["timed_out"]:
        return 124
    if result["exit_code"] is not None:
        return result["exit_code"]
    return 128 + (result["signal"] or signal.SIGKILL)


def main():
    options = parse(sys.argv[1:])
    if options.language not in SPEAKS:
        refuse("no sessions in %s" % options.language)
    if options.dir or options.export or options.export_to:
        refuse("host directories and exports are for runs")
    code = code_of(options)
    session = Session(options)
    result = session.step(code)
    session.close()
    result["files_changed"] = []  # nobody looked
    if result["exception"]:  # a run says it there
        result["stderr"] += result["exception"].get("traceback") or result["exception"]["type"]
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    sys.stdout.flush()
    sys.exit(exit_status(result))


main()
