#include "server/history.h"

#include "base/message.h"
#include "server/scribe.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#define END_US  5000000u
#define NOTE_US 250000u  /* how long the scribe does not know of a record: it likes many at once */
#define BUSY_US 10000u   /* until we look again whether somebody waits for an answer */
#define LATE_US 1000000u /* how long it does not know at the most */

enum {
	JOURNAL_TURN = JOURNAL_WINDOW, /* so large, and the other one has its turn */
	JOURNAL_MAX = 64 << 20,        /* while there is no scribe to empty them */
	ASKS_MAX = 64,
	START_MS = 10000,
	FDS_MAX = 2,
};

struct ask {
	struct history *history;
	struct exchange *x; /* NULL: the client is gone */
	uint64_t tag;
	TAILQ_ENTRY(ask) link;
};

struct history {
	struct loop *loop;
	struct log *log;
	char path[PATH_MAX];
	uint64_t keep_code, keep_output;
	struct watch warden, scribe;
	struct journal journals[JOURNALS];
	int active;
	bool has_journals;
	uint64_t next_seq, last_run;
	bool is_noted; /* the timer is set */
	uint64_t noted_us;
	struct timer note;
	bool (*is_busy)(void *arg); /* or NULL */
	void *is_busy_arg;
	struct err stored;  /* what the scribe has to say; ERR_NONE: all is well */
	struct err written; /* the same of our own part in it */
	uint64_t kept, lost, lost_said;
	struct buf entry;
	TAILQ_HEAD(, ask) asks;
	unsigned ask_count;
	uint64_t last_tag;
};

/* ---- loudly ---------------------------------------------------------------------------- */

static void complain(struct history *h, struct err *place, const struct err *e)
{
	struct log_line l;

	bool is_news = place->code == ERR_NONE || strcmp(place->msg, e->msg) != 0;
	*place = *e;
	if (!is_news || !log_begin(&l, h->log, LOG_ERROR, "history"))
		return;
	log_text(&l, "path", h->path);
	log_text(&l, "error", e->msg);
	log_end(&l);
}

static void rejoice(struct history *h, struct err *place)
{
	struct log_line l;

	if (place->code == ERR_NONE)
		return;
	*place = (struct err){ .code = ERR_NONE };
	if (log_begin(&l, h->log, LOG_WARN, "history")) {
		log_text(&l, "path", h->path);
		log_text(&l, "state", "works again");
		log_int(&l, "lost", (int64_t)(h->lost - h->lost_said));
		log_end(&l);
	}
	h->lost_said = h->lost;
}

struct history_state history_state(const struct history *h)
{
	if (!h)
		return (struct history_state){ .is_on = false };
	const struct err *e = h->written.code != ERR_NONE  ? &h->written
			      : h->stored.code != ERR_NONE ? &h->stored
							   : NULL;
	return (struct history_state){
		.is_on = true, .trouble = e ? e->msg : NULL, .kept = h->kept, .lost = h->lost
	};
}

uint64_t history_last_run(const struct history *h)
{
	return h ? h->last_run : 0;
}

/* ---- the scribe ------------------------------------------------------------------------ */

static void fill_ask(struct scribe_ask *ask, const struct history *h)
{
	ask->has_journals = h->has_journals;
	ask->active = h->active;
	for (int i = 0; i < JOURNALS; i++) {
		ask->journals[i].salt = h->journals[i].salt;
		ask->journals[i].len = h->journals[i].len;
	}
}

static void finish_ask(struct ask *a, const struct err *e)
{
	struct history *h = a->history;

	TAILQ_REMOVE(&h->asks, a, link);
	h->ask_count--;
	if (a->x && e)
		exchange_fail(a->x, &(struct failure){ .err = *e });
	free(a);
}

static void lose_scribe(struct history *h)
{
	struct err e;

	(void)err_set(&e, ERR_BUSY, "the history cannot be read just now");
	loop_unwatch(h->loop, &h->scribe);
	closep(&h->scribe.fd);
	h->scribe.fd = -1;
	while (!TAILQ_EMPTY(&h->asks))
		finish_ask(TAILQ_FIRST(&h->asks), &e);
	(void)err_set(&e, ERR_GONE, "its process is gone");
	complain(h, &h->stored, &e);
}

