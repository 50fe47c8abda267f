"""The Bash driver: src/guest/boot/bash/session.sh."""
import os
import shutil
import signal
import tempfile
import time
import unittest

import driver

BASH = os.environ.get("VIAL_BASH", shutil.which("bash"))
ARGV = ["env", "VIAL_SESSION_FD={fd}", BASH or "", os.path.join(driver.BOOT, "bash/session.sh")]


@unittest.skipUnless(BASH, "there is no bash")
class BashCase(unittest.TestCase):
    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="vial-session-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.driver = driver.Driver(ARGV, cwd=self.dir)
        self.addCleanup(self.driver.close)

    def step(self, code):
        """(status, stdout, stderr) of a step that leaves the session alive."""
        step = self.driver.run_words(code)
        self.assertEqual(set(step.result or ()), {"op", "id", "status"}, (code, step))
        return step.result["status"], step.stdout, step.stderr

    def out(self, code, status=0):
        got, stdout, stderr = self.step(code)
        self.assertEqual((got, stderr), (status, ""), (code, stdout))
        return stdout

    def interrupt_all(self):
        os.killpg(self.driver.pid, signal.SIGINT)

    def interrupted(self, code, after=0.3):
        """Interrupt this and its children when it has had time to begin."""
        self.driver.start_words(code)
        time.sleep(after)
        step = self.driver.finish_interrupted(self.interrupt_all)
        self.assertEqual(step.result, {"op": "result", "id": self.driver.last_id, "status": 130,
                                       "interrupted": True}, code)
        return step


class State(BashCase):
    def test_names_outlive_their_step(self):
        self.out("x=1; declare -A map=([a]=2); declare -i n=3; f() { echo $((x + map[a] + n)); }; "
                 "export E=5\n"
                 "arr=(1 2 '3 4'); readonly r=6; alias q=ls; set -- p1 'p 2'")
        self.assertEqual(self.out("f; echo ${arr[2]} $r; env | grep ^E=; echo $#$2"),
                         "6\n3 4 6\nE=5\n2p 2\n")

    def test_directory_umask_and_options_stay(self):
        self.out("mkdir sub; cd sub; umask 027; shopt -s nullglob; set -o noclobber; set -u")
        self.assertEqual(self.out("pwd; umask; shopt -q nullglob && echo yes; [[ $- == *C*u* || "
                                  "$- == *u*C* ]] && echo both"),
                         self.dir + "/sub\n0027\nyes\nboth\n")

    def test_the_status_stays(self):
        self.out("false", 1)
        self.assertEqual(self.out("echo $?"), "1\n")
        self.out("(exit 42)", 42)
        self.out("return 7; echo not", 7)
        self.out("")
        self.out("true")

    def test_loops_that_are_not_there(self):
        for code, out in (("break; echo not", ""), ("continue; echo not", ""), ("x=5; break 3", ""),
                          ("while true; do break 5; done; echo z", ""), ("echo $x", "5\n"),
                          ("for i in 1 2; do for j in 1 2; do echo $i; continue 3; done; done", "1\n"),
                          ("for i in 1 2; do break; done; echo $i", "1\n")) * 3:
            with self.subTest(code):
                self.assertEqual(self.out(code), out)

    def test_here_documents_and_lines(self):
        self.assertEqual(self.out("cat <<E\n$((1 + 1))\nE\ncat <<'E'\n$x\nE"), "2\n$x\n")
        self.assertEqual(self.out("echo $LINENO\n\necho $LINENO"), "1\n3\n")
        self.assertIn("line 2: nonesuch: command not found", self.step("\nnonesuch")[2])

    def test_a_syntax_error(self):
        status, _, err = self.step("x=before\nif then")
        self.assertNotEqual(status, 0)
        self.assertIn("line 2: syntax error", err)
        self.assertEqual(self.out("echo $x; echo 'unclosed' >/dev/null"), "before\n")
        self.assertNotEqual(self.step("echo 'unclosed")[0], 0)
        self.assertNotEqual(self.step("cat <<E\n$(")[0], 0)
        self.out("true")

    def test_a_mistake_within_brackets_is_not_the_next_steps(self):
        for code in ("[[ 1 -eq", "[[ -f", "if [[ a == "):
            status, _, err = self.step(code)
            self.assertEqual((status, "__vial" in err), (2, False), err)
            self.assertEqual(self.out("[[ a == a ]] && echo yes"), "yes\n")

    def test_background_jobs_go_on(self):
        self.out("mkfifo pipe; cat pipe & pid=$!")
        self.assertEqual(self.out("jobs -r | wc -l; echo on >pipe; wait $pid; echo $?").split(),
                         ["1", "on", "0"])

    def test_odd_texts(self):
        self.assertEqual(self.out("echo 'é\\\\ \"' $'\\t'; # comment"), "é\\\\ \" \t\n")
        self.assertEqual(len(self.out("printf %%s '%s'" % ("x" * 200000))), 200000)
        self.out("#!/bin/bash\n")

    def test_stdin_is_the_sessions(self):
        self.assertEqual(self.out("read x || echo none; cat"), "none\n")
        self.out("exec 0</etc/passwd")
        self.assertEqual(self.out("cat"), "")

    def test_nothing_of_the_driver_is_in_sight(self):
        self.assertEqual(self.out("echo $0; env | grep -i ^_*vial_s; echo $-"), "bash\nhBE\n")


