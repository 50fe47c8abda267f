# hostile-test
# id: NET-101
# title: socket options that take memory of the host, or of the budget of all
# class: resource-memory
# lang: python
# expect: contained
# severity: medium
# bounds: one socket each
# why: IPV6_2292PKTOPTIONS keeps 8 KiB a socket uncharged; TCP_LINGER2 keeps sockets that nobody has, which are counted for the host
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import socket
def tries(family, kind, level, option, value, name):
    try:
        with socket.socket(family, kind) as s:
            s.setsockopt(level, option, value)
            return s.getsockopt(level, option)
    except OSError:
        return None
rest = bytes([0, 20]) + bytes(166)  # an extension header of 168 bytes
for option in (54, 55, 59):
    if tries(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_IPV6, option, rest, "hop") is not None: esc("IPv6 option %d" % option)
try:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IPV6, 6, bytes(4096))
        esc("IPV6_2292PKTOPTIONS")
except OSError: pass
if tries(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, 8, 119, "linger2") == 119: esc("TCP_LINGER2")
done()
