"""The Ruby driver: src/guest/boot/ruby/session.rb."""
import os
import shutil
import unittest

import driver

RUBY = os.environ.get("VIAL_RUBY", shutil.which("ruby"))


@unittest.skipUnless(RUBY, "there is no ruby")
class RubyCase(driver.Case):
    argv = ["env", "VIAL_SESSION_FD={fd}", RUBY or "", os.path.join(driver.BOOT, "ruby/session.rb")]


class Names(RubyCase):
    def test_names_outlive_their_step(self):
        self.quiet("a = 1; @b = 2; $c = 3; D = 4\ndef f = D\nclass K; def v = f + $c; end; nil")
        self.assertEqual(self.value("[a, @b, $c, K.new.v]"), [1, 2, 3, 7])

    def test_classes_can_be_reopened(self):
        self.quiet("class K; def a = 1; end; nil")
        self.quiet("class K; def b = a + 1; end; nil")
        self.assertEqual(self.value("K.new.b"), 2)

    def test_the_working_directory_stays(self):
        self.put("sub/a.rb", "N = 5")
        self.quiet("Dir.chdir('sub'); nil")
        self.assertEqual(self.value("require './a'; [N, Dir.pwd]"), [5, self.dir + "/sub"])
        self.assertEqual(self.value("require_relative 'a'"), False)

    def test_globals_are_set(self):
        self.assertEqual(self.value("data['n'] + 1", globals={"data": {"n": 1}}), 2)

    def test_globals_that_cannot_be_are_exceptions(self):
        self.quiet("kept = 1; nil")
        for name in ("B", "@x", "a b", ""):
            self.assertEqual(self.exception("1", globals={name: 3})["type"], "NameError", name)
        self.assertEqual(self.value("kept"), 1)

    def test_methods_named_like_those_that_the_driver_uses(self):
        self.quiet("def eval(*) = 42; def trap(a, b) = a; def exit(*) = 43; def lambda = 44; nil")
        self.assertEqual(self.value("x = 5; x + 1"), 6)
        self.assertEqual(self.value("return x + 2", mode="function"), 7)
        self.assertEqual(self.value("[eval('1'), trap(1, 2), exit, lambda]"), [42, 1, 43, 44])

    def test_nothing_of_the_driver_is_in_sight(self):
        self.assertEqual(self.value("[defined?(VialSession).nil?, ENV.key?('VIAL_SESSION_FD'), "
                                    "local_variables, Thread.list.size]"), [True, False, [], 1])

    def test_a_step_is_the_program(self):
        self.assertEqual(self.value("__FILE__ == $0"), True)


class Values(RubyCase):
    def test_what_json_can_say_is_data(self):
        for code, value in (("1 + 1", 2), ("'é'", "é"), ("[1, [true, nil]]", [1, [True, None]]),
                            ("{'a' => {'b' => 1.5}}", {"a": {"b": 1.5}}), ("x = 5", 5)):
            self.assertEqual(self.value(code), value, code)

    def test_the_rest_is_text(self):
        for code, text in ((":s", (":s", "Symbol")), ("{a: 1}", ("{:a=>1}", "Hash")),
                           ("1r", ("(1/1)", "Rational")), ("Float::NAN", ("NaN", "Float")),
                           ("\"\\xff\"", ('"\\xFF"', "String")),
                           ("2**70", (str(2 ** 70), "Integer")),
                           ("(1..3)", ("1..3", "Range")), ("def m; end", (":m", "Symbol")),
                           ("a = []; a << a", ("[[...]]", "Array"))):
            self.assertEqual(self.text(code), text, code)

    def test_nil_is_no_value(self):
        self.assertEqual(self.quiet("nil"), "")
        self.assertEqual(self.quiet(""), "")
        self.assertEqual(self.quiet("puts 5"), "5\n")

    def test_modes(self):
        self.assertEqual(self.quiet("5", mode="script"), "")
        self.assertEqual(self.value("kept = 2\nif kept then return kept * 21 end\n1",
                                    mode="function"), 42)
        self.assertEqual(self.value("kept"), 2)
        self.assertEqual(self.value("result = 5; 6", mode="function"), 5)
        self.assertEqual(self.quiet("other = 5; 6", mode="function"), "")
        self.assertEqual(self.exception("return )", mode="function")["type"], "SyntaxError")

    def test_a_step_can_be_checked_only(self):
        self.assertEqual(self.quiet("puts 1", check_only=True), "")
        self.assertEqual(self.exception("\n)", check_only=True)["line"], 2)

    def test_a_large_value_is_cut(self):
        step = self.run_step("'x' * 2000", value_max=1000)
        self.assertTrue(step.result["cut"])
        self.assertLess(len(step.result["value"]["text"]), 1000)

    def test_a_large_step(self):
        self.assertEqual(self.value("'%s'.size" % ("x" * 5000000)), 5000000)

    def test_values_that_cannot_be_looked_at(self):
        text, _ = self.text("o = Object.new; def o.inspect = raise('x'); o")
        self.assertIn("cannot be inspected", text)
        self.assertEqual(self.text("BasicObject.new")[1], "BasicObject")
        self.assertEqual(self.text("o = Object.new; def o.inspect = 5; o")[0], "5")
        self.assertEqual(self.text("d = []; 9999.times { d = [d] }; d")[1], "Array")