static bool send_ask(struct history *h, const struct scribe_ask *ask)
{
	struct err e;

	if (h->scribe.fd < 0)
		return false;
	if (message_send(h->scribe.fd, ask, sizeof(*ask), NULL, 0, &e) == 0)
		return true;
	if (e.code != ERR_BUSY)
		lose_scribe(h);
	return false;
}

/* To store takes a processor from whoever waits for an answer; but what waits must not pile up. */
static bool can_wait(const struct history *h)
{
	return h->is_busy && h->is_busy(h->is_busy_arg) && loop_now() < h->noted_us + LATE_US &&
	       h->journals[h->active].len < JOURNAL_TURN;
}

static void on_note(struct timer *t)
{
	struct history *h = holder_of(t, struct history, note);
	struct scribe_ask ask = { .kind = ASK_NOTE };
	struct err ignored;

	if (can_wait(h) && loop_set_timer(h->loop, t, BUSY_US, &ignored) == 0)
		return;
	h->is_noted = false;
	fill_ask(&ask, h);
	if (!send_ask(h, &ask) && h->scribe.fd >= 0)
		h->is_noted = loop_set_timer(h->loop, t, NOTE_US, &ignored) == 0;
}

static void note_soon(struct history *h)
{
	struct err ignored;

	if (h->is_noted)
		return;
	h->noted_us = loop_now();
	h->is_noted = loop_set_timer(h->loop, &h->note, NOTE_US, &ignored) == 0;
}

void history_wait_while(struct history *h, bool (*is_busy)(void *arg), void *arg)
{
	if (!h)
		return;
	h->is_busy = is_busy;
	h->is_busy_arg = arg;
}

static void read_answer(struct history *h, const struct scribe_say *say, int fd)
{
	auto_buf struct buf text = BUF_INIT(say->len);
	struct ask *a = TAILQ_FIRST(&h->asks);
	struct err e = say->err;
	char chunk[16 << 10];

	while (a && a->tag != say->tag)
		a = TAILQ_NEXT(a, link);
	if (!a)
		return;
	for (uint64_t at = 0; fd >= 0 && a->x && at < say->len;) {
		ssize_t n = pread(fd, chunk, sizeof(chunk), (off_t)at);
		if (n <= 0)
			break;
		buf_add(&text, chunk, (size_t)n);
		at += (uint64_t)n;
	}
	if (fd < 0 || text.len != say->len) {
		if (e.code == ERR_NONE)
			(void)err_set(&e, ERR_SYS, "no memory for the answer");
		finish_ask(a, &e);
		return;
	}
	if (a->x)
		exchange_reply(take_ptr(&a->x), 200, &text);
	finish_ask(a, NULL);
}

static void on_hello(struct history *h, const struct scribe_say *say, int fds[FDS_MAX],
		     size_t count)
{
	if (count != JOURNALS || h->has_journals)
		return;
	for (int i = 0; i < JOURNALS; i++) {
		h->journals[i] = (struct journal){ .fd = take_fd(&fds[i]),
						   .salt = say->salts[i],
						   .len = journal_start() };
		journal_map(&h->journals[i]);
	}
	h->has_journals = true;
	h->active = 0;
	h->next_seq = say->next_seq;
	h->last_run = say->last_run;
	rejoice(h, &h->written);
}

static void on_scribe(struct watch *w, uint32_t events);

static void on_channel(struct history *h, int *fd)
{
	struct scribe_ask ask = { .kind = ASK_ATTACH };
	struct err e;

	if (h->scribe.fd >= 0)
		lose_scribe(h);
	h->scribe = (struct watch){ .fd = take_fd(fd), .on_ready = on_scribe };
	if (loop_watch(h->loop, &h->scribe, EPOLLIN, &e) < 0) {
		lose_scribe(h);
		return;
	}
	(void)fcntl(h->scribe.fd, F_SETFL, O_NONBLOCK);
	fill_ask(&ask, h);
	(void)send_ask(h, &ask);
}

