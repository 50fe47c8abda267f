"""_vial_command - the `vial` that `pip install` puts in the path: it becomes the real one.

Not in the package, whose import takes longer than all of `vial run`.
"""
from __future__ import annotations

import os
import sys


def main() -> None:
    """Does not return."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vial", "_bin", "vial")
    try:
        os.execv(path, ["vial", *sys.argv[1:]])
    except OSError as why:
        sys.exit("vial: %s: %s" % (path, why.strerror))
