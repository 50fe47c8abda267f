# hostile-test
# id: NET-102
# title: multicast groups, whose lists are walked under the lock of all networks of the host
# class: resource-kernel
# lang: python
# expect: contained
# severity: high
# bounds: one socket and one group each; 24,000 sockets with twenty held that lock for half an hour after the kill
# why: no network is made, on the whole host, while a guest's groups are left one by one; and no memory group is charged for them
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import socket, struct
v4, lo4, v6 = (socket.inet_pton(*a) for a in ((socket.AF_INET, "232.1.2.3"), (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "ff02::1:2:3")))
storage4 = struct.pack("@H2x4s120x", socket.AF_INET, v4)
storage6 = struct.pack("@H6x16s104x", socket.AF_INET6, v6)
source4 = struct.pack("@H2x4s120x", socket.AF_INET, lo4)
for family, level, option, value, name in (
        (socket.AF_INET, socket.IPPROTO_IP, 35, v4 + lo4, "IP_ADD_MEMBERSHIP"),
        (socket.AF_INET, socket.IPPROTO_IP, 35, v4 + lo4 + struct.pack("@i", 1), "IP_ADD_MEMBERSHIP by index"),
        (socket.AF_INET, socket.IPPROTO_IP, 39, v4 + lo4 + lo4, "IP_ADD_SOURCE_MEMBERSHIP"),
        (socket.AF_INET, socket.IPPROTO_IP, 42, struct.pack("@I4x", 1) + storage4, "MCAST_JOIN_GROUP"),
        (socket.AF_INET, socket.IPPROTO_IP, 46, struct.pack("@I4x", 1) + storage4 + source4, "MCAST_JOIN_SOURCE_GROUP"),
        (socket.AF_INET6, socket.IPPROTO_IP, 35, v4 + lo4, "IP_ADD_MEMBERSHIP of an IPv6 socket"),
        (socket.AF_INET6, socket.IPPROTO_IPV6, 20, v6 + struct.pack("@i", 1), "IPV6_JOIN_GROUP"),
        (socket.AF_INET6, socket.IPPROTO_IPV6, 27, bytes(15) + b"\1" + struct.pack("@i", 1), "IPV6_JOIN_ANYCAST"),
        (socket.AF_INET6, socket.IPPROTO_IPV6, 42, struct.pack("@I4x", 1) + storage6, "MCAST_JOIN_GROUP of IPv6")):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        try:
            with socket.socket(family, kind) as s:
                s.setsockopt(level, option, value)
                esc(name)
        except OSError: pass
done()