class Descriptors(BashCase):
    def test_commands_do_not_get_ours(self):
        # 0 to 2, and that of the directory
        self.assertEqual(self.out("ls /proc/self/fd | wc -l"), "4\n")
        self.assertEqual(self.out("bash -c 'ls /proc/self/fd | wc -l'; sh -c 'echo x >&250' "
                                  "2>/dev/null || echo no"),
                         "4\nno\n")

    def test_a_redirection_lasts_as_long_as_its_step(self):
        self.assertEqual(self.step("exec >file 2>&1; echo a; nonesuch")[1:], ("", ""))
        self.assertEqual(self.out("echo b; head -1 file"), "b\na\n")

    def test_closed_descriptors_are_mended(self):
        self.step("exec 0<&- 1>&- 2>&-")
        self.assertEqual(self.step("echo a; echo b >&2; cat"), (0, "a\n", "b\n"))

    def test_other_descriptors_stay(self):
        self.out("echo text >file; exec 3<file 10>out")
        self.assertEqual(self.out("cat <&3; echo x >&10; cat out"), "text\nx\n")


class Options(BashCase):
    def test_errexit_ends_the_step(self):
        self.assertEqual(self.out("set -e; x=1; false; x=2", 1), "")
        self.assertEqual(self.out("echo $x $-"), "1 ehBE\n")
        self.assertEqual(self.out("f() { (exit 3); echo not; }; f; echo not", 3), "")
        self.assertEqual(self.out("if false; then :; fi; false || echo or; ! true; (false) || "
                                  "true; echo end"),
                         "or\nend\n")
        self.assertEqual(self.out("y=$(false; echo sub); echo $y; (false; echo not); echo not", 1),
                         "sub\n")
        self.out("set +e")
        self.assertEqual(self.out("false; echo on"), "on\n")

    def test_pipefail_and_nounset(self):
        self.assertEqual(self.out("set -euo pipefail; false | true; echo not", 1), "")
        step = self.driver.run_words("echo $nonesuch")
        self.assertEqual((step.result, self.driver.wait()), (None, 1))

    def test_a_trace_shows_the_step_only(self):
        self.assertEqual(self.step("set -x; echo a")[1:], ("a\n", "++++ echo a\n"))
        self.assertEqual(self.step("echo b")[1:], ("b\n", "++++ echo b\n"))
        self.assertEqual(self.step("set +x")[1:], ("", "++++ set +x\n"))
        self.assertEqual(self.step("echo c")[1:], ("c\n", ""))

    def test_noexec_is_not_a_hang(self):
        self.assertIsNone(self.driver.run_words("set -n").result)
        self.assertEqual(self.driver.wait(), 0)


class Traps(BashCase):
    def test_traps_stay(self):
        self.out("trap 'echo usr' USR1; trap 'echo err' ERR")
        self.assertEqual(self.out("kill -USR1 $$; false; true"), "usr\nerr\n")
        self.assertEqual(self.out("trap - ERR USR1; false; true"), "")
        self.assertEqual(self.out("set -e; false; echo not", 1), "")

    def test_an_exit_trap_runs_at_the_exit(self):
        self.out("trap 'echo bye $?' EXIT")
        self.assertEqual(self.out("(exit 3); echo still"), "still\n")
        step = self.driver.run_words("exit 4")
        self.assertEqual((step.result, step.stdout), (None, "bye 4\n"))
        self.assertEqual(self.driver.wait(), 4)

    def test_an_error_trap_hears_of_the_steps_own_commands(self):
        self.out("trap 'echo err' ERR")
        self.assertEqual(self.step("false")[0], 1)
        self.assertEqual(self.out("echo $?"), "1\n")

    def test_an_exit_trap_and_an_exit_in_one_step(self):
        step = self.driver.run_words("trap 'echo bye' EXIT; exit 4")
        self.assertEqual((step.result, step.stdout, self.driver.wait()), (None, "bye\n", 4))

    def test_an_exit_trap_of_a_subshell(self):
        self.assertEqual(self.out("(trap 'echo sub' EXIT); echo main"), "sub\nmain\n")

    def test_a_debug_trap_shows_the_step_only(self):
        self.out("trap 'echo \"<$BASH_COMMAND>\"' DEBUG")
        self.assertEqual(self.out("echo a"), "<echo a>\na\n")
        self.assertEqual(self.out("trap - DEBUG"), "<trap - DEBUG>\n")
        self.assertEqual(self.out("echo b"), "b\n")

    def test_nested_traps(self):
        self.out("trap 'echo outer; kill -USR2 $$' USR1; trap 'echo inner' USR2")
        self.assertEqual(self.out("kill -USR1 $$; :; echo end"), "outer\ninner\nend\n")


