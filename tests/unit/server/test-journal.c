#include "server/entry.h"
#include "server/journal.h"
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static void make_entry(struct buf *out, const char *code)
{
	const struct entry entry = { .ended = 7,
				     .id = { "12", 2 },
				     .tenant = { "local", 5 },
				     .code = { code, strlen(code) } };

	entry_write(out, &entry);
}

static int append(struct journal *j, uint64_t seq, const char *code, struct err *e)
{
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);

	make_entry(&bytes, code);
	return journal_append(j, seq, &bytes, e);
}

TEST(journal_keeps_entries_in_order)
{
	auto_close int fd = memfd_create("journal", MFD_CLOEXEC);
	struct journal j = { .fd = fd }, other = { .fd = fd };
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	uint64_t at = journal_start(), seq;
	struct entry entry;
	struct err e;

	CHECK(journal_reset(&j, &e) == 0);
	CHECK(append(&j, 1, "first", &e) == 0 && append(&j, 2, "", &e) == 0);
	CHECK(journal_load(&other, &e) == 0);
	CHECK_INT(other.len, j.len);
	CHECK(journal_next(&bytes, &seq, &other, &at));
	CHECK_INT(seq, 1);
	CHECK(entry_read(&entry, buf_str(&bytes), bytes.len, &e) == 0);
	CHECK_INT(entry.ended, 7);
	CHECK(entry.code.len == 5 && memcmp(entry.code.at, "first", 5) == 0);
	CHECK(journal_next(&bytes, &seq, &other, &at));
	CHECK_INT(seq, 2);
	CHECK(!journal_next(&bytes, &seq, &other, &at));
	CHECK_INT(at, j.len);
}

/* With a window, if /var/tmp is on ext4 or XFS; what follows holds without one, too. */
static int open_mapped(struct journal *j, struct err *e)
{
	char path[] = "/var/tmp/vial-test.XXXXXX"; /* /tmp may be a tmpfs, which has none */

	j->fd = mkstemp(path);
	if (j->fd < 0)
		return err_sys(e, "%s", path);
	(void)unlink(path);
	if (journal_reset(j, e) < 0)
		return -1;
	journal_map(j);
	return 0;
}

TEST(journal_is_written_through_its_window_and_behind_it)
{
	auto_free char *code = calloc(1, 200001);
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	struct journal j = { .fd = -1 };
	uint64_t at = journal_start(), seq;
	struct err e;

	CHECK(code && open_mapped(&j, &e) == 0);
	memset(code, 'x', 200000);
	for (uint64_t i = 1; i <= 20; i++) /* 4 MB */
		CHECK(append(&j, i, code, &e) == 0);
	CHECK(j.len > JOURNAL_WINDOW);
	for (uint64_t i = 1; i <= 20; i++)
		CHECK(journal_next(&bytes, &seq, &j, &at) && seq == i);
	CHECK(!journal_next(&bytes, &seq, &j, &at));
	CHECK_INT(at, j.len);

	/* Emptied, by somebody else; nothing of it is left, and the window is as good as new. */
	struct journal other = { .fd = j.fd };
	CHECK(journal_reset(&other, &e) == 0);
	for (size_t i = journal_start(); j.window && i < JOURNAL_WINDOW; i++)
		if (j.window[i])
			STOP(TEST_FAIL, "there is something left, at %zu", i);
	j.salt = other.salt;
	j.len = other.len;
	CHECK(append(&j, 21, "again", &e) == 0);
	struct journal loaded = { .fd = j.fd };
	CHECK(journal_load(&loaded, &e) == 0);
	at = journal_start();
	CHECK(journal_next(&bytes, &seq, &loaded, &at) && seq == 21);
	CHECK(!journal_next(&bytes, &seq, &loaded, &at));
	journal_unmap(&j);
	(void)close(j.fd);
}

