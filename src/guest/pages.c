#include "guest/pages.h"

#include "base/own.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum {
	BATCH = 512,
	PATIENCE_MS = 20000,
	AROUND = 64 << 10, /* one touch of a file maps as much, if it is in memory */
	HUGE = 2 << 20,
	PINNED_MAX = 1024, /* ranges: more are not taken by older kernels */
	PINNED_BYTES_MAX = 4 << 20, /* of each guest, and charged to us */
	PAGE_BYTES_MAX = 64 << 10,
	GATHERED_MIN = 64 << 10, /* smaller mappings are not worth it */
	GATHERED_MAX = 4096,
};

/* Bits of /proc/self/pagemap. */
#define PAGE_PRESENT   (1ull << 63)
#define PAGE_OF_FILE   (1ull << 61)
#define PAGE_EXCLUSIVE (1ull << 56)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

struct mapping {
	unsigned long start, end;
	char access[8];
};

static struct mapping gathered[GATHERED_MAX]; /* what lies in huge pages, in the zygote */
static size_t gathered_count;

/* The next private and readable one of ours. */
static bool next_mapping(struct mapping *ret, FILE *maps)
{
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &ret->start, &ret->end, ret->access) == 3 &&
		    ret->access[3] == 'p' && ret->access[0] == 'r' && !strstr(line, "[v"))
			return true;
	return false;
}

static bool is_mostly_there(int pagemap, const struct mapping *m)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), count = (m->end - m->start) / page;
	uint64_t entries[BATCH];
	size_t there = 0;

	for (size_t i = 0; i < count;) {
		size_t want = count - i < BATCH ? count - i : BATCH;
		ssize_t n = pread(pagemap, entries, want * sizeof(*entries),
				  (off_t)((m->start / page + i) * sizeof(*entries)));
		if (n < (ssize_t)sizeof(*entries))
			return false;
		for (size_t k = 0; k < (size_t)n / sizeof(*entries); k++, i++)
			there += (entries[k] & PAGE_PRESENT) != 0;
	}
	return there * 4 > count * 3;
}

/* No code, and not the stack, which is what we stand on. */
static bool is_data(const struct mapping *m)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return m->access[1] == 'w' && m->access[2] != 'x' && here - m->start >= m->end - m->start;
}

static void find_large(void)
{
	auto_close int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	FILE *maps = fopen("/proc/self/maps", "re");

	for (struct mapping m; pagemap >= 0 && gathered_count < GATHERED_MAX &&
			       next_mapping(&m, maps);)
		if (is_data(&m) && m.end - m.start >= GATHERED_MIN && is_mostly_there(pagemap, &m))
			gathered[gathered_count++] = m;
	if (maps)
		(void)fclose(maps);
}

/* What is not as long or aligned as a huge page is mapped page by page, but lies side by side in
 * one all the same: the kernel then copies and ends such mappings in one go. */
