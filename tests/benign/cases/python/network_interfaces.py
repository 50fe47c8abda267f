# The list of network interfaces, as libraries ask for it.
import socket

names = {name: index for index, name in socket.if_nameindex()}
print("lo" in names, socket.if_nametoindex("lo") == names["lo"], socket.if_indextoname(names["lo"]))
try:
    socket.if_nametoindex("no-such-card")
except OSError:
    print("no such interface")
