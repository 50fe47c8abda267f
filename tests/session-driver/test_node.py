"""The Node driver: src/guest/boot/node/session.js."""
import os
import shutil
import signal
import time
import unittest

import driver

NODE = os.environ.get("VIAL_NODE", shutil.which("node"))


@unittest.skipUnless(NODE, "there is no node")
class NodeCase(driver.Case):
    argv = ["env", "VIAL_SESSION_FD={fd}", NODE or "", os.path.join(driver.BOOT, "node/session.js")]


class Names(NodeCase):
    def test_declarations_outlive_their_step(self):
        self.quiet("const a = 1; let b = 2; var c = 3; function f() { return a + b + c }\n"
                   "class K { get v() { return f() } }")
        self.assertEqual(self.value("new K().v"), 6)

    def test_everything_can_be_declared_again_as_anything(self):
        for code in ("const x = 1", "let x = 2", "var x = 3", "function x() { return 4 }",
                     "class x { static v = 5 }", "const x = await 6", "const { x } = { x: 7 }",
                     "function x() {} await 0", "class x {} await 0", "let x = 8"):
            self.assertNotIn("exception", self.run_step(code).result, code)
        self.assertEqual(self.value("x"), 8)

    def test_a_declaration_begins_without_the_old_value(self):
        self.quiet("let n = 5; var kept = 6")
        self.assertEqual(self.value("let n; var kept; [typeof n, kept]"), ["undefined", 6])
        self.assertEqual(self.value("let n; var kept; await 0; [typeof n, kept]"), ["undefined", 6])

    def test_functions_see_each_other_anew(self):
        self.quiet("function a() { return b() } function b() { return 1 }; void await 0")
        self.quiet("void await 0; function b() { return 2 }")
        self.assertEqual(self.value("a()"), 2)

    def test_patterns_and_loops_declare(self):
        self.quiet("const { a, b: [c, ...d], ...e } = { a: 1, b: [2, 3, 4], f: 5 }, g = await 6;\n"
                   "for (var i = 0; i < 3; i++) await i;\nfor (var w of ['x', await 'y']);\n"
                   "if (true) { var inner = await 7 }\nfor await (const z of [1]);")
        self.assertEqual(self.value("[a, c, d, e, g, i, w, inner]"),
                         [1, 2, [3, 4], {"f": 5}, 6, 3, "y", 7])

    def test_globals_that_are_accessors_can_be_names(self):
        self.quiet("const crypto = require('crypto'); let performance = 1; var navigator = 2")
        self.assertEqual(self.value("[typeof crypto.createHash, performance, navigator]"),
                         ["function", 1, 2])

    def test_what_the_driver_uses_can_be_names(self):
        for code in ("function process(items) { return items.length }", "const process = [1]",
                     "class process {}", "let globalThis = 5", "const console = 1, Promise = 2"):
            self.quiet(code)
            self.assertEqual(self.value("1 + 1"), 2, code)
        self.assertEqual(self.value("process", globals={"process": 5}), 5)
        self.assertEqual(self.value("process"), 5)

    def test_block_scoped_names_stay_in_their_block(self):
        self.quiet("{ let hidden = 1 } for (let j = 0; j < 1; j++);")
        self.assertEqual(self.value("[typeof hidden, typeof j]"), ["undefined", "undefined"])

    def test_a_step_that_fails_keeps_what_it_did(self):
        self.exception("let done = 1; throw new Error('x'); let not = 2")
        self.assertEqual(self.value("[done, typeof not]"), [1, "undefined"])

    def test_strict_mode_is_the_steps_own(self):
        self.assertEqual(self.exception("'use strict'; undeclared = 1")["type"], "ReferenceError")
        self.assertEqual(self.exception("'use strict'; await 0; undeclared = 1")["type"],
                         "ReferenceError")
        self.assertEqual(self.value("undeclared = 1"), 1)

    def test_globals_are_set(self):
        self.assertEqual(self.value("data.n + 1", globals={"data": {"n": 1}}), 2)
        self.assertEqual(self.value("data.n"), 1)

    def test_nothing_of_the_driver_is_in_sight(self):
        self.assertEqual(self.value("[process.argv.length, Object.keys(require.cache).length, "
                                    "'VIAL_SESSION_FD' in process.env, typeof __enter__]"),
                         [1, 0, False, "undefined"])


