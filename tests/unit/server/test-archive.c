#include "server/archive.h"
#include "test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
	char dir[32], path[64];
	struct archive *archive;
	struct err e;
};

static const char *const parts[] = { "", "-wal", "-shm", ".damaged" };

static void tear_down(struct fixture *f)
{
	char name[96];

	archive_free(f->archive);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", f->path, parts[i]);
		(void)unlink(name);
	}
	(void)rmdir(f->dir);
}

static bool open_again(struct fixture *f, uint64_t max_age_ms, uint64_t max_bytes)
{
	const struct archive_limits limits = { max_age_ms, max_bytes };

	archive_free(take_ptr(&f->archive));
	return archive_open(&f->archive, f->path, &limits, &f->e) == 0;
}

static bool set_up(struct fixture *f)
{
	*f = (struct fixture){ .dir = "/tmp/vial-archive-XXXXXX" };
	if (!mkdtemp(f->dir))
		return false;
	(void)snprintf(f->path, sizeof(f->path), "%s/h.db", f->dir);
	return open_again(f, 1000000000, 1 << 30);
}

static struct entry_text text(const char *s)
{
	return (struct entry_text){ s, strlen(s) };
}

static struct entry make(uint64_t seq, const char *tenant, const char *id, const char *code)
{
	return (struct entry){ .ended = (int64_t)seq * 1000,
			       .cpu_us = 10,
			       .wall_us = 20,
			       .id = text(id),
			       .kind = text("run"),
			       .tenant = text(tenant),
			       .session = text(""),
			       .parent = text(""),
			       .request = text(""),
			       .environment = text("python"),
			       .language = text("python"),
			       .outcome = text("exited"),
			       .limit = text(""),
			       .type = text(""),
			       .message = text(""),
			       .traceback = text(""),
			       .code = text(code),
			       .out = text(""),
			       .err = text("") };
}

static int put(struct fixture *f, uint64_t seq, const char *tenant, const char *id,
	       const char *code)
{
	const struct entry entry = make(seq, tenant, id, code);

	if (archive_begin(f->archive, &f->e) < 0 ||
	    archive_put(f->archive, seq, &entry, &f->e) < 0)
		return -1;
	return archive_commit(f->archive, &f->e);
}

static const char *ask(struct buf *out, struct fixture *f, enum query_kind what, const char *tenant,
		       const char *id)
{
	struct query q = { .what = what,
			   .until = INT64_MAX,
			   .before_ended = INT64_MAX,
			   .before_seq = INT64_MAX,
			   .after = -1,
			   .limit = 10 };

	(void)snprintf(q.tenant, sizeof(q.tenant), "%s", tenant);
	(void)snprintf(q.id, sizeof(q.id), "%s", id);
	buf_reset(out);
	return archive_answer(out, f->archive, &q, &f->e) < 0 ? f->e.msg : buf_str(out);
}

TEST(archive_stores_each_number_once)
{
	AUTO(tear_down) struct fixture f;
	auto_buf struct buf out = BUF_INIT(1 << 20);

	CHECK(set_up(&f));
	CHECK(put(&f, 1, "a", "7", "one") == 0 && put(&f, 1, "a", "7", "again") == 0);
	CHECK(put(&f, 2, "a", "x", "two") == 0);
	CHECK_INT(archive_last(f.archive), 2);
	CHECK_INT(archive_last_run(f.archive), 7);
	CHECK(strstr(ask(&out, &f, QUERY_USAGE, "a", ""), "\"total\":{\"runs\":2,"));
	/* One that was deleted does not come back. */
	CHECK(strstr(ask(&out, &f, QUERY_DELETE, "a", "x"), "\"deleted\":true"));
	CHECK(open_again(&f, 1000000000, 1 << 30));
	CHECK(put(&f, 2, "a", "x", "two") == 0);
	CHECK_STR(ask(&out, &f, QUERY_SHOW, "a", "x"), "there is no record 'x'");
	CHECK_INT(archive_last(f.archive), 2);
}

TEST(archive_knows_the_last_run_of_this_worker)
{
	AUTO(tear_down) struct fixture f;

	CHECK(set_up(&f));
	CHECK(put(&f, 1, "a", "9223372032559808513", "x") == 0); /* of the last of all workers */
	CHECK_INT(archive_last_run(f.archive), 9223372032559808513);
	CHECK(put(&f, 2, "a", "9223372036854775808", "x") == 0 &&
	      put(&f, 3, "a", "99999999999999999999", "x") == 0); /* of none */
	CHECK_INT(archive_last_run(f.archive), 9223372032559808513);
	CHECK(put(&f, 4, "a", "4294967298", "x") == 0); /* it has another name now */
	CHECK(put(&f, 5, "a", "4294967297", "x") == 0);
	CHECK(open_again(&f, 1000000000, 1 << 30));
	CHECK_INT(archive_last_run(f.archive), 4294967298);
}

