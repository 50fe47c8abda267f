#include "cli/remote.h"

#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/hosts.h"
#include "cli/member.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
	ID_ROOM = 80,
	CANCEL_MS = 5000,     /* a cancelled run ends at once, or something is wrong */
	OUTPUT_MAX = 2 << 20, /* the daemon cancels a run that is this far ahead of its client */
};

void remote_done(struct remote *r)
{
	daemon_close(&r->daemon);
	buf_done(&r->body);
}

/* ---- what the pool does not offer ---------------------------------------------------------- */

static const struct {
	const char *option, *why;
} offers_no[] = {
	{ "dir", "--dir: the daemon shows no host directories" },
	{ "workdir", "--workdir: the daemon's workspaces have their place" },
	{ "allow-weak", "--allow-weak: the daemon's sandboxes are made already" },
};

static const char *refusal_of_use(const struct option_use *use)
{
	uint64_t bytes;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(offers_no); i++)
		if (strcmp(use->opt->name, offers_no[i].option) == 0)
			return offers_no[i].why;
	if (strcmp(use->opt->name, "network") == 0 && strcmp(use->value, "none") != 0)
		return "--network: the daemon's sandboxes have none";
	if (strcmp(use->opt->name, "output") == 0 && units_size(&bytes, use->value, &e) == 0 &&
	    bytes > OUTPUT_MAX)
		return "--output: more than the daemon keeps for whoever reads slowly";
	return NULL;
}

/* A live stream is read as the guest reads; a request holds all of its input. */
static const char *refusal_of_input(const struct request *req)
{
	int fd = req->stdin_fd >= 0 ? req->stdin_fd : STDIN_FILENO;
	struct stat st;

	if (!req->input)
		return NULL;
	if (fstat(fd, &st) < 0)
		return "--stdin: it cannot be looked at";
	if (S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
		return NULL; /* a file, or /dev/null */
	return "--stdin: it is read as it comes, not from a file";
}

/* Why it is run here, or NULL. */
static const char *refusal(const struct request *req)
{
	const char *off = getenv("VIAL_NO_DAEMON"), *config = getenv("VIAL_CONFIG");

	if (req->no_daemon)
		return "--no-daemon";
	if (off && *off && !req->daemon)
		return "VIAL_NO_DAEMON is set";
	if (req->config)
		return "--config: the daemon has its own configuration";
	if (config)
		return "VIAL_CONFIG is set: the daemon has its own configuration";
	for (size_t i = 0; i < req->options.use_count; i++) {
		const char *why = refusal_of_use(&req->options.uses[i]);

		if (why)
			return why;
	}
	if (!utf8_is_valid(buf_str(&req->text), req->text.len))
		return "the program is not UTF-8";
	return refusal_of_input(req);
}

/* ---- the request --------------------------------------------------------------------------- */

static int not_text(struct err *e, const char *what, const char *shown)
{
	return err_set(e, ERR_DENIED, "%s '%.100s' is not UTF-8", what, shown);
}

static int add_file(struct json *j, const struct options *o, size_t at, struct err *e)
{
	auto_buf struct buf content = BUF_INIT(j->out->max);
	auto_free char *name = NULL;
	const char *path;

	if (request_split_file(&name, &path, o->uses[at].value, e) < 0 ||
	    buf_add_file(&content, AT_FDCWD, path, e) < 0)
		return -1;
	if (!utf8_is_valid(name, strlen(name)))
		return not_text(e, "--file", name);
	json_open(j, NULL, '{');
	json_string(j, "path", name);
	daemon_add_bytes(j, "content", "content_base64", &content);
	json_close(j);
	return 0;
}

static bool same_name(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return strcspn(b, "=") == len && memcmp(a, b, len) == 0;
}

static int add_env(struct json *j, const struct options *o, size_t at, struct err *e)
{
	auto_free char *name = NULL;
	const char *text;

	for (size_t i = at + 1; i < o->use_count; i++)
		if (o->uses[i].opt == o->uses[at].opt &&
		    same_name(o->uses[i].value, o->uses[at].value))
			return 0; /* the last one counts */
	if (request_split_env(&name, &text, o->uses[at].value, e) < 0)
		return -1;
	if (!utf8_is_valid(name, strlen(name)) || !utf8_is_valid(text, strlen(text)))
		return not_text(e, "--env", name);
	json_string(j, name, text);
	return 0;
}

static int add_export(struct json *j, const struct options *o, size_t at, struct err *e)
{
	const char *pattern = request_plain_name(o->uses[at].value);

	if (!utf8_is_valid(pattern, strlen(pattern)))
		return not_text(e, "--export", pattern);
	json_string(j, NULL, pattern);
	return 0;
}

static int add_limit(struct json *j, const struct options *o, size_t at, struct err *e)
{
	(void)e;
	for (size_t i = at + 1; i < o->use_count; i++)
		if (o->uses[i].opt == o->uses[at].opt)
			return 0; /* the last one counts */
	json_string(j, o->uses[at].opt->name, o->uses[at].value);
	return 0;
}

static bool is_limit(const char *name)
{
	const struct vial_limit *limits;
	size_t count;

	vial_limits(&limits, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(limits[i].name, name) == 0)
			return true;
	return false;
}

static int add_options(struct json *j, const struct options *o, struct err *e)
{
	static const struct {
		const char *option, *key; /* option NULL: whatever is a limit */
		char bracket;
		int (*add)(struct json *j, const struct options *o, size_t at, struct err *e);
	} lists[] = {
		{ "file", "files", '[', add_file },
		{ "env", "env", '{', add_env },
		{ "export", "exports", '[', add_export },
		{ NULL, "limits", '{', add_limit },
	};

	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		json_open(j, lists[k].key, lists[k].bracket);
		for (size_t i = 0; i < o->use_count; i++) {
			const char *name = o->uses[i].opt->name, *wanted = lists[k].option;

			if ((wanted ? strcmp(name, wanted) == 0 : is_limit(name)) &&
			    lists[k].add(j, o, i, e) < 0)
				return -1;
		}
		json_close(j);
	}
	return 0;
}

