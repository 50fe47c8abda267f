# A TCP server and its clients on loopback.
import socket
import threading


def serve(listener):
    for _ in range(3):
        connection, peer = listener.accept()
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                connection.sendall(line.upper())


with socket.create_server(("127.0.0.1", 0)) as listener:
    listener.settimeout(10)
    server = threading.Thread(target=serve, args=(listener,))
    server.start()
    for word in ("alpha", "beta", "gamma"):
        with socket.create_connection(("127.0.0.1", listener.getsockname()[1])) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = client.getpeername()[0]
            client.sendall(f"{word}\nbye {word}\n".encode())
            client.shutdown(socket.SHUT_WR)
            data = b"".join(iter(lambda: client.recv(100), b""))
            print(data, peer)
    server.join()
    port = listener.getsockname()[1]
try:
    socket.create_connection(("127.0.0.1", port), timeout=5)
except ConnectionRefusedError as error:
    print(error.strerror)