class Exceptions(RubyCase):
    def test_an_exception_is_structured_and_has_no_frames_of_ours(self):
        said = self.exception("def inner\n  raise TypeError, 'bad'\nend\ninner", name="cell.rb")
        self.assertEqual((said["type"], said["message"], said["line"]), ("TypeError", "bad", 2))
        self.assertEqual(said["traceback"], "cell.rb:2:in `inner': bad (TypeError)\n"
                         "\tfrom cell.rb:4:in `<main>'")
        frames = [(frame["name"], frame["line"], frame["source"]) for frame in said["frames"]]
        self.assertEqual(frames, [("<main>", 4, "inner"), ("inner", 2, "raise TypeError, 'bad'")])

    def test_a_syntax_error_names_its_line(self):
        said = self.exception("ok = 1\nx = )")
        self.assertEqual((said["type"], said["line"]), ("SyntaxError", 2))
        self.assertNotIn("session", said["traceback"])

    def test_odd_exceptions(self):
        self.assertEqual(self.exception("def f = f\nf")["type"], "SystemStackError")
        self.assertEqual(self.exception("throw :x")["type"], "UncaughtThrowError")
        self.assertEqual(self.exception("e = RuntimeError.new('x'); def e.message = raise('y'); "
                                        "raise e")["type"],
                         "RuntimeError")
        self.assertEqual(self.exception("raise Exception, \"a\\nb\"")["message"], "a\nb")
        self.assertEqual(self.exception("undefined_thing")["type"], "NameError")
        self.assertIn("exception", self.run_step("raise Class.new(StandardError)").result)
        self.assertIn("exception", self.run_step("return").result)

    def test_causes(self):
        said = self.exception("begin; raise 'inner'; rescue; raise ArgumentError, 'outer'; end")
        self.assertEqual((said["type"], said["cause"]["message"]), ("ArgumentError", "inner"))
        self.assertNotIn("traceback", said["cause"])