TEST(journal_goes_on_without_its_window)
{
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	struct journal j = { .fd = -1 };
	uint64_t at, seq;
	struct err e;

	CHECK(open_mapped(&j, &e) == 0);
	CHECK(append(&j, 1, "before", &e) == 0);
	at = j.len;
	CHECK(ftruncate(j.fd, 0) == 0);
	CHECK(append(&j, 2, "after", &e) == 0);
	CHECK(!j.window);
	CHECK(append(&j, 3, "later", &e) == 0);
	CHECK(journal_next(&bytes, &seq, &j, &at) && seq == 2);
	CHECK(journal_next(&bytes, &seq, &j, &at) && seq == 3);
	(void)close(j.fd);
}

TEST(journal_knows_a_torn_end)
{
	auto_close int fd = memfd_create("journal", MFD_CLOEXEC);
	struct journal j = { .fd = fd };
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	uint64_t seq;
	struct err e;

	CHECK(journal_reset(&j, &e) == 0 && append(&j, 1, "whole", &e) == 0);
	uint64_t whole = j.len;
	CHECK(append(&j, 2, "torn", &e) == 0);
	for (uint64_t len = j.len; len-- > whole;) {
		struct journal cut = { .fd = fd };
		uint64_t at = journal_start();
		CHECK(ftruncate(fd, (off_t)len) == 0 && journal_load(&cut, &e) == 0);
		CHECK(journal_next(&bytes, &seq, &cut, &at) && seq == 1);
		CHECK(!journal_next(&bytes, &seq, &cut, &at));
		CHECK_INT(at, whole);
	}
}

/* What is left of a longer one may be just what somebody wants to be taken for an entry. */
TEST(journal_takes_no_entry_from_a_guest)
{
	auto_close int fd = memfd_create("journal", MFD_CLOEXEC);
	auto_close int forged_fd = memfd_create("forged", MFD_CLOEXEC);
	struct journal j = { .fd = fd }, forged = { .fd = forged_fd };
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	char copy[512];
	uint64_t at = journal_start(), seq;
	struct err e;

	CHECK(journal_reset(&j, &e) == 0 && journal_reset(&forged, &e) == 0);
	CHECK(append(&forged, 2, "forged", &e) == 0 && append(&j, 1, "real", &e) == 0);
	ssize_t n = pread(forged_fd, copy, sizeof(copy), (off_t)journal_start());
	CHECK(n > 0 && pwrite(fd, copy, (size_t)n, (off_t)j.len) == n);
	CHECK(journal_load(&j, &e) == 0);
	CHECK(journal_next(&bytes, &seq, &j, &at) && seq == 1);
	CHECK(!journal_next(&bytes, &seq, &j, &at));
}

TEST(journal_forgets_when_it_is_emptied)
{
	auto_close int fd = memfd_create("journal", MFD_CLOEXEC);
	struct journal j = { .fd = fd };
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	uint64_t at = journal_start(), seq;
	struct err e;

	CHECK(journal_reset(&j, &e) == 0 && append(&j, 1, "gone", &e) == 0);
	uint64_t salt = j.salt;
	CHECK(journal_reset(&j, &e) == 0);
	CHECK(j.salt != salt);
	CHECK(!journal_next(&bytes, &seq, &j, &at));
	CHECK(ftruncate(fd, 3) == 0 && journal_load(&j, &e) == 0);
	CHECK_INT(j.salt, 0);
	CHECK(!journal_next(&bytes, &seq, &j, &at));
}

TEST(entry_cuts_what_is_too_long)
{
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX), code = BUF_INIT(1 << 20);
	struct entry entry;
	struct err e;

	for (int i = 0; i < 1 << 19; i++)
		buf_add_char(&code, 'x');
	make_entry(&bytes, buf_str(&code));
	CHECK(entry_read(&entry, buf_str(&bytes), bytes.len, &e) == 0);
	CHECK_INT(entry.code.len, ENTRY_BYTES_MAX);
	CHECK(entry_read(&entry, buf_str(&bytes), bytes.len - 1, &e) == -1);
	buf_add_char(&bytes, 'x');
	CHECK(entry_read(&entry, buf_str(&bytes), bytes.len, &e) == -1);
}
