#include "guest/text.h"

#include "base/own.h"
#include "child.h"
#include "test.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE = 2 << 20, LEN = 3 * HUGE };

static char byte_at(size_t at)
{
	return (char)(at % 251 + at / PAGE);
}

/* As a library is mapped: constants, code, constants, data that was written once, other data. */
static char *map_library(int fd)
{
	const int flags = MAP_PRIVATE | MAP_FIXED;
	char *all = mmap(NULL, LEN + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return NULL;
	char *at = (char *)(((uintptr_t)all + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	char *data = at + LEN - PAGE;
	if (mmap(at, LEN - PAGE, PROT_READ, flags, fd, 0) == MAP_FAILED ||
	    mprotect(at + PAGE, LEN / 2, PROT_READ | PROT_EXEC) < 0 ||
	    mmap(data, 2 * PAGE, PROT_READ | PROT_WRITE, flags, fd, LEN - PAGE) == MAP_FAILED)
		return NULL;
	data[0] = 'r';
	data[PAGE] = 'w';
	return mprotect(data, PAGE, PROT_READ) < 0 ? NULL : at;
}

static char *library(void)
{
	auto_close int fd = memfd_create("library", MFD_CLOEXEC);
	auto_free char *bytes = malloc(LEN);

	for (size_t i = 0; bytes && i < LEN; i++)
		bytes[i] = byte_at(i);
	if (!bytes || fd < 0 || write(fd, bytes, LEN) != LEN || ftruncate(fd, LEN + PAGE) < 0)
		return NULL;
	return map_library(fd);
}

/* How many mappings there are up to `end`, and the access to the first. */
static int look(char access[5], const char *at, const char *end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], found[5];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		if (sscanf(line, "%lx-%lx %4s", &from, &to, found) != 3 || to <= (uintptr_t)at ||
		    from >= (uintptr_t)end)
			continue;
		if (count++ == 0)
			memcpy(access, found, 5);
	}
	if (maps)
		(void)fclose(maps);
	return count;
}

static bool is_same(const char *at)
{
	for (size_t i = 0; i < LEN - PAGE; i++)
		if (at[i] != byte_at(i))
			return false;
	return at[LEN - PAGE] == 'r' && at[LEN] == 'w';
}

static bool code_stays(void)
{
	char *at = library();

	if (!at)
		return false;
	text_gather();
	return is_same(at);
}

static bool pieces_are_one(void)
{
	char *at = library(), access[5] = "";

	if (!at || look(access, at, at + LEN - PAGE) < 2)
		return false;
	text_gather();
	/* What is left at the end is less than a huge page, and still the file's. */
	return look(access, at, at + LEN - PAGE) <= 2 && strcmp(access, "r-xp") == 0;
}

static bool data_is_one(void)
{
	char *at = library(), access[5] = "";

	if (!at || look(access, at + LEN - PAGE, at + LEN + PAGE) != 2)
		return false;
	text_gather();
	return look(access, at + LEN - PAGE, at + LEN + PAGE) == 1 && strcmp(access, "rw-p") == 0;
}

TEST(code_that_is_gathered_is_the_same)
{
	CHECK_INT(in_child(code_stays), 0);
}

TEST(a_librarys_code_and_constants_become_one_mapping)
{
	CHECK_INT(in_child(pieces_are_one), 0);
}

TEST(what_was_written_once_is_one_with_other_data_and_no_code)
{
	CHECK_INT(in_child(data_is_one), 0);
}
