/*
 * What CPython 3.11 printed.
 */
#include "runtime/samples.h"

/* clang-format off */
static const struct sample samples[] = {
	{
		.what = "a function that divides",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 4, in <module>\n"
		       "    f(0)\n"
		       "  File \"/sandbox/main.py\", line 2, in f\n"
		       "    return 1 / x\n"
		       "           ~~^~~\n"
		       "ZeroDivisionError: division by zero\n",
		.type = "ZeroDivisionError",
		.message = "division by zero",
		.line = 2,
		.trace = "Traceback",
	},
	{
		.what = "no message",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 1, in <module>\n"
		       "    raise ValueError\n"
		       "ValueError\n",
		.type = "ValueError",
		.line = 1,
		.trace = "Traceback",
	},
	{
		.what = "the library raises",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 2, in <module>\n"
		       "    json.loads(\"{bad\")\n"
		       "  File \"/usr/lib/python3.11/json/__init__.py\", line 346, in loads\n"
		       "    return _default_decoder.decode(s)\n"
		       "           ^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
		       "  File \"/usr/lib/python3.11/json/decoder.py\", line 337, in decode\n"
		       "    obj, end = self.raw_decode(s, idx=_w(s, 0).end())\n"
		       "               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
		       "  File \"/usr/lib/python3.11/json/decoder.py\", line 353, in "
		       "raw_decode\n"
		       "    obj, end = self.scan_once(s, idx)\n"
		       "               ^^^^^^^^^^^^^^^^^^^^^^\n"
		       "json.decoder.JSONDecodeError: Expecting property name enclosed in "
		       "double quotes: line 1 column 2 (char 1)\n",
		.type = "json.decoder.JSONDecodeError",
		.message = "Expecting property name enclosed in double quotes: line 1 "
			   "column 2 (char 1)",
		.line = 2,
		.trace = "Traceback",
	},
	{
		.what = "a chain: the last one, the whole traceback",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 4, in g\n"
		       "    json.loads(\"{bad\")\n"
		       "  File \"/usr/lib/python3.11/json/__init__.py\", line 346, in loads\n"
		       "    return _default_decoder.decode(s)\n"
		       "           ^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
		       "  File \"/usr/lib/python3.11/json/decoder.py\", line 337, in decode\n"
		       "    obj, end = self.raw_decode(s, idx=_w(s, 0).end())\n"
		       "               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
		       "  File \"/usr/lib/python3.11/json/decoder.py\", line 353, in "
		       "raw_decode\n"
		       "    obj, end = self.scan_once(s, idx)\n"
		       "               ^^^^^^^^^^^^^^^^^^^^^^\n"
		       "json.decoder.JSONDecodeError: Expecting property name enclosed in "
		       "double quotes: line 1 column 2 (char 1)\n\n"
		       "The above exception was the direct cause of the following "
		       "exception:\n\n"
		       "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 8, in <module>\n"
		       "    g()\n"
		       "  File \"/sandbox/main.py\", line 6, in g\n"
		       "    raise KeyError(\"multi\\nline\") from e\n"
		       "KeyError: 'multi\\nline'\n\n"
		       "During handling of the above exception, another exception "
		       "occurred:\n\n"
		       "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 10, in <module>\n"
		       "    raise RuntimeError(\"Error: a\\nsecond line\\n\\nthird: line\")\n"
		       "RuntimeError: Error: a\n"
		       "second line\n\n"
		       "third: line\n",
		.type = "RuntimeError",
		.message = "Error: a\nsecond line\n\nthird: line",
		.line = 10,
		.trace = "Traceback (most recent call last):\n"
			 "  File \"/sandbox/main.py\", line 4, in g",
	},
	{
		.what = "a helper raises: the line is the program's",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 4, in <module>\n"
		       "    helper.broken()\n"
		       "  File \"/sandbox/helper.py\", line 2, in broken\n"
		       "    raise OSError(2, \"nope\", \"x.txt\")\n"
		       "FileNotFoundError: [Errno 2] nope: 'x.txt'\n",
		.type = "FileNotFoundError",
		.message = "[Errno 2] nope: 'x.txt'",
		.line = 4,
		.trace = "Traceback",
	},
	{
		.what = "code from a string",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 1, in <module>\n"
		       "    exec(\"1/0\")\n"
		       "  File \"<string>\", line 1, in <module>\n"
		       "ZeroDivisionError: division by zero\n",
		.type = "ZeroDivisionError",
		.message = "division by zero",
		.line = 1,
		.trace = "Traceback",
	},
	{
		.what = "a syntax error has no traceback",
		.err = "  File \"/sandbox/main.py\", line 2\n"
		       "    print(\"hi\"\n"
		       "          ^^^^\n"
		       "SyntaxError: invalid syntax. Perhaps you forgot a comma?\n",
		.type = "SyntaxError",
		.message = "invalid syntax. Perhaps you forgot a comma?",
		.line = 2,
		.trace = "  File \"/sandbox/main.py\", line 2",
	},
	{
		.what = "indentation",
		.err = "  File \"/sandbox/main.py\", line 2\n"
		       "    print(1)\n"
		       "    ^\n"
		       "IndentationError: expected an indented block after 'if' statement on "
		       "line 1\n",
		.type = "IndentationError",
		.message = "expected an indented block after 'if' statement on line 1",
		.line = 2,
		.trace = "  File",
	},
	{
		.what = "a syntax error in an imported file",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 1, in <module>\n"
		       "    import badmod\n"
		       "  File \"/sandbox/badmod.py\", line 1\n"
		       "    def (:\n"
		       "        ^\n"
		       "SyntaxError: invalid syntax\n",
		.type = "SyntaxError",
		.message = "invalid syntax",
		.line = 1,
		.trace = "Traceback",
	},
	{
		.what = "a group of exceptions",
		.err = "  + Exception Group Traceback (most recent call last):\n"
		       "  |   File \"/sandbox/main.py\", line 3, in <module>\n"
		       "  |     f()\n"
		       "  |   File \"/sandbox/main.py\", line 2, in f\n"
		       "  |     raise ExceptionGroup(\"many\", [ValueError(\"one\"), "
		       "ExceptionGroup(\"inner\", [TypeError(\"two\")])])\n"
		       "  | ExceptionGroup: many (2 sub-exceptions)\n"
		       "  +-+---------------- 1 ----------------\n"
		       "    | ValueError: one\n"
		       "    +---------------- 2 ----------------\n"
		       "    | ExceptionGroup: inner (1 sub-exception)\n"
		       "    +-+---------------- 1 ----------------\n"
		       "      | TypeError: two\n"
		       "      +------------------------------------\n",
		.type = "ExceptionGroup",
		.message = "many (2 sub-exceptions)",
		.line = 2,
		.trace = "  + Exception Group Traceback",
	},
	{
		.what = "out of memory",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 2, in <module>\n"
		       "    while True: x.append(bytearray(10**8))\n"
		       "                         ^^^^^^^^^^^^^^^^\n"
		       "MemoryError\n",
		.type = "MemoryError",
		.line = 2,
		.trace = "Traceback",
	},
	{
		.what = "interrupted",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 1, in <module>\n"
		       "    raise KeyboardInterrupt\n"
		       "KeyboardInterrupt\n",
		.type = "KeyboardInterrupt",
		.line = 1,
		.trace = "Traceback",
	},
	{
		.what = "repeated frames",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 2, in <module>\n"
		       "    f()\n"
		       "  File \"/sandbox/main.py\", line 1, in f\n"
		       "    def f(): f()\n"
		       "             ^^^\n"
		       "  File \"/sandbox/main.py\", line 1, in f\n"
		       "    def f(): f()\n"
		       "             ^^^\n"
		       "  File \"/sandbox/main.py\", line 1, in f\n"
		       "    def f(): f()\n"
		       "             ^^^\n"
		       "  [Previous line repeated 996 more times]\n"
		       "RecursionError: maximum recursion depth exceeded\n",
		.type = "RecursionError",
		.message = "maximum recursion depth exceeded",
		.line = 1,
		.trace = "Traceback",
	},
	{
		.what = "a printed traceback is not the one; a nested class",
		.err = "/sandbox/main.py:2: UserWarning: careful\n"
		       "  warnings.warn(\"careful\")\n"
		       "Traceback (most recent call last):\n"
		       "  File \"main.py\", line 99, in f\n"
		       "FakeError: gotcha\n"
		       "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 11, in <module>\n"
		       "    f()\n"
		       "  File \"/sandbox/main.py\", line 10, in f\n"
		       "    raise Outer.Inner(\"héllo ☃ \\udc80\")\n"
		       "Outer.Inner: héllo ☃ \\udc80\n",
		.type = "Outer.Inner",
		.message = "héllo ☃ \\udc80",
		.line = 10,
		.trace = "Traceback (most recent call last):\n"
			 "  File \"/sandbox/main.py\", line 11",
	},
	{
		.what = "notes belong to the message",
		.err = "Traceback (most recent call last):\n"
		       "  File \"/sandbox/main.py\", line 4, in <module>\n"
		       "    raise e\n"
		       "ValueError: msg\n"
		       "a note: here\n"
		       "Traceback (most recent call last):\n",
		.type = "ValueError",
		.message = "msg\na note: here",
		.line = 4,
		.trace = "Traceback",
	},
	{
		.what = "a thread",
		.err = "Exception in thread Thread-1 (w):\n"
		       "Traceback (most recent call last):\n"
		       "  File \"/usr/lib/python3.11/threading.py\", line 1038, in "
		       "_bootstrap_inner\n"
		       "    self.run()\n"
		       "  File \"/usr/lib/python3.11/threading.py\", line 975, in run\n"
		       "    self._target(*self._args, **self._kwargs)\n"
		       "  File \"/sandbox/main.py\", line 2, in w\n"
		       "    def w(): raise ValueError(\"in thread\")\n"
		       "             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
		       "ValueError: in thread\n",
		.type = "ValueError",
		.message = "in thread",
		.line = 2,
		.trace = "Traceback",
	},
	{
		.what = "the interpreter crashed",
		.err = "Fatal Python error: Segmentation fault\n\n"
		       "Current thread 0x00007f0edf66d040 (most recent call first):\n"
		       "  File \"/sandbox/main.py\", line 1 in <module>\n",
		.type = "FatalError",
		.message = "Segmentation fault",
		.line = 1,
		.trace = "Fatal Python error",
	},
	{
		.what = "a message given to sys.exit() is none",
		.err = "ValueError: not one\n",
	},
};
/* clang-format on */

