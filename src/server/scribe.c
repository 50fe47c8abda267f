#include "server/scribe.h"

#include "base/message.h"
#include "base/sys.h"
#include "engine/steps.h"
#include "server/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
	LOCK_PATIENCE_MS = 1000, /* a start waits for the scribe of a server that has just died */
	LOCK_EVERY_MS = 50,
	AGAIN_MS = 1000, /* after trouble */
	IDLE_MS = 60000,
	BATCH_MAX = 500,
	TRIM_ROUNDS = 20,
	ANSWER_MAX = 64 << 20,
	RUNS_APART = 10000, /* ids of runs that were never stored are not used again */
	TRIM_EVERY_MS = 1000,
};

static const char lock_name[] = "history.lock";
static const char *const journal_names[JOURNALS] = { "history.journal-0", "history.journal-1" };

struct scribe {
	const struct scribe_options *options;
	int channel;
	struct archive *archive; /* NULL: it cannot be opened just now */
	struct journal journals[JOURNALS];
	uint64_t at[JOURNALS]; /* how far they are stored */
	int active;
	bool is_attached;
	bool is_orphan;   /* the server is gone */
	bool is_troubled; /* and has said so */
	int64_t trimmed_ms;
};

static void say_to(int channel, const struct scribe_say *say, const int *fds, size_t count)
{
	struct err ignored; /* whoever does not hear it is gone, which the next read will tell */

	(void)!message_send(channel, say, sizeof(*say), fds, count, &ignored);
}

/* Once for each time that things get worse or better. */
static void say_state(struct scribe *s, const struct err *e)
{
	struct scribe_say say = { .kind = SAY_STATE };

	if (s->is_troubled == (e != NULL))
		return;
	s->is_troubled = e != NULL;
	if (e)
		say.err = *e;
	say_to(s->channel, &say, NULL, 0);
}

static int64_t wall_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- from journals to the archive ------------------------------------------------------ */

/* A batch of one journal; -1: it is as it was.  1: there may be more. */
static int store_batch(struct scribe *s, int index, struct err *e)
{
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	uint64_t at = s->at[index], seq;
	struct entry entry;
	struct err bad;
	int count = 0;

	if (archive_begin(s->archive, e) < 0)
		return -1;
	for (; count < BATCH_MAX && journal_next(&bytes, &seq, &s->journals[index], &at); count++) {
		if (entry_read(&entry, buf_str(&bytes), bytes.len, &bad) < 0)
			continue; /* of another version: there is nothing to be done with it */
		if (archive_put(s->archive, seq, &entry, e) < 0) {
			archive_rollback(s->archive);
			return -1;
		}
	}
	if (archive_commit(s->archive, e) < 0) {
		archive_rollback(s->archive);
		return -1;
	}
	s->at[index] = at;
	return count == BATCH_MAX;
}

static int store_journal(struct scribe *s, int index, struct err *e)
{
	int more = 1;

	while (more > 0 && s->at[index] < s->journals[index].len)
		more = store_batch(s, index, e);
	if (more < 0)
		return -1;
	if (s->at[index] < s->journals[index].len && !s->is_orphan) {
		(void)fprintf(stderr, "vial-server: history: a journal is damaged\n");
		s->at[index] = s->journals[index].len;
	}
	return 0;
}

static int empty(struct scribe *s, int index, struct err *e)
{
	struct scribe_say say = { .kind = SAY_EMPTY, .index = index };

	if (journal_reset(&s->journals[index], e) < 0)
		return -1;
	s->at[index] = journal_start();
	say.salt = s->journals[index].salt;
	if (!s->is_orphan)
		say_to(s->channel, &say, NULL, 0);
	return 0;
}

/* All there is; the one that is not written to has the older ones, and is emptied. */
static int store_all(struct scribe *s, struct err *e)
{
	int other = 1 - s->active;

	if (store_journal(s, other, e) < 0)
		return -1;
	if (s->journals[other].len > journal_start() && empty(s, other, e) < 0)
		return -1;
	return store_journal(s, s->active, e);
}

/* What another server left, whichever of the two it wrote to last. */
static int recover(struct scribe *s, struct err *e)
{
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	uint64_t first[JOURNALS] = { 0 };

	for (int i = 0; i < JOURNALS; i++) {
		uint64_t at = journal_start();
		if (journal_load(&s->journals[i], e) < 0)
			return -1;
		s->at[i] = at;
		if (!journal_next(&bytes, &first[i], &s->journals[i], &at))
			first[i] = UINT64_MAX;
	}
	int older = first[0] <= first[1] ? 0 : 1;
	s->is_orphan = true; /* the last entry may not be whole */
	int failed = store_journal(s, older, e) < 0 || store_journal(s, 1 - older, e) < 0;
	s->is_orphan = false;
	if (failed)
		return -1;
	for (int i = 0; i < JOURNALS; i++) {
		if (journal_reset(&s->journals[i], e) < 0)
			return -1;
		s->at[i] = journal_start();
	}
	s->active = 0;
	return 0;
}

