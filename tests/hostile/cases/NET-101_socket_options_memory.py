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
import socket, struct
hops = struct.pack("@Qiii4x", 20, socket.IPPROTO_IPV6, 52, 1) * 333  # IPV6_HOPLIMIT, as a message has it
for family, kind, level, option, value, name in (
        (socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_IPV6, 6, hops, "IPV6_2292PKTOPTIONS"),
        (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, 8, 119, "TCP_LINGER2")):
    try:
        with socket.socket(family, kind) as s:
            s.setsockopt(level, option, value)
            if name != "TCP_LINGER2" or s.getsockopt(level, option) == 119: esc(name)
    except OSError: pass
done()
