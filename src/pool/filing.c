#include "pool/filing.h"

#include "base/own.h"
#include "keeper/filer.h"
#include "pool/pool_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define STUCK_US 60000000u /* for a filer that has all it needs */
#define SPARE_US 1000000u  /* for one that has nothing to do */

enum {
	FILINGS_MAX = 16,      /* of one sandbox */
	ALL_FILINGS_MAX = 256, /* the keeper has twice as many filers: runs need theirs, too */
	ANSWERS_AT_ONCE = 16,
};

struct filing {
	struct live *live;
	struct filing_events events;
	struct filer_request request;
	struct watch watch;
	uint32_t watched; /* events */
	struct timer stuck;
	int fd;        /* the filer; -1: it is being made */
	bool takes;    /* what is sent */
	bool is_asked; /* an answer is due; else it waits for us */
	bool is_paused;
	bool is_blocked; /* somebody waits for room */
	bool is_ending;  /* the end of what is sent has yet to be sent */
	bool is_deaf;    /* it takes no more: why is to be read */
	bool is_reading;
	struct link place;
};

/* ---- filers ---------------------------------------------------------------------------- */

static void on_spare_due(struct timer *t)
{
	struct filings *all = holder_of(t, struct filings, spare_due);

	closep(&all->spare);
	all->spare = -1;
}

void filings_init(struct filings *all)
{
	*all = (struct filings){ .spare = -1, .spare_due.on_due = on_spare_due };
	list_init(&all->list);
}

/* One that has done its work is good for more, for a while. */
static void keep_spare(struct filing *f)
{
	struct filings *all = live_filings(f->live);
	struct err ignored;

	if (all->spare < 0 &&
	    loop_set_timer(live_loop(f->live), &all->spare_due, SPARE_US, &ignored) == 0)
		all->spare = take_fd(&f->fd);
}

static void filing_free(struct filing *f)
{
	struct filings *all = live_filings(f->live);

	loop_unwatch(live_loop(f->live), &f->watch);
	loop_cancel_timer(live_loop(f->live), &f->stuck);
	list_remove(&f->place);
	all->count--;
	live_occupant(f->live)->share->filings--;
	live_occupant(f->live)->pool->filing_count--;
	closep(&f->fd);
	free(f);
}

static void finish(struct filing *f, const struct filing_end *end, const struct err *e)
{
	const struct filing_events events = f->events;

	filing_free(f);
	events.on_end(end, e, events.arg);
}

static void fail(struct filing *f, enum err_code code, const char *why)
{
	struct err e;

	(void)err_set(&e, code, "%s", why);
	finish(f, NULL, &e);
}

/* ---- to the filer ---------------------------------------------------------------------- */

/* What is worth waking up for: nothing, where it would be a filer's end that nobody reads. */
static void watch_for(struct filing *f, uint32_t wanted)
{
	struct loop *loop = live_loop(f->live);
	struct err ignored;

	if (f->fd < 0 || (wanted == f->watched && f->watch.active == (wanted != 0)))
		return;
	if (wanted == 0)
		loop_unwatch(loop, &f->watch);
	else if (f->watch.active ? loop_rewatch(loop, &f->watch, wanted, &ignored) < 0
				 : loop_watch(loop, &f->watch, wanted, &ignored) < 0)
		return; /* no memory: it is overdue before long */
	f->watched = wanted;
}

/* ... and how long that may take. */
static void attend(struct filing *f)
{
	struct loop *loop = live_loop(f->live);
	bool has_more = f->is_blocked || f->is_ending;
	struct err ignored;

	watch_for(f, (f->is_paused ? 0 : EPOLLIN) | (has_more && !f->is_deaf ? EPOLLOUT : 0));
	if (!has_more && (!f->is_asked || f->is_paused))
		loop_cancel_timer(loop, &f->stuck);
	else
		(void)!loop_set_timer(loop, &f->stuck, STUCK_US, &ignored);
}

