# Unix sockets: by path, abstract, in pairs, passing a descriptor and credentials.
import array
import os
import socket
import struct

with socket.socket(socket.AF_UNIX) as server:
    server.bind("door")
    server.listen()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("door")
        peer, _ = server.accept()
        client.sendall(b"knock")
        print(peer.recv(100))
        peer.close()
os.unlink("door")
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as named:
    named.bind(b"\0benign-abstract")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.sendto(b"to the abstract", b"\0benign-abstract")
    print(named.recv(100))
left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
left.send(b"one")
left.send(b"two")
print(right.recv(100), right.recv(100))
with open("passed", "w+") as file:
    file.write("through the socket")
    file.flush()
    socket.send_fds(left, [b"fd"], [file.fileno()])
message, handles, _, _ = socket.recv_fds(right, 10, 1)
with os.fdopen(handles[0]) as received:
    received.seek(0)
    print(message, received.read())
credentials = left.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
pid, uid, gid = struct.unpack("3i", credentials)
print(pid == os.getpid(), uid == os.getuid(), gid == os.getgid())
