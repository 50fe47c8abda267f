#include "base/wakeful.h"

#include "base/own.h"

#include <fcntl.h>

enum {
	PROCESSORS_MAX = 16, /* all of them would wait, and each change interrupts all of them */
	LINGER_US = 500,     /* for a client that asks again at once */
	LATENCY_NONE = 0,    /* microseconds */
	LATENCY_ANY = 2000000000, /* the kernel's default */
};

static bool say(const struct wakeful *w, int32_t latency_us)
{
	return write(w->fd, &latency_us, sizeof(latency_us)) == sizeof(latency_us);
}

static void on_release(struct timer *t)
{
	struct wakeful *w = holder_of(t, struct wakeful, release);
	uint64_t now = loop_now();
	struct err ignored;

	if (now < w->until_us && loop_set_timer(w->loop, t, w->until_us - now, &ignored) == 0)
		return;
	w->is_held = false;
	if (!say(w, LATENCY_ANY))
		wakeful_close(w); /* which lets go of it for certain */
}

void wakeful_begin(struct wakeful *w, struct loop *loop, int fd)
{
	*w = (struct wakeful){ .loop = loop, .fd = fd, .release.on_due = on_release };
}

void wakeful_open(struct wakeful *w, struct loop *loop)
{
	bool are_many = sysconf(_SC_NPROCESSORS_ONLN) > PROCESSORS_MAX;

	wakeful_begin(w, loop,
		      are_many ? -1 : open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC));
}

void wakeful_close(struct wakeful *w)
{
	loop_cancel_timer(w->loop, &w->release);
	w->is_held = false;
	closep(&w->fd);
	w->fd = -1;
}

void wakeful_stir(struct wakeful *w)
{
	struct err ignored;

	if (w->fd < 0)
		return;
	w->until_us = loop_now() + LINGER_US;
	if (!w->is_held && loop_set_timer(w->loop, &w->release, LINGER_US, &ignored) == 0)
		w->is_held = say(w, LATENCY_NONE);
}
