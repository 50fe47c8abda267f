#include "keeper/keeper.h"

#include "base/json.h"
#include "base/sys.h"
#include "base/units.h"
#include "keeper/helper.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

static bool says_json;

void keeper_say_as(const char *log_format)
{
	says_json = strcmp(log_format, "json") == 0;
}

/* As server/log.c has them, with the text as it is. */
static void say_json(enum keeper_level level, const char *text)
{
	static const char *const names[] = { "error", "warn", "info" };
	auto_buf struct buf line = BUF_INIT(4096);
	struct json j = { .out = &line };
	char time[40];

	json_open(&j, NULL, '{');
	json_string(&j, "time", units_show_now(time));
	json_string(&j, "level", names[level]);
	json_string(&j, "event", "keeper");
	json_string(&j, "text", text);
	json_close(&j);
	(void)fprintf(stderr, "%s\n", buf_str(&line));
}

void keeper_say(enum keeper_level level, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (says_json)
		say_json(level, text);
	else
		(void)fprintf(stderr, "vial: keeper: %s\n", text);
}

void keeper_tell(struct keeper *k, const struct wire_msg *msg, const int *fds, size_t count)
{
	struct err e;

	if (wire_send(k->server, msg, fds, count, &e) == 0)
		return;
	k->fatal = e;
	loop_stop(k->loop);
}

void keeper_fail(struct keeper *k, uint32_t box, const struct err *why)
{
	const struct wire_msg msg = { .kind = WIRE_FAILED, .box = box, .failed = *why };

	keeper_tell(k, &msg, NULL, 0);
}

static void serve_files(struct keeper *k, const struct wire_msg *order, const int *fds,
			size_t fd_count)
{
	struct wire_msg msg = { .kind = WIRE_FILER, .box = order->box };

	auto_close int filer = fd_count == 1
				       ? helper_filer(k, fds[0], &msg.failed)
				       : err_set(&msg.failed, ERR_BUG, "which workspace?");
	keeper_tell(k, &msg, &filer, filer >= 0);
}

static void end_without_limits(struct cell *cell, const struct err *why)
{
	keeper_say(SAY_ERROR, "a sandbox is ended: %s", why->msg);
	cell_kill(cell);
}

static void obey(struct keeper *k, const struct wire_msg *msg, const int *fds, size_t fd_count)
{
	struct cell *cell = msg->box <= WIRE_BOX_MAX ? cell_find(k, msg->box) : NULL;
	struct err e;

	switch (msg->kind) {
	case WIRE_ARM:
		if (cell_create(k, msg->box, &msg->arm, &e) < 0)
			keeper_fail(k, msg->box, &e);
		break;
	case WIRE_NEXT:
		if (cell)
			cell_next(cell, &msg->arm);
		break;
	case WIRE_SIGNAL:
		if (cell)
			cell_signal(cell, SIGINT);
		break;
	case WIRE_GUARD:
		if (cell && cell_guard(cell, &e) < 0)
			end_without_limits(cell, &e);
		break;
	case WIRE_GROW:
		if (cell && cell_grow(cell, msg->arm.limits.memory_bytes, &e) < 0)
			end_without_limits(cell, &e);
		break;
	case WIRE_RESCUE:
		if (cell)
			cell_rescue(cell);
		break;
	case WIRE_KILL:
		if (cell)
			cell_kill(cell);
		break;
	case WIRE_FORK:
		branches_begin(k, cell, &msg->fork);
		break;
	case WIRE_FILES:
		serve_files(k, msg, fds, fd_count);
		break;
	case WIRE_LISTEN:
		if (cell)
			cell_listen(cell, &msg->listen);
		break;
	case WIRE_TERMINAL:
		if (cell)
			terminal_open(cell, msg->terminal.number);
		break;
	case WIRE_TERMINAL_KILL:
		if (cell)
			terminal_kill(cell, msg->terminal.number);
		break;
	case WIRE_READY:
		if (k->on_ready)
			k->on_ready(k->arg);
		break;
	default:
		err_set(&k->fatal, ERR_BUG, "the server said %d", msg->kind);
		loop_stop(k->loop);
	}
}

static void on_server(struct watch *w, uint32_t events)
{
	struct keeper *k = holder_of(w, struct keeper, server_watch);
	int fds[WIRE_FDS_MAX];
	struct wire_msg msg;
	size_t fd_count;
	struct err e;

	(void)events;
	if (wire_receive(w->fd, &msg, fds, &fd_count, &e) < 0) {
		if (e.code == ERR_BUSY)
			return;
		k->fatal = e;
		loop_stop(k->loop);
		return;
	}
	obey(k, &msg, fds, fd_count);
	while (fd_count > 0)
		(void)close(fds[--fd_count]);
}

int keeper_run(struct keeper *k, struct err *e)
{
	k->nests = calloc(k->environments->count, sizeof(struct nest *));
	if (!k->nests)
		return err_sys(e, "keeper");
	k->grafter = k->grafter_channel = -1;
	k->server_watch = (struct watch){ .fd = k->server, .on_ready = on_server };
	socket_memory_begin(k);
	sys_stand_back(); /* and with us whatever makes sandboxes */
	int ran = loop_watch(k->loop, &k->server_watch, EPOLLIN, e) < 0
			  ? -1
			  : loop_run(k->loop, e);
	for (size_t i = 0; i < k->environments->count; i++)
		nest_kill(k->nests[i]);
	for (size_t i = 0; i < k->environments->count; i++)
		nest_free(k->nests[i]);
	spares_end(k);
	grafter_end(k);
	helpers_end(k);
	if (k->has_egress_lease)
		lease_done(&k->egress_lease);
	free(k->nests);
	if (ran == 0 && k->fatal.code != ERR_NONE) {
		*e = k->fatal;
		return -1;
	}
	return ran;
}
