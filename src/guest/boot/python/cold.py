"""cold - a session's driver in a Python of its own, where none was warm, or none that would do."""
import os
import sys

import session

sys.path.pop(0)  # ours
session.serve(int(os.environ.pop("VIAL_SESSION_FD")))