class Modules(NodeCase):
    def test_require_and_import_start_from_the_working_directory(self):
        self.put("a.js", "exports.n = 1")
        self.put("b.mjs", "export const n = 2; export default 3")
        self.put("node_modules/p/package.json", '{"name": "p", "exports": "./p.mjs"}')
        self.put("node_modules/p/p.mjs", "export const n = 4")
        self.put("sub/a.js", "exports.n = 5")
        self.put("sub/c.mjs", "export const n = 6")
        self.assertEqual(self.value("[require('./a').n, (await import('./b.mjs')).n, "
                                    "(await import('p')).n]"), [1, 2, 4])
        self.quiet("process.chdir('sub')")
        self.assertEqual(self.value("[require('./a').n, (await import('./c.mjs')).n, __dirname]"),
                         [5, 6, self.dir + "/sub"])

    def test_import_declarations(self):
        self.put("b.mjs", "export const n = 2; export default 3")
        self.quiet("import fs, { existsSync as exists } from 'node:fs';\n"
                   "import * as b from './b.mjs'\n"
                   "import three from './b.mjs'; import 'node:path'")
        self.assertEqual(self.value("[fs.existsSync === exists, b.n, three]"), [True, 2, 3])

    def test_a_step_is_the_main_module(self):
        self.assertEqual(self.value("require.main === module"), True)

    def test_a_module_is_loaded_once(self):
        self.put("a.js", "console.log('loading')")
        self.assertEqual(self.quiet("void require('./a')"), "loading\n")
        self.assertEqual(self.quiet("void require('./a')"), "")


class Values(NodeCase):
    def test_what_json_can_say_is_data(self):
        for code, value in (("1 + 1", 2), ("'é\\u2028'", "é\u2028"), ("null", None),
                            ("[1, [true]]", [1, [True]]),
                            ("({ a: { b: [] } })", {"a": {"b": []}}), ("{ a: 1 }", {"a": 1}),
                            ("{ let q = 1 }; 5", 5), ("Object.create(null)", {}),
                            ("let s = [1]; [s, s]", [[1], [1]])):
            self.assertEqual(self.value(code), value, code)

    def test_the_rest_is_text(self):
        for code, text in (("NaN", ("NaN", "number")), ("-0", ("-0", "number")),
                           ("10n", ("10n", "bigint")), ("Symbol('s')", ("Symbol(s)", "symbol")),
                           ("new Map([[1, 2]])", ("Map(1) { 1 => 2 }", "Map")),
                           ("new Date(0)", ("1970-01-01T00:00:00.000Z", "Date")),
                           ("[undefined]", ("[ undefined ]", "Array")),
                           ("[,]", ("[ <1 empty item> ]", "Array")),
                           ("class A { x = 1 }; new A()", ("A { x: 1 }", "A")),
                           ("let o = {}; o.o = o", ("<ref *1> { o: [Circular *1] }", "Object")),
                           ("(function f() {})", ("[Function: f]", "function"))):
            self.assertEqual(self.text(code), text, code)

    def test_a_text_that_json_cannot_say(self):
        text, kind = self.text("'\\ud800'")
        self.assertEqual((text.lower(), kind), ("'\\ud800'", "string"))

    def test_only_a_last_expression_is_a_value(self):
        for code in ("let x = 1", "5; let y = 2", "if (true) { 5 }", "for (const k of [1]) k", "",
                     "undefined", "function f() {}", "class C {}", "// nothing"):
            self.assertEqual(self.quiet(code), "", code)
        self.assertEqual(self.value("5;;"), 5)

    def test_await_and_promises(self):
        self.assertEqual(self.value("await new Promise(r => setTimeout(r, 10, 'late'))"), "late")
        self.assertEqual(self.value("async function main() { await 0; return 7 }\nmain()"), 7)
        self.assertEqual(self.value("const t = await 1, u = await 2; t + u // so\n"), 3)

    def test_script_mode_has_no_value(self):
        self.assertEqual(self.quiet("5", mode="script"), "")

    def test_function_mode_returns(self):
        self.assertEqual(self.value("const inside = 2; if (inside) return inside * 21; 1",
                                    mode="function"), 42)
        self.assertEqual(self.value("inside"), 2)
        self.assertEqual(self.value("let result = 5; 6", mode="function"), 5)
        self.assertEqual(self.value("result = 7", mode="function"), 7)
        self.assertEqual(self.quiet("let unrelated = 5; 6", mode="function"), "")

    def test_a_step_can_be_checked_only(self):
        self.assertEqual(self.quiet("console.log(1); await 2", check_only=True), "")
        self.assertEqual(self.exception("\n)", check_only=True)["line"], 2)

    def test_a_large_value_is_cut(self):
        step = self.run_step("'x'.repeat(2000)", value_max=1000)
        self.assertTrue(step.result["cut"])
        self.assertLess(len(step.result["value"]["text"]), 1000)

    def test_a_value_that_cannot_be_looked_at(self):
        bad = "({ [require('util').inspect.custom]() { throw 1 } })"
        self.assertIn("cannot be inspected", self.text(bad)[0])
        self.assertEqual(self.text("new Proxy({}, { ownKeys() { throw 1 } })")[1], "Object")

    def test_a_deep_value(self):
        self.assertEqual(self.text("let deep = []; for (let i = 0; i < 1e5; i++) deep = [deep]; "
                                   "deep")[1],
                         "Array")