/* False: not now; or never, and then its last word is to be read. */
static bool send_piece(struct filing *f, enum filer_kind kind, const char *bytes, size_t len)
{
	struct filer_answer head = { .kind = kind, .len = (uint32_t)len };
	struct iovec parts[] = { { &head, FILER_HEAD }, { (void *)bytes, len } };
	const struct msghdr msg = { .msg_iov = parts, .msg_iovlen = len ? 2 : 1 };
	ssize_t n;

	if (f->fd < 0 || f->is_deaf)
		return false;
	do
		n = sendmsg(f->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	f->is_deaf = n < 0 && errno != EAGAIN;
	return n >= 0;
}

size_t filing_send(struct filing *f, const char *bytes, size_t len)
{
	size_t sent = 0;

	while (sent < len) {
		size_t n = len - sent < FILER_CHUNK ? len - sent : FILER_CHUNK;
		if (!send_piece(f, FILER_DATA, bytes + sent, n))
			break;
		sent += n;
	}
	bool was_blocked = f->is_blocked;
	f->is_blocked = sent < len;
	if (f->is_blocked || was_blocked)
		attend(f);
	return sent;
}

void filing_send_end(struct filing *f)
{
	f->is_ending = !send_piece(f, FILER_END, NULL, 0);
	f->is_asked = true;
	attend(f);
}

static bool ask(struct filing *f)
{
	f->is_asked = !f->takes || f->is_ending;
	return send(f->fd, &f->request, sizeof(f->request), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

void filing_fetch(struct filing *f, uint64_t first, uint64_t count)
{
	f->request.kind = FILER_FETCH;
	f->request.first = first;
	f->request.max = count;
	f->is_deaf = !ask(f); /* then its end is read */
	f->is_asked = true;
	attend(f);
}

/* ---- from the filer -------------------------------------------------------------------- */

/* A path and its NUL; then, of a link, its target and NUL. */
static bool on_entry(struct filing *f, const struct filer_answer *a)
{
	const char *end = memchr(a->bytes, '\0', a->len);
	struct filing_entry entry = {
		.path = a->bytes,
		.mode = a->mode,
		.size = a->size,
		.inode = a->inode,
		.modified = { .tv_sec = a->mtime_s, .tv_nsec = a->mtime_ns },
		.changed = { .tv_sec = a->ctime_s, .tv_nsec = a->ctime_ns },
	};

	bool is_wanted = f->request.kind == FILER_LOOK || f->request.kind == FILER_DIR;
	if (!end || !is_wanted || !f->events.on_entry || !f->is_asked)
		return false;
	size_t left = a->len - (size_t)(end + 1 - a->bytes);
	if (left > 0) {
		entry.target = end + 1;
		if (memchr(entry.target, '\0', left) != entry.target + left - 1)
			return false;
	}
	f->is_asked = f->request.kind != FILER_LOOK;
	f->events.on_entry(&entry, f->events.arg);
	return true;
}

static void on_error(struct filing *f, const struct filer_answer *a)
{
	struct err e = { .code = (enum err_code)a->code, .sys = a->sys };

	if (a->len != sizeof(e.msg) || a->bytes[a->len - 1] || a->code <= ERR_NONE ||
	    a->code >= ERR_COUNT_) {
		fail(f, ERR_SYS, "the filer raves");
		return;
	}
	memcpy(e.msg, a->bytes, sizeof(e.msg));
	if (!f->takes)
		keep_spare(f);
	finish(f, NULL, &e);
}

/* False: it is over, and not to be touched. */
static bool take_answer(struct filing *f, const struct filer_answer *a)
{
	const struct filing_end end = { .flag = a->flag != 0, .count = a->size };
	struct filings *all = live_filings(f->live);

	all->told = f;
	if (a->kind == FILER_ENTRY && on_entry(f, a))
		return all->told == f;
	bool is_wanted = f->request.kind == FILER_FETCH || f->request.kind == FILER_PACK;
	if (a->kind == FILER_DATA && is_wanted && f->events.on_data && f->is_asked) {
		f->events.on_data(a->bytes, a->len, f->events.arg);
		return all->told == f;
	}
	if (all->told != f)
		return false;
	if (a->kind == FILER_ERROR) {
		on_error(f, a);
	} else if (a->kind == FILER_END && f->is_asked && !f->is_ending) {
		keep_spare(f);
		finish(f, &end, NULL);
	} else {
		fail(f, ERR_SYS, "the filer raves");
	}
	return false;
}

static void hear(struct filing *f)
{
	static _Alignas(struct filer_answer) char room[sizeof(struct filer_answer)];
	const struct filer_answer *answer = (const struct filer_answer *)room;

	if (f->is_reading)
		return; /* its owner goes on from where it is told */
	for (int i = 0; i < ANSWERS_AT_ONCE && !f->is_paused; i++) {
		ssize_t n = recv(f->fd, room, sizeof(room), MSG_DONTWAIT);
		/* A reset: it has left unread what it was sent; its last word is there. */
		if (n < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < (ssize_t)FILER_HEAD || (size_t)n != FILER_HEAD + answer->len) {
			fail(f, ERR_SYS, "the filer is gone");
			return;
		}
		f->is_reading = true;
		if (!take_answer(f, answer))
			return;
		f->is_reading = false;
	}
	attend(f);
}

static void on_filer(struct watch *w, uint32_t events)
{
	struct filing *f = holder_of(w, struct filing, watch);
	struct filings *all = live_filings(f->live);

	if (events & EPOLLOUT) {
		if (f->is_ending)
			f->is_ending = !send_piece(f, FILER_END, NULL, 0);
		if (f->is_blocked) {
			f->is_blocked = false;
			all->told = f;
			f->events.on_room(f->events.arg);
			if (all->told != f)
				return;
		}
		attend(f);
	}
	if (events & ~(uint32_t)EPOLLOUT)
		hear(f);
}

void filing_pause(struct filing *f)
{
	f->is_paused = true;
	if (!f->is_reading)
		attend(f);
}

void filing_go_on(struct filing *f)
{
	f->is_paused = false;
	if (f->fd >= 0)
		hear(f);
}

void filing_forget(struct filing *f)
{
	struct filings *all = live_filings(f->live);

	if (all->told == f)
		all->told = NULL;
	if (f->fd >= 0 && !f->is_asked && !f->takes)
		keep_spare(f); /* it was only looked at */
	filing_free(f);
}

/* ---- beginning ------------------------------------------------------------------------- */

static void on_stuck(struct timer *t)
{
	fail(holder_of(t, struct filing, stuck), ERR_SYS, "the filer takes too long");
}

static int begin(struct filing *f, int fd, struct err *e)
{
	f->fd = fd;
	f->watch = (struct watch){ .fd = fd, .on_ready = on_filer };
	f->watched = EPOLLIN;
	if (loop_watch(live_loop(f->live), &f->watch, EPOLLIN, e) < 0)
		return -1;
	return ask(f) ? 0 : err_set(e, ERR_SYS, "the filer is gone");
}

/* The one that was kept may have died since, and is then as if it had never been. */
static bool begin_with_spare(struct filing *f)
{
	struct filings *all = live_filings(f->live);
	struct err ignored;

	if (all->spare < 0)
		return false;
	if (begin(f, take_fd(&all->spare), &ignored) == 0)
		return true;
	loop_unwatch(live_loop(f->live), &f->watch);
	closep(&f->fd);
	f->fd = -1;
	f->is_asked = true;
	return false;
}

void filings_given(struct filings *all, int fd)
{
	auto_close int owned = fd;
	struct err e;

	list_each (&all->list, l) {
		struct filing *f = holder_of(l, struct filing, place);
		if (f->fd >= 0)
			continue;
		if (begin(f, take_fd(&owned), &e) < 0) {
			finish(f, NULL, &e);
			return;
		}
		if (f->takes) {
			f->is_blocked = false;
			all->told = f;
			f->events.on_room(f->events.arg);
			if (all->told != f)
				return;
			if (f->is_ending)
				f->is_ending = !send_piece(f, FILER_END, NULL, 0);
		}
		attend(f);
		return;
	}
}

void filings_refused(struct filings *all, const struct err *why)
{
	list_each (&all->list, l) {
		struct filing *f = holder_of(l, struct filing, place);
		if (f->fd < 0) {
			finish(f, NULL, why);
			return;
		}
	}
}

void filings_end(struct filings *all, const struct err *why)
{
	while (all->list.next != &all->list)
		finish(holder_of(all->list.next, struct filing, place), NULL, why);
}

void filings_done(struct filings *all, struct loop *loop)
{
	while (all->list.next != &all->list)
		filing_free(holder_of(all->list.next, struct filing, place));
	loop_cancel_timer(loop, &all->spare_due);
	closep(&all->spare);
	all->spare = -1;
}

/* Nobody has more of them than are left for the others: one that is not read may take long. */
static int check_count(struct live *live, struct err *e)
{
	const struct occupant *t = live_occupant(live);
	const struct filings *all = live_filings(live);
	unsigned left = ALL_FILINGS_MAX - t->pool->filing_count;

	if (all->count >= FILINGS_MAX)
		return err_set(e, ERR_BUSY, "%d transfers of this session are under way already",
			       FILINGS_MAX);
	if (t->share->filings >= left)
		return err_set(e, ERR_BUSY, "%u transfers are under way already",
			       t->share->filings);
	return 0;
}

static void write_request(struct filer_request *to, const struct filing_request *r)
{
	static const enum filer_kind kinds[] = {
		[FILING_LOOK] = FILER_LOOK,     [FILING_DIR] = FILER_DIR,
		[FILING_PUT] = FILER_PUT,       [FILING_MAKE_DIR] = FILER_MAKE_DIR,
		[FILING_REMOVE] = FILER_REMOVE, [FILING_PACK] = FILER_PACK,
		[FILING_UNPACK] = FILER_UNPACK,
	};
	static const enum filer_format formats[] = {
		[FILING_TAR] = FILER_TAR,
		[FILING_TAR_GZ] = FILER_TAR_GZ,
		[FILING_ZIP] = FILER_ZIP,
	};

	*to = (struct filer_request){ .kind = kinds[r->kind],
				      .recursive = r->recursive,
				      .mode = r->mode,
				      .format = formats[r->format],
				      .max = r->max };
	memcpy(to->name, r->name, strlen(r->name));
}

int live_filing(struct filing **ret, struct live *live, const struct filing_request *request,
		const struct filing_events *events, struct err *e)
{
	struct filings *all = live_filings(live);
	struct filing *f;

	if (strlen(request->name) >= PATH_MAX)
		return err_set(e, ERR_INVALID, "'%.100s...' is too long", request->name);
	if (check_count(live, e) < 0 || live_check_alone(live, e) < 0)
		return -1;
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_sys(e, "files");
	*f = (struct filing){ .live = live, .events = *events, .fd = -1, .stuck.on_due = on_stuck };
	f->takes = request->kind == FILING_PUT || request->kind == FILING_UNPACK;
	f->is_asked = true; /* of the keeper, to begin with */
	write_request(&f->request, request);
	list_add_before(&all->list, &f->place);
	all->count++;
	live_occupant(live)->share->filings++;
	live_occupant(live)->pool->filing_count++;
	if (!begin_with_spare(f) && !live_order_filer(live)) {
		filing_free(f);
		return err_set(e, ERR_BUSY, "the session's files cannot be had now");
	}
	attend(f);
	*ret = f;
	return 0;
}
