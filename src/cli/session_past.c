#include "cli/session_past.h"

#include "base/json.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/member.h"
#include "cli/options.h"
#include "cli/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_ROOM = 256 };

struct request {
	bool json, deterministic;
	const char *steps, *count;
};

static const struct option undo_rows[] = {
	{ "steps", 'n', "N", "so many steps (1)", offsetof(struct request, steps), NULL },
};

static const struct option fork_rows[] = {
	{ "count", 'n', "COUNT", "so many branches (1)", offsetof(struct request, count), NULL },
	{ "deterministic", 0, NULL, "which go on with the same random numbers",
	  offsetof(struct request, deterministic), NULL },
};

static const struct option list_rows[] = {
	{ "json", 0, NULL, "print a JSON array, one object per checkpoint",
	  offsetof(struct request, json), NULL },
};

/* What a name may be is for the daemon to say; here only what would be another path. */
static int path_of(char ret[PATH_ROOM], const char *id, const char *name, const char *rest,
		   struct err *e)
{
	if (!daemon_is_id(id))
		return err_set(e, ERR_INVALID, "'%.64s' is not the id of a session", id);
	if (name[strcspn(name, "/?#% ")] || strlen(name) > 63)
		return err_set(e, ERR_INVALID, "'%.64s' is not the name of a checkpoint", name);
	(void)snprintf(ret, PATH_ROOM, "/v1/sessions/%.79s/checkpoints%s%s%s", id,
		       name[0] ? "/" : "", name, rest);
	return 0;
}

static int must_be_back(const struct json_object *answer, struct err *e)
{
	const struct json_object *result, *exception;
	const char *state, *why;

	if (member_object(&result, answer, "result", e) < 0 ||
	    member_text(&state, result, "state", e) < 0)
		return -1;
	if (strcmp(state, "rolled_back") == 0)
		return 0;
	if (member_object(&exception, result, "exception", e) < 0 ||
	    member_text(&why, exception, "message", e) < 0)
		return err_set(e, ERR_GONE, "the session was lost");
	return err_set(e, ERR_GONE, "%.100s", why);
}

/* ---- undo ------------------------------------------------------------------------------ */