TEST(python_failures_are_read)
{
	CHECK(samples_read("python", samples, sizeof(samples) / sizeof(samples[0])));
}

static bool finds(struct exception *ret, const char *err)
{
	return sample_read(ret, "python", err);
}

TEST(python_exceptions_that_were_ignored_do_not_count)
{
	struct exception ex;

	CHECK(finds(&ex, "Traceback (most recent call last):\n"
			 "  File \"/sandbox/main.py\", line 8, in f\n"
			 "    raise Local(\"m\")\n"
			 "f.<locals>.Local: m\n"
			 "Exception ignored in: <function D.__del__ at 0x7f71e97245e0>\n"
			 "Traceback (most recent call last):\n"
			 "  File \"/sandbox/main.py\", line 3, in __del__\n"
			 "KeyError: 'in del'\n"));
	CHECK_STR(ex.type, "f.<locals>.Local");
	CHECK_STR(ex.message, "m");
	CHECK_INT(ex.line, 8);
}

TEST(python_threads_that_fail_later_do_not_count)
{
	struct exception ex;

	CHECK(finds(&ex, "Traceback (most recent call last):\n"
			 "  File \"main.py\", line 1, in <module>\n"
			 "KeyError: 'main'\n"
			 "Exception in thread Thread-1:\n"
			 "Traceback (most recent call last):\n"
			 "  File \"main.py\", line 2, in w\n"
			 "ValueError: thread\n"));
	CHECK_STR(ex.type, "KeyError");
}

