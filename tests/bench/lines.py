"""lines - a Unix socket that answers whatever it is sent: for rows that are no daemon of ours."""
import selectors
import socket


def serve(path, answer):
    """For ever: answer(connection, request) for each request, whoever it came from."""
    selector = selectors.DefaultSelector()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            request = key.fileobj.recv(4096)
            if request:
                answer(key.fileobj, request)
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()
