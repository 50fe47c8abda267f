#include "guest/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE = 2 << 20, RUNS_MAX = 64 };

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

struct run { /* mappings side by side of one file, none of which can be written to */
	uintptr_t start, end;
	unsigned long inode;
	bool has_code;
};

static uintptr_t first_huge(uintptr_t at)
{
	return (at + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
}

static bool read_line(struct run *ret, const char *line)
{
	char access[5];

	if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &ret->start, &ret->end, access, &ret->inode) !=
	    4)
		return false;
	ret->has_code = access[2] == 'x';
	return ret->inode && access[0] == 'r' && access[1] == '-' && access[3] == 'p';
}

static size_t find_runs(struct run ret[RUNS_MAX])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct run now, *last = NULL;
	size_t count = 0;
	char line[512];

	while (maps && count < RUNS_MAX && fgets(line, sizeof(line), maps)) {
		if (!read_line(&now, line)) {
			last = NULL;
		} else if (last && last->end == now.start && last->inode == now.inode) {
			last->end = now.end;
			last->has_code |= now.has_code;
		} else {
			last = &ret[count++];
			*last = now;
		}
	}
	if (maps)
		(void)fclose(maps);
	return count;
}

/* Constants among the code become executable with it: to those who run here that gives nothing
 * that they could not have. */
static void gather(uintptr_t start, size_t len)
{
	size_t room = len + HUGE; /* both places must begin where a huge page does */
	char *all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return;
	char *copy = (char *)first_huge((uintptr_t)all);
	memcpy(copy, (const void *)start, len);
	if (madvise(copy, len, MADV_COLLAPSE) == 0 &&
	    mprotect(copy, len, PROT_READ | PROT_EXEC) == 0)
		(void)mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start);
	(void)munmap(all, room);
}

void text_gather(void)
{
	struct run runs[RUNS_MAX];
	size_t count = find_runs(runs);

	for (size_t i = 0; i < count; i++) {
		uintptr_t start = first_huge(runs[i].start), end = runs[i].end & ~(uintptr_t)(HUGE - 1);
		if (runs[i].has_code && start < end)
			gather(start, end - start);
	}
}
