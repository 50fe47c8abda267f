#include "server/journal.h"

#include "server/entry.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>

static const char magic[8] = "vialjnl1";

struct head { /* of the file */
	char magic[8];
	uint64_t salt;
};

struct mark { /* before each entry */
	uint64_t salt, seq, sum;
	uint64_t len;
};

/* Whether it is all there: nobody who could make one up knows the salt. */
static uint64_t sum_of(uint64_t salt, uint64_t seq, const char *bytes, size_t len)
{
	uint64_t sum = salt ^ seq * 0x9e3779b97f4a7c15ull, word;

	for (size_t at = 0; at < len; at += sizeof(word)) {
		word = 0;
		memcpy(&word, bytes + at, len - at < sizeof(word) ? len - at : sizeof(word));
		sum = (sum ^ word) * 0xff51afd7ed558ccdull;
		sum ^= sum >> 32;
	}
	return sum ^ len;
}

static bool read_at(int fd, void *to, size_t len, uint64_t at)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (char *)to + done, len - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

uint64_t journal_start(void)
{
	return sizeof(struct head);
}

/* ---- the window ------------------------------------------------------------------------ */

/*
 * Where a page of a file can always be written again: elsewhere a disk that is full would be a
 * SIGBUS.
 */
static bool keeps_its_blocks(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC);
}

static bool has_window(int fd)
{
	struct stat st;

	return keeps_its_blocks(fd) && fstat(fd, &st) == 0 && st.st_size >= JOURNAL_WINDOW;
}

/*
 * A page that cannot be had, since its disk has failed or somebody has cut the file short, is a
 * SIGBUS: then the entry is written as if there were no window.
 */
static sigjmp_buf lost_page;
static volatile sig_atomic_t is_copying;

static void on_lost_page(int number)
{
	if (is_copying)
		siglongjmp(lost_page, 1);
	(void)signal(number, SIG_DFL); /* nothing of ours: it happens again, and is the end */
}

static bool copy_in(char *to, const struct mark *mark, const struct buf *entry)
{
	if (sigsetjmp(lost_page, 0)) {
		is_copying = false;
		return false;
	}
	is_copying = true;
	atomic_signal_fence(memory_order_seq_cst); /* what is copied is copied in between */
	memcpy(to, mark, sizeof(*mark));
	memcpy(to + sizeof(*mark), buf_str(entry), entry->len);
	atomic_signal_fence(memory_order_seq_cst);
	is_copying = false;
	return true;
}

/* A window that may be mapped elsewhere is never cut short. */
static int clear(int fd, struct err *e)
{
	if (keeps_its_blocks(fd)) {
		if (fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, JOURNAL_WINDOW) == 0)
			return ftruncate(fd, JOURNAL_WINDOW) < 0 ? err_sys(e, "journal") : 0;
		if (has_window(fd))
			return err_sys(e, "journal");
	}
	return ftruncate(fd, 0) < 0 ? err_sys(e, "journal") : 0;
}

void journal_map(struct journal *j)
{
	const struct sigaction action = { .sa_handler = on_lost_page, .sa_flags = SA_NODEFER };
	void *window = MAP_FAILED;

	if (has_window(j->fd) && sigaction(SIGBUS, &action, NULL) == 0)
		window = mmap(NULL, JOURNAL_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, 0);
	j->window = window != MAP_FAILED ? window : NULL;
}

void journal_unmap(struct journal *j)
{
	if (j->window)
		(void)munmap(take_ptr(&j->window), JOURNAL_WINDOW);
}

/* ---- the file -------------------------------------------------------------------------- */

int journal_reset(struct journal *j, struct err *e)
{
	struct head head = { .salt = 0 };

	memcpy(head.magic, magic, sizeof(magic));
	while (!head.salt)
		if (getrandom(&head.salt, sizeof(head.salt), 0) != (ssize_t)sizeof(head.salt))
			return err_sys(e, "random numbers");
	if (clear(j->fd, e) < 0)
		return -1;
	ssize_t n = pwrite(j->fd, &head, sizeof(head), 0);
	if (n != (ssize_t)sizeof(head)) {
		if (n >= 0)
			errno = ENOSPC;
		return err_sys(e, "journal");
	}
	j->salt = head.salt;
	j->len = sizeof(head);
	return 0;
}

int journal_load(struct journal *j, struct err *e)
{
	off_t len = lseek(j->fd, 0, SEEK_END);
	struct head head;

	if (len < 0)
		return err_sys(e, "journal");
	bool is_one = read_at(j->fd, &head, sizeof(head), 0) &&
		      memcmp(head.magic, magic, sizeof(magic)) == 0;
	j->salt = is_one ? head.salt : 0;
	j->len = (uint64_t)len;
	return 0;
}

int journal_append(struct journal *j, uint64_t seq, const struct buf *entry, struct err *e)
{
	const struct mark mark = { .salt = j->salt,
				   .seq = seq,
				   .sum = sum_of(j->salt, seq, buf_str(entry), entry->len),
				   .len = entry->len };
	struct iovec parts[] = { { (void *)&mark, sizeof(mark) },
				 { (void *)buf_str(entry), entry->len } };
	size_t len = sizeof(mark) + entry->len;
	ssize_t n;

	if (j->window && j->len + len <= JOURNAL_WINDOW) {
		if (copy_in(j->window + j->len, &mark, entry)) {
			j->len += len;
			return 0;
		}
		journal_unmap(j);
	}
	do
		n = pwritev(j->fd, parts, 2, (off_t)j->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(e, "journal");
	if ((size_t)n != len) { /* what is half there is overwritten by the next */
		errno = ENOSPC;
		return err_sys(e, "journal");
	}
	j->len += len;
	return 0;
}

bool journal_next(struct buf *ret, uint64_t *ret_seq, const struct journal *j, uint64_t *at)
{
	struct mark mark;
	char chunk[16 << 10];

	if (!j->salt || *at < journal_start() || *at > j->len || j->len - *at < sizeof(mark) ||
	    !read_at(j->fd, &mark, sizeof(mark), *at) || mark.salt != j->salt ||
	    mark.len > ENTRY_MAX || j->len - *at - sizeof(mark) < mark.len)
		return false;
	buf_reset(ret);
	for (uint64_t done = 0; done < mark.len;) {
		size_t n = mark.len - done < sizeof(chunk) ? mark.len - done : sizeof(chunk);
		if (!read_at(j->fd, chunk, n, *at + sizeof(mark) + done))
			return false;
		buf_add(ret, chunk, n);
		done += n;
	}
	if (ret->len != mark.len || sum_of(mark.salt, mark.seq, buf_str(ret), ret->len) != mark.sum)
		return false;
	*ret_seq = mark.seq;
	*at += sizeof(mark) + mark.len;
	return true;
}