static int add_args(struct json *j, char *const *args, struct err *e)
{
	json_open(j, "args", '[');
	for (; *args; args++) {
		if (!utf8_is_valid(*args, strlen(*args)))
			return not_text(e, "argument", *args);
		json_string(j, NULL, *args);
	}
	json_close(j);
	return 0;
}

/* From where the descriptor stands, which stays there: a run here may still need it. */
static int add_input(struct json *j, const struct request *req, struct err *e)
{
	auto_buf struct buf input = BUF_INIT(j->out->max);
	int fd = req->stdin_fd >= 0 ? req->stdin_fd : STDIN_FILENO;
	off_t at = lseek(fd, 0, SEEK_CUR);
	char chunk[16384];
	ssize_t n;

	if (!req->input)
		return 0;
	while ((n = pread(fd, chunk, sizeof(chunk), at)) != 0 && !input.dropped) {
		if (n < 0)
			return err_sys(e, "--stdin");
		buf_add(&input, chunk, (size_t)n);
		at += n;
	}
	j->out->dropped += input.dropped;
	daemon_add_bytes(j, "stdin", "stdin_base64", &input);
	return 0;
}

static int write_body(struct buf *out, const struct request *req, struct err *e)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	if (req->environment)
		json_string(&j, "environment", req->environment);
	else
		json_string(&j, "language", req->language);
	json_bytes(&j, "code", buf_str(&req->text), req->text.len);
	if (req->name) {
		if (!utf8_is_valid(req->name, strlen(req->name)))
			return not_text(e, "the name", req->name);
		json_string(&j, "name", req->name);
	}
	if (req->read_only)
		json_bool(&j, "writable", false);
	hosts_write(&j, &req->options);
	if (add_options(&j, &req->options, e) < 0 || add_args(&j, req->args, e) < 0 ||
	    add_input(&j, req, e) < 0)
		return -1;
	json_close(&j);
	return out->dropped ? err_set(e, ERR_LIMIT, "too much for a request to the daemon") : 0;
}

int remote_prepare(struct remote *r, struct err *why, const struct request *req, struct err *e)
{
	const char *here = refusal(req);

	if (here && req->daemon)
		return err_set(e, ERR_INVALID, "--daemon: %s", here);
	if (here) {
		(void)err_set(why, ERR_DENIED, "%s", here);
		return 0;
	}
	if (daemon_open(&r->daemon, why) == 0 && write_body(&r->body, req, why) == 0)
		return 1;
	daemon_close(&r->daemon);
	if (!req->daemon && why->code != ERR_BUSY)
		return 0;
	*e = *why;
	if (e->code != ERR_GONE)
		return err_context(e, "%s", req->daemon ? "--daemon" : "the daemon is busy");
	e->code = ERR_HOST; /* nothing is wrong with what the user said */
	return err_context(e, "no daemon is running here (vial serve)");
}