class Exceptions(NodeCase):
    def test_an_exception_is_structured_and_has_no_frames_of_ours(self):
        said = self.exception("function inner() {\n  throw new TypeError('bad')\n}\ninner()",
                              name="cell.js")
        self.assertEqual((said["type"], said["message"], said["line"]), ("TypeError", "bad", 2))
        self.assertEqual(said["traceback"], "TypeError: bad\n    at inner (cell.js:2:9)\n"
                         "    at cell.js:4:1")
        frames = [(frame["name"], frame["line"], frame["source"]) for frame in said["frames"]]
        self.assertEqual(frames, [("<anonymous>", 4, "inner()"),
                                  ("inner", 2, "throw new TypeError('bad')")])

    def test_an_exception_after_an_await(self):
        said = self.exception("await 0;\nconst f = async () => { await 0; null.x };\nawait f()")
        self.assertEqual((said["type"], said["line"]), ("TypeError", 2))
        self.assertRegex(said["traceback"].split("\n", 1)[1],
                         "^    at f \\(<step 1>:2:\\d+\\)\n    at async <step 1>:3:\\d+$")

    def test_lines_are_as_written(self):
        for code in ("#!/usr/bin/env node\nthrow new Error('x')",
                     "class A {\n}; throw new Error('x')",
                     "const a = `\n`; throw await new Error('x')",
                     "function q() {}; await 0;\nq(1); boom()",
                     "import {\nreadFileSync } from 'fs'; throw new Error('x')"):
            self.assertEqual(self.exception(code)["line"], 2, code)

    def test_a_syntax_error_names_its_line(self):
        said = self.exception("let ok = 1;\nlet = = 2")
        self.assertEqual((said["type"], said["line"]), ("SyntaxError", 2))
        self.assertNotIn("session", said["traceback"])
        self.assertEqual(self.exception("await 1; )")["message"], "Unexpected token ')'")
        self.assertEqual(self.exception("return 5")["message"], "Illegal return statement")
        self.assertEqual(self.exception("let a; let a")["message"],
                         "Identifier 'a' has already been declared")

    def test_what_is_thrown_may_be_anything(self):
        self.assertEqual(self.exception("throw 5")["message"], "5")
        self.assertEqual(self.exception("throw undefined")["message"], "undefined")
        self.assertEqual(self.exception("throw { get stack() { throw 1 } }")["type"], "Object")
        said = self.exception("class MyError extends Error {}; throw new MyError('m')")
        self.assertEqual(said["type"], "MyError")
        said = self.exception("const e = new Error('e'); e.stack = 5; throw e")
        self.assertEqual(said["message"], "e")

    def test_causes(self):
        said = self.exception("throw new Error('outer', { cause: new RangeError('inner') })")
        self.assertEqual((said["cause"]["type"], said["cause"]["message"]), ("RangeError", "inner"))
        self.assertNotIn("traceback", said["cause"])

    def test_a_stack_overflow(self):
        self.assertEqual(self.exception("function f() { f() } f()")["type"], "RangeError")

    def test_exceptions_in_the_background_are_printed(self):
        step = self.run_step("setTimeout(() => { throw new Error('late') }, 1);\n"
                             "Promise.reject(new Error('lost'));\n"
                             "process.nextTick(() => { throw 3 });\n"
                             "await new Promise(r => setTimeout(r, 30)); 'done'")
        self.assertEqual(step.result["value"]["json"], "done")
        for text in ("Uncaught Error: late", "Uncaught Error: lost", "Uncaught 3"):
            self.assertIn(text, step.stderr)
        self.assertEqual(self.value("1"), 1)

    def test_a_script_ends_with_an_exception_that_nobody_catches(self):
        self.assertEqual(self.exception("setTimeout(() => { throw new Error('late') }, 1)",
                                        mode="script")["message"], "late")
        for code in ("async function main() { await 1; throw new Error('soon') }\nmain()",
                     "(async () => { throw new Error('soon') })()",
                     "Promise.reject(new Error('soon')); setTimeout(() => {}, 100)",
                     "queueMicrotask(() => { throw new Error('soon') })",
                     "process.nextTick(() => { throw new Error('soon') })"):
            self.assertEqual(self.exception(code, mode="script")["message"], "soon", code)
            self.assertEqual(self.value("1"), 1)

    def test_waiting_for_what_never_comes_is_an_exception(self):
        self.assertIn("nothing is left", self.exception("await new Promise(() => {})")["message"])