TEST(python_tracebacks_of_other_processes_are_part_of_the_chain)
{
	static const char err[] =
		"concurrent.futures.process._RemoteTraceback: \n"
		"\"\"\"\n"
		"Traceback (most recent call last):\n"
		"  File \"/sandbox/main.py\", line 2, in f\n"
		"ZeroDivisionError: division by zero\n"
		"\"\"\"\n"
		"\n"
		"The above exception was the direct cause of the following "
		"exception:\n"
		"\n"
		"Traceback (most recent call last):\n"
		"  File \"/sandbox/main.py\", line 5, in <module>\n"
		"  File \"/usr/lib/python3.11/concurrent/futures/_base.py\", line "
		"401, in __get_result\n"
		"ZeroDivisionError: division by zero\n";
	struct exception ex;

	CHECK(finds(&ex, err));
	CHECK_STR(ex.type, "ZeroDivisionError");
	CHECK_INT(ex.line, 5);
	CHECK(strncmp(err + ex.trace_start, "Traceback", 9) == 0);
	CHECK(strstr(err + ex.trace_start, "line 2, in f"));
}

TEST(python_tracebacks_in_a_message_are_part_of_it)
{
	static const char inner[] = "Traceback (most recent call last):\n"
				    "  File \"/sandbox/main.py\", line 2, in <module>\n"
				    "ZeroDivisionError: division by zero\n";
	static const char outer[] = "Traceback (most recent call last):\n"
				    "  File \"/sandbox/main.py\", line 4, in <module>\n";
	static const char again[] = "\nDuring handling of the above exception, another exception "
				    "occurred:\n\n";
	char err[1024];
	struct exception ex;

	(void)snprintf(err, sizeof(err), "%sRuntimeError: the child said:\n%s\n", outer, inner);
	CHECK(finds(&ex, err));
	CHECK_STR(ex.type, "RuntimeError");
	CHECK_INT(ex.line, 4);
	(void)snprintf(err, sizeof(err), "%s%s%sRuntimeError: %s\n", inner, again, outer, inner);
	CHECK(finds(&ex, err));
	CHECK_STR(ex.type, "RuntimeError");
	CHECK_INT(ex.line, 4);
	(void)snprintf(err, sizeof(err), "%s%s%sRuntimeError: failed\n%s\n", inner, again, outer,
		       inner);
	CHECK(finds(&ex, err));
	CHECK_STR(ex.type, "RuntimeError");
	/* Those that stand alone are not. */
	(void)snprintf(err, sizeof(err), "%sERROR: next:\n%sOSError: no\n", inner, outer);
	CHECK(finds(&ex, err));
	CHECK_STR(ex.type, "OSError");
	CHECK_INT(ex.line, 4);
}

