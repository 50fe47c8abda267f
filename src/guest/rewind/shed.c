/*
 * Whoever becomes a supervisor in the middle of a session would hold all that the session had then,
 * as long as it lives; and be, to the kernel, the one that has most of it.  What it still needs is
 * its stack, what the thread pointer points into, and the data of loaded objects: those have the
 * object's name, or lie right behind what has it.
 */
#include "guest/rewind/shed.h"

#include "base/own.h"

#include <fcntl.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LINE_SIZE = 512,
	PAGE = 4096,
	WORTH = 256 << 10, /* what is smaller stays */
	MARGIN = 1 << 20,  /* around what stays */
};

struct map {
	unsigned long from, to;
	char perms[5];
	char name[64];
};

static bool is_heap(const struct map *map)
{
	return map->perms[1] == 'w' && map->perms[3] == 'p' &&
	       (strcmp(map->name, "[heap]") == 0 || strncmp(map->name, "[anon", 5) == 0 ||
		!map->name[0]);
}

static void drop(unsigned long from, unsigned long to)
{
	if (from < to && to - from >= WORTH)
		(void)madvise((void *)(uintptr_t)from, to - from, MADV_DONTNEED);
}

/* The kernel makes one of mappings that meet: what is needed has others around it. */
static void shed(const struct map *map, unsigned long object_end)
{
	unsigned long thread = (unsigned long)(uintptr_t)__builtin_thread_pointer() & ~(PAGE - 1ul);
	unsigned long from = map->from;

	if (!is_heap(map))
		return;
	if (from == object_end)
		from += MARGIN;
	if (thread >= map->from && thread < map->to) {
		drop(from, thread - MARGIN);
		from = thread + MARGIN;
	}
	drop(from, map->to);
}

static void take_line(const char *line, unsigned long *object_end)
{
	struct map map = { .from = 0 };
	unsigned long inode = 0;

	if (sscanf(line, "%lx-%lx %4s %*s %*s %lu %63s", &map.from, &map.to, map.perms, &inode,
		   map.name) < 4)
		return;
	if (inode)
		*object_end = map.to;
	else
		shed(&map, *object_end);
}

/* Line by line, in memory of our own; of a line that is too long only the beginning is read. */
void shed_memory(void)
{
	static char text[4096], line[LINE_SIZE];
	auto_close int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	unsigned long object_end = 0;
	size_t len = 0;
	ssize_t n;

	/* The interpreter's own is among what goes, and libc asks it what a digit is; this one is
	 * part of libc. */
	(void)uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] != '\n') {
				if (len < LINE_SIZE - 1)
					line[len++] = text[i];
				continue;
			}
			line[len] = '\0';
			len = 0;
			take_line(line, &object_end);
		}
}