class Loop(NodeCase):
    def test_timers_wait_for_the_next_step(self):
        self.quiet("globalThis.n = 0; void setInterval(() => { n++ }, 1000)")
        time.sleep(1.3)
        self.assertEqual(self.value("n"), 1)  # the loop stood still, and has turned once

    def test_a_script_lasts_until_nothing_is_left(self):
        out = self.quiet("setTimeout(() => console.log('later'), 30);\n"
                         "require('child_process').exec('echo child', (e, out) => "
                         "console.log(out))",
                         mode="script")
        self.assertEqual(sorted(out.split()), ["child", "later"])

    def test_a_cell_ends_with_its_value(self):
        self.assertEqual(self.value("setTimeout(() => {}, 60000); 1"), 1)


class Output(NodeCase):
    def test_all_that_was_printed_is_there_with_the_result(self):
        self.assertEqual(len(self.quiet("process.stdout.write('x'.repeat(1 << 20)); undefined")),
                         1 << 20)
        step = self.run_step("console.log('out'); console.error('err')")
        self.assertEqual((step.stdout, step.stderr), ("out\n", "err\n"))

    def test_closed_descriptors_are_mended(self):
        self.run_step("require('fs').closeSync(1); require('fs').closeSync(2); "
                      "process.stdin.destroy()")
        step = self.run_step("console.log('a'); console.error('b');\n"
                             "require('child_process').execSync('echo c', { stdio: 'inherit' })")
        self.assertEqual((step.stdout, step.stderr), ("a\nc\n", "b\n"))

    def test_an_ended_stream_is_mended(self):
        self.run_step("process.stdout.end('last\\n'); process.stderr.destroy()")
        step = self.run_step("console.log('a'); console.error('b'); process.stdout.write('c')")
        self.assertEqual((step.stdout, step.stderr), ("a\nc", "b\n"))

    def test_children_do_not_hold_the_channel(self):
        here = "/proc/%d/fd/" % self.driver.pid
        links = [os.readlink(here + fd) for fd in os.listdir(here)]
        out = self.quiet("const { execSync } = require('child_process');\n"
                         "console.log(execSync('ls -l /proc/self/fd').toString())")
        self.assertEqual([link for link in links if link.startswith("socket") and link in out], [])