TEST(archive_tells_tenants_apart)
{
	AUTO(tear_down) struct fixture f;
	auto_buf struct buf out = BUF_INIT(1 << 20);

	CHECK(set_up(&f));
	CHECK(put(&f, 1, "a", "1", "mine") == 0 && put(&f, 2, "b", "2", "theirs") == 0);
	CHECK(!strstr(ask(&out, &f, QUERY_LIST, "a", ""), "\"id\":\"2\""));
	CHECK_STR(ask(&out, &f, QUERY_SHOW, "a", "2"), "there is no record '2'");
	CHECK_STR(ask(&out, &f, QUERY_DELETE, "a", "2"), "there is no record '2'");
	CHECK(strstr(ask(&out, &f, QUERY_SHOW, "b", "2"), "\"code\":\"theirs\""));
	CHECK(strstr(ask(&out, &f, QUERY_USAGE, "c", ""), "\"runs\":0"));
}

TEST(archive_rolls_back)
{
	AUTO(tear_down) struct fixture f;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	const struct entry entry = make(1, "a", "9", "x");

	CHECK(set_up(&f));
	CHECK(archive_begin(f.archive, &f.e) == 0);
	CHECK(archive_put(f.archive, 1, &entry, &f.e) == 0);
	archive_rollback(f.archive);
	CHECK_INT(archive_last(f.archive), 0);
	CHECK_INT(archive_last_run(f.archive), 0);
	CHECK_STR(ask(&out, &f, QUERY_SHOW, "a", "9"), "there is no record '9'");
	CHECK(put(&f, 1, "a", "1", "x") == 0);
}

TEST(archive_lets_go_of_what_is_old)
{
	AUTO(tear_down) struct fixture f;
	auto_buf struct buf out = BUF_INIT(1 << 20);

	CHECK(set_up(&f));
	for (uint64_t i = 1; i <= 10; i++)
		CHECK(put(&f, i, "a", i < 6 ? "old" : "new", "x") == 0);
	CHECK(open_again(&f, 5000, 1 << 30));
	CHECK_INT(archive_trim(f.archive, 11000, &f.e), 1);
	CHECK_INT(archive_trim(f.archive, 11000, &f.e), 0);
	CHECK_STR(ask(&out, &f, QUERY_SHOW, "a", "old"), "there is no record 'old'");
	CHECK(strstr(ask(&out, &f, QUERY_SHOW, "a", "new"), "\"id\":\"new\""));
	CHECK(strstr(ask(&out, &f, QUERY_USAGE, "a", ""), "\"runs\":10"));
}

TEST(archive_stays_within_its_size)
{
	AUTO(tear_down) struct fixture f;
	auto_buf struct buf out = BUF_INIT(1 << 20), code = BUF_INIT(1 << 20);
	struct stat st;
	int more = 1;
	char id[16];

	CHECK(set_up(&f));
	for (int i = 0; i < 64 << 10; i++)
		buf_add_char(&code, 'x');
	for (uint64_t i = 1; i <= 64; i++) {
		(void)snprintf(id, sizeof(id), "%" PRIu64, i);
		CHECK(put(&f, i, "a", id, buf_str(&code)) == 0);
	}
	CHECK(open_again(&f, 1000000000, 1 << 20));
	while (more > 0)
		more = archive_trim(f.archive, 0, &f.e);
	CHECK_INT(more, 0);
	CHECK(open_again(&f, 1000000000, 1 << 20));
	CHECK(stat(f.path, &st) == 0 && st.st_size <= 1 << 20);
	CHECK_STR(ask(&out, &f, QUERY_SHOW, "a", "1"), "there is no record '1'");
}

TEST(archive_puts_aside_what_is_no_database)
{
	AUTO(tear_down) struct fixture f;
	char aside[96];

	CHECK(set_up(&f));
	archive_free(take_ptr(&f.archive));
	(void)snprintf(aside, sizeof(aside), "%s-wal", f.path);
	CHECK(unlink(aside) == 0);
	FILE *file = fopen(f.path, "w");
	CHECK(file);
	for (int i = 0; i < 1000; i++)
		(void)fputs("no database\n", file);
	(void)fclose(file);
	CHECK(open_again(&f, 1000000000, 1 << 30));
	CHECK(put(&f, 1, "a", "1", "x") == 0);
	(void)snprintf(aside, sizeof(aside), "%s.damaged", f.path);
	CHECK(access(aside, F_OK) == 0);
}
