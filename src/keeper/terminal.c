/*
 * terminal - shells in sandboxes that live on, beside their interpreters.
 *
 * A terminal is one more guest in the cell's slot, made by the stem (keeper/shell.h): the same
 * namespaces, group, user, filter and workspace.  The server numbers them, per sandbox.
 */
#include "keeper/keeper.h"

#include "base/own.h"
#include "base/sys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#define TERMINAL_IDS 0xc0000000u /* of orders: no sandbox has one of these */

enum { TERMINALS_MAX = 4 }; /* in one sandbox */

struct terminal {
	struct cell *cell;
	struct terminal *next, **prev; /* in cell->terminals */
	uint32_t id;                   /* of its order */
	uint32_t number;               /* the server's */
	struct guest guest;
	int far;    /* the server's end of its control socket, until it is sent */
	int status; /* why it could not enter */
	bool has_entered;
	struct watch status_watch, end_watch;
};

static void terminal_free(struct terminal *t)
{
	struct loop *loop = t->cell->keeper->loop;

	loop_unwatch(loop, &t->status_watch);
	loop_unwatch(loop, &t->end_watch);
	guest_done(&t->guest);
	closep(&t->far);
	closep(&t->status);
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	free(t);
}

void terminals_free(struct cell *cell)
{
	while (cell->terminals)
		terminal_free(cell->terminals);
}

static void refuse(struct cell *cell, uint32_t number, const struct err *why)
{
	const struct wire_msg msg = { .kind = WIRE_TERMINAL_ENDED,
				      .box = cell->id,
				      .terminal = { .number = number, .failed = *why } };

	keeper_tell(cell->keeper, &msg, NULL, 0);
}

/* ---- its life -------------------------------------------------------------------------- */

static void on_end(struct watch *w, uint32_t events)
{
	struct terminal *t = holder_of(w, struct terminal, end_watch);
	struct wire_msg msg = { .kind = WIRE_TERMINAL_ENDED,
				.box = t->cell->id,
				.terminal.number = t->number };

	(void)events;
	loop_unwatch(t->cell->keeper->loop, w);
	bool is_lost = t->cell->state == CELL_ENDING || keeper_is_ending(t->cell->box);
	(void)keeper_reap(&t->guest.pidfd, &msg.terminal.exit_code, &msg.terminal.signal, NULL);
	if (is_lost) /* it died with its sandbox */
		err_set(&msg.terminal.failed, ERR_GONE, "the session's interpreter ended");
	keeper_tell(t->cell->keeper, &msg, NULL, 0);
	terminal_free(t);
}

static void maybe_open(struct terminal *t)
{
	const struct wire_msg msg = { .kind = WIRE_TERMINAL_OPEN,
				      .box = t->cell->id,
				      .terminal.number = t->number };

	if (!t->has_entered || t->guest.pidfd < 0 || t->far < 0)
		return;
	keeper_tell(t->cell->keeper, &msg, &t->far, 1);
	(void)close(take_fd(&t->far));
}

/* The status pipe ends when the guest is in; a message is a failure. */
static void on_status(struct watch *w, uint32_t events)
{
	struct terminal *t = holder_of(w, struct terminal, status_watch);
	struct err failed;
	ssize_t n = read(w->fd, &failed, sizeof(failed));

	(void)events;
	if (n < 0)
		return;
	loop_unwatch(t->cell->keeper->loop, w);
	(void)close(take_fd(&t->status));
	if (n == sizeof(failed)) {
		err_mend(&failed);
		refuse(t->cell, t->number, &failed);
		terminal_free(t);
		return;
	}
	t->has_entered = true;
	maybe_open(t);
}

