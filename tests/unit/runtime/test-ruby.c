/*
 * What Ruby 3.1 printed.
 */
#include "runtime/samples.h"

/* clang-format off */
static const struct sample samples[] = {
	{
		.what = "raise",
		.err = "main.rb:2:in `foo': boom: 1 (RuntimeError)\n"
		       "\tfrom main.rb:4:in `bar'\n"
		       "\tfrom main.rb:5:in `<main>'\n",
		.type = "RuntimeError",
		.message = "boom: 1",
		.line = 2,
		.trace = "main.rb:2",
	},
	{
		.what = "a class and no message",
		.err = "main.rb:1:in `<main>': ArgumentError (ArgumentError)\n",
		.type = "ArgumentError",
		.message = "ArgumentError",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "an empty message",
		.err = "main.rb:1:in `<main>': unhandled exception\n",
		.type = "RuntimeError",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "interrupted",
		.err = "main.rb:1:in `kill': Interrupt\n"
		       "\tfrom main.rb:1:in `<main>'\n",
		.type = "Interrupt",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "a nested class, brackets in the message",
		.err = "main.rb:3:in `<main>': deep (really) (M::Deep)\n",
		.type = "M::Deep",
		.message = "deep (really)",
		.line = 3,
		.trace = "main.rb:3",
	},
	{
		.what = "a class without a name",
		.err = "main.rb:1:in `<main>': anon\n",
		.type = "Exception",
		.message = "anon",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "three lines",
		.err = "main.rb:1:in `<main>': multi (RuntimeError)\n"
		       "line (Fake)\n"
		       "third\n",
		.type = "RuntimeError",
		.message = "multi\nline (Fake)\nthird",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "a cause comes second",
		.err = "main.rb:1:in `rescue in <main>': b (TypeError)\n"
		       "\tfrom main.rb:1:in `<main>'\n"
		       "main.rb:1:in `<main>': a (RuntimeError)\n",
		.type = "TypeError",
		.message = "b",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "with the source below",
		.err = "main.rb:1:in `<main>': undefined local variable or method `foo' for "
		       "main:Object (NameError)\n\n"
		       "foo.bar\n"
		       "^^^\n",
		.type = "NameError",
		.message = "undefined local variable or method `foo' for "
			   "main:Object\n\nfoo.bar\n^^^",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "the library raises",
		.err = "<internal:/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_require.rb"
		       ">:85:in `require': cannot load such file -- nope (LoadError)\n"
		       "\tfrom <internal:/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_req"
		       "uire.rb>:85:in `require'\n"
		       "\tfrom main.rb:1:in `<main>'\n",
		.type = "LoadError",
		.message = "cannot load such file -- nope",
		.line = 1,
		.trace = "<internal:",
	},
	{
		.what = "a helper raises: the line is the program's",
		.err = "/sandbox/lib.rb:3:in `Integer': invalid value for Integer(): \"zz\" "
		       "(ArgumentError)\n"
		       "\tfrom /sandbox/lib.rb:3:in `go'\n"
		       "\tfrom main.rb:3:in `<main>'\n",
		.type = "ArgumentError",
		.message = "invalid value for Integer(): \"zz\"",
		.line = 3,
		.trace = "/sandbox/lib.rb:3",
	},
	{
		.what = "frames left out",
		.err = "main.rb:1:in `f': stack level too deep (SystemStackError)\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\t ... 10908 levels...\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:1:in `f'\n"
		       "\tfrom main.rb:2:in `<main>'\n",
		.type = "SystemStackError",
		.message = "stack level too deep",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "a thread",
		.err = "#<Thread:0x00007f4b6b5d9fb8 main.rb:1 run> terminated with exception "
		       "(report_on_exception is true):\n"
		       "main.rb:1:in `block in <main>': in thread (RuntimeError)\n"
		       "main.rb:1:in `block in <main>': in thread (RuntimeError)\n",
		.type = "RuntimeError",
		.message = "in thread",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "a syntax error",
		.err = "main.rb:2: syntax error, unexpected integer literal, expecting ')'\n"
		       "puts 1\n"
		       "     ^\n",
		.type = "SyntaxError",
		.message = "syntax error, unexpected integer literal, expecting ')'\nputs "
			   "1\n     ^",
		.line = 2,
		.trace = "main.rb:2",
	},
	{
		.what = "out of memory",
		.err = "main.rb: failed to allocate memory (NoMemoryError)\n",
		.type = "NoMemoryError",
		.message = "failed to allocate memory",
		.trace = "main.rb: failed",
	},
	{
		.what = "a printed line is not the one",
		.err = "main.rb:9:in `x: fake (FakeError)\n"
		       "main.rb:1:in `initialize': No such file or directory @ rb_sysopen - "
		       "/nope (Errno::ENOENT)\n"
		       "\tfrom main.rb:1:in `open'\n"
		       "\tfrom main.rb:1:in `<main>'\n",
		.type = "Errno::ENOENT",
		.message = "No such file or directory @ rb_sysopen - /nope",
		.line = 1,
		.trace = "main.rb:1",
	},
	{
		.what = "a message given to abort() is none",
		.err = "some: message (NotAnError)\n",
	},
};
/* clang-format on */

TEST(ruby_failures_are_read)
{
	CHECK(samples_read("ruby", samples, sizeof(samples) / sizeof(samples[0])));
}

static bool finds(struct exception *ret, const char *err)
{
	return sample_read(ret, "ruby", err);
}

TEST(ruby_quotes_have_changed_with_3_4)
{
	struct exception ex;

	CHECK(finds(&ex, "main.rb:2:in 'Integer#/': divided by 0 (ZeroDivisionError)\n"
			 "\tfrom main.rb:2:in 'Object#foo'\n"
			 "\tfrom main.rb:5:in '<main>'\n"));
	CHECK_STR(ex.type, "ZeroDivisionError");
	CHECK_STR(ex.message, "divided by 0");
	CHECK_INT(ex.line, 2);
}

TEST(ruby_syntax_errors_have_a_class_with_3_4)
{
	struct exception ex;

	CHECK(finds(&ex, "main.rb: --> main.rb\n"
			 "expected a matching `)`\n"
			 "main.rb:2: syntax errors found (SyntaxError)\n"
			 "  1 | def f(\n"
			 "> 2 | puts 1\n"));
	CHECK_STR(ex.type, "SyntaxError");
	CHECK(strncmp(ex.message, "syntax errors found\n", 20) == 0);
	CHECK_INT(ex.line, 2);
}

TEST(ruby_of_two_failures_the_last_counts)
{
	struct exception ex;

	CHECK(finds(&ex, "main.rb:2:in `f': logged (KeyError)\n"
			 "\tfrom main.rb:3:in `<main>'\n"
			 "going on\n"
			 "main.rb:9:in `<main>': died (TypeError)\n"));
	CHECK_STR(ex.type, "TypeError");
	CHECK_INT(ex.line, 9);
	CHECK(!finds(&ex, "main.rb:1: warning: assigned but unused variable - x\n"));
}
