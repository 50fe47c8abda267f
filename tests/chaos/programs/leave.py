"""Leaves behind whatever it can.  The argument is a word to leave everywhere."""
import ctypes
import os
import resource
import signal
import socket
import struct
import sys
import time

WORD = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)


def files():
    for place in ("/tmp", "/dev/shm", ".", "/var/tmp", "/run", "/dev/mqueue", os.path.expanduser("~")):
        for name in (WORD, "." + WORD):
            try:
                with open(os.path.join(place, name), "w") as file:
                    file.write(WORD * 1000)
                os.mkdir(os.path.join(place, name + ".d"), 0o000)
                os.mkfifo(os.path.join(place, name + ".p"))
                os.symlink("/etc/passwd", os.path.join(place, name + ".l"))
            except OSError:
                pass


def ipc():
    for call in (lambda: libc.shmget(0x5151, 4096, 0o1666), lambda: libc.semget(0x5151, 3, 0o1666),
                 lambda: libc.msgget(0x5151, 0o1666),
                 lambda: libc.mq_open(b"/" + WORD.encode(), 0o102, 0o666, None),
                 lambda: libc.syscall(248, b"user", WORD.encode(), b"x", 1, -4),
                 lambda: libc.syscall(248, b"user", WORD.encode(), b"x", 1, -3)):
        call()


def network():
    held = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        for _ in range(5):  # to TIME_WAIT
            server = socket.create_server((address, 0), family=family)
            client = socket.create_connection(server.getsockname()[:2])
            there, _ = server.accept()
            client.sendall(WORD.encode())
            there.close()
            client.close()
            server.close()
        udp = socket.socket(family, socket.SOCK_DGRAM)
        udp.bind((address, 0))
        udp.sendto(WORD.encode(), (address, 9))
        held.append(udp)
    group = struct.pack("4s4s", socket.inet_aton("224.1.2.3"), socket.inet_aton("127.0.0.1"))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
    except OSError:
        pass
    held.append(udp)
    for name in ("\0" + WORD, "/tmp/" + WORD + ".s", WORD + ".s"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(name)
        listener.listen()
        held.append(listener)
    return held


def only_sockets():
    """No packet, no bound port: only that they were there."""
    return [socket.socket(family, kind) for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]


def processes(held):
    for _ in range(4):
        if os.fork() == 0:
            os.setsid()
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            if os.fork() == 0:
                time.sleep(60)
            time.sleep(60)
    return held


def self():
    os.umask(0o777)
    os.nice(5)
    os.environ[WORD] = WORD
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    signal.setitimer(signal.ITIMER_REAL, 30)
    libc.prctl(15, WORD.encode(), 0, 0, 0)
    libc.prctl(29, 12345, 0, 0, 0)
    libc.personality(0x0040000)


def memory():
    return bytearray(WORD.encode() * (4 << 20))


def spend():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass


kinds = {"files": files, "ipc": ipc, "network": network, "sockets": only_sockets,
         "processes": lambda: processes(network()), "self": self, "memory": memory, "spend": spend,
         "descriptors": lambda: [os.open("/dev/zero", os.O_RDONLY) for _ in range(500)]}
kept = kinds[sys.argv[2]]()
print("left")
sys.stdout.flush()
if sys.argv[2] == "memory":
    os.kill(os.getpid(), signal.SIGKILL)  # no time to tidy up