class Output(RubyCase):
    def test_all_that_was_printed_is_there_with_the_result(self):
        self.assertEqual(len(self.quiet("print 'x' * (1 << 20)")), 1 << 20)
        step = self.run_step("puts 'out'; warn 'err'; $stdout.sync = false; print 'late'; nil")
        self.assertEqual((step.stdout, step.stderr), ("out\nlate", "err\n"))

    def test_closed_descriptors_are_mended(self):
        for code in ("STDOUT.close; STDERR.close; nil", "require 'fiddle'\n"
                     "c = Fiddle::Function.new(Fiddle::Handle::DEFAULT['close'], [4], 4)\n"
                     "c.call(1); c.call(2); nil",
                     "$stdout = $stderr = File.open('/dev/null', 'w'); nil",
                     "$stdout.reopen('/dev/null'); nil"):
            self.run_step(code)
            step = self.run_step("puts 'a'; warn 'b'; system('echo c'); nil")
            self.assertEqual((step.stdout, step.stderr), ("a\nc\n", "b\n"), code)

    def test_children_do_not_hold_the_channel(self):
        here = "/proc/%d/fd/" % self.driver.pid
        links = [os.readlink(here + fd) for fd in os.listdir(here)]
        out = self.quiet("system('ls -l /proc/self/fd'); "
                         "Process.wait(fork { puts Dir['/proc/self/fd/*'].map { File.readlink(_1) "
                         "rescue 0 } }); nil")
        self.assertEqual([link for link in links if link.startswith("socket") and link in out], [])


class Callbacks(RubyCase):
    def test_a_call_goes_out_and_comes_back(self):
        self.assertEqual(self.value("add(2, b: [3])", {"add": lambda a, b: [a, b]}), [2, [3]])
        self.assertEqual(self.value("class Q; def m = add(1, b: 2); end; Q.new.m",
                                    {"add": lambda a, b: a + b}), 3)

    def test_several_calls_are_open_at_once(self):
        self.driver.start("(1..3).map { |n| Thread.new { get(n) } }.map(&:value)",
                          callbacks=["get"])
        calls = [self.driver.receive() for _ in range(3)]
        for call in reversed(calls):
            self.driver.send({"op": "return", "call": call["call"], "value": call["args"][0] * 10})
        self.assertEqual(self.driver.finish().result["value"]["json"], [10, 20, 30])

    def test_what_a_callback_raises_is_raised(self):
        def fail(kind):
            raise {"TypeError": TypeError, "ValueError": ValueError}[kind]("no")
        for kind, name, message in (("TypeError", "TypeError", "no"),
                                    ("ValueError", "CallbackError", "ValueError: no")):
            said = self.exception("\nfail('%s')" % kind, {"fail": fail})
            self.assertEqual((said["type"], said["message"], said["line"]), (name, message, 2))
            self.assertNotIn("session.rb", said["traceback"])

    def test_calls_are_limited(self):
        said = self.exception("3.times { |i| f(i) }", {"f": lambda i: i}, calls_max=2)
        self.assertEqual((said["type"], said["message"]),
                         ("RuntimeError", "Exceeded max tool calls (2)"))
        self.assertEqual(self.exception("f('x' * 200)", {"f": None}, value_max=100)["type"],
                         "ArgumentError")

    def test_callbacks_stay_until_they_are_removed(self):
        self.quiet("", {"f": None})
        self.assertEqual(self.value("respond_to?(:f, true)"), True)
        self.assertEqual(self.value("respond_to?(:f, true)", callbacks=[]), False)

    def test_an_interrupted_call_may_return_later(self):
        self.driver.start("f", callbacks=["f"])
        call = self.driver.receive()
        self.driver.interrupt()
        self.assertTrue(self.driver.finish().result["interrupted"])
        self.assertEqual(self.value("1"), 1)
        self.driver.send({"op": "return", "call": call["call"], "value": 1})
        self.assertEqual(self.value("f(2)", {"f": lambda n: n}), 2)

    def test_a_call_that_is_left_behind(self):
        self.driver.start("$t = Thread.new { f rescue $!.message }\n"
                          "sleep 0.01 until File.exist?('called'); 1", callbacks=["f"])
        call = self.driver.receive()
        self.put("called", "")
        self.assertEqual(self.driver.finish().result["value"]["json"], 1)
        self.assertIn("is over", self.value("$t.value"))
        self.driver.send({"op": "return", "call": call["call"], "value": 1})
        self.assertEqual(self.value("f", {"f": lambda: 2}), 2)

    def test_a_timeout_around_a_call(self):
        self.driver.start("require 'timeout'\nTimeout.timeout(2) { f }", callbacks=["f"])
        self.driver.receive()
        self.assertEqual(self.driver.finish().result["exception"]["type"], "Timeout::Error")
        self.assertEqual(self.value("f", {"f": lambda: 2}), 2)

    def test_a_fork_does_not_call(self):
        step = self.run_step("Process.wait(fork { begin; f; rescue => e; puts e.class; end }); nil",
                             {"f": None})
        self.assertEqual((step.stdout, step.calls), ("RuntimeError\n", []))


