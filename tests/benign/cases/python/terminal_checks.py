# There is no terminal, and everything that asks is told so.
import os
import shutil
import sys
import termios

print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty())
print([os.isatty(fd) for fd in (0, 1, 2)])
try:
    os.get_terminal_size()
except OSError as error:
    print(error.strerror)
try:
    termios.tcgetattr(1)
except termios.error as error:
    print(error.args[1])
print(tuple(shutil.get_terminal_size()), sys.stdout.line_buffering)
try:
    open("/dev/tty").close()
    print("a controlling terminal")
except OSError:
    print("no controlling terminal")
