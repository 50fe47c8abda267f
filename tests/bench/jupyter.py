"""A Jupyter kernel behind a Unix socket: each line is answered when a cell has run.

    jupyter.py SOCKET

The kernel is ipykernel, the client its own (jupyter_client).  It runs one cell at a time, as a kernel does.
"""
import os
import signal
import sys

from jupyter_client.manager import start_new_kernel

import lines

CODE = 'print("hi")'


def run_cell(client):
    texts = []
    client.execute_interactive(CODE, store_history=False, timeout=60,
                               output_hook=lambda message: texts.append(message["content"].get("text", "")))
    return "".join(texts).encode()


def main(path):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] = "/usr/bin:/bin"
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        run_cell(client)
        lines.serve(path, lambda connection, _: connection.sendall(run_cell(client)))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


main(*sys.argv[1:])
