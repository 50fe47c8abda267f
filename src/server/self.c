#include "server/self.h"

#include "base/own.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_MAX = 8192 };

int self_open(struct err *e)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_sys(e, "/proc/self/status") : fd;
}

static bool read_row(uint64_t *ret, const char *line, const char *name, int base)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len) != 0 || line[len] != ':')
		return false;
	*ret = strtoull(line + len + 1, NULL, base);
	return true;
}

void self_parse(struct self_state *ret, const char *status)
{
	uint64_t value = 0;

	*ret = (struct self_state){ 0 };
	for (const char *line = status; *line; line += strcspn(line, "\n")) {
		line += *line == '\n';
		if (read_row(&value, line, "VmRSS", 10))
			ret->resident_bytes = value * 1024;
		else if (read_row(&value, line, "VmSize", 10))
			ret->virtual_bytes = value * 1024;
		else if (read_row(&value, line, "FDSize", 10))
			ret->fd_slots = value;
		else if (read_row(&value, line, "CapEff", 16))
			ret->capabilities = value;
		else if (read_row(&value, line, "Seccomp", 10))
			ret->is_filtered = value == 2;
		else if (read_row(&value, line, "NoNewPrivs", 10))
			ret->has_no_new_privs = value == 1;
	}
}

int self_read(struct self_state *ret, int fd, struct err *e)
{
	char text[STATUS_MAX];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return err_sys(e, "/proc/self/status");
	text[n] = '\0';
	self_parse(ret, text);
	return 0;
}

/* One by one: listing a directory is nothing that the filter allows. */
unsigned self_count_fds(uint64_t fd_slots)
{
	unsigned count = 0;

	for (uint64_t fd = 0; fd < fd_slots; fd++)
		count += fcntl((int)fd, F_GETFD) >= 0;
	return count;
}
