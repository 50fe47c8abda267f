#include "base/err.h"

#include "base/own.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>

TEST(an_error_has_a_code_and_a_message)
{
	struct err e = { .code = ERR_SYS, .sys = 5, .msg = "old" };

	CHECK_INT(err_set(&e, ERR_LIMIT, "%d of %s", 3, "them"), -1);
	CHECK(e.code == ERR_LIMIT);
	CHECK_INT(e.sys, 0);
	CHECK_STR(e.msg, "3 of them");
}

TEST(a_failed_call_keeps_its_errno_and_says_it)
{
	struct err e;

	errno = EACCES;
	CHECK_INT(err_sys(&e, "mount %s", "/tmp"), -1);
	CHECK(e.code == ERR_SYS);
	CHECK_INT(e.sys, EACCES);
	CHECK_STR(e.msg, "mount /tmp: Permission denied");

	errno = 9999;
	(void)err_sys(&e, "x");
	CHECK_STR(e.msg, "x: unknown error");
}

TEST(context_goes_in_front)
{
	struct err e;

	errno = ENOENT;
	(void)err_sys(&e, "open");
	CHECK_INT(err_context(&e, "cgroup %d", 7), -1);
	CHECK_STR(e.msg, "cgroup 7: open: No such file or directory");
	CHECK(e.code == ERR_SYS);
	CHECK_INT(e.sys, ENOENT);
}

TEST(an_error_may_quote_itself)
{
	struct err e;

	(void)err_set(&e, ERR_INVALID, "inner");
	(void)err_set(&e, ERR_HOST, "outer (%s)", e.msg);
	CHECK_STR(e.msg, "outer (inner)");
	(void)err_context(&e, "again %s", e.msg);
	CHECK_STR(e.msg, "again outer (inner): outer (inner)");
	errno = EPERM;
	(void)err_sys(&e, "%s", e.msg);
	CHECK_STR(e.msg, "again outer (inner): outer (inner): Operation not permitted");
}

TEST(a_long_message_is_cut_and_stays_a_string)
{
	char text[1000];
	struct err e;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';

	(void)err_set(&e, ERR_BUG, "%s", text);
	CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
	(void)err_context(&e, "%s", text);
	CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
	errno = EIO;
	(void)err_sys(&e, "%s", text);
	CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
	CHECK_INT(e.sys, EIO);
}

TEST(every_code_has_a_name_of_its_own)
{
	for (int a = 0; a < ERR_COUNT_; a++) {
		CHECK(err_code_name((enum err_code)a) != NULL);
		for (int b = 0; b < a; b++)
			CHECK(strcmp(err_code_name((enum err_code)a),
				     err_code_name((enum err_code)b)) != 0);
	}
	CHECK_STR(err_code_name(ERR_COUNT_), "unknown");
	CHECK_STR(err_code_name((enum err_code)-1), "unknown");
}

TEST(an_error_crosses_a_pipe_in_one_piece)
{
	int ends[2];
	struct err sent, got;

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	auto_close int out = ends[0], in = ends[1];
	errno = EMFILE;
	(void)err_sys(&sent, "fds");
	err_send(&sent, in);
	CHECK_INT(read(out, &got, sizeof(got)), sizeof(got));
	CHECK(got.code == ERR_SYS);
	CHECK_INT(got.sys, EMFILE);
	CHECK_STR(got.msg, "fds: Too many open files");
}

TEST(an_error_that_a_stranger_sent_is_one_afterwards)
{
	struct err e;

	memset(&e, 'x', sizeof(e));
	err_mend(&e);
	CHECK_INT(e.code, ERR_SYS);
	CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
	e = (struct err){ .code = (enum err_code)-1, .msg = "words" };
	err_mend(&e);
	CHECK_INT(e.code, ERR_SYS);
	CHECK_STR(e.msg, "words");
	e.code = ERR_NONE;
	err_mend(&e);
	CHECK_INT(e.code, ERR_SYS);
	e.code = ERR_LIMIT;
	err_mend(&e);
	CHECK_INT(e.code, ERR_LIMIT);
}
