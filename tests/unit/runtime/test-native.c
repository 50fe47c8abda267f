/*
 * What programs, gcc 12 and clang 14 printed.
 */
#include "runtime/samples.h"

/* clang-format off */
static const struct sample samples[] = {
	{
		.what = "thrown",
		.err = "terminate called after throwing an instance of 'std::runtime_error'\n"
		       "  what():  boom: x\n"
		       "second\n",
		.type = "std::runtime_error",
		.message = "boom: x\nsecond",
		.trace = "terminate",
	},
	{
		.what = "thrown, without words",
		.err = "terminate called after throwing an instance of 'N::Err'\n",
		.type = "N::Err",
		.trace = "terminate",
	},
	{
		.what = "out of memory",
		.err = "terminate called after throwing an instance of 'std::bad_alloc'\n"
		       "  what():  std::bad_alloc\n",
		.type = "std::bad_alloc",
		.message = "std::bad_alloc",
		.trace = "terminate",
	},
	{
		.what = "nothing was thrown",
		.err = "terminate called without an active exception\n",
		.type = "std::terminate",
		.message = "terminate called without an active exception",
		.trace = "terminate",
	},
	{
		.what = "assert() in C",
		.err = "main: main.c:2: check: Assertion `x == 2 && \"why: x\"' failed.\n",
		.type = "AssertionFailed",
		.message = "x == 2 && \"why: x\"",
		.line = 2,
		.trace = "main: ",
	},
	{
		.what = "assert() in C++",
		.err = "main: main.cpp:2: T f(T) [with T = int]: Assertion `x > 1' failed.\n",
		.type = "AssertionFailed",
		.message = "x > 1",
		.line = 2,
		.trace = "main: ",
	},
	{
		.what = "the C library stops it",
		.err = "*** buffer overflow detected ***: terminated\n",
		.type = "Aborted",
		.message = "*** buffer overflow detected ***: terminated",
		.trace = "***",
	},
	{
		.what = "a sanitizer",
		.err = "=================================================================\n"
		       "==8==ERROR: AddressSanitizer: heap-buffer-overflow on address "
		       "0x60200000001c at pc 0x561c013bb11f bp 0x7ffc58f63fa0 sp "
		       "0x7ffc58f63f98\n"
		       "READ of size 4 at 0x60200000001c thread T0\n"
		       "    #0 0x561c013bb11e in main (/tmp/main+0x111e)\n"
		       "    #1 0x7fedc0645249 in __libc_start_call_main "
		       "../sysdeps/nptl/libc_start_call_main.h:58\n"
		       "    #2 0x7fedc0645304 in __libc_start_main_impl "
		       "../csu/libc-start.c:360\n"
		       "    #3 0x561c013bb170 in _start (/tmp/main+0x1170)\n\n"
		       "0x60200000001c is located 0 bytes to the right of 12-byte region "
		       "[0x602000000010,0x60200000001c)\n",
		.type = "AddressSanitizer",
		.message = "heap-buffer-overflow on address 0x60200000001c at pc "
			   "0x561c013bb11f bp 0x7ffc58f63fa0 sp 0x7ffc58f63f98",
		.trace = "==8==",
	},
	{
		.what = "gcc: it does not parse",
		.err = "main.c: In function ‘main’:\n"
		       "main.c:2:28: error: expected ‘;’ before ‘}’ token\n"
		       "    2 | int main(void) { puts(\"hi\") }\n"
		       "      |                            ^~\n"
		       "      |                            ;\n",
		.type = "CompileError",
		.message = "expected ‘;’ before ‘}’ token",
		.line = 2,
		.trace = "main.c:2:28",
	},
	{
		.what = "clang: it does not parse",
		.err = "main.c:2:28: error: expected ';' after expression\n"
		       "int main(void) { puts(\"hi\") }\n"
		       "                           ^\n"
		       "                           ;\n"
		       "1 error generated.\n",
		.type = "CompileError",
		.message = "expected ';' after expression",
		.line = 2,
		.trace = "main.c:2:28",
	},
	{
		.what = "a header that is not there",
		.err = "main.c:1:10: fatal error: nope.h: No such file or directory\n"
		       "    1 | #include \"nope.h\"\n"
		       "      |          ^~~~~~~~\n"
		       "compilation terminated.\n",
		.type = "CompileError",
		.message = "nope.h: No such file or directory",
		.line = 1,
		.trace = "main.c:1:10",
	},
	{
		.what = "it does not link",
		.err = "/usr/bin/ld: /tmp/ccsscwAM.o: in function `main':\n"
		       "main.cpp:(.text.startup+0xa): undefined reference to `foo(int)'\n"
		       "collect2: error: ld returned 1 exit status\n",
		.type = "LinkError",
		.message = "undefined reference to `foo(int)'",
		.trace = "main.cpp:(",
	},
	{
		.what = "abort() says nothing",
		.err = "",
	},
};
/* clang-format on */

TEST(native_failures_are_read)
{
	CHECK(samples_read("cpp", samples, sizeof(samples) / sizeof(samples[0])));
}

static bool finds(struct exception *ret, const char *err)
{
	return sample_read(ret, "c", err);
}

TEST(native_errors_in_headers_are_blamed_on_the_user)
{
	struct exception ex;

	CHECK(finds(&ex, "In file included from main.cpp:1:\n"
			 "/usr/include/c++/12/bits/x.h: In instantiation of 'bool f()':\n"
			 "/usr/include/c++/12/bits/stl_algo.h:1940:31:   required from 'void g()'\n"
			 "main.cpp:4:46:   required from here\n"
			 "/usr/include/c++/12/bits/x.h:45:23: error: no match for 'operator<'\n"));
	CHECK_STR(ex.message, "no match for 'operator<'");
	CHECK_INT(ex.line, 4);
}

TEST(native_compilers_run_out_of_memory)
{
	struct exception ex;

	CHECK(finds(&ex,
		    "cc1plus: out of memory allocating 65536 bytes after a total of 9 bytes\n"));
	CHECK(exception_is_memory(&ex));
	CHECK(finds(&ex, "g++: fatal error: Killed signal terminated program cc1plus\n"));
	CHECK_STR(ex.type, "CompileError");
}

TEST(native_programs_may_print_error)
{
	struct exception ex;

	CHECK(!finds(&ex, "myprogram: error: no such user\n"));
	CHECK(!finds(&ex, "what():  nothing\n"));
}

TEST(native_crashes_win_over_what_the_compiler_warned_of)
{
	struct exception ex;

	CHECK(finds(&ex, "main.c:1:1: warning: unused variable\n"
			 "main.c:3:7: runtime error: signed integer overflow: 2147483647 + 1\n"));
	CHECK_STR(ex.type, "UndefinedBehavior");
	CHECK_INT(ex.line, 3);
}