/* ---- the run ------------------------------------------------------------------------------- */

/* Nothing was begun: whether it is run here instead. */
static int refused(struct err *why, int status, const struct err *said, struct err *e)
{
	if (said->code == ERR_BUSY) {
		*e = *said;
		return err_context(e, "the daemon is busy (--no-daemon runs it here)");
	}
	if (status / 100 == 5) {
		*e = *said;
		return err_context(e, "daemon");
	}
	*why = *said;
	return 0;
}

/* The connection broke, or the daemon with it. */
static int lost(struct err *e)
{
	if (e->sys == ECANCELED)
		return -1;
	e->code = ERR_HOST;
	return err_context(e, "how the program ended is not known");
}

struct progress {
	struct answer *answer;
	const struct remote_watch *watch;
	char id[ID_ROOM]; /* "": not begun */
	struct err error; /* the daemon's last word, when that is one */
};

enum step { STEP_MORE, STEP_RESULT, STEP_ERROR };

static int take_event(struct progress *p, struct json_object *event, struct err *e)
{
	const char *name, *id;
	enum vial_stream stream;
	struct vial_bytes bytes;

	if (member_text(&name, event, "event", e) < 0)
		return -1;
	if (strcmp(name, "start") == 0) {
		if (member_text(&id, event, "id", e) < 0)
			return -1;
		if (!daemon_is_id(id))
			return err_set(e, ERR_HOST, "the daemon gave it no proper id");
		(void)snprintf(p->id, sizeof(p->id), "%s", id);
	} else if (strcmp(name, "output") == 0) {
		if (answer_add_output(&stream, &bytes, p->answer, event, e) < 0)
			return -1;
		if (p->watch->on_output)
			p->watch->on_output(stream, bytes.data, bytes.len, p->watch->arg);
	} else if (strcmp(name, "error") == 0) {
		(void)daemon_refusal(event, &p->error);
		return STEP_ERROR;
	} else if (strcmp(name, "result") == 0) {
		return answer_read(p->answer, event, e) < 0 ? -1 : STEP_RESULT;
	}
	return STEP_MORE; /* a newer daemon may tell more than we know of */
}

/* Stopped: the run is killed by its name, so that its result still comes. */
static int stop(struct daemon *d, const struct progress *p)
{
	struct err ignored;

	if (d->stop_fd < 0 || !p->id[0] || daemon_kill(p->id, &ignored) < 0)
		return -1;
	d->stop_fd = -1;
	d->silence_ms = CANCEL_MS;
	return 0;
}

static int follow(struct progress *p, struct daemon *d, struct err *e)
{
	for (;;) {
		auto_object struct json_object *event = NULL;
		int found = daemon_next(&event, d, e);

		if (found == 0)
			return err_set(e, ERR_HOST, "the daemon went away");
		if (found < 0 && (e->sys != ECANCELED || stop(d, p) < 0))
			return -1;

		int step = found > 0 ? take_event(p, event, e) : STEP_MORE;

		if (step != STEP_MORE)
			return step;
	}
}

int remote_run(struct answer *ret, struct err *why, struct remote *r,
	       const struct remote_watch *watch, struct err *e)
{
	struct progress p = { .answer = ret, .watch = watch };
	struct daemon_body body = { buf_str(&r->body), r->body.len };
	struct daemon *d = &r->daemon;

	d->stop_fd = watch->stop_fd;
	if (daemon_ask(d, "POST", "/v1/runs", "application/x-ndjson", &body, e) < 0)
		return lost(e);
	if (d->status != 200) {
		auto_object struct json_object *answer = NULL;

		if (daemon_object(&answer, d, e) < 0)
			return lost(e);
		(void)daemon_refusal(answer, &p.error);
		return refused(why, d->status, &p.error, e);
	}

	int step = follow(&p, d, e);

	if (step < 0)
		return lost(e);
	if (step == STEP_ERROR && !p.id[0])
		return refused(why, d->status, &p.error, e);
	if (step == STEP_ERROR) {
		*e = p.error;
		return -1;
	}
	return 1;
}
