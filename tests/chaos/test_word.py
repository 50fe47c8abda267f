"""How a warm guest says that it is done (guest/go.h) shows nowhere, whatever the program did to stderr."""
import concurrent.futures
import unittest

from chaos import Daemon, run_of

PIPE = "import fcntl, os, sys\nfcntl.fcntl(2, 1031, 1 << 20)\n"  # F_SETPIPE_SZ: more than is read at once
CHUNK = 80 << 10  # read at once (pool/pool_impl.h)

ENDS = {  # program: stdout, stderr, exit code
    "import os; os._exit(3)": ("", "", 3),
    "import os; os.close(2); print('out')": ("out\n", "", 0),
    "import os; os.close(1); os.close(2)": ("", "", 0),
    "import os, sys; os.dup2(1, 2); sys.stderr.write('both')": ("both", "", 0),
    "import os, sys; os.dup2(2, 1); print('both')": ("", "both\n", 0),
    "import os; os.dup2(os.open('f', os.O_CREAT | os.O_RDWR), 2); print(os.fstat(2).st_size)": ("0\n", "", 0),
    "import os; os.execv('/bin/echo', ['echo', 'other'])": ("other\n", "", 0),
    "import os; os.kill(os.getpid(), 15)": ("", "", None),
    "import os\nif os.fork() == 0: os._exit(7)\nos.wait()": ("", "", 0),
    "import os\nif os.fork() == 0: raise SystemExit(7)\nos.wait(); print('on')": ("on\n", "", 0),
    "import threading; threading.Thread(target=print, args=('later',)).start()": ("later\n", "", 0),
    "import atexit, sys; atexit.register(sys.stderr.write, 'last')": ("", "last", 0),
    "import os, fcntl; fcntl.fcntl(2, 4, os.O_NONBLOCK); print('x')": ("x\n", "", 0),
    "raise SystemExit(300)": ("", "", 44),
    "raise SystemExit('why')": ("", "why\n", 1),
}


class Word(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--listen", "none")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def run_it(self, code, **more):
        status, answer, _ = self.daemon.ask("POST", "/v1/runs", run_of(code, **more))
        self.assertEqual(status, 200, answer)
        return answer["result"]

    def test_ends(self):
        for code, expected in ENDS.items():
            with self.subTest(code):
                result = self.run_it(code)
                self.assertEqual((result["stdout"], result["stderr"], result["exit_code"]), expected)

    def test_a_file_in_its_place(self):
        code = "import os; os.dup2(os.open('f', os.O_CREAT | os.O_RDWR), 2); os.write(2, b'mine')"
        status, answer, _ = self.daemon.ask("POST", "/v1/runs", run_of(code, exports=["f"]))
        self.assertEqual((status, answer["result"]["exports"][0]["size"]), (200, 4))

    def test_it_ends_anywhere_in_what_is_read(self):
        for size in [*range(CHUNK - 20, CHUNK + 3), 2 * CHUNK - 9, 1, 0]:
            result = self.run_it(PIPE + "os.write(2, b'x' * %d)" % size, limits={"output": "1m"})
            self.assertEqual((len(result["stderr"]), set(result["stderr"]) - {"x"}, result["exit_code"]),
                             (size, set(), 0))

    def test_what_is_cut_is_counted_without_it(self):
        result = self.run_it("import sys; sys.stderr.write('x' * 5000)", limits={"output": "1k"})
        self.assertEqual((len(result["stderr"]), result["stderr_dropped"]), (1024, 5000 - 1024))

    def test_a_program_that_is_done_is_not_waited_for(self):
        result = self.run_it("import os, time\nif os.fork() == 0:\n    time.sleep(20)\n    os._exit(0)")
        self.assertEqual(result["exit_code"], 0)
        self.assertLess(result["wall_ms"], 10000)

    def test_what_it_used_is_told_when_it_dies_right_after(self):
        """Its group may be another's as soon as it is dead."""
        code = """
import random, signal, time
end = time.process_time() + 0.02
while time.process_time() < end:
    pass
signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0003, 0.002))
"""
        with concurrent.futures.ThreadPoolExecutor(16) as crowd:
            for result in crowd.map(lambda _: self.run_it(code), range(400)):
                self.assertGreaterEqual(result["cpu_ms"], 15, result)