/* What either of the two has to say; false: it is gone. */
static bool hear(struct history *h, int channel)
{
	int fds[FDS_MAX] = { -1, -1 };
	struct scribe_say say;
	size_t count = 0;
	struct err e;

	if (message_receive(channel, &say, sizeof(say), fds, FDS_MAX, &count, MSG_DONTWAIT, &e) < 0)
		return e.code == ERR_BUSY;
	switch (say.kind) {
	case SAY_CHANNEL:
		if (count == 1)
			on_channel(h, &fds[0]);
		break;
	case SAY_HELLO:
		on_hello(h, &say, fds, count);
		break;
	case SAY_EMPTY:
		if (say.index >= 0 && say.index < JOURNALS && say.index != h->active) {
			h->journals[say.index].salt = say.salt;
			h->journals[say.index].len = journal_start();
		}
		break;
	case SAY_ANSWER:
		read_answer(h, &say, fds[0]);
		break;
	case SAY_STATE:
		break;
	}
	if (say.kind == SAY_STATE && say.err.code != ERR_NONE)
		complain(h, &h->stored, &say.err);
	else if (say.kind == SAY_STATE || say.kind == SAY_HELLO ||
		 (say.kind == SAY_CHANNEL && h->has_journals))
		rejoice(h, &h->stored);
	for (int i = 0; i < FDS_MAX; i++)
		closep(&fds[i]);
	return true;
}

static void on_scribe(struct watch *w, uint32_t events)
{
	struct history *h = holder_of(w, struct history, scribe);

	(void)events;
	if (!hear(h, w->fd))
		lose_scribe(h); /* its warden brings another */
}

static void on_warden(struct watch *w, uint32_t events)
{
	struct history *h = holder_of(w, struct history, warden);
	struct log_line l;

	(void)events;
	if (hear(h, w->fd))
		return;
	loop_unwatch(h->loop, w);
	closep(&w->fd);
	w->fd = -1;
	if (log_begin(&l, h->log, LOG_ERROR, "history")) {
		log_text(&l, "path", h->path);
		log_text(&l, "error", "its warden is gone: the next trouble stays until a restart");
		log_end(&l);
	}
}

/* ---- keeping --------------------------------------------------------------------------- */

static struct entry_text text_of(const char *text)
{
	return (struct entry_text){ text ? text : "", text ? strlen(text) : 0 };
}

static struct entry_text bytes_of(const char *bytes, size_t len, uint64_t max)
{
	return (struct entry_text){ bytes ? bytes : "", !bytes ? 0 : len < max ? len : max };
}

static int64_t microseconds(double ms)
{
	return ms > 0 && ms < 1e12 ? (int64_t)(ms * 1000) : 0;
}

static void fill_entry(struct entry *ret, const struct history *h, const struct record *r)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	int64_t ended = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	*ret = (struct entry){
		.created = ended - (microseconds(r->wait_ms) + microseconds(r->wall_ms)) / 1000,
		.ended = ended,
		.exit_code = r->exit_code,
		.signal = r->signal,
		.oom = r->oom,
		.wait_us = microseconds(r->wait_ms),
		.wall_us = microseconds(r->wall_ms),
		.cpu_us = microseconds(r->cpu_ms),
		.peak_memory = (int64_t)r->peak_memory,
		.line = r->exception.line,
		.code_size = (int64_t)r->code_size,
		.stdout_size = (int64_t)(r->out.len + r->out.dropped),
		.stderr_size = (int64_t)(r->err.len + r->err.dropped),
		.id = text_of(r->id),
		.kind = text_of(r->kind),
		.tenant = text_of(r->tenant->name),
		.session = text_of(r->session),
		.parent = text_of(r->parent),
		.request = text_of(r->request),
		.environment = text_of(r->environment->name),
		.language = text_of(r->environment->tool.runtime->name),
		.outcome = text_of(vial_outcome_name(r->outcome)),
		.limit = text_of(r->limit),
		.type = text_of(r->exception.type),
		.message = text_of(r->exception.message),
		.traceback = bytes_of(r->exception.traceback, strlen(r->exception.traceback),
				      h->keep_output),
		.code = bytes_of(r->code, r->code_len, h->keep_code),
		.out = bytes_of(r->out.data, r->out.len, h->keep_output),
		.err = bytes_of(r->err.data, r->err.len, h->keep_output),
	};
}

/* The other one, when this has become large and that is empty. */
static void take_turns(struct history *h)
{
	int other = 1 - h->active;

	if (h->journals[h->active].len < JOURNAL_TURN || h->journals[other].len > journal_start())
		return;
	h->active = other;
}

