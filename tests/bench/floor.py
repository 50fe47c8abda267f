"""What no sandbox can be faster than: an echo, and a bare fork, over a Unix socket.

    floor.py echo|fork SOCKET

`fork` has loaded what vial's zygote has loaded, and answers each request by a child that runs the
same program, with no isolation at all.  One process per connection, as vial has one guest.
"""
import gc
import os
import pathlib
import re
import signal
import sys

import lines

CODE = 'print("hi")'
BOOT = pathlib.Path(__file__).resolve().parents[2] / "src/guest/boot/python/sitecustomize.py"


def load():
    names = re.search(r'COMMON = """(.*?)"""', BOOT.read_text(), re.S).group(1).split()
    for name in names:
        try:
            __import__(name)
        except ImportError:
            pass
    compile(CODE, "main.py", "exec")
    gc.collect()
    gc.freeze()


def answer_by_fork(connection, _):
    if os.fork() != 0:
        return
    os.dup2(connection.fileno(), 1)
    exec(compile(CODE, "main.py", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()
    os._exit(0)


def echo(connection, request):
    connection.sendall(request)


def main(kind, path):
    if kind == "fork":
        load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    lines.serve(path, answer_by_fork if kind == "fork" else echo)


main(*sys.argv[1:])
