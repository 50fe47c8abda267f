/*
 * What Node 20 printed, without most of its own frames.
 */
#include "runtime/samples.h"

/* clang-format off */
static const struct sample samples[] = {
	{
		.what = "a type error",
		.err = "/sandbox/main.js:2\n"
		       "  return x.y.z;\n"
		       "             ^\n\n"
		       "TypeError: Cannot read properties of undefined (reading 'z')\n"
		       "    at f (/sandbox/main.js:2:14)\n"
		       "    at Object.<anonymous> (/sandbox/main.js:4:1)\n"
		       "    at node:internal/main/run_main_module:28:49\n\n"
		       "Node.js v20.20.2\n",
		.type = "TypeError",
		.message = "Cannot read properties of undefined (reading 'z')",
		.line = 2,
		.trace = "/sandbox/main.js:2\n  return",
	},
	{
		.what = "JSON that ends too early",
		.err = "<anonymous_script>:1\n"
		       "{\n\n"
		       "SyntaxError: Expected property name or '}' in JSON at position 1\n"
		       "    at JSON.parse (<anonymous>)\n"
		       "    at Object.<anonymous> (/sandbox/main.js:3:6)\n"
		       "    at node:internal/main/run_main_module:28:49\n\n"
		       "Node.js v20.20.2\n",
		.type = "SyntaxError",
		.message = "Expected property name or '}' in JSON at position 1",
		.line = 3,
		.trace = "<anonymous_script>:1",
	},
	{
		.what = "two lines of message, properties",
		.err = "/sandbox/main.js:2\n"
		       "function g() { throw new MyError(\"line one\\nline two: x\"); }\n"
		       "               ^\n\n"
		       "MyError: line one\n"
		       "line two: x\n"
		       "    at g (/sandbox/main.js:2:22)\n"
		       "    at Object.<anonymous> (/sandbox/main.js:3:1)\n"
		       "    at node:internal/main/run_main_module:28:49 {\n"
		       "  code: 'E_X',\n"
		       "  extra: { a: 1 }\n"
		       "}\n\n"
		       "Node.js v20.20.2\n",
		.type = "MyError",
		.message = "line one\nline two: x",
		.line = 2,
		.trace = "/sandbox/main.js:2",
	},
	{
		.what = "a cause",
		.err = "/sandbox/main.js:1\n"
		       "try { null.x } catch (e) { throw new Error(\"outer\", {cause: e}); }\n"
		       "                           ^\n\n"
		       "Error: outer\n"
		       "    at Object.<anonymous> (/sandbox/main.js:1:34)\n"
		       "    ... 4 lines matching cause stack trace ...\n"
		       "    at node:internal/main/run_main_module:28:49 {\n"
		       "  [cause]: TypeError: Cannot read properties of null (reading 'x')\n"
		       "      at Object.<anonymous> (/sandbox/main.js:1:12)\n"
		       "      at node:internal/main/run_main_module:28:49\n"
		       "}\n\n"
		       "Node.js v20.20.2\n",
		.type = "Error",
		.message = "outer",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "many errors",
		.err = "/sandbox/main.js:1\n"
		       "throw new AggregateError([new Error(\"a\"), new TypeError(\"b\")], "
		       "\"agg\")\n"
		       "^\n\n"
		       "AggregateError: agg\n"
		       "    at Object.<anonymous> (/sandbox/main.js:1:7)\n"
		       "    at Module._compile (node:internal/modules/cjs/loader:1521:14)\n"
		       "    at Module._extensions..js "
		       "(node:internal/modules/cjs/loader:1623:10)\n"
		       "    at Module.load (node:internal/modules/cjs/loader:1266:32)\n"
		       "    at Module._load (node:internal/modules/cjs/loader:1091:12)\n"
		       "    at Function.executeUserEntryPoint [as runMain] "
		       "(node:internal/modules/run_main:164:12)\n"
		       "        at node:internal/main/run_main_module:28:49\n"
		       "  ]\n"
		       "}\n\n"
		       "Node.js v20.20.2\n",
		.type = "AggregateError",
		.message = "agg",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "a code in brackets; thrown in the library",
		.err = "node:assert:90\n"
		       "  throw new AssertionError(obj);\n"
		       "  ^\n\n"
		       "AssertionError [ERR_ASSERTION]: Expected values to be strictly "
		       "equal:\n\n"
		       "1 !== 2\n\n"
		       "    at Object.<anonymous> (/sandbox/main.js:1:40)\n"
		       "    at node:internal/main/run_main_module:28:49 {\n"
		       "  generatedMessage: true,\n"
		       "  code: 'ERR_ASSERTION',\n"
		       "  actual: 1,\n"
		       "  expected: 2,\n"
		       "  operator: 'strictEqual'\n"
		       "}\n\n"
		       "Node.js v20.20.2\n",
		.type = "AssertionError",
		.message = "Expected values to be strictly equal:\n\n1 !== 2",
		.line = 1,
		.trace = "node:assert:90",
	},
	{
		.what = "a module that is not there",
		.err = "node:internal/modules/cjs/loader:1210\n"
		       "  throw err;\n"
		       "  ^\n\n"
		       "Error: Cannot find module './nope'\n"
		       "Require stack:\n"
		       "- /sandbox/main.js\n"
		       "    at Object.<anonymous> (/sandbox/main.js:1:1)\n"
		       "  code: 'MODULE_NOT_FOUND',\n"
		       "  requireStack: [ '/sandbox/main.js' ]\n"
		       "}\n\n"
		       "Node.js v20.20.2\n",
		.type = "Error",
		.message = "Cannot find module './nope'\nRequire stack:\n- /sandbox/main.js",
		.line = 1,
		.trace = "node:internal",
	},
	{
		.what = "a helper throws: the line is the program's",
		.err = "/sandbox/lib.js:1\n"
		       "exports.b = function() { throw new EvalError(\"from lib\") }\n"
		       "                         ^\n\n"
		       "EvalError: from lib\n"
		       "    at exports.b (/sandbox/lib.js:1:32)\n"
		       "    at Object.<anonymous> (/sandbox/main.js:3:18)\n"
		       "    at node:internal/main/run_main_module:28:49\n\n"
		       "Node.js v20.20.2\n",
		.type = "EvalError",
		.message = "from lib",
		.line = 3,
		.trace = "/sandbox/lib.js:1",
	},
	{
		.what = "a syntax error",
		.err = "/sandbox/main.js:1\n"
		       "let x = ;\n"
		       "        ^\n\n"
		       "SyntaxError: Unexpected token ';'\n"
		       "    at node:internal/main/run_main_module:28:49\n\n"
		       "Node.js v20.20.2\n",
		.type = "SyntaxError",
		.message = "Unexpected token ';'",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "no stack",
		.err = "/sandbox/main.js:1\n"
		       "const e = new Error(\"nostack\"); e.stack = undefined; throw e\n"
		       "                                                     ^\n\n"
		       "[Error: nostack]\n\n"
		       "Node.js v20.20.2\n",
		.type = "Error",
		.message = "nostack",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "no message, after a trace that was only printed",
		.err = "Trace: hm\n"
		       "    at Object.<anonymous> (/sandbox/main.js:1:9)\n"
		       "    at node:internal/main/run_main_module:28:49\n"
		       "/sandbox/main.js:1\n"
		       "console.trace(\"hm\"); throw new Error(\"\")\n"
		       "                     ^\n\n"
		       "Error\n"
		       "    at Object.<anonymous> (/sandbox/main.js:1:28)\n"
		       "    at node:internal/main/run_main_module:28:49\n\n"
		       "Node.js v20.20.2\n",
		.type = "Error",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "a string is thrown",
		.err = "\n"
		       "/sandbox/main.js:1\n"
		       "throw \"a string\";\n"
		       "^\n"
		       "a string\n"
		       "(Use `node --trace-uncaught ...` to show where the exception was "
		       "thrown)\n\n"
		       "Node.js v20.20.2\n",
		.type = "Uncaught",
		.message = "a string",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "an object is thrown",
		.err = "\n"
		       "/sandbox/main.js:1\n"
		       "throw {code: 3, msg: \"x\"};\n"
		       "^\n"
		       "{ code: 3, msg: 'x' }\n\n"
		       "Node.js v20.20.2\n",
		.type = "Uncaught",
		.message = "{ code: 3, msg: 'x' }",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "null is thrown",
		.err = "\n"
		       "/sandbox/main.js:1\n"
		       "throw null\n"
		       "^\n"
		       "null\n"
		       "(Use `node --trace-uncaught ...` to show where the exception was "
		       "thrown)\n\n"
		       "Node.js v20.20.2\n",
		.type = "Uncaught",
		.message = "null",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "rejected",
		.err = "/sandbox/main.js:1\n"
		       "Promise.reject(new RangeError(\"rejected\"));\n"
		       "               ^\n\n"
		       "RangeError: rejected\n"
		       "    at Object.<anonymous> (/sandbox/main.js:1:16)\n"
		       "    at node:internal/main/run_main_module:28:49\n\n"
		       "Node.js v20.20.2\n",
		.type = "RangeError",
		.message = "rejected",
		.line = 1,
		.trace = "/sandbox/main.js:1",
	},
	{
		.what = "an error on its way to a listener",
		.err = "\n"
		       "node:internal/event_target:1105\n"
		       "  process.nextTick(() => { throw err; });\n"
		       "                           ^\n"
		       "[worker eval]:1\n"
		       "throw new Error(\"w\")\n"
		       "^\n\n"
		       "Error: w\n"
		       "    at [worker eval]:1:7\n"
		       "    at runScriptInThisContext (node:internal/vm:209:10)\n"
		       "    at node:internal/process/execution:118:14\n"
		       "    at [worker eval]-wrapper:6:24\n"
		       "    at runScript (node:internal/process/execution:101:62)\n"
		       "    at evalScript (node:internal/process/execution:133:3)\n"
		       "    at MessagePort.<anonymous> "
		       "(node:internal/main/worker_thread:173:9)\n"
		       "    at [nodejs.internal.kHybridDispatch] "
		       "(node:internal/event_target:831:20)\n"
		       "    at MessagePort.<anonymous> "
		       "(node:internal/per_context/messageport:23:28)\n"
		       "Emitted 'error' event on Worker instance at:\n"
		       "    at [kOnErrorMessage] (node:internal/worker:333:10)\n"
		       "    at [kOnMessage] (node:internal/worker:344:37)\n"
		       "    at MessagePort.<anonymous> (node:internal/worker:233:57)\n"
		       "    at [nodejs.internal.kHybridDispatch] "
		       "(node:internal/event_target:831:20)\n"
		       "    at MessagePort.<anonymous> "
		       "(node:internal/per_context/messageport:23:28)\n\n"
		       "Node.js v20.20.2\n",
		.type = "Error",
		.message = "w",
		.trace = "[worker eval]:1",
	},
	{
		.what = "the heap is full",
		.err = "\n"
		       "<--- Last few GCs --->\n\n"
		       "[2:0x7723bc0]      159 ms: Mark-Compact 63.6 (96.3) -> 55.9 (88.7) MB, "
		       "3.46 / 0.00 ms  (average mu = 0.826, current mu = 0.829) allocation "
		       "failure; scavenge might not succeed\n"
		       "[2:0x7723bc0]      179 ms: Mark-Compact 63.6 (96.3) -> 63.5 (95.8) MB, "
		       "12.88 / 0.00 ms  (average mu = 0.583, current mu = 0.340) allocation "
		       "failure; scavenge might not succeed\n\n\n"
		       "<--- JS stacktrace --->\n\n"
		       "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap "
		       "out of memory\n"
		       "----- Native stack trace -----\n\n"
		       " 1: 0xb78db3 node::OOMErrorHandler(char const*, v8::OOMDetails const&) "
		       "[/usr/bin/node]\n"
		       " 2: 0xee8300 v8::Utils::ReportOOMFailure(v8::internal::Isolate*, char "
		       "const*, v8::OOMDetails const&) [/usr/bin/node]\n",
		.type = "OutOfMemory",
		.message = "Reached heap limit Allocation failed - JavaScript heap out "
			   "of memory",
		.trace = "FATAL ERROR",
	},
	{
		.what = "what looks like an error but was printed",
		.err = "TypeError: fake\n"
		       "    at main.js:1:1\n",
	},
	{
		.what = "a warning",
		.err = "w\n"
		       "(node:2) Warning: zz\n"
		       "(Use `node --trace-warnings ...` to show where the warning was "
		       "created)\n",
	},
};
/* clang-format on */

