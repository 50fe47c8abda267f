#include "guest/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
	HUGE = 2 << 20,
	RUNS_MAX = 1024,
	COPIED_MAX = 8 << 20, /* which is the interpreter itself: programs come before libraries */
};

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

struct run { /* mappings side by side of one file, none of which can be written to */
	uintptr_t start, end;
	unsigned long inode;
	bool has_code, ends_in_code;
	bool is_before_data;
};

static uintptr_t first_huge(uintptr_t at)
{
	return (at + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
}

/* Of a file, and private. */
static bool read_line(struct run *ret, bool *ret_is_data, const char *line)
{
	char access[5];

	*ret = (struct run){ 0 };
	if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &ret->start, &ret->end, access, &ret->inode) !=
	    4)
		return false;
	ret->has_code = ret->ends_in_code = access[2] == 'x';
	*ret_is_data = access[1] == 'w';
	return ret->inode && access[0] == 'r' && access[3] == 'p';
}

static bool is_beside(const struct run *last, const struct run *now)
{
	return last && last->end == now->start && last->inode == now->inode;
}

/* What is read-only twice over is code's constants, and then data that was written once. */
static bool is_next(const struct run *last, const struct run *now)
{
	return is_beside(last, now) && (last->ends_in_code || now->ends_in_code);
}

static size_t find_runs(struct run ret[RUNS_MAX])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct run now, *last = NULL;
	size_t count = 0;
	char line[512];
	bool is_data;

	while (maps && count < RUNS_MAX && fgets(line, sizeof(line), maps)) {
		if (!read_line(&now, &is_data, line)) {
			last = NULL;
		} else if (is_data) {
			if (is_beside(last, &now))
				last->is_before_data = true;
			last = NULL;
		} else if (is_next(last, &now)) {
			last->end = now.end;
			last->has_code = true;
			last->ends_in_code = now.ends_in_code;
		} else {
			last = &ret[count++];
			*last = now;
		}
	}
	if (maps)
		(void)fclose(maps);
	return count;
}

static void move_to_huge_pages(uintptr_t start, size_t len)
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

/*
 * What a library writes once, when it is linked, lies before what it writes always; then it is made
 * read-only, which makes two mappings of one, both with pages of their own: those are what a
 * mapping costs most for.  It keeps a faulty program from damaging itself in one way of many, and
 * nobody from anything else.
 */
static void join_data(const struct run *run)
{
	(void)mprotect((void *)run->start, run->end - run->start, PROT_READ | PROT_WRITE);
}

void text_gather(void)
{
	struct run runs[RUNS_MAX];
	size_t count = find_runs(runs), copied = 0;

	for (size_t i = 0; i < count; i++) {
		const struct run *run = &runs[i];
		uintptr_t start = first_huge(run->start), end = run->end & ~(uintptr_t)(HUGE - 1);
		if (!run->has_code) {
			if (run->is_before_data)
				join_data(run);
			continue;
		}
		/* Constants become executable with the code between them, which makes one mapping
		 * of three.  To those who run here that gives nothing that they could not have. */
		if (mprotect((void *)run->start, run->end - run->start, PROT_READ | PROT_EXEC) < 0)
			continue;
		if (start < end && end - start <= COPIED_MAX - copied) {
			copied += end - start;
			move_to_huge_pages(start, end - start);
		}
	}
}
