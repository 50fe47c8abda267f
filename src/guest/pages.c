#include "guest/pages.h"

#include "base/own.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { RANGES_MAX = 4096, BATCH = 512, PATIENCE_MS = 20000 };

/* Bits of /proc/self/pagemap. */
#define PAGE_PRESENT   (1ull << 63)
#define PAGE_OF_FILE   (1ull << 61)
#define PAGE_EXCLUSIVE (1ull << 56)

struct teller {
	struct page_range now;
	int pipe;
};

static void flush(struct teller *t)
{
	if (t->now.len)
		(void)!write(t->pipe, &t->now, sizeof(t->now));
	t->now.len = 0;
}

static void tell(struct teller *t, uintptr_t at, size_t page, int advice)
{
	if (t->now.len && t->now.advice == advice && t->now.start + t->now.len == at) {
		t->now.len += page;
		return;
	}
	flush(t);
	t->now = (struct page_range){ at, page, advice };
}

static void tell_mapping(struct teller *t, int pagemap, uintptr_t start, uintptr_t end)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
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
				tell(t, start, page, MADV_POPULATE_READ);
			else if (entries[i] & PAGE_EXCLUSIVE)
				tell(t, start, page, MADV_POPULATE_WRITE);
		}
	}
}

void pages_tell(int pipe)
{
	struct teller t = { .pipe = pipe };
	auto_close int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512], access[8];

	while (pagemap >= 0 && maps && fgets(line, sizeof(line), maps)) {
		/* Only what the zygote has, too, and a guest may have of its own. */
		if (sscanf(line, "%lx-%lx %7s", &start, &end, access) == 3 && access[3] == 'p' &&
		    access[0] == 'r' && !strstr(line, "[v"))
			tell_mapping(&t, pagemap, start, end);
	}
	flush(&t);
	if (maps)
		(void)fclose(maps);
}

void pages_learn(struct pages *ret, int pipe)
{
	struct page_range range;
	struct pollfd ready = { pipe, POLLIN, 0 };

	ret->count = 0;
	ret->ranges = calloc(RANGES_MAX, sizeof(*ret->ranges));
	while (ret->ranges && ret->count < RANGES_MAX && poll(&ready, 1, PATIENCE_MS) == 1 &&
	       read(pipe, &range, sizeof(range)) == sizeof(range))
		ret->ranges[ret->count++] = range;
}

void pages_make_ready(const struct pages *pages)
{
	/* One that is not there in this guest is no loss. */
	for (size_t i = 0; i < pages->count; i++)
		(void)madvise((void *)pages->ranges[i].start, pages->ranges[i].len,
			      pages->ranges[i].advice);
}
