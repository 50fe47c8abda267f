#pragma once
/*
 * live - sessions of the local daemon, as the command line uses them.
 *
 * A step's output goes to our stdout and stderr as it comes; what it shows, and what it is worth,
 * is handed to the caller.  Nothing that a guest wrote is trusted: texts are for term_escape(),
 * pictures for a file.
 */
#include "cli/daemon.h"
#include "cli/member.h"
#include "cli/options.h"

enum { LIVE_ID_ROOM = 80 };

struct live {
	char id[LIVE_ID_ROOM];
	char language[32];
};

struct live_wish { /* either may be NULL: the daemon's default is its business to refuse */
	const char *language, *environment;
	bool rewind;
	const char *undo;
};
enum { LIVE_WISHES = 5 };
extern const struct option live_wish_rows[LIVE_WISHES];
/* `o`: what else was said, --allow-host. */
int live_open(struct live *ret, const struct live_wish *wish, const struct options *o,
	      struct err *e) MUST_USE;
int live_find(struct live *ret, const char *id, struct err *e) MUST_USE;
int live_reset(const struct live *live, struct err *e) MUST_USE;
int live_close(const char *id, struct err *e) MUST_USE;

struct live_step {
	const char *code;
	size_t len;
	const char *mode; /* NULL: the daemon's usual */
	double timeout_s; /* 0: the session's */
	int stop_fd;      /* readable: interrupt the step, which then ends as it likes; -1: never */
	/* What it says on stderr; true: it is dealt with, and not for ours.  May be NULL. */
	bool (*on_stderr)(const char *bytes, size_t len, void *arg);
	/* The forms of something to look at: an object by MIME type.  May be NULL. */
	void (*on_display)(const struct json_object *data, void *arg);
	void *arg; /* of both */
};

struct live_answer {
	struct json_object *event; /* owns the rest */
	const struct json_object *result;
	const char *state;   /* "kept", "lost", "rolled_back" */
	const char *outcome; /* "exited", "timed_out"... */
	bool interrupted;
	int exit_code; /* -1: none */
	int signal;
	const char *exception;           /* its type, or NULL */
	const char *message, *traceback; /* of the exception */
	const char *value;               /* as its language shows it, or NULL: none */
	const struct json_object *data;  /* the value's rich forms, or NULL */
};

#define auto_live_answer AUTO(live_answer_done)
void live_answer_done(struct live_answer *a);

int live_run(struct live_answer *ret, const struct live *live, const struct live_step *step,
	     struct err *e) MUST_USE;