static void trim(struct scribe *s)
{
	struct err e;
	int more = 1;
	int64_t now = wall_ms();

	if (now >= s->trimmed_ms && now < s->trimmed_ms + TRIM_EVERY_MS)
		return;
	s->trimmed_ms = now;
	for (int i = 0; i < TRIM_ROUNDS && more > 0; i++)
		more = archive_trim(s->archive, now, &e);
	if (more < 0)
		say_state(s, &e);
}

/* ---- what the server asks -------------------------------------------------------------- */

static int open_archive(struct scribe *s, struct err *e)
{
	return s->archive ? 0 : archive_open(&s->archive, s->options->path, &s->options->limits, e);
}

static int greet(struct scribe *s, struct err *e)
{
	struct scribe_say say = { .kind = SAY_HELLO };
	int fds[JOURNALS];

	if (open_archive(s, e) < 0 || recover(s, e) < 0)
		return -1;
	for (int i = 0; i < JOURNALS; i++) {
		fds[i] = s->journals[i].fd;
		say.salts[i] = s->journals[i].salt;
	}
	uint64_t run = archive_last_run(s->archive);
	say.next_seq = archive_last(s->archive) + 1;
	say.last_run = run ? (run / RUNS_APART + 1) * RUNS_APART : 0;
	s->is_attached = true;
	say_to(s->channel, &say, fds, JOURNALS);
	return 0;
}

/* Of one that has been emptied since, the server may not have heard yet. */
static void note_lengths(struct scribe *s, const struct scribe_ask *ask)
{
	if (ask->active < 0 || ask->active >= JOURNALS)
		return;
	for (int i = 0; i < JOURNALS; i++)
		if (ask->journals[i].salt == s->journals[i].salt)
			s->journals[i].len = ask->journals[i].len;
	s->active = ask->active;
}

