# A terminal of our own making: raw pair, window size, and a shell on it.
import fcntl
import os
import pty
import struct
import termios

master, slave = pty.openpty()
print(os.isatty(slave), os.ttyname(slave).startswith("/dev/pts/"))
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
print(os.get_terminal_size(master))
os.write(master, b"typed\n")
print(os.read(slave, 100), os.read(master, 100))
attributes = termios.tcgetattr(slave)
attributes[3] &= ~termios.ECHO
termios.tcsetattr(slave, termios.TCSANOW, attributes)
os.write(master, b"silent\n")
print(os.read(slave, 100))
os.write(slave, b"line\n")
print(os.read(master, 100))
pid, terminal = pty.fork()
if pid == 0:
    os.execv("/bin/sh", ["sh", "-c", "test -t 0 && echo interactive; exit 3"])
output = b""
try:
    while chunk := os.read(terminal, 1000):
        output += chunk
except OSError:
    pass  # the terminal hangs up when its last user is gone
print(output, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
