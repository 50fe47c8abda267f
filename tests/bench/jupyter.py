"""A Jupyter kernel behind a Unix socket: each line is answered when a cell has run.

    jupyter.py SOCKET

The kernel is ipykernel, the client its own (jupyter_client).  It runs one cell at a time, as a kernel does.
"""
import os
import selectors
import signal
import socket
import sys

from jupyter_client.manager import start_new_kernel

CODE = 'print("hi")'


def run_cell(client):
    texts = []
    client.execute_interactive(CODE, store_history=False, timeout=60,
                               output_hook=lambda message: texts.append(message["content"].get("text", "")))
    return "".join(texts).encode()


def serve(client, path):
    selector = selectors.DefaultSelector()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif key.fileobj.recv(4096):
                key.fileobj.sendall(run_cell(client))
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def main(path):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] = "/usr/bin:/bin"
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        run_cell(client)
        serve(client, path)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


main(*sys.argv[1:])