bool terminal_forked(struct cell *cells, const struct order_reply *reply, int pidfd)
{
	struct terminal *t = NULL;
	struct err e = reply->err;

	for (struct cell *cell = cells; cell && !t; cell = cell->next)
		for (t = cell->terminals; t && t->id != reply->id;)
			t = t->next;
	if (!t)
		return false;
	t->guest.pidfd = pidfd;
	t->end_watch = (struct watch){ .fd = pidfd, .on_ready = on_end };
	if (pidfd < 0 || loop_watch(t->cell->keeper->loop, &t->end_watch, EPOLLIN, &e) < 0) {
		refuse(t->cell, t->number, &e);
		terminal_free(t);
		return true;
	}
	maybe_open(t);
	return true;
}

void terminal_kill(struct cell *cell, uint32_t number)
{
	for (struct terminal *t = cell->terminals; t; t = t->next)
		if (t->number == number && t->guest.pidfd >= 0)
			(void)pidfd_send_signal(t->guest.pidfd, SIGKILL, NULL, 0);
}

/* ---- its making ------------------------------------------------------------------------ */

static int order_shell(struct terminal *t, struct err *e)
{
	struct cell *cell = t->cell;
	auto_close int null = SYS(open, "/dev/null", O_RDWR | O_CLOEXEC);
	auto_close int control = -1, status = -1;
	int pair[2], entries[CGROUP_ENTRIES];
	struct order order;

	if (null < 0 || SYS(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "terminal");
	t->far = pair[0];
	control = pair[1];
	if (SYS(fcntl, t->far, F_SETFL, O_NONBLOCK) < 0 || SYS(pipe2, pair, O_CLOEXEC) < 0)
		return err_sys(e, "terminal");
	t->status = pair[0];
	status = pair[1];
	if (SYS(fcntl, t->status, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "terminal");
	if (cell_fill_order(&order, cell, false, e) < 0)
		return -1;
	order.id = t->id;
	order.will_exec = order.is_terminal = true;
	if (cell->cgroup)
		order.entry_count = (uint32_t)cgroup_entries(entries, cell->cgroup, true);
	const int stdio[3] = { null, null, null };
	if (box_order_guest(cell->box, cell->nest->stem, &order, cell->net, stdio, control, status,
			    entries, e) < 0)
		return nest_unheard(cell->nest, 0, e);
	t->status_watch = (struct watch){ .fd = t->status, .on_ready = on_status };
	return loop_watch(cell->keeper->loop, &t->status_watch, EPOLLIN, e);
}

static unsigned count(const struct cell *cell)
{
	unsigned n = 0;

	for (const struct terminal *t = cell->terminals; t; t = t->next)
		n++;
	return n;
}

static int create(struct cell *cell, uint32_t number, struct err *e)
{
	static uint32_t last;

	if (cell->bare)
		return err_set(e, ERR_HOST,
			       "a terminal takes the namespaces layer, which is missing here");
	if (cell->state != CELL_ARMED || !(cell->flags & WIRE_LIVE))
		return err_set(e, ERR_GONE, "there is nobody to share a sandbox with");
	if (cell->branches) /* for which it must be alone; and nobody may live above a branch */
		return err_set(e, ERR_BUSY, "the session is being forked");
	if (count(cell) >= TERMINALS_MAX)
		return err_set(e, ERR_BUSY, "there are %d terminals already", TERMINALS_MAX);
	struct terminal *t = calloc(1, sizeof(*t));
	if (!t)
		return err_sys(e, "terminal");
	*t = (struct terminal){ .cell = cell,
				.next = cell->terminals,
				.prev = &cell->terminals,
				.id = TERMINAL_IDS | (++last & ~TERMINAL_IDS),
				.number = number,
				.guest.pidfd = -1,
				.far = -1,
				.status = -1 };
	if (t->next)
		t->next->prev = &t->next;
	cell->terminals = t;
	if (order_shell(t, e) == 0)
		return 0;
	terminal_free(t);
	return -1;
}

void terminal_open(struct cell *cell, uint32_t number)
{
	struct err e;

	if (create(cell, number, &e) < 0)
		refuse(cell, number, &e);
}
