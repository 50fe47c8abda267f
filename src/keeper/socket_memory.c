/*
 * socket_memory - guests whose sockets hold more than their limit.
 *
 * Only where control groups do not see to it (cgroup_sockets_exceed), and only while the sockets of
 * this host together hold enough to matter: to ask that is one question, whoever is there.
 */
#include "keeper/keeper.h"

#include "base/sys.h"

#include <fcntl.h>
#include <string.h>

#define LOOK_US 250000u

enum { MATTERS_BYTES = 64 << 20 };

/* "TCP: inuse 3 orphan 0 tw 0 alloc 3 mem 190": pages, of all network namespaces. */
static uint64_t pages_of(const char *text, const char *protocol)
{
	const char *line = strstr(text, protocol);
	const char *mem = line ? strstr(line, " mem ") : NULL;

	return mem && mem < line + strcspn(line, "\n") ? strtoull(mem + 5, NULL, 10) : 0;
}

static bool is_much(void)
{
	auto_close int fd = SYS(open, "/proc/self/net/sockstat", O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd < 0 ? -1 : SYS(read, fd, text, sizeof(text) - 1);

	if (n < 0)
		return true; /* nobody knows: so each is asked */
	text[n] = '\0';
	uint64_t pages = pages_of(text, "TCP:") + pages_of(text, "UDP:");
	return pages * (uint64_t)sysconf(_SC_PAGESIZE) > MATTERS_BYTES;
}

static void on_due(struct timer *t)
{
	struct keeper *k = holder_of(t, struct keeper, socket_memory);
	struct err ignored;

	size_t nests = is_much() ? k->environments->count : 0;
	for (size_t i = 0; i < nests; i++)
		for (struct cell *cell = k->nests[i] ? k->nests[i]->cells : NULL; cell;
		     cell = cell->next)
			cell_check_sockets(cell);
	(void)!loop_set_timer(k->loop, t, LOOK_US, &ignored);
}

void socket_memory_begin(struct keeper *k)
{
	struct cgroup_host *groups;
	struct err ignored;

	k->socket_memory.on_due = on_due;
	if (host_cgroups(&groups, k->host, &ignored) == 0 && cgroup_version(groups) == CGROUP_V1)
		(void)!loop_set_timer(k->loop, &k->socket_memory, LOOK_US, &ignored);
}