static bool move_to_huge_pages(const struct mapping *m)
{
	const size_t len = m->end - m->start;
	bool has_whole = ((m->start + HUGE - 1) & ~(uintptr_t)(HUGE - 1)) + HUGE <= m->end;
	const size_t offset = has_whole ? m->start % HUGE : 0;
	const size_t room = (offset + len + HUGE - 1) & ~(size_t)(HUGE - 1);
	char *all = mmap(NULL, room + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);

	if (all == MAP_FAILED)
		return false;
	char *copy = (char *)(((uintptr_t)all + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	memcpy(copy + offset, (void *)m->start, len); /* nobody writes there until it is moved */
	bool moved = madvise(copy, room, MADV_COLLAPSE) == 0 &&
		     mremap(copy + offset, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
			    (void *)m->start) != MAP_FAILED;
	(void)munmap(all, room + HUGE);
	return moved;
}

/* Else somebody might write to what is being moved. */
static bool is_one_thread(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

void pages_gather(void)
{
	size_t count = 0;

	if (is_one_thread())
		find_large();
	for (size_t i = 0; i < gathered_count; i++)
		if (move_to_huge_pages(&gathered[i]))
			gathered[count++] = gathered[i];
	gathered_count = count;
}

/* ---- the rehearsal --------------------------------------------------------------------- */

struct teller {
	struct page_range now;
	uintptr_t around; /* of the file's page that was told last */
	int pipe;
};

static void flush(struct teller *t)
{
	if (t->now.len)
		(void)!write(t->pipe, &t->now, sizeof(t->now));
	t->now.len = 0;
}

static void tell(struct teller *t, uintptr_t at, size_t page, bool is_written)
{
	if (!is_written && at / AROUND == t->around)
		return;
	if (!is_written)
		t->around = at / AROUND;
	if (t->now.len && t->now.is_written == is_written && t->now.start + t->now.len == at) {
		t->now.len += page;
		return;
	}
	flush(t);
	t->now = (struct page_range){ at, page, is_written };
}

static void tell_mapping(struct teller *t, int pagemap, const struct mapping *m)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = m->start, end = m->end;
	uint64_t entries[BATCH];

	while (start < end) {
		size_t want = (end - start) / page < BATCH ? (end - start) / page : BATCH;
		ssize_t n = pread(pagemap, entries, want * sizeof(*entries),
				  (off_t)(start / page * sizeof(*entries)));
		if (n <= 0)
			return;
		size_t got = (size_t)n / sizeof(*entries);
		for (size_t i = 0; i < got; i++, start += page) {
			if (!(entries[i] & PAGE_PRESENT))
				continue;
			if (entries[i] & PAGE_OF_FILE)
				tell(t, start, page, false);
			else if ((entries[i] & PAGE_EXCLUSIVE) && m->access[1] == 'w')
				tell(t, start, page, true);
		}
	}
}

void pages_tell(int pipe)
{
	struct teller t = { .pipe = pipe };
	auto_close int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	FILE *maps = fopen("/proc/self/maps", "re");

	if (pagemap >= 0)
		for (struct mapping m; next_mapping(&m, maps);)
			tell_mapping(&t, pagemap, &m);
	flush(&t);
	if (maps)
		(void)fclose(maps);
}

/* ---- the zygote, and guests ------------------------------------------------------------ */

void pages_learn(struct pages *ret, int pipe)
{
	struct page_range range;
	struct pollfd ready = { pipe, POLLIN, 0 };

	ret->count = 0;
	while (ret->count < PAGE_RANGES_MAX && poll(&ready, 1, PATIENCE_MS) == 1 &&
	       read(pipe, &range, sizeof(range)) == sizeof(range))
		ret->ranges[ret->count++] = range;
}

void pages_keep_own(struct pages *pages)
{
	size_t count = 0;

	/* A guest that touched what its zygote never had would die of it. */
	for (size_t i = 0; i < pages->count; i++) {
		const struct page_range range = pages->ranges[i];
		if (madvise((void *)range.start, range.len,
			    range.is_written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
			pages->ranges[count++] = range;
	}
	pages->count = count;
}

static bool is_gathered(uintptr_t at)
{
	for (size_t i = 0; i < gathered_count; i++)
		if (at - gathered[i].start < gathered[i].end - gathered[i].start)
			return true;
	return false;
}

/* The kernel counts pins by the huge page, and would copy all of it. */
static bool take_out(uintptr_t at, size_t page)
{
	static char content[PAGE_BYTES_MAX];

	if (!is_gathered(at))
		return true;
	if (page > sizeof(content))
		return false;
	memcpy(content, (void *)at, page);
	if (madvise((void *)at, page, MADV_DONTNEED) < 0)
		return false;
	memcpy((void *)at, content, page);
	return true;
}

static bool can_pin(const struct page_range *range)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (uintptr_t at = range->start; at < range->start + range->len; at += page)
		if (!take_out(at, page))
			return false;
	return true;
}

bool pages_pin(const struct pages *pages)
{
	struct io_uring_params params = { .flags = IORING_SETUP_R_DISABLED };
	static struct iovec pinned[PINNED_MAX];
	size_t count = 0, len = 0;

	if (gathered_count == GATHERED_MAX)
		return false;
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	if (ring < 0)
		return false;
	for (size_t i = 0; i < pages->count && count < PINNED_MAX; i++) {
		const struct page_range *range = &pages->ranges[i];
		if (!range->is_written || range->len > PINNED_BYTES_MAX - len || !can_pin(range))
			continue;
		pinned[count++] = (struct iovec){ (void *)range->start, range->len };
		len += range->len;
	}
	/* Open as long as we live: it has the pins. */
	return syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, pinned, count) == 0;
}

void pages_make_ready(const struct pages *pages)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC,
			    &now); /* the kernel's own pages, which are in no list */
	for (size_t i = 0; i < pages->count; i++) {
		const struct page_range *range = &pages->ranges[i];
		for (uintptr_t at = range->start; at < range->start + range->len; at += page) {
			volatile char *byte = (volatile char *)at;
			if (range->is_written)
				*byte = *byte;
			else
				(void)*byte;
		}
	}
}
