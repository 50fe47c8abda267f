"""Tries to reach the world."""
import socket

for name, address in (("an address", ("192.0.2.1", 80)), ("a name", ("example.org", 80))):
    try:
        socket.create_connection(address, timeout=2).close()
        print(f"reached {name}")
    except OSError as error:
        print(f"no way to {name}: {error}")
