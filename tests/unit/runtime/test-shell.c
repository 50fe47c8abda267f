/*
 * What bash 5.2 and dash 0.5.12 printed.
 */
#include "runtime/samples.h"

/* clang-format off */
static const struct sample samples[] = {
	{
		.what = "a command that is not there",
		.err = "main.sh: line 2: nosuchcmd: command not found\n",
		.type = "CommandNotFound",
		.message = "nosuchcmd: command not found",
		.line = 2,
		.trace = "main.sh",
	},
	{
		.what = "a syntax error and the line it is in",
		.err = "main.sh: line 1: syntax error near unexpected token `}'\n"
		       "main.sh: line 1: `x() { ( }; }'\n",
		.type = "SyntaxError",
		.message = "syntax error near unexpected token `}'\n`x() { ( }; }'",
		.line = 1,
		.trace = "main.sh",
	},
	{
		.what = "a quote left open",
		.err = "main.sh: line 1: unexpected EOF while looking for matching `\"'\n",
		.type = "SyntaxError",
		.message = "unexpected EOF while looking for matching `\"'",
		.line = 1,
		.trace = "main.sh",
	},
	{
		.what = "a file that is not there",
		.err = "main.sh: line 1: ./nofile: No such file or directory\n",
		.type = "FileNotFound",
		.message = "./nofile: No such file or directory",
		.line = 1,
		.trace = "main.sh",
	},
	{
		.what = "not a program",
		.err = "main.sh: line 1: /etc/passwd: Permission denied\n",
		.type = "PermissionDenied",
		.message = "/etc/passwd: Permission denied",
		.line = 1,
		.trace = "main.sh",
	},
	{
		.what = "set -u",
		.err = "main.sh: line 2: FOO: unbound variable\n",
		.type = "UnboundVariable",
		.message = "FOO: unbound variable",
		.line = 2,
		.trace = "main.sh",
	},
	{
		.what = "division",
		.err = "main.sh: line 1: 1/0: division by 0 (error token is \"0\")\n",
		.type = "ArithmeticError",
		.message = "1/0: division by 0 (error token is \"0\")",
		.line = 1,
		.trace = "main.sh",
	},
	{
		.what = "out of memory",
		.err = "main.sh: xrealloc: cannot allocate 134217856 bytes\n",
		.type = "OutOfMemory",
		.message = "xrealloc: cannot allocate 134217856 bytes",
		.trace = "main.sh",
	},
	{
		.what = "anything else",
		.err = "main.sh: line 1: X: must be set\n",
		.type = "Error",
		.message = "X: must be set",
		.line = 1,
		.trace = "main.sh",
	},
	{
		.what = "a child that crashed",
		.err = "main.sh: line 1:     3 Segmentation fault      sh -c \"kill -SEGV "
		       "\\$\\$\"\n",
		.type = "SegmentationFault",
		.message = "    3 Segmentation fault      sh -c \"kill -SEGV \\$\\$\"",
		.line = 1,
		.trace = "main.sh",
	},
	{
		.what = "the line of another shell says nothing",
		.err = "bash: line 1: nosuch2: command not found\n",
		.type = "CommandNotFound",
		.message = "nosuch2: command not found",
		.trace = "bash",
	},
	{
		.what = "dash: a command that is not there",
		.err = "main.sh: 2: nosuchcmd: not found\n",
		.type = "CommandNotFound",
		.message = "nosuchcmd: not found",
		.line = 2,
		.trace = "main.sh",
	},
	{
		.what = "dash: a syntax error",
		.err = "main.sh: 4: Syntax error: end of file unexpected (expecting \"fi\")\n",
		.type = "SyntaxError",
		.message = "Syntax error: end of file unexpected (expecting \"fi\")",
		.line = 4,
		.trace = "main.sh",
	},
	{
		.what = "dash: set -u",
		.err = "main.sh: 2: FOO: parameter not set\n",
		.type = "UnboundVariable",
		.message = "FOO: parameter not set",
		.line = 2,
		.trace = "main.sh",
	},
	{
		.what = "dash: the last of two",
		.err = "main.sh: 1: declare: not found\n"
		       "main.sh: 1: m[]=1: not found\n",
		.type = "CommandNotFound",
		.message = "m[]=1: not found",
		.line = 1,
		.trace = "main.sh: 1: m",
	},
	{
		.what = "another program's words",
		.err = "cat: /nope: No such file or directory\n",
	},
};
/* clang-format on */

TEST(shell_failures_are_read)
{
	CHECK(samples_read("bash", samples, sizeof(samples) / sizeof(samples[0])));
}

TEST(shells_with_other_names_complain_alike)
{
	static const char busybox[] = "main.sh: line 2: nosuch: not found\n";
	static const char fork[] = "main.sh: fork: Cannot allocate memory\n";
	struct exception ex;

	CHECK(runtime_find("sh")->read_error(&ex, busybox, strlen(busybox)));
	CHECK_STR(ex.type, "CommandNotFound");
	CHECK_INT(ex.line, 2);
	CHECK(runtime_find("bash")->read_error(&ex, fork, strlen(fork)));
	CHECK(exception_is_memory(&ex));
}
