"""Output as it comes, readers that stop, and users that do not want to wait."""
import json
import os
import signal
import subprocess

import cli

MARKER = "98765.4321"  # sleep for this long is nobody else's


class Streams(cli.Case):
    def setUp(self):
        super().setUp()
        self.assertTrue(self.gone())

    def gone(self):
        return cli.wait_until(lambda: not cli.processes(MARKER))

    def started(self):
        return cli.wait_until(lambda: cli.processes(MARKER))

    def test_output_comes_while_the_program_runs(self):
        for number, stream in ((1, "stdout"), (2, "stderr")):
            with self.subTest(stream):
                program = 'echo ready >&{0}; read line; echo "got $line" >&{0}'.format(number)
                process = self.start("run", "-l", "sh", "--stdin", "-", "-c", program,
                                     stdin=subprocess.PIPE)
                out = getattr(process, stream)
                self.assertEqual(out.readline(), b"ready\n")
                process.stdin.write(b"answer\n")
                process.stdin.flush()
                self.assertEqual(out.readline(), b"got answer\n")
                process.stdin.close()
                self.assertEqual(process.wait(cli.PATIENCE_S), 0)

    def test_streams_have_names(self):
        """What judges' users write: readFileSync('/dev/stdin'), echo > /dev/stderr."""
        for language, code in (
                ("bash", "cat /dev/stdin > /dev/stdout; echo no > /dev/stderr"),
                ("python", "open('/dev/stdout', 'w').write(open('/dev/stdin').read())\n"
                           "print('no', file=open('/dev/stderr', 'w'))"),
                ("javascript", "const fs = require('fs')\nfs.writeFileSync('/dev/stdout', fs.readFileSync('/dev/stdin'))\n"
                               "fs.writeFileSync('/dev/stderr', 'no\\n')"),
                ("ruby", "File.write('/dev/stdout', File.read('/dev/stdin'))\nFile.write('/dev/stderr', \"no\\n\")")):
            with self.subTest(language):
                done = self.vial("run", "-l", language, "--stdin", "-", "-c", code, stdin=b"yes\n")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "yes\n", "no\n"))

    def test_output_is_passed_byte_for_byte(self):
        done = subprocess.run([cli.VIAL, "run", "-l", "python", "-c",
                               "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"],
                              capture_output=True, check=True)
        self.assertEqual(done.stdout, bytes(range(256)) * 1000)

    def test_a_reader_that_goes_away_ends_the_run_quietly(self):
        process = self.start("run", "-l", "sh", "-c", "sleep %s & yes" % MARKER)
        self.assertEqual(process.stdout.read(2), b"y\n")
        self.assertTrue(self.started())
        process.stdout.close()
        self.assertEqual(process.wait(cli.PATIENCE_S), 128 + signal.SIGPIPE)
        self.assertEqual(process.stderr.read(), b"")
        self.assertTrue(self.gone())

    def test_a_reader_of_json_that_went_away(self):
        read, write = os.pipe()
        os.close(read)
        with open(write, "wb") as out:
            done = subprocess.run([cli.VIAL, "run", "--json", "-l", "sh", "-c", "echo hi"],
                                  stdout=out, stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr), (128 + signal.SIGPIPE, b""))

    def test_a_full_disk_is_our_failure(self):
        for options in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([cli.VIAL, "run", *options, "-l", "sh", "-c", "echo hi"],
                                      stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, cli.OURS)
            self.assertRegex(done.stderr, r"^vial: .*No space left on device\n$")

    def test_a_reader_that_sleeps_does_not_stop_the_clock(self):
        process = self.start("run", "-l", "sh", "--output", "16m", "--timeout", "4", "-c",
                             "sleep %s & yes" % MARKER)
        self.assertTrue(self.started())
        self.assertTrue(self.gone(), "nobody reads, and the guest lives on")
        self.assertGreater(len(process.stdout.read()), 100000)
        self.assertEqual(process.wait(cli.PATIENCE_S), cli.TIMEOUT)
        self.assertIn(b"(timeout)", process.stderr.read())

    def test_signals_end_the_run_and_are_our_exit_code(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                program = "trap '' INT TERM HUP; echo up; sleep %s & wait; wait" % MARKER
                process = self.start("run", "-l", "sh", "-c", program)
                self.assertEqual(process.stdout.readline(), b"up\n")
                self.assertTrue(self.started())
                process.send_signal(number)
                self.assertEqual(process.wait(cli.PATIENCE_S), 128 + number)
                self.assertTrue(self.gone())
                self.assertEqual(process.stderr.read(), b"")

    def test_a_signal_while_nobody_reads(self):
        process = self.start("run", "-l", "sh", "--output", "16m", "-c", "sleep %s & yes" % MARKER)
        self.assertTrue(self.started())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(cli.PATIENCE_S), 128 + signal.SIGINT)
        self.assertTrue(self.gone())

    def test_a_cancelled_run_has_a_result(self):
        process = self.start("run", "--json", "-l", "sh", "-c", "echo before; sleep %s" % MARKER)
        self.assertTrue(self.started())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(cli.PATIENCE_S), 128 + signal.SIGTERM)
        result = json.loads(process.stdout.read())
        self.assertEqual((result["outcome"], result["stdout"]), ("cancelled", "before\n"))

    def test_a_kill_that_cannot_be_caught_takes_the_guest_along(self):
        process = self.start("run", "-l", "sh", "-c", "sleep %s & wait" % MARKER)
        self.assertTrue(self.started())
        process.kill()
        process.wait()
        self.assertTrue(self.gone())

    def test_background_processes_end_with_the_program(self):
        done = self.code("sh", "sleep %s >/dev/null 2>&1 & echo done" % MARKER)
        self.assert_ok(done, "done\n")
        self.assertTrue(self.gone())
