#include "guest/shared.h"

#include "base/own.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { MAPPINGS_MAX = 256 };

struct mapping {
	uintptr_t start;
	size_t len;
	int access;
	bool is_shared;
};

/* "7f0000000000-7f0000001000 rw-s ..." */
static bool read_head(struct mapping *ret, const char *line)
{
	unsigned long start, end;
	char access[5];

	if (sscanf(line, "%lx-%lx %4s", &start, &end, access) != 3)
		return false;
	*ret = (struct mapping){ start, end - start,
				 (access[0] == 'r' ? PROT_READ : 0) |
					 (access[1] == 'w' ? PROT_WRITE : 0) |
					 (access[2] == 'x' ? PROT_EXEC : 0),
				 access[3] == 's' };
	return true;
}

/* Those that are shared, and may be written or be made so; where the kernel does not tell, all
 * that are shared. */
static int find(struct mapping ret[MAPPINGS_MAX], size_t *ret_count, struct err *e)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	bool has_flags = file != NULL;
	struct mapping now = { 0 };
	char line[512];

	*ret_count = 0;
	if (!file)
		file = fopen("/proc/self/maps", "re");
	if (!file)
		return err_sys(e, "/proc/self/maps");
	while (*ret_count < MAPPINGS_MAX && fgets(line, sizeof(line), file)) {
		bool is_head = read_head(&now, line);
		bool is_told = has_flags ? strncmp(line, "VmFlags:", 8) == 0 : is_head;
		if (is_told && now.is_shared && (!has_flags || strstr(line, " mw")))
			ret[(*ret_count)++] = now;
	}
	(void)fclose(file);
	return *ret_count < MAPPINGS_MAX ? 0 : err_set(e, ERR_LIMIT, "too much shared memory");
}

/* Through a file, since what is mapped may be more than there is.  Zeros are there already. */
static void copy(char *to, const struct mapping *from, int memory)
{
	static const char zeros[4096];
	char page[sizeof(zeros)];

	for (size_t at = 0; at < from->len; at += sizeof(page))
		if (pread(memory, page, sizeof(page), (off_t)(from->start + at)) == sizeof(page) &&
		    memcmp(page, zeros, sizeof(page)) != 0)
			memcpy(to + at, page, sizeof(page));
}

static int make_own(const struct mapping *m, int memory, struct err *e)
{
	char *own = mmap(NULL, m->len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (own == MAP_FAILED)
		return err_sys(e, "shared memory");
	copy(own, m, memory);
	if (mprotect(own, m->len, m->access) < 0 ||
	    mremap(own, m->len, m->len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)m->start) ==
		    MAP_FAILED)
		return err_sys(e, "shared memory");
	return 0;
}

int shared_make_own(struct err *e)
{
	struct mapping mappings[MAPPINGS_MAX];
	size_t count;

	if (find(mappings, &count, e) < 0)
		return -1;
	auto_close int memory = count ? open("/proc/self/mem", O_RDONLY | O_CLOEXEC) : -1;
	if (count && memory < 0)
		return err_sys(e, "/proc/self/mem");
	for (size_t i = 0; i < count; i++)
		if (make_own(&mappings[i], memory, e) < 0)
			return -1;
	return 0;
}