static int write_entry(struct history *h, struct err *e)
{
	if (!h->has_journals)
		return err_set(e, ERR_BUSY, "%s",
			       h->stored.code != ERR_NONE ? h->stored.msg : "it is not ready");
	take_turns(h);
	if (h->journals[h->active].len > JOURNAL_MAX)
		return err_set(e, ERR_LIMIT, "too much waits to be stored");
	if (h->entry.dropped)
		return err_set(e, ERR_SYS, "no memory");
	return journal_append(&h->journals[h->active], h->next_seq, &h->entry, e);
}

void history_keep(struct history *h, const struct record *r)
{
	struct entry entry;
	struct err e;

	if (!h)
		return;
	fill_entry(&entry, h, r);
	buf_reset(&h->entry);
	entry_write(&h->entry, &entry);
	if (write_entry(h, &e) < 0) {
		h->lost++;
		complain(h, &h->written, &e);
		return;
	}
	h->next_seq++;
	h->kept++;
	rejoice(h, &h->written);
	note_soon(h);
}

/* ---- asking ---------------------------------------------------------------------------- */

static void on_gone(void *arg)
{
	((struct ask *)arg)->x = NULL;
}

void history_ask(struct history *h, struct exchange *x, const struct query *query)
{
	struct failure f = { .status = 0 };
	struct ask *a = NULL;

	if (!h) {
		f.hint = "server.history is false in the configuration";
		(void)err_set(&f.err, ERR_GONE, "no history is kept");
		exchange_fail(x, &f);
		return;
	}
	struct scribe_ask ask = { .kind = ASK_QUERY, .tag = ++h->last_tag, .query = *query };
	fill_ask(&ask, h);
	if (h->ask_count >= ASKS_MAX || !(a = calloc(1, sizeof(*a))) || !send_ask(h, &ask)) {
		free(a);
		(void)err_set(&f.err, ERR_BUSY, "the history cannot be read just now");
		exchange_fail(x, &f);
		return;
	}
	*a = (struct ask){ .history = h, .x = x, .tag = ask.tag };
	TAILQ_INSERT_TAIL(&h->asks, a, link);
	h->ask_count++;
	exchange_on_gone(x, on_gone, a);
}

/* ---- life ------------------------------------------------------------------------------ */

/* Where the operator says; else systemd's place, the system's, or the user's. */
static int find_path(char ret[PATH_MAX], const struct config_server *config, struct err *e)
{
	const char *state = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	static const char name[] = "runs/history.db";
	int len;

	if (config->history_path)
		len = snprintf(ret, PATH_MAX, "%s", config->history_path);
	else if (state && state[0] == '/')
		len = snprintf(ret, PATH_MAX, "%.*s/%s", (int)strcspn(state, ":"), state, name);
	else if (geteuid() == 0)
		len = snprintf(ret, PATH_MAX, "/var/lib/vial/%s", name);
	else if (xdg && xdg[0] == '/')
		len = snprintf(ret, PATH_MAX, "%s/vial/%s", xdg, name);
	else if (home && home[0] == '/')
		len = snprintf(ret, PATH_MAX, "%s/.local/state/vial/%s", home, name);
	else
		return err_set(e, ERR_HOST, "no place for it: HOME is not set");
	if (len >= PATH_MAX - 32 || ret[0] != '/')
		return err_set(e, ERR_INVALID, "%.100s: not an absolute path, or too long", ret);
	return 0;
}

/* Its directory, made if it is not there; nobody else may write to it. */
static int open_directory(struct stat *ret_stat, const char *path, struct err *e)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		bool is_last = !strchr(slash + 1, '/');
		if (mkdir(part, is_last ? 0700 : 0755) < 0 && errno != EEXIST)
			return err_sys(e, "%s", part);
	}
	auto_close int fd = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return err_sys(e, "%s", part);
	if (ret_stat->st_mode & 022)
		return err_set(e, ERR_DENIED, "%.150s: others may write there", part);
	return take_fd(&fd);
}