class Ends(RubyCase):
    def test_an_exit_is_the_end(self):
        step = self.run_step("at_exit { puts 'bye' }; puts 'x'; exit 3")
        self.assertEqual((step.result["exit_code"], step.stdout), (3, "x\nbye\n"))
        self.assertEqual(self.driver.wait(), 3)

    def test_abort(self):
        step = self.run_step("abort 'why'")
        self.assertEqual((step.result["exit_code"], step.stderr), (1, "why\n"))

    def test_an_exit_from_a_thread(self):
        self.assertEqual(self.run_step("Thread.new { exit 4 }; sleep").result["exit_code"], 4)

    def test_sudden_deaths_say_nothing(self):
        self.assertIsNone(self.run_step("exit! 5").result)
        self.assertEqual(self.driver.wait(), 5)

    def test_a_signal_is_a_death(self):
        self.assertIsNone(self.run_step("Process.kill(:TERM, $$); sleep").result)
        self.assertEqual(self.driver.wait(), -15)

    def test_it_ends_with_its_channel(self):
        self.assertEqual(self.driver.hang_up(), 0)

    def test_it_ends_with_its_channel_while_a_call_is_open(self):
        self.driver.start("f", callbacks=["f"])
        self.driver.receive()
        self.assertEqual(self.driver.hang_up(), 0)

    def test_a_fork_that_comes_to_the_end_says_nothing(self):
        self.assertEqual(self.value("fork ? (Process.wait; 1) : 2"), 1)
        self.assertEqual(self.value("fork ? (Process.wait; $?.exitstatus) : exit(7)"), 7)
        step = self.run_step("fork ? (Process.wait; $?.exitstatus) : raise('x')")
        self.assertEqual((step.result["value"]["json"], step.stderr),
                         (1, "<step 3>:1:in `<main>': x (RuntimeError)\n"))


class Interrupts(RubyCase):
    def test_loops_without_end(self):
        for code in ("loop {}", "nil while true", "sleep", "loop { puts 'x' }",
                     "system('sleep 60')",
                     "Thread.new { loop {} }.join", "o = Object.new; def o.inspect = loop {}; o",
                     "Mutex.new.then { |m| Thread.new { m.lock; sleep }; sleep 0.1; m.lock }"):
            self.quiet("before = %r; nil" % code)
            step = self.interrupted(code)
            self.assertEqual(set(step.result), {"op", "id", "interrupted", "exception"}, code)
            self.assertEqual(step.result["exception"]["type"], "Interrupt", code)
            self.assertEqual(self.value("Thread.list.each { _1.kill if _1 != Thread.current }; "
                                        "before"), code)

    def test_ensure_runs_and_rescue_can_catch_it(self):
        self.interrupted("begin; sleep; ensure; cleaned = 1; end")
        self.assertEqual(self.value("cleaned"), 1)
        step = self.interrupted("begin; sleep; rescue Interrupt; 'caught'; end")
        self.assertEqual(step.result["value"]["json"], "caught")

    def test_between_steps_nothing_happens(self):
        self.value("1")
        for _ in range(20):
            self.driver.interrupt()
        self.assertEqual(self.value("sleep 0.05; 5"), 5)

    def test_a_trap_of_the_steps_own_is_its_own(self):
        self.quiet("trap('INT') {}; nil")
        self.assertTrue(self.interrupted("sleep").result["interrupted"])

    def test_at_any_moment(self):
        for _ in range(60):
            self.driver.start("f", callbacks=["f"])
            self.driver.interrupt()
            self.driver.finish({"f": lambda: 1})
        self.assertEqual(self.value("f", {"f": lambda: 1}), 1)