static int undo(char **ids, int count, const struct request *req, struct err *e)
{
	uint64_t steps = 1;
	char path[PATH_ROOM];

	if (req->steps && units_count(&steps, req->steps, e) < 0)
		return err_context(e, "--steps");
	for (int i = 0; i < count; i++) {
		auto_object struct json_object *answer = NULL;
		if (!daemon_is_id(ids[i]))
			return err_set(e, ERR_INVALID, "'%.64s' is not the id of a session",
				       ids[i]);
		(void)snprintf(path, sizeof(path), "/v1/sessions/%.79s/undo?steps=%" PRIu64, ids[i],
			       steps);
		if (daemon_call(&answer, "POST", path, e) < 0 || must_be_back(answer, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- fork ------------------------------------------------------------------------------ */

static int fork_(char **args, int count, const struct request *req, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	auto_buf struct buf text = BUF_INIT(256);
	struct json j = { .out = &text };
	const struct json_object *list;
	uint64_t branches = 1;
	char path[PATH_ROOM];
	size_t made;

	if (count > 1)
		return err_set(e, ERR_INVALID, "one session, please");
	if (!daemon_is_id(args[0]))
		return err_set(e, ERR_INVALID, "'%.64s' is not the id of a session", args[0]);
	if (req->count && units_count(&branches, req->count, e) < 0)
		return err_context(e, "--count");
	json_open(&j, NULL, '{');
	json_int(&j, "count", (int64_t)branches);
	json_bool(&j, "deterministic", req->deterministic);
	json_close(&j);
	const struct daemon_body body = { buf_str(&text), text.len };
	(void)snprintf(path, sizeof(path), "/v1/sessions/%.79s/fork", args[0]);
	if (daemon_call_with(&answer, "POST", path, &body, e) < 0 ||
	    member_array(&list, &made, answer, "branches", e) < 0)
		return -1;
	for (size_t i = 0; i < made; i++) {
		const char *id;
		if (member_text(&id, member_item(list, i), "id", e) < 0)
			return -1;
		(void)puts(id);
	}
	return 0;
}

/* ---- checkpoints ----------------------------------------------------------------------- */

static int show(const struct json_object *answer, const struct request *req, struct err *e)
{
	const struct json_object *list;
	size_t count;

	if (member_array(&list, &count, answer, "checkpoints", e) < 0)
		return -1;
	if (req->json) {
		(void)printf("%s\n", member_json(answer, "checkpoints"));
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		const struct json_object *one = member_item(list, i);
		uint64_t memory, files;
		char shown[2][32];
		const char *name;
		if (member_text(&name, one, "name", e) < 0 ||
		    member_number(&memory, one, "memory", INT64_MAX, e) < 0 ||
		    member_number(&files, one, "files", INT64_MAX, e) < 0)
			return -1;
		(void)printf("%s\t%s\t%s\n", name, units_show_size(shown[0], memory),
			     units_show_size(shown[1], files));
	}
	return 0;
}

static int list(char **args, int count, const struct request *req, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	char path[PATH_ROOM];

	if (count > 1)
		return err_set(e, ERR_INVALID, "one session, please");
	if (path_of(path, args[0], "", "", e) < 0 || daemon_call(&answer, "GET", path, e) < 0)
		return -1;
	return show(answer, req, e);
}

static int need_name(int count, struct err *e)
{
	return count == 2 ? 0 : err_set(e, ERR_INVALID, "a session and a name, please");
}

static int checkpoint(char **args, int count, const struct request *req, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	auto_buf struct buf text = BUF_INIT(1024);
	struct json j = { .out = &text };
	char path[PATH_ROOM];

	(void)req;
	if (need_name(count, e) < 0 || path_of(path, args[0], "", "", e) < 0)
		return -1;
	json_open(&j, NULL, '{');
	json_string(&j, "name", args[1]);
	json_close(&j);
	const struct daemon_body body = { buf_str(&text), text.len };
	return daemon_call_with(&answer, "POST", path, &body, e);
}

static int restore(char **args, int count, const struct request *req, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	char path[PATH_ROOM];

	(void)req;
	if (need_name(count, e) < 0 || path_of(path, args[0], args[1], "/restore", e) < 0 ||
	    daemon_call(&answer, "POST", path, e) < 0)
		return -1;
	return must_be_back(answer, e);
}

static int forget(char **args, int count, const struct request *req, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	char path[PATH_ROOM];

	(void)req;
	if (need_name(count, e) < 0 || path_of(path, args[0], args[1], "", e) < 0)
		return -1;
	return daemon_call(&answer, "DELETE", path, e);
}

/* ---- the verbs ------------------------------------------------------------------------- */

static int verb(const char *name, const char *const *synopsis, const char *about,
		const struct option *rows, size_t row_count,
		int (*act)(char **args, int count, const struct request *req, struct err *e),
		int argc, char **argv)
{
	struct request req = { 0 };
	struct options o = { name, synopsis, about, rows, row_count, &req, 0 };
	struct err e;
	int first, status;

	if (cli_parse_session(&first, &status, &o, argc, argv))
		return status;
	return act(argv + first, argc - first, &req, &e) < 0 ? cli_report(o.verb, &e)
							     : cli_flush(0);
}

int session_undo_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[-n N] ID...", NULL };

	return verb("session undo", synopsis,
		    "Take back the last steps of sessions that were opened with --rewind.",
		    undo_rows, ARRAY_LEN(undo_rows), undo, argc, argv);
}

int session_fork_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[-n COUNT] [--deterministic] ID", NULL };

	return verb("session fork", synopsis,
		    "Make more of a session, each as it is now and in a sandbox of its own, and "
		    "print their ids.",
		    fork_rows, ARRAY_LEN(fork_rows), fork_, argc, argv);
}

int session_checkpoint_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "ID NAME", NULL };

	return verb("session checkpoint", synopsis,
		    "Keep what a session that was opened with --rewind is now, under a name.",
		    undo_rows, 0, checkpoint, argc, argv);
}

int session_checkpoints_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--json] ID", NULL };

	return verb("session checkpoints", synopsis,
		    "List the checkpoints of a session: name, memory that it alone has, files.",
		    list_rows, ARRAY_LEN(list_rows), list, argc, argv);
}

int session_restore_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "ID NAME", NULL };

	return verb("session restore", synopsis,
		    "Make a session what it was at a checkpoint, which stays.", undo_rows, 0,
		    restore, argc, argv);
}

int session_forget_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "ID NAME", NULL };

	return verb("session forget", synopsis, "Forget a checkpoint.", undo_rows, 0, forget, argc,
		    argv);
}