/* Until there are journals to write to, or a reason why not. */
static void wait_for_journals(struct history *h)
{
	uint64_t deadline = loop_now() + START_MS * 1000ull, now;
	struct err e;

	while (!h->has_journals && h->stored.code == ERR_NONE && (now = loop_now()) < deadline) {
		struct pollfd fds[] = { { h->warden.fd, POLLIN, 0 }, { h->scribe.fd, POLLIN, 0 } };
		if (poll(fds, 2, (int)((deadline - now) / 1000) + 1) <= 0)
			continue;
		if (fds[1].revents)
			on_scribe(&h->scribe, EPOLLIN);
		else if (fds[0].revents)
			on_warden(&h->warden, EPOLLIN);
		if (h->warden.fd < 0)
			break;
	}
	if (h->has_journals || h->stored.code != ERR_NONE)
		return;
	(void)err_set(&e, ERR_BUSY, "its process does not answer");
	complain(h, &h->stored, &e);
}

/* Nothing more comes from us; until they are gone, for a while. */
static void see_off(int fd, uint64_t deadline_us)
{
	struct scribe_say say;
	uint64_t now;

	(void)fcntl(fd, F_SETFL, 0);
	(void)shutdown(fd, SHUT_WR);
	while ((now = loop_now()) < deadline_us) {
		const struct timeval left = { .tv_sec = (time_t)((deadline_us - now) / 1000000),
					      .tv_usec = (suseconds_t)((deadline_us - now) %
								       1000000) };
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left));
		if (recv(fd, &say, sizeof(say), 0) <= 0)
			return;
	}
}

/* All is stored then, and the next daemon finds the files free. */
static void say_goodbye(struct history *h)
{
	uint64_t deadline_us = loop_now() + END_US;

	if (h->scribe.fd < 0)
		return;
	see_off(h->scribe.fd, deadline_us);
	if (h->warden.fd >= 0)
		see_off(h->warden.fd, deadline_us);
}

void history_free(struct history *h)
{
	if (!h)
		return;
	while (!TAILQ_EMPTY(&h->asks))
		finish_ask(TAILQ_FIRST(&h->asks), NULL);
	loop_cancel_timer(h->loop, &h->note);
	loop_unwatch(h->loop, &h->scribe);
	loop_unwatch(h->loop, &h->warden);
	say_goodbye(h);
	closep(&h->scribe.fd);
	closep(&h->warden.fd);
	for (int i = 0; i < JOURNALS; i++) {
		journal_unmap(&h->journals[i]);
		closep(&h->journals[i].fd);
	}
	buf_done(&h->entry);
	free(h);
}
DEFINE_CLEANUP(struct history *, history_free)

static int start(struct history *h, const struct config_server *config, struct err *e)
{
	struct scribe_options options = { .limits = { .max_age_ms = config->history_max_age,
						      .max_bytes = config->history_max_size } };
	struct stat st = { .st_uid = 0 };

	if (find_path(h->path, config, e) < 0)
		return -1;
	auto_close int dir = open_directory(&st, h->path, e);
	if (dir < 0)
		return -1;
	options.path = h->path;
	options.dir = dir;
	options.uid = st.st_uid;
	options.gid = st.st_gid;
	h->warden = (struct watch){ .fd = scribe_start(&options, e), .on_ready = on_warden };
	if (h->warden.fd < 0 || loop_watch(h->loop, &h->warden, EPOLLIN, e) < 0)
		return -1;
	wait_for_journals(h);
	return 0;
}

int history_start(struct history **ret, struct loop *loop, struct log *log,
		  const struct config_server *config, struct err *e)
{
	AUTO(history_freep) struct history *h = NULL;

	*ret = NULL;
	if (!config->history)
		return 0;
	if (!(h = calloc(1, sizeof(*h))))
		return err_sys(e, "history");
	*h = (struct history){ .loop = loop,
			       .log = log,
			       .keep_code = config->history_keep_code,
			       .keep_output = config->history_keep_output,
			       .warden.fd = -1,
			       .scribe.fd = -1,
			       .journals = { { .fd = -1 }, { .fd = -1 } },
			       .note.on_due = on_note,
			       .entry = BUF_INIT(ENTRY_MAX) };
	TAILQ_INIT(&h->asks);
	if (start(h, config, e) < 0) {
		if (config->history_path)
			return err_context(e, "server.history_path");
		complain(h, &h->stored, e); /* nobody asked for it by name: go on without */
	}
	*ret = take_ptr(&h);
	return 0;
}
