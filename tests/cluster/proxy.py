"""proxy - a bad network between a client and a server: slow, silent, cut."""
import socket
import threading
import time


class Proxy:
    """Bytes go through it as they are, TLS among them; what it does to them may change at any time."""

    def __init__(self, port, address="127.0.0.1"):
        self.target = ("127.0.0.1", port)
        self.delay_s = 0       # before answers go on
        self.is_silent = False # answers are kept back
        self.is_closed = False # nobody is let in
        self.pairs = []
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.url = "https://%s:%d" % (address, self.port)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = None if self.is_closed else socket.create_connection(self.target)
            except OSError:
                server = None
            if not server:
                client.close()
                continue
            self.pairs.append((client, server))
            threading.Thread(target=self.carry, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, True), daemon=True).start()

    def carry(self, source, to, is_answer):
        try:
            while data := source.recv(65536):
                if is_answer and self.delay_s:
                    time.sleep(self.delay_s)
                while is_answer and self.is_silent:
                    time.sleep(0.05)
                to.sendall(data)
        except OSError:
            pass
        for end in (source, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()

    def close(self):
        self.listener.close()
        self.is_silent = False
        self.cut()