TEST(javascript_failures_are_read)
{
	CHECK(samples_read("javascript", samples, sizeof(samples) / sizeof(samples[0])));
}

static bool finds(struct exception *ret, const char *err)
{
	return sample_read(ret, "javascript", err);
}

TEST(javascript_modules_have_addresses_for_paths)
{
	struct exception ex;

	CHECK(finds(&ex, "file:///sandbox/main.mjs:3\n"
			 "await f();\n"
			 "^\n"
			 "\n"
			 "Error [ERR_X]: no\n"
			 "    at f (file:///sandbox/lib.mjs:9:1)\n"
			 "    at async file:///sandbox/main.mjs:3:1\n"));
	CHECK_STR(ex.type, "Error");
	CHECK_STR(ex.message, "no");
	CHECK_INT(ex.line, 3);
}

TEST(javascript_workers_run_out_of_memory)
{
	struct exception ex;

	CHECK(finds(&ex,
		    "node:events:497\n"
		    "      throw er; // Unhandled 'error' event\n"
		    "      ^\n"
		    "\n"
		    "Error [ERR_WORKER_OUT_OF_MEMORY]: Worker terminated due to reaching memory "
		    "limit: JS heap out of memory\n"
		    "    at [kOnExit] (node:internal/worker:314:26)\n"));
	CHECK(exception_is_memory(&ex));
}

TEST(javascript_programs_may_print_fatal_error)
{
	struct exception ex;

	CHECK(finds(&ex, "FATAL ERROR: out of memory for jokes\n"
			 "/sandbox/main.js:1\n"
			 "x\n"
			 "^\n"
			 "\n"
			 "ReferenceError: x is not defined\n"));
	CHECK_STR(ex.type, "ReferenceError");
	CHECK(!finds(&ex, "FATAL ERROR: cannot reach the database\n"));
}
