# Datagrams on loopback, connected and not.
import socket

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, \
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two:
    one.bind(("127.0.0.1", 0))
    two.bind(("127.0.0.1", 0))
    one.settimeout(10)
    two.settimeout(10)
    for size in (0, 1, 1400, 30000):
        one.sendto(b"d" * size, two.getsockname())
        data, sender = two.recvfrom(65536)
        print(len(data), sender == one.getsockname())
    two.connect(one.getsockname())
    two.send(b"connected")
    print(one.recv(100))
    one.setblocking(False)
    try:
        one.recv(1)
    except BlockingIOError as error:
        print(error.strerror)
