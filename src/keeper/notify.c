#include "keeper/notify.h"

#include "base/own.h"
#include "base/units.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un to;
static socklen_t to_len; /* 0: nobody */
static uint64_t watchdog_us;

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);
	struct err ignored;
	uint64_t n;

	return text && units_count(&n, text, &ignored) == 0 ? n : otherwise;
}

void notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (len > 1 && len < sizeof(to.sun_path) && (path[0] == '/' || path[0] == '@')) {
		to.sun_family = AF_UNIX;
		memcpy(to.sun_path, path, len);
		if (path[0] == '@') /* an abstract name */
			to.sun_path[0] = '\0';
		to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	}
	if (to_len && number_of("WATCHDOG_PID", (uint64_t)getpid()) == (uint64_t)getpid())
		watchdog_us = number_of("WATCHDOG_USEC", 0);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_PID");
	(void)unsetenv("WATCHDOG_USEC");
}

void notify(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!to_len)
		return;
	va_start(ap, fmt);
	int len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && len > 0 && len < (int)sizeof(text))
		(void)!sendto(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT,
			      (struct sockaddr *)&to, to_len);
}

uint64_t notify_watchdog_us(void)
{
	return watchdog_us;
}