class Ends(BashCase):
    def test_an_exit_is_the_end(self):
        step = self.driver.run_words("echo x; exit 3")
        self.assertIsNone(step.result)
        self.assertEqual(step.stdout, "x\n")
        self.assertEqual(self.driver.wait(), 3)

    def test_a_signal_is_the_end(self):
        self.assertIsNone(self.driver.run_words("kill -TERM $$; echo not").result)
        self.assertEqual(self.driver.wait(), -signal.SIGTERM)

    def test_an_exit_in_a_subshell_is_not(self):
        self.out("(exit 3)", 3)
        self.out("exit 4 | true; x=$(exit 5)", 5)

    def test_an_exec_is_the_end(self):
        step = self.driver.run_words("exec sh -c 'echo x; exit 6'")
        self.assertEqual((step.result, self.driver.wait()), (None, 6))

    def test_it_ends_with_its_channel(self):
        self.out("sleep 0.1 &")
        self.assertEqual(self.driver.hang_up(), 0)

    def test_words_that_the_driver_uses(self):
        self.out("read() { :; }; printf() { :; }; source() { :; }; trap() { :; }; eval() { :; }; "
                 "set() { :; }\n"
                 "exec() { :; }; enable() { :; }; unset() { :; }; return() { :; }; exit() { :; }; "
                 "IFS=0123456789")
        self.assertEqual(self.out("echo a"), "a\n")

    def test_disabled_builtins_are_enabled(self):
        self.out("enable -n read printf trap source exec")
        self.assertEqual(self.out("echo a; type -t read"), "a\nbuiltin\n")

    def test_a_function_named_builtin_is_not_a_hang(self):
        self.driver.start_words("builtin() { :; }")
        self.assertIsNone(self.driver.finish().result)
        self.assertEqual(self.driver.wait(), 125)


class Interrupts(BashCase):
    def test_what_runs_is_ended_and_the_state_kept(self):
        for code in ("while :; do :; done", "sleep 60", "sleep 60; x=after",
                     "f() { while :; do :; done; }; f; x=after",
                     "f() { sleep 60; x=after; }; g() { f; x=after; }; while :; do g; done",
                     "x=$(sleep 60); x=after",
                     "sleep 60 | cat; x=after", "( while :; do :; done ); x=after",
                     "sleep 60 & wait; x=after",
                     "read y < <(sleep 60); x=after", "for ((;;)); do ((1)); done",
                     "until [[ '' ]]; do [[ x ]]; done",
                     "eval 'eval \"sleep 60\"; x=after'; x=after", "set -e; sleep 60; x=after"):
            self.out("x=before; set +e")
            self.interrupted(code)
            self.assertNotEqual(self.out("echo $x"), "after\n", code)

    def test_an_interrupt_of_bash_alone(self):
        self.driver.start_words("while :; do :; done")
        time.sleep(0.2)
        self.assertTrue(self.driver.finish_interrupted().result["interrupted"])

    def test_between_steps_nothing_happens(self):
        self.out("true")
        for _ in range(20):
            self.driver.interrupt()
        self.assertEqual(self.out("echo a"), "a\n")
        self.driver.send_bytes(b"3")
        time.sleep(0.05)
        self.driver.interrupt()
        time.sleep(0.05)
        self.driver.last_id = 3
        self.driver.send_bytes(b"\0echo in")
        time.sleep(0.05)
        self.driver.interrupt()
        time.sleep(0.05)
        self.driver.send_bytes(b" two\0")
        self.assertEqual(self.driver.finish().stdout, "in two\n")

    def test_a_trap_of_the_steps_own(self):
        self.driver.start_words("trap 'echo mine' INT; sh -c 'echo up; exec sleep 60'; echo on")
        self.driver.wait_printed("up\n")
        self.interrupt_all()
        self.assertEqual(self.driver.finish().stdout, "up\nmine\non\n")
        self.interrupted("sleep 60")

    def test_at_any_moment(self):
        for _ in range(50):
            self.driver.start_words("f() { :; }; f; f; f")
            self.driver.interrupt()
            self.assertIn(self.driver.finish().result["status"], (0, 130))
        self.assertEqual(self.out("echo a"), "a\n")
