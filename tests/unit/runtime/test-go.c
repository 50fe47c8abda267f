/*
 * What Go 1.19 and 1.26 printed.
 */
#include "runtime/samples.h"

/* clang-format off */
static const struct sample samples[] = {
	{
		.what = "out of range",
		.err = "panic: runtime error: index out of range [5] with length 1\n\n"
		       "goroutine 1 [running]:\n"
		       "main.f(...)\n"
		       "\t/sandbox/main.go:3\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:6 +0x1d\n",
		.type = "RuntimeError",
		.message = "index out of range [5] with length 1",
		.line = 3,
		.trace = "panic: ",
	},
	{
		.what = "a nil pointer",
		.err = "panic: runtime error: invalid memory address or nil pointer "
		       "dereference\n"
		       "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 "
		       "pc=0x47a742]\n\n"
		       "goroutine 1 [running]:\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:2 +0x2\n",
		.type = "RuntimeError",
		.message = "invalid memory address or nil pointer dereference",
		.line = 2,
		.trace = "panic: ",
	},
	{
		.what = "the library panics",
		.err = "panic: strings: negative Repeat count\n\n"
		       "goroutine 1 [running]:\n"
		       "strings.Repeat({0x491c90?, 0x5216e8?}, 0x3c35a0ce1e0?)\n"
		       "\t/usr/local/go/src/strings/strings.go:628 +0x56f\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:3 +0x26\n",
		.type = "Panic",
		.message = "strings: negative Repeat count",
		.line = 3,
		.trace = "panic: ",
	},
	{
		.what = "two lines, as they are",
		.err = "panic: a string\n"
		       "second line\n\n"
		       "goroutine 1 [running]:\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:2 +0x27\n",
		.type = "Panic",
		.message = "a string\nsecond line",
		.line = 2,
		.trace = "panic: ",
	},
	{
		.what = "two lines, indented",
		.err = "panic: a string\n"
		       "\tsecond line\n\n"
		       "goroutine 1 [running]:\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:2 +0x25\n",
		.type = "Panic",
		.message = "a string\nsecond line",
		.line = 2,
		.trace = "panic: ",
	},
	{
		.what = "an error value",
		.err = "panic: an error\n\n"
		       "goroutine 1 [running]:\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:3 +0x3b\n",
		.type = "Panic",
		.message = "an error",
		.line = 3,
		.trace = "panic: ",
	},
	{
		.what = "a panic while panicking",
		.err = "panic: (main.T) 0x497e80\n"
		       "\tpanic: main.E(\"estring\")\n\n"
		       "goroutine 1 [running]:\n"
		       "main.main.func1()\n"
		       "\t/sandbox/main.go:4 +0x25\n"
		       "panic({0x486380?, 0x497e80?})\n"
		       "\t/usr/local/go/src/runtime/panic.go:860 +0x13a\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:4 +0x3e\n",
		.type = "Panic",
		.message = "main.E(\"estring\")",
		.line = 4,
		.trace = "panic: ",
	},
	{
		.what = "recovered and raised again",
		.err = "panic: again [recovered]\n"
		       "\tpanic: again\n\n"
		       "goroutine 1 [running]:\n"
		       "main.main.func1()\n"
		       "\t/sandbox/main.go:2 +0x25\n"
		       "panic({0x45c500, 0x47b870})\n"
		       "\t/usr/lib/go-1.19/src/runtime/panic.go:884 +0x212\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:2 +0x49\n",
		.type = "Panic",
		.message = "again",
		.line = 2,
		.trace = "panic: ",
	},
	{
		.what = "the same, newer",
		.err = "panic: again [recovered, repanicked]\n\n"
		       "goroutine 1 [running]:\n"
		       "main.main.func1()\n"
		       "\t/sandbox/main.go:2 +0x18\n"
		       "panic({0x4811e0?, 0x497d00?})\n"
		       "\t/usr/local/go/src/runtime/panic.go:860 +0x13a\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:2 +0x3e\n",
		.type = "Panic",
		.message = "again",
		.line = 2,
		.trace = "panic: ",
	},
	{
		.what = "in a goroutine",
		.err = "panic: in goroutine\n\n"
		       "goroutine 17 [running]:\n"
		       "main.main.func1()\n"
		       "\t/sandbox/main.go:3 +0x25\n"
		       "created by main.main in goroutine 1\n"
		       "\t/sandbox/main.go:3 +0x1a\n",
		.type = "Panic",
		.message = "in goroutine",
		.line = 3,
		.trace = "panic: ",
	},
	{
		.what = "deadlock",
		.err = "fatal error: all goroutines are asleep - deadlock!\n\n"
		       "goroutine 1 [chan receive]:\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:2 +0x25\n",
		.type = "Deadlock",
		.message = "all goroutines are asleep - deadlock!",
		.line = 2,
		.trace = "fatal error",
	},
	{
		.what = "concurrent writes",
		.err = "fatal error: concurrent map writes\n\n"
		       "goroutine 3 [running]:\n"
		       "internal/runtime/maps.fatal({0x49255d?, 0x0?})\n"
		       "\t/usr/local/go/src/runtime/panic.go:1181 +0x18\n"
		       "main.main.func1()\n"
		       "\t/sandbox/main.go:2 +0x28\n"
		       "created by main.main in goroutine 1\n"
		       "\t/sandbox/main.go:2 +0x56\n",
		.type = "FatalError",
		.message = "concurrent map writes",
		.line = 2,
		.trace = "fatal error",
	},
	{
		.what = "out of memory",
		.err = "runtime: out of memory: cannot allocate 104857600-byte block "
		       "(217874432 in use)\n"
		       "fatal error: out of memory\n\n"
		       "goroutine 1 gp=0x2fe8af3c1e0 m=0 mp=0x526880 [running]:\n"
		       "runtime.throw({0x490c1d?, 0x3200?})\n"
		       "\t/usr/local/go/src/runtime/panic.go:1229 +0x48 fp=0x2fe8af685f0 "
		       "sp=0x2fe8af685c0 pc=0x472188\n"
		       "runtime.(*mcache).allocLarge(0x2fe8af68670?, 0x6400000, 0x1)\n"
		       "\t/usr/local/go/src/runtime/mcache.go:259 +0x18d fp=0x2fe8af68640 "
		       "sp=0x2fe8af685f0 pc=0x41cfcd\n"
		       "runtime.mallocgcLarge(0x0?, 0x481260, 0x1)\n"
		       "\t/usr/local/go/src/runtime/malloc.go:1703 +0x79 fp=0x2fe8af68698 "
		       "sp=0x2fe8af68640 pc=0x41a199\n"
		       "runtime.mallocgc(0x6400000, 0x481260, 0x1)\n"
		       "\t/usr/local/go/src/runtime/malloc.go:1156 +0xd3 fp=0x2fe8af686c8 "
		       "sp=0x2fe8af68698 pc=0x4716b3\n"
		       "runtime.makeslice(0x2fe8af48018?, 0x0?, 0x0?)\n"
		       "\t/usr/local/go/src/runtime/slice.go:117 +0x49 fp=0x2fe8af686f0 "
		       "sp=0x2fe8af686c8 pc=0x472fe9\n"
		       "main.main()\n"
		       "\t/sandbox/main.go:3 +0x2d fp=0x2fe8af68748 sp=0x2fe8af686f0 "
		       "pc=0x47a76d\n"
		       "runtime.main()\n"
		       "\t/usr/local/go/src/runtime/proc.go:290 +0x2d5 fp=0x2fe8af687e0 "
		       "sp=0x2fe8af68748 pc=0x443ef5\n"
		       "runtime.goexit({})\n"
		       "\t/usr/local/go/src/runtime/asm_amd64.s:1771 +0x1 fp=0x2fe8af687e8 "
		       "sp=0x2fe8af687e0 pc=0x477541\n\n",
		.type = "OutOfMemory",
		.message = "out of memory",
		.line = 3,
		.trace = "fatal error",
	},
	{
		.what = "it does not compile",
		.err = "# command-line-arguments\n"
		       "./main.go:2:16: \"os\" imported and not used\n"
		       "./main.go:3:15: declared and not used: x\n"
		       "./main.go:3:35: invalid operation: \"a\" + 1 (mismatched types untyped "
		       "string and untyped int)\n"
		       "./main.go:3:45: undefined: undefined\n",
		.type = "CompileError",
		.message = "\"os\" imported and not used",
		.line = 2,
		.trace = "./main.go:2:16",
	},
	{
		.what = "it does not parse",
		.err = "# command-line-arguments\n"
		       "./main.go:3:7: syntax error: unexpected :=, expected expression\n",
		.type = "CompileError",
		.message = "syntax error: unexpected :=, expected expression",
		.line = 3,
		.trace = "./main.go:3:7",
	},
	{
		.what = "a package that is not there",
		.err = "main.go:2:8: cannot find package \"github.com/x/y\" in any of:\n"
		       "\t/usr/local/go/src/github.com/x/y (from $GOROOT)\n"
		       "\t/tmp/go/src/github.com/x/y (from $GOPATH)\n",
		.type = "CompileError",
		.message = "cannot find package \"github.com/x/y\" in any of:",
		.line = 2,
		.trace = "main.go:2:8",
	},
	{
		.what = "it does not link",
		.err = "# command-line-arguments\n"
		       "runtime.main_main·f: function main is undeclared in the main package\n",
		.type = "CompileError",
		.message = "runtime.main_main·f: function main is undeclared in the main "
			   "package",
		.trace = "runtime.main",
	},
	{
		.what = "log.Fatal() is no panic",
		.err = "2026/11/15 21:57:10 fatal thing\n",
	},
};
/* clang-format on */

TEST(go_failures_are_read)
{
	CHECK(samples_read("go", samples, sizeof(samples) / sizeof(samples[0])));
}

static bool finds(struct exception *ret, const char *err)
{
	return sample_read(ret, "go", err);
}

TEST(go_programs_may_print_panic)
{
	struct exception ex;

	CHECK(!finds(&ex, "panic: not really\n"));
	CHECK(finds(&ex, "panic: not really\n"
			 "\n"
			 "and on it goes\n"
			 "panic: really\n"
			 "\n"
			 "goroutine 1 [running]:\n"
			 "main.main()\n"
			 "\t/sandbox/main.go:7 +0x1d\n"
			 "exit status 2\n"));
	CHECK_STR(ex.message, "really");
	CHECK_INT(ex.line, 7);
}

TEST(go_logs_with_line_numbers_are_no_compiler_errors)
{
	struct exception ex;

	CHECK(!finds(&ex, "main.go:5: something went wrong\n"));
	CHECK(finds(&ex,
		    "go: go.mod requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local)\n"));
	CHECK_STR(ex.type, "CompileError");
}
