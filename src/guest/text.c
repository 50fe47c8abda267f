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

struct mapping { /* of a file, and private */
	uintptr_t start, end;
	unsigned long inode;
	char access[5];
};

struct run { /* mappings side by side of one file, none of which can be written to */
	uintptr_t start, end;
	unsigned long inode;
	bool has_code, ends_in_code;
};

static uintptr_t first_huge(uintptr_t at)
{
	return (at + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
}

static bool read_line(struct mapping *ret, const char *line)
{
	return sscanf(line, "%lx-%lx %4s %*s %*s %lu", &ret->start, &ret->end, ret->access,
		      &ret->inode) == 4 &&
	       ret->inode && ret->access[0] == 'r' && ret->access[3] == 'p';
}

static bool start_run(struct run *ret, const char *line)
{
	struct mapping m;

	if (!read_line(&m, line) || m.access[1] != '-')
		return false;
	bool is_code = m.access[2] == 'x';
	*ret = (struct run){ m.start, m.end, m.inode, is_code, is_code };
	return true;
}

/* What is read-only twice over is code's constants, and then data that was written once. */
static bool is_next(const struct run *last, const struct run *now)
{
	return last && last->end == now->start && last->inode == now->inode &&
	       (last->ends_in_code || now->ends_in_code);
}

static size_t find_runs(struct run ret[RUNS_MAX])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct run now, *last = NULL;
	size_t count = 0;
	char line[512];

	while (maps && count < RUNS_MAX && fgets(line, sizeof(line), maps)) {
		if (!start_run(&now, line)) {
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

/*
 * What a library writes once, when it is linked, lies before what it writes always; it is made
 * read-only then, which makes two mappings of one, both with pages of their own: those are what a
 * mapping costs most for.  It keeps a faulty program from damaging itself in one way of many, and
 * nobody from anything else.
 */
static void join_data(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mapping constants[RUNS_MAX], last = { 0 }, now;
	size_t count = 0;
	char line[512];

	while (maps && count < RUNS_MAX && fgets(line, sizeof(line), maps)) {
		if (!read_line(&now, line)) {
			last.inode = 0;
			continue;
		}
		if (last.inode == now.inode && last.end == now.start &&
		    strcmp(last.access, "r--p") == 0 && strcmp(now.access, "rw-p") == 0)
			constants[count++] = last;
		last = now;
	}
	if (maps)
		(void)fclose(maps);
	for (size_t i = 0; i < count; i++)
		(void)mprotect((void *)constants[i].start, constants[i].end - constants[i].start,
			       PROT_READ | PROT_WRITE);
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

void text_gather(void)
{
	struct run runs[RUNS_MAX];
	size_t count = find_runs(runs), copied = 0;

	join_data();

	for (size_t i = 0; i < count; i++) {
		const struct run *run = &runs[i];
		uintptr_t start = first_huge(run->start), end = run->end & ~(uintptr_t)(HUGE - 1);
		/* Constants become executable with the code between them, which makes one mapping
		 * of three.  To those who run here that gives nothing that they could not have. */
		if (!run->has_code ||
		    mprotect((void *)run->start, run->end - run->start, PROT_READ | PROT_EXEC) < 0)
			continue;
		if (start < end && end - start <= COPIED_MAX - copied) {
			copied += end - start;
			move_to_huge_pages(start, end - start);
		}
	}
}