TEST(python_failures_without_a_traceback)
{
	struct exception ex;

	CHECK(finds(&ex, "MemoryError\n"));
	CHECK_STR(ex.type, "MemoryError");
	CHECK(!exception_is_memory(&ex)); /* source that nests too deep */
	CHECK(finds(&ex, "RecursionError: maximum recursion depth exceeded during compilation\n"));
	CHECK_STR(ex.type, "RecursionError");
	CHECK(finds(&ex,
		    "SyntaxError: Non-UTF-8 code starting with '\\xff' in file /sandbox/main.py "
		    "on line 7, but no encoding declared; see the manual\n"));
	CHECK_STR(ex.type, "SyntaxError");
	CHECK_INT(ex.line, 7);
	CHECK(finds(&ex, "Fatal Python error: Cannot recover from MemoryErrors while normalizing "
			 "exceptions.\n"));
	CHECK(exception_is_memory(&ex));
}

TEST(python_tracebacks_that_were_cut_are_not_made_up)
{
	struct exception ex = { .type = "untouched" };

	CHECK(!finds(&ex, "Traceback (most recent call last):\n"));
	CHECK(!finds(&ex, "Traceback (most recent call last):\n  File \"main.py\", line 1"));
	CHECK(!finds(&ex, "Traceback (most recent call last):\n!!! not a class\n"));
	CHECK(!finds(&ex, "  File \"main.py\", line 1\nhello\n"));
	CHECK(!finds(&ex, ""));
	CHECK_STR(ex.type, "untouched");
}

TEST(numpy_runs_out_of_memory_like_python)
{
	struct exception ex;

	CHECK(finds(&ex,
		    "Traceback (most recent call last):\n"
		    "  File \"/sandbox/main.py\", line 1, in <module>\n"
		    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 72.8 TiB\n"));
	CHECK(exception_is_memory(&ex));
}
