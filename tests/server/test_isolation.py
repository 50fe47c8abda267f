"""What one guest of the pool can do to another, or to those who serve both."""
import os
import unittest

import daemon

INOTIFY = ("import ctypes, time\n"
           "libc = ctypes.CDLL(None)\n"
           "n = 0\n"
           "while n < 900 and libc.inotify_init1(0) >= 0: n += 1\n"
           "print(n, flush=True)\n")


@unittest.skipUnless(os.getuid() == 0, "an ordinary user's sandboxes share his budgets")
class Budgets(daemon.Case):
    def beside(self, hog, code):
        """What a run says while another holds what it could get."""
        with_hog = self.stream(hog + "time.sleep(20)\n")
        self.assertIn(b'"start"', with_hog.readline())
        held = with_hog.readline()
        self.assertIn(b'"output"', held)
        return self.run_ok(code)["stdout"]

    def test_inotify_instances_of_one_are_not_missing_to_another(self):
        self.assertGreaterEqual(int(self.beside(INOTIFY, INOTIFY)), 4)