static int write_answer(int *ret_fd, const struct buf *text, struct err *e)
{
	auto_close int fd = memfd_create("answer", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "answer");
	for (size_t done = 0; done < text->len;) {
		ssize_t n = write(fd, text->data + done, text->len - done);
		if (n <= 0)
			return err_sys(e, "answer");
		done += (size_t)n;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

static void answer(struct scribe *s, struct scribe_ask *ask)
{
	auto_buf struct buf text = BUF_INIT(ANSWER_MAX);
	struct scribe_say say = { .kind = SAY_ANSWER, .tag = ask->tag };
	auto_close int fd = -1;

	if (!s->archive)
		(void)err_set(&say.err, ERR_BUSY, "the history cannot be read just now");
	else if (archive_answer(&text, s->archive, &ask->query, &say.err) == 0 &&
		 write_answer(&fd, &text, &say.err) == 0)
		say.len = text.len;
	say_to(s->channel, &say, &fd, fd >= 0 ? 1 : 0);
}

/* The strings of a query end, whoever sent it. */
static void close_strings(struct query *q)
{
	q->tenant[sizeof(q->tenant) - 1] = q->id[sizeof(q->id) - 1] = '\0';
	q->kind[sizeof(q->kind) - 1] = q->outcome[sizeof(q->outcome) - 1] = '\0';
	q->session[sizeof(q->session) - 1] = q->environment[sizeof(q->environment) - 1] = '\0';
	q->text[sizeof(q->text) - 1] = '\0';
}

/* Things that may fail for lack of a disk, and are done later then. */
static int keep_up(struct scribe *s, bool wants_journals, struct err *e)
{
	if (wants_journals)
		return greet(s, e);
	if (open_archive(s, e) < 0)
		return -1;
	return s->is_attached ? store_all(s, e) : 0;
}

/* ---- the scribe's life ----------------------------------------------------------------- */

/* Journals that a server has are as it says they are, not as they look. */
static void attach(struct scribe *s, const struct scribe_ask *ask)
{
	for (int i = 0; i < JOURNALS; i++) {
		s->journals[i].salt = ask->journals[i].salt;
		s->at[i] = journal_start();
	}
	s->is_attached = true;
	note_lengths(s, ask);
}

/* One message; false: nobody is there any more. */
static bool hear(struct scribe *s, bool *wants_journals, struct scribe_ask *ask)
{
	size_t none;
	struct err e;

	if (message_receive(s->channel, ask, sizeof(*ask), NULL, 0, &none, 0, &e) < 0)
		return false;
	switch (ask->kind) {
	case ASK_ATTACH:
		if (ask->has_journals)
			attach(s, ask);
		*wants_journals = !ask->has_journals;
		return true;
	case ASK_NOTE:
	case ASK_QUERY:
		if (s->is_attached)
			note_lengths(s, ask);
		return true;
	}
	return false;
}

static void serve(struct scribe *s)
{
	struct pollfd poll_fd = { s->channel, POLLIN, 0 };
	bool wants_journals = false, is_behind = false;
	struct scribe_ask ask;
	struct err e;

	for (;;) {
		int ready = poll(&poll_fd, 1, is_behind ? AGAIN_MS : IDLE_MS);
		ask.kind = ASK_NOTE;
		if (ready > 0 && !hear(s, &wants_journals, &ask))
			return;
		is_behind = keep_up(s, wants_journals, &e) < 0;
		if (is_behind && s->archive)
			archive_rollback(s->archive);
		if (!is_behind)
			wants_journals = false;
		say_state(s, is_behind ? &e : NULL);
		if (ready > 0 && ask.kind == ASK_QUERY) {
			close_strings(&ask.query);
			answer(s, &ask);
		}
		if (!is_behind && s->archive)
			trim(s);
	}
}

/* The server is gone: what it wrote last it could not tell of. */
static void store_rest(struct scribe *s)
{
	struct err e;

	if (!s->is_attached)
		return;
	s->is_orphan = true;
	for (int i = 0; i < JOURNALS; i++)
		if (journal_load(&s->journals[i], &e) < 0)
			return;
	if (open_archive(s, &e) < 0 || store_all(s, &e) < 0 || empty(s, s->active, &e) < 0)
		(void)fprintf(stderr, "vial-server: history: %s; the rest waits in its journals\n",
			      e.msg);
}

_Noreturn static void scribe_main(int channel, const struct scribe_options *options)
{
	struct scribe s = { .options = options, .channel = channel };
	struct err e;

	(void)prctl(PR_SET_NAME, "vial-scribe");
	(void)setpriority(PRIO_PROCESS, 0, 0); /* the server's is for those who wait */
	(void)setsid();                        /* as is its session's */
	sys_stand_back();
	for (int i = 0; i < JOURNALS; i++) {
		s.journals[i].fd = openat(options->dir, journal_names[i],
					  O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (s.journals[i].fd < 0) {
			(void)err_sys(&e, "%s", journal_names[i]);
			say_state(&s, &e);
			_exit(1); /* to be tried again */
		}
	}
	serve(&s);
	store_rest(&s);
	archive_free(s.archive);
	_exit(0);
}

/* ---- the warden ------------------------------------------------------------------------ */

/* False: nobody needs us any more. */
static bool rest(int channel, int ms)
{
	struct pollfd fd = { channel, POLLIN, 0 }; /* the server has nothing to say to us */

	return poll(&fd, 1, ms) == 0;
}

/* One daemon has the files at a time.  Another that is about to go is waited for. */
static bool lock(int channel, const struct scribe_options *o)
{
	int fd = openat(o->dir, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct scribe_say say = { .kind = SAY_STATE };

	for (int waited = 0; fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0; waited += LOCK_EVERY_MS) {
		if (waited == LOCK_PATIENCE_MS || (fd < 0 && waited == 0)) {
			if (fd < 0)
				(void)err_sys(&say.err, "%s", lock_name);
			else
				(void)err_set(&say.err, ERR_BUSY, "another daemon keeps it");
			say_to(channel, &say, NULL, 0);
		}
		if (!rest(channel, waited < LOCK_PATIENCE_MS ? LOCK_EVERY_MS : AGAIN_MS))
			return false;
		if (fd < 0)
			fd = openat(o->dir, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				    0600);
	}
	return true; /* open until the last of us ends */
}

/* One scribe's life; its wait status, or -1. */
static int start_scribe(int channel, const struct scribe_options *o)
{
	const struct scribe_say say = { .kind = SAY_CHANNEL };
	int pair[2], status = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		(void)close(channel);
		scribe_main(pair[1], o);
	}
	if (pid > 0)
		say_to(channel, &say, &pair[0], 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

_Noreturn static void warden_main(int channel, const struct scribe_options *o, const char *dir)
{
	int keep[] = { channel, o->dir };
	struct scribe_say say = { .kind = SAY_STATE };

	(void)prctl(PR_SET_NAME, "vial-warden");
	(void)umask(077);
	if (fds_close_except(3, keep, 2, &say.err) < 0 ||
	    lockdown_helper(dir, o->uid, o->gid, &say.err) < 0) {
		say_to(channel, &say, NULL, 0);
		_exit(1);
	}
	(void)signal(SIGCHLD, SIG_DFL); /* how a scribe ends is of interest */
	if (!lock(channel, o))
		_exit(0);
	while (start_scribe(channel, o) != 0)
		if (!rest(channel, AGAIN_MS))
			break;
	_exit(0);
}

int scribe_start(const struct scribe_options *options, struct err *e)
{
	char dir[PATH_MAX];
	int pair[2];

	(void)snprintf(dir, sizeof(dir), "%s", options->path);
	char *slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return err_set(e, ERR_INVALID, "%.100s: not in a directory of its own",
			       options->path);
	*slash = '\0';
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	pid_t pid = fork();
	if (pid == 0)
		warden_main(pair[1], options, dir);
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return err_sys(e, "fork");
	}
	return pair[0];
}
