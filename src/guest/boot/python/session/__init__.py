"""session - the driver of a live Python session (docs/SESSION-PROTOCOL.md).

Imported in a zygote it does nothing; serve(), in a guest, never returns.  All of the package is
loaded with it: its files need not be visible to a guest.  Python 3.8 and later.
"""
from .serving import Session


def serve(fd):
    Session(fd).serve()