class Callbacks(NodeCase):
    def test_a_call_goes_out_and_comes_back(self):
        self.assertEqual(self.value("await add(2, [3])", {"add": lambda a, b: [a, b]}), [2, [3]])
        self.assertEqual(self.value("add(1, 1)", {"add": lambda a, b: a + b}), 2)

    def test_several_calls_are_open_at_once(self):
        self.driver.start("await Promise.all([get(1), get(2), get(3)])", callbacks=["get"])
        calls = [self.driver.receive() for _ in range(3)]
        for call in reversed(calls):
            self.driver.send({"op": "return", "call": call["call"], "value": call["args"][0] * 10})
        self.assertEqual(self.driver.finish().result["value"]["json"], [10, 20, 30])

    def test_what_a_callback_raises_is_thrown(self):
        def fail(kind):
            raise {"TypeError": TypeError, "ValueError": ValueError}[kind]("no")
        self.quiet("try { await fail('TypeError') } catch {}", {"fail": fail})
        for kind, name, message in (("TypeError", "TypeError", "no"),
                                    ("ValueError", "CallbackError", "ValueError: no")):
            said = self.exception("await fail('%s')" % kind, {"fail": fail})
            self.assertEqual((said["type"], said["message"]), (name, message))

    def test_a_call_without_await_is_made_before_the_end(self):
        step = self.run_step("note('a'); note('b').then(() => note('c')); 5",
                             {"note": lambda text: None})
        self.assertEqual([call["args"] for call in step.calls], [["a"], ["b"], ["c"]])
        self.assertEqual(step.result["value"]["json"], 5)

    def test_calls_are_limited(self):
        said = self.exception("for (let i = 0; i < 3; i++) await f(i)", {"f": lambda i: i},
                              calls_max=2)
        self.assertEqual(said["message"], "Exceeded max tool calls (2)")
        said = self.exception("await f('x'.repeat(200))", {"f": lambda i: i}, value_max=100)
        self.assertEqual(said["type"], "RangeError")
        self.assertEqual(self.exception("await f(1n)", {"f": None})["type"], "TypeError")

    def test_callbacks_stay_until_they_are_removed(self):
        self.quiet("", {"f": None})
        self.assertEqual(self.value("typeof f"), "function")
        self.assertEqual(self.value("typeof f", callbacks=[]), "undefined")

    def test_an_interrupted_call_may_return_later(self):
        self.driver.start("await f()", callbacks=["f"])
        call = self.driver.receive()
        self.driver.interrupt()
        self.assertEqual(self.driver.finish().result, {"op": "result", "id": 1,
                                                       "interrupted": True})
        self.assertEqual(self.value("1"), 1)
        self.driver.send({"op": "return", "call": call["call"], "value": 1})
        self.assertEqual(self.value("await f(2)", {"f": lambda n: n}), 2)


