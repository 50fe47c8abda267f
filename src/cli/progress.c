#include "cli/progress.h"

#include "base/buf.h"
#include "base/units.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { EVERY_MS = 100, BAR = 30, NAME_SHOWN = 30 };

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void progress_begin(struct progress *p, const char *name, uint64_t total)
{
	const char *term = getenv("TERM");

	*p = (struct progress){ .name = name, .total = total };
	p->is_on = isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
	p->shown_ms = now_ms(); /* what takes no time needs no bar */
}

static void show(const struct progress *p)
{
	auto_buf struct buf name = BUF_INIT(256);
	char done[32], total[32], bar[BAR + 1];

	term_escape(&name, p->name, strnlen(p->name, NAME_SHOWN));
	(void)units_show_size(done, p->done);
	if (!p->total) {
		(void)fprintf(stderr, "\r%s  %s\x1b[K", buf_str(&name), done);
		return;
	}
	uint64_t at = p->done < p->total ? p->done : p->total;
	size_t filled = (size_t)((double)at / (double)p->total * BAR);
	memset(bar, '-', BAR);
	memset(bar, '#', filled);
	bar[BAR] = '\0';
	(void)fprintf(stderr, "\r%s  [%s] %3u%%  %s of %s\x1b[K", buf_str(&name), bar,
		      (unsigned)((double)at / (double)p->total * 100), done,
		      units_show_size(total, p->total));
}

void progress_add(struct progress *p, uint64_t bytes)
{
	p->done += bytes;
	if (!p->is_on)
		return;
	uint64_t now = now_ms();
	if (now - p->shown_ms < EVERY_MS)
		return;
	p->shown_ms = now;
	show(p);
}

void progress_end(struct progress *p)
{
	if (p->is_on)
		(void)fputs("\r\x1b[K", stderr);
	p->is_on = false;
}
