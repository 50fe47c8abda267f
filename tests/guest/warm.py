"""warm - interpreters, fresh and warm, for `run`."""
import collections
import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading
import time

SECONDS = 60  # a hang, not a measure of speed
CONTROL_FD = 1000
KEY_LEN = 16

Language = collections.namedtuple("Language", "tool flags program env boot boot_env forks")
End = collections.namedtuple("End", "stdout stderr status files word faults")

LANGUAGES = {
    "python": Language(
        "/usr/bin/python3", ["-s"], "main.py",
        {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"},
        ["python/sitecustomize.py", "python/cold.py", "python/session"],
        {"PYTHONPATH": "{boot}", "LD_PRELOAD": "{boot}/guest.so", "LD_BIND_NOW": "1",
         "VIAL_SESSION": "{boot}/cold.py"},
        True),
    "ruby": Language(
        "/usr/bin/ruby", [], "main.rb", {}, ["ruby/boot.rb", "ruby/session.rb"],
        {"RUBYOPT": "-r{boot}/boot.rb", "LD_PRELOAD": "{boot}/guest.so",
         "VIAL_SESSION": "{boot}/session.rb"}, True),
    "javascript": Language(
        "/usr/bin/node", ["--max-old-space-size=384"], "main.js", {},
        ["node/boot.js", "node/session.js", "node/session-code.js", "node/session-say.js"],
        {"NODE_OPTIONS": "--require={boot}/boot.js", "LD_PRELOAD": "{boot}/guest.so",
         "VIAL_SESSION": "{boot}/session.js"}, False),
}


class Place:
    """Where everything happens: one directory for programs, one for what makes them wait."""

    def __init__(self, root, shared_object, ending, boot):
        self.ending = str(ending)
        self.box = os.path.join(root, "box")
        self.home = os.path.join(root, "home")
        self.root, self.shared_object, self.boot = root, shared_object, boot
        os.makedirs(self.box)
        os.makedirs(self.home)

    def install(self, language):
        folder = os.path.join(self.root, "boot-" + language)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name in LANGUAGES[language].boot:
            source = self.boot / name
            if source.is_dir():
                shutil.copytree(source, os.path.join(folder, source.name))
            else:
                shutil.copy(source, folder)
        shutil.copy(self.shared_object, os.path.join(folder, "guest.so"))
        return folder

    def empty(self):
        for path in pathlib.Path(self.box).iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def fill(self, files):
        self.empty()
        for name, content in files.items():
            path = pathlib.Path(self.box, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def files(self):
        return {path.relative_to(self.box).as_posix(): path.read_bytes()
                for path in sorted(pathlib.Path(self.box).rglob("*")) if path.is_file()}


def record(kind, content=b""):
    return struct.pack("<II", ord(kind), len(content)) + content


class Interpreter:
    def __init__(self, place, language, tool):
        self.place, self.language, self.tool = place, language, tool
        self.row = LANGUAGES[language]
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": place.home, "LANG": "C.UTF-8",
                    "TERM": "dumb", **self.row.env}
        boot = place.install(language)
        self.boot_env = {name: value.format(boot=boot) for name, value in self.row.boot_env.items()}

    def command(self, program=None):
        return [self.tool, *self.row.flags, program or self.row.program]

    def run_fresh(self, case, **env):
        self.place.fill(case.files)
        process = subprocess.Popen(self.command(case.program) + case.args, cwd=self.place.box,
                                   env={**self.env, **case.env, **env}, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stdout, stderr = process.communicate(case.stdin, timeout=SECONDS)
        return End(stdout, stderr, process.returncode, self.place.files(), None, None)

    def run_ending(self, case):
        """As run_fresh(), by one that was given what lets it end when nobody could tell."""
        return self.run_fresh(case, LD_PRELOAD=self.place.ending)

    def records(self, case, key):
        sent = record("k", key)
        sent += b"" if case.program == self.row.program else record("n", case.program.encode())
        for name, content in case.files.items():
            sent += record("f", name.encode() + b"\0" + content)
        for arg in case.args:
            sent += record("a", arg.encode())
        for pair in case.env.items():
            sent += record("e", "=".join(pair).encode())
        return sent + record("r")

    def run_warm(self, case):
        key = os.urandom(KEY_LEN)
        talk, end = self.arm()
        stdout, stderr, _ = talk.hold(self.records(case, key), case.stdin)
        status, faults = end()
        stderr, word = take_word(stderr, key)
        return End(stdout, stderr, status, self.place.files(), word, faults)

    def start(self, fd, **more):
        """With a descriptor where a guest or a zygote looks for it."""
        os.dup2(fd, CONTROL_FD)
        try:
            return subprocess.Popen(self.command(), cwd=self.place.box, pass_fds=[CONTROL_FD],
                                    env={**self.env, **self.boot_env, **more.pop("env", {})}, **more)
        finally:
            os.close(CONTROL_FD)


class Reader(threading.Thread):
    def __init__(self, read):
        super().__init__(daemon=True)
        self.read, self.content = read, b""
        self.start()

    def run(self):
        while True:
            more = self.read(65536)
            if not more:
                return
            self.content += more

    def end(self):
        self.join(SECONDS)
        if self.is_alive():
            raise TimeoutError("a stream that does not end")
        return self.content


def take_word(stderr, key):
    """What was written, and the status that the guest told of with its key."""
    before, found, after = stderr.partition(key)
    return (before + after[1:], after[0]) if found else (stderr, None)


class Talk:
    """What goes into a guest and what comes out of it."""

    def __init__(self):
        self.control, self.inside = socket.socketpair()
        self.control.settimeout(SECONDS)
        self.pipes = [os.pipe(), os.pipe(), os.pipe()]
        self.given = [self.pipes[0][0], self.pipes[1][1], self.pipes[2][1]]

    def close_given(self):
        for fd in self.given:
            os.close(fd)
        self.inside.close()

    def hold(self, sent, stdin):
        """Everything it says, on stdout, on stderr and on the control socket."""
        readers = [Reader(lambda size, fd=fd: os.read(fd, size))
                   for fd in (self.pipes[1][0], self.pipes[2][0])]
        readers.append(Reader(self._receive))
        if sent:
            self.control.sendall(sent)
        with contextlib.suppress(BrokenPipeError), open(self.pipes[0][1], "wb", 0) as file:
            while stdin:
                stdin = stdin[file.write(stdin):]
        content = [reader.end() for reader in readers]
        for fd in (self.pipes[1][0], self.pipes[2][0]):
            os.close(fd)
        self.control.close()
        return content

    def _receive(self, size):
        try:
            return self.control.recv(size)
        except ConnectionResetError:
            return b""


class Forked(Interpreter):
    """Guests of a zygote."""

    def __enter__(self):
        self.orders, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.orders.settimeout(SECONDS)
        self.place.fill({self.row.program: self.rehearsal()})
        self.zygote = self.start(inside.fileno(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        inside.close()
        if not self.orders.recv(4096):
            raise RuntimeError("the zygote died")
        return self

    def rehearsal(self):
        path = self.place.boot / self.language / self.row.program
        return path.read_bytes() if path.exists() else b"\n"

    def __exit__(self, *_):
        self.orders.close()
        self.zygote.wait(SECONDS)
        self.zygote.stdin.close()
        self.zygote.stdout.close()

    def arm(self, is_live=False):
        """A guest that waits, and what tells of its end."""
        self.place.empty()
        talk = Talk()
        socket.send_fds(self.orders, [b"l" if is_live else b"p", self.place.box.encode()],
                        [*talk.given, talk.inside.fileno()])
        talk.close_given()
        return talk, self._end

    def _end(self):
        status, faults = struct.unpack("ii", self.orders.recv(4096))
        return os.waitstatus_to_exitcode(status), faults


class Parked(Interpreter):
    """Each started by itself, and used once."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def arm(self, is_live=False):
        self.place.empty()
        talk = Talk()
        process = self.start(talk.inside.fileno(), stdin=talk.given[0], stdout=talk.given[1],
                             stderr=talk.given[2])
        talk.close_given()
        return talk, lambda: (process.wait(SECONDS), None)


def start(place, language, tool, preload=""):
    interpreter = (Forked if LANGUAGES[language].forks else Parked)(place, language, tool)
    interpreter.boot_env["VIAL_PRELOAD"] = preload
    return interpreter


# ---- further tests ---------------------------------------------------------------------------

Program = collections.namedtuple("Program", "files program args env stdin")


def program(interpreter, text):
    name = interpreter.row.program
    return Program({name: text.encode()}, name, [], {}, b"")


DRAWS = {
    "python": """
import os, random, secrets, sys, tempfile, uuid
print(random.random())
print(random.Random().random())
print(secrets.token_hex(8))
print(uuid.uuid4())
print(uuid.uuid1())
print(next(tempfile._get_candidate_names()))
print(os.urandom(8).hex())
import ssl
print(ssl.RAND_bytes(8).hex())
import multiprocessing.process
print(bytes(multiprocessing.process.current_process().authkey).hex())
import hashlib
try:
    import numpy
    print(numpy.random.rand())
    print(numpy.random.default_rng().random())
except ImportError:
    pass
""",
    "ruby": """
require "securerandom"
require "tempfile"
puts rand, Random.rand, Random.new.rand, Random.new_seed, SecureRandom.hex(8), SecureRandom.uuid
puts [*1..50].shuffle.join(","), Random.urandom(8).unpack1("H*"), Random.seed
puts Dir::Tmpname.create("x") { }
require "openssl"
puts OpenSSL::Random.random_bytes(8).unpack1("H*")
""",
}
TIMES = 200


def nothing_is_drawn_twice(interpreter):
    seen = collections.Counter()
    for _ in range(TIMES):
        end = interpreter.run_warm(program(interpreter, DRAWS[interpreter.language]))
        if end.status != 0:
            return end.stderr.decode("utf-8", "replace").splitlines()
        seen.update(enumerate(end.stdout.split()))
    return ["value %d: %s %d times" % (place, value.decode(), times)
            for (place, value), times in seen.items() if times > 1]


def a_closed_socket_ends_it(interpreter):
    """Nobody needs this guest: it goes away by itself, and says nothing."""
    talk, end = interpreter.arm()
    talk.control.shutdown(socket.SHUT_WR)
    stdout, stderr, _ = talk.hold(b"", b"")
    status, _ = end()
    return [] if (status, stdout + stderr) == (125, b"") else \
        ["status %d, output %r" % (status, stdout + stderr)]


QUIETLY = {
    "python": ("drawn.py", "print = lambda value: None\n%s"),
    "ruby": ("drawn.rb", "$stdout = File.open(File::NULL, 'w')\n%s\n$stdout = STDOUT\n"),
}


def nothing_loaded_is_drawn_twice(interpreter):
    """The same where the zygote has loaded the libraries and drawn from them."""
    language, folder = interpreter.language, os.path.join(interpreter.place.root, "drawn")
    name, text = QUIETLY[language]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text % DRAWS[language])
    other = Forked(interpreter.place, language, interpreter.tool)
    if language == "python":
        other.boot_env["PYTHONPATH"] += ":" + folder
    other.boot_env["VIAL_PRELOAD"] = "drawn" if language == "python" else folder + "/drawn"
    with other:
        return nothing_is_drawn_twice(other)


EXITS = {
    "javascript": ["", "process.exit(3)", "throw 1", "process.kill(process.pid, 'SIGKILL')"],
    "ruby": ["", "exit 3", "raise 'x'", "exit! 4"],
    "python": ["pass", "import sys; sys.exit(3)", "1 / 0", "import os; os._exit(4)"],
}


def an_end_is_told(interpreter):
    """At once where the interpreter came to its own end, and only there."""
    words = [interpreter.run_warm(program(interpreter, text)).word
             for text in EXITS[interpreter.language]]
    return [] if words == [0, 3, 1, None] else ["told: %r" % words]


def loading_begins_with_the_program(interpreter):
    """However long the guest has waited for it."""
    talk, end = interpreter.arm()
    time.sleep(3)
    code = "import logging\nprint(logging.makeLogRecord({}).relativeCreated)\n"
    stdout, stderr, _ = talk.hold(interpreter.records(program(interpreter, code), os.urandom(KEY_LEN)), b"")
    end()
    return [] if 0 <= float(stdout or -1) < 3000 else ["after %r ms: %r" % (stdout, stderr)]


def nothing_left_is_not_taken_apart(interpreter):
    """It tells what it takes apart, if it is asked to.  Python 3.10 is the first that lets us look."""
    found = []
    old = interpreter.run_fresh(program(interpreter, "import sys; sys.exit(sys.version_info < (3, 10))")).status
    for text, is_expected in (("print('hi')", False), ("def f(): return [1]\nx = {1: f()}\nprint(x)", False),
                              ("import sys\nsys.exit(3)", False), ("import atexit", True),
                              ("class C: pass", True), ("f = open('x', 'w')", True)):
        case = program(interpreter, text)
        fresh = interpreter.run_fresh(case)
        verbose = interpreter.run_fresh(case, PYTHONVERBOSE="1", LD_PRELOAD=interpreter.place.ending)
        if fresh.status != verbose.status:
            found.append("%r: fresh %d, ending %d" % (text, fresh.status, verbose.status))
        if (b"# cleanup" in verbose.stderr) != bool(is_expected or old):
            found.append("%r: was taken apart: %s" % (text, not is_expected))
    return found


def what_fails_is_told(interpreter):
    """A guest that cannot become its program says so, and runs nothing."""
    talk, end = interpreter.arm()
    stdout, stderr, said = talk.hold(record("f", b"../x\0y") + record("r"), b"")
    status, _ = end()
    expected = status == 125 and stdout + stderr == b"" and \
        said[:1] == b"x" and b"'../x' leaves the workspace" in said
    return [] if expected else ["status %d, output %r, word %r" % (status, stdout + stderr, said)]


STEPS = {  # the second needs the first; the last raises what shows where it is from
    "python": ["import os, csv; x = 41", "[x + 1, os.environ.get('WHO'), os.path.exists('a/b'), csv.__file__]",
               "1 / 0", "csv.py", "PYTHONHASHSEED"],
    "ruby": ["x = 41", "[x + 1, ENV['WHO'], File.exist?('a/b')]", "raise 'x'", "set.rb", "RUBYLIB"],
    "javascript": ["var x = 41", "[x + 1, process.env.WHO, require('fs').existsSync('a/b')]",
                   "null.x", "package.json", "NODE_DEBUG"],
}
HIDING = {"csv.py": b"", "set.rb": b"", "package.json": b"{}"}


def converse(interpreter, files, env):
    """The results of three steps, and what the guest says at its end."""
    talk, end = interpreter.arm(is_live=True)
    sent = b"".join(record("f", name.encode() + b"\0" + content) for name, content in files.items())
    sent += b"".join(record("e", pair.encode()) for pair in env) + record("l") + record("r")
    talk.control.sendall(sent)
    channel, results = talk.control.makefile("rwb"), []
    ready = channel.readline()
    for number, code in enumerate(STEPS[interpreter.language][:3], 1):
        channel.write(json.dumps({"op": "run", "id": number, "code": code}).encode() + b"\n")
        channel.flush()
        results.append(json.loads(channel.readline() or b"{}"))
    channel.close()
    talk.control.shutdown(socket.SHUT_WR)
    stdout, stderr, _ = talk.hold(b"", b"")
    end()
    return ready, results, stdout + stderr


def a_session_is_served(interpreter):
    """Also where the interpreter has to start afresh for it, and with no trace of ours."""
    hiding, variable = STEPS[interpreter.language][3:]
    wrong = []
    for files, env in (({}, []), ({hiding: HIDING[hiding]}, []), ({}, [variable + "=0"])):
        ready, results, printed = converse(interpreter, {"a/b": b"", **files}, ["WHO=me", *env])
        value = results[1].get("value", {}).get("json") or []
        trace = json.dumps(results[2].get("exception"))
        if json.loads(ready or b"{}") != {"op": "ready"} or value[:3] != [42, "me", True] or \
                "boot" in trace or printed:
            wrong.append("%r %r: %r %r %r" % (files, env, ready, results, printed))
        elif "csv.py" in files and value[3] != os.path.join(interpreter.place.box, "csv.py"):
            wrong.append("%s: the zygote's was used: %r" % (hiding, value))
    return wrong


def tests(language):
    found = []
    if language in STEPS:
        found.append(("a_session_is_served", a_session_is_served))
    if language in DRAWS:
        found.append(("nothing_is_drawn_twice", nothing_is_drawn_twice))
        found.append(("nothing_loaded_is_drawn_twice", nothing_loaded_is_drawn_twice))
    if language in EXITS:
        found.append(("an_end_is_told", an_end_is_told))
    if language == "python":
        found.append(("loading_begins_with_the_program", loading_begins_with_the_program))
        found.append(("nothing_left_is_not_taken_apart", nothing_left_is_not_taken_apart))
    found.append(("a_closed_socket_ends_it", a_closed_socket_ends_it))
    found.append(("what_fails_is_told", what_fails_is_told))
    return found