class Ends(NodeCase):
    def test_an_exit_is_the_end(self):
        step = self.run_step("console.log('x'); process.exit(3)")
        self.assertEqual((step.result["exit_code"], step.stdout), (3, "x\n"))
        self.assertEqual(self.driver.wait(), 3)

    def test_an_exit_from_a_timer(self):
        step = self.run_step("setTimeout(() => process.exit(4), 5); await new Promise(r => "
                             "setTimeout(r, 9999))")
        self.assertEqual(step.result["exit_code"], 4)

    def test_a_sudden_death_says_nothing(self):
        self.assertIsNone(self.run_step("process.reallyExit(5)").result)
        self.assertEqual(self.driver.wait(), 5)

    def test_it_ends_with_its_channel(self):
        self.quiet("void setInterval(() => {}, 1000)")
        self.assertEqual(self.driver.hang_up(), 0)

    def test_it_ends_with_its_channel_while_a_call_is_open(self):
        self.driver.start("await f()", callbacks=["f"])
        self.driver.receive()
        self.assertEqual(self.driver.hang_up(), 0)

    def test_hostile_steps_do_not_break_later_ones(self):
        self.run_step("process.removeAllListeners(); JSON.stringify = JSON.parse = null;\n"
                      "require('fs').readSync = require('fs').writeSync = null;\n"
                      "process.exit = console.log = null;\n"
                      "globalThis.setImmediate = globalThis.setTimeout = null;\n"
                      "process._tickCallback = null; Error.prepareStackTrace = () => { throw 1 };\n"
                      "globalThis.Promise = null; globalThis.Buffer = null; undefined")
        self.assertEqual(self.value("await 1"), 1)
        self.assertEqual(self.exception("null.x")["type"], "TypeError")


class Interrupts(NodeCase):
    def test_loops_without_end(self):
        for code in ("while (true) {}", "await 0; while (true) {}", "for (;;) await 0",
                     "try { for (;;); } finally { while (true) {} }",
                     "process.nextTick(() => { for (;;); }); await 0",
                     "(async () => { await null; for (;;); })()",
                     "({ get [Symbol.toStringTag]() { for (;;); } })",
                     "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"):
            self.quiet("var before = %s" % repr(code))
            step = self.interrupted(code)
            self.assertEqual(set(step.result), {"op", "id", "interrupted"}, code)
            self.assertEqual((self.value("before"), self.value("await 2")), (code, 2), code)

    def test_a_loop_that_prints(self):
        for _ in range(3):
            step = self.interrupted("for (;;) console.log('x')", 0.1)
            self.assertTrue(step.result["interrupted"])
            self.assertEqual(self.quiet("console.log('after')"), "after\n")

    def test_a_loop_that_calls(self):
        self.driver.start("console.log('on'); for (;;) f()", callbacks=["f"], calls_max=1e9)
        self.driver.wait_printed("on\n")
        time.sleep(0.1)  # some calls: none is sent before the loop has ended
        self.driver.interrupt()
        self.assertTrue(self.driver.finish({"f": lambda: None}).result["interrupted"])
        self.assertEqual(self.value("await f()", {"f": lambda: 1}), 1)

    def test_a_loop_after_a_call(self):
        self.driver.start("await f(); console.log('on'); for (;;);", callbacks=["f"])
        call = self.driver.receive()
        self.driver.send({"op": "return", "call": call["call"], "value": 1})
        self.driver.wait_printed("on\n")
        self.driver.interrupt()
        self.assertTrue(self.driver.finish().result["interrupted"])

    def test_a_step_that_waits(self):
        step = self.interrupted("let at = 1; await new Promise(r => setTimeout(r, 60000)); at = 2")
        self.assertTrue(step.result["interrupted"])
        self.assertEqual(self.value("at"), 1)

    def test_a_script_that_does_not_end(self):
        step = self.interrupted("setInterval(() => {}, 10)", mode="script")
        self.assertTrue(step.result["interrupted"])

    def test_between_steps_nothing_happens(self):
        self.value("1")
        for _ in range(20):
            self.driver.interrupt()
        time.sleep(0.05)
        self.assertEqual(self.value("await new Promise(r => setTimeout(r, 50, 5))"), 5)
        os.kill(self.driver.pid, signal.SIGINT)
        self.assertEqual(self.value("6"), 6)


class Long(NodeCase):
    def test_many_steps_take_no_more_memory(self):
        sizes = []
        for _ in range(2):
            for i in range(300):
                self.run_step("const v%d = %d; let w = await v%d" % (i % 10, i, i % 10))
            sizes.append(self.value("process.memoryUsage().rss >> 20"))
        self.assertLess(sizes[1] - sizes[0], 10)

    def test_a_large_step(self):
        self.assertEqual(self.value("'%s'.length" % ("x" * 3000000)), 3000000)
