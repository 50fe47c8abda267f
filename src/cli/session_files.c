/*
 * session_files - vial session put, get, ls, rm: the files of a session of the local daemon.
 */
#include "cli/session_files.h"

#include "base/units.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/member.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/save.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "cli/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SILENCE_MS = 120000, URL_MAX = 12 << 10 };

struct request {
	bool json, recursive;
};

static const struct option no_rows[] = { { 0 } };

static const struct option ls_rows[] = {
	{ "json", 0, NULL, "print a JSON array, one object per file",
	  offsetof(struct request, json), NULL },
	{ "recursive", 'R', NULL, "what is in its directories, too",
	  offsetof(struct request, recursive), NULL },
};

static const struct option rm_rows[] = {
	{ "recursive", 'r', NULL, "directories with all that is in them",
	  offsetof(struct request, recursive), NULL },
};

/* ---- addresses ----------------------------------------------------------------------------- */

static void add_escaped(struct buf *url, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/";

	for (; *text; text++) {
		if (strchr(plain, *text))
			buf_add_char(url, *text);
		else
			buf_printf(url, "%%%02x", (unsigned char)*text);
	}
}

/* "/v1/sessions/ID" and `between`, then the path; the shell's "./" is not part of it. */
static int make_url(struct buf *url, const char *id, const char *between, const char *path,
		    struct err *e)
{
	if (!daemon_is_id(id))
		return err_set(e, ERR_INVALID, "'%.64s' is not the id of a session", id);
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	buf_printf(url, "/v1/sessions/%s%s", id, between);
	add_escaped(url, path);
	return url->dropped ? err_set(e, ERR_INVALID, "%.100s...: too long", path) : 0;
}

/* The answer says no: why. */
static int refused(struct daemon *d, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(64 << 10);
	auto_object struct json_object *answer = NULL;
	const char *bytes;
	size_t len;
	int got;

	while ((got = daemon_piece(&bytes, &len, d, e)) > 0)
		buf_add(&text, bytes, len);
	if (got < 0 || member_parse(&answer, buf_str(&text), text.len, e) < 0)
		return -1;
	return daemon_refusal(answer, e);
}

static int reach(struct daemon *d, struct err *e)
{
	d->silence_ms = SILENCE_MS;
	return stop_catch(&d->stop_fd, e) < 0 ? -1 : daemon_reach(d, e);
}

/* ---- put ----------------------------------------------------------------------------------- */

struct sending {
	struct daemon daemon;
	struct progress progress;
};

static void sending_done(struct sending *s)
{
	progress_end(&s->progress);
	daemon_close(&s->daemon);
}

static int send_piece(const char *bytes, size_t len, void *arg, struct err *e)
{
	struct sending *s = arg;

	progress_add(&s->progress, len);
	return daemon_send(&s->daemon, bytes, len, e);
}

static int finish_sending(struct sending *s, struct err *e)
{
	if (daemon_answer(&s->daemon, e) < 0)
		return -1;
	return s->daemon.status / 100 == 2 ? 0 : refused(&s->daemon, e);
}

static int put_fd(struct sending *s, int fd, const struct stat *st, const char *url, struct err *e)
{
	char chunk[256 << 10];
	int64_t size = S_ISREG(st->st_mode) ? st->st_size : -1;
	int64_t left = size;

	/* An empty file has no length to speak of: what is read says so. */
	if (daemon_begin(&s->daemon, "PUT", url, size == 0 ? -1 : size, e) < 0)
		return -1;
	while (left != 0) {
		size_t room =
			left < 0 || left > (int64_t)sizeof(chunk) ? sizeof(chunk) : (size_t)left;
		ssize_t n = read(fd, chunk, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "read");
		if (n == 0 && left > 0)
			return err_set(e, ERR_INVALID, "it became shorter while it was sent");
		if (n == 0)
			break;
		if (send_piece(chunk, (size_t)n, s, e) < 0)
			return -1;
		left -= left > 0 ? n : 0;
	}
	return finish_sending(s, e);
}

static int put_file(const char *id, const char *source, const char *path, struct err *e)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	AUTO(sending_done) struct sending s = { .daemon = DAEMON_INIT };
	bool is_stdin = strcmp(source, "-") == 0;
	auto_close int owned = is_stdin ? -1 : open(source, O_RDONLY | O_CLOEXEC);
	int fd = is_stdin ? STDIN_FILENO : owned;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_sys(e, "%.150s", source);
		e->code = ERR_INVALID;
		return -1;
	}
	if (make_url(&url, id, "/files/", path, e) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		buf_printf(&url, "?mode=%o", (unsigned)st.st_mode & 0777u);
	progress_begin(&s.progress, path, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
	if (reach(&s.daemon, e) < 0 || put_fd(&s, fd, &st, buf_str(&url), e) < 0)
		return e->code == ERR_HOST ? -1 : err_context(e, "%.100s", source);
	return 0;
}

static int put_dir(const char *id, const char *source, const char *path, struct err *e)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	AUTO(sending_done) struct sending s = { .daemon = DAEMON_INIT };

	progress_begin(&s.progress, path, 0);
	if (make_url(&url, id, "/archive?path=", path, e) < 0 || reach(&s.daemon, e) < 0 ||
	    daemon_begin(&s.daemon, "POST", buf_str(&url), -1, e) < 0 ||
	    tree_pack(source, send_piece, &s, e) < 0)
		return -1;
	return finish_sending(&s, e);
}

/* Where it goes: `to` itself, or below it when that ends in a slash. */
static int put_one(const char *id, const char *source, const char *to, struct err *e)
{
	auto_buf struct buf path = BUF_INIT(PATH_MAX);
	size_t len = strlen(source);
	struct stat st;

	while (len > 1 && source[len - 1] == '/')
		len--;
	const char *slash = memrchr(source, '/', len);
	const char *name = slash ? slash + 1 : source;
	size_t to_len = to ? strlen(to) : 0;
	bool is_below = !to || (to_len > 0 && to[to_len - 1] == '/');
	if (strcmp(source, "-") == 0 && is_below)
		return err_set(e, ERR_INVALID, "what is it to be called? name it after the '-'");
	buf_add_str(&path, to ? to : "");
	if (is_below)
		buf_add(&path, name, len - (size_t)(name - source));
	if (strcmp(source, "-") != 0 && stat(source, &st) == 0 && S_ISDIR(st.st_mode))
		return put_dir(id, source, buf_str(&path), e);
	return put_file(id, source, buf_str(&path), e);
}

static int put(int argc, char **argv, const struct request *req, struct err *e)
{
	const char *to = argc > 2 ? argv[argc - 1] : NULL;

	(void)req;
	if (argc < 2)
		return err_set(e, ERR_INVALID, "which file?");
	if (argc > 3 && to[strlen(to) - (to[0] != '\0')] != '/')
		return err_set(e, ERR_INVALID,
			       "several go to a directory: end '%.100s' with a slash", to);
	for (int i = 1; i < argc - (to != NULL); i++)
		if (put_one(argv[0], argv[i], to, e) < 0)
			return -1;
	return 0;
}

/* ---- get ----------------------------------------------------------------------------------- */

static ssize_t take_piece(const char **ret, void *arg, struct err *e)
{
	struct sending *s = arg;
	size_t len = 0;
	int got = daemon_piece(ret, &len, &s->daemon, e);

	if (got > 0)
		progress_add(&s->progress, len);
	return got < 0 ? -1 : got == 0 ? 0 : (ssize_t)len;
}

static int ask(struct sending *s, const char *url, const char *name, struct err *e)
{
	if (reach(&s->daemon, e) < 0 || daemon_begin(&s->daemon, "GET", url, 0, e) < 0 ||
	    daemon_answer(&s->daemon, e) < 0)
		return -1;
	if (s->daemon.status / 100 != 2)
		return refused(&s->daemon, e);
	progress_begin(&s->progress, name, s->daemon.total);
	return 0;
}

static int copy_out(struct sending *s, struct err *e)
{
	const char *bytes;
	ssize_t n;

	while ((n = take_piece(&bytes, s, e)) > 0)
		if (fwrite(bytes, 1, (size_t)n, stdout) != (size_t)n)
			return err_sys(e, "standard output");
	return n < 0 ? -1 : 0;
}

static int save_out(struct sending *s, const char *local, struct err *e)
{
	auto_saving struct saving file = SAVING_INIT;
	const char *slash = strrchr(local, '/'), *bytes;
	auto_free char *dir = slash ? strndup(local, (size_t)(slash - local) + 1) : strdup(".");
	ssize_t n;

	if (!dir)
		return err_sys(e, "%.100s", local);
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "%.150s", dir);
	if (save_begin(&file, fd, slash ? slash + 1 : local, e) < 0)
		return err_context(e, "%.100s", local);
	while ((n = take_piece(&bytes, s, e)) > 0)
		if (save_write(&file, bytes, (size_t)n, e) < 0)
			return -1;
	if (n < 0)
		return -1;
	return save_end(&file, true, e) < 0 ? err_context(e, "%.100s", local) : 0;
}

/* The last part of a path, without slashes behind it; to be freed. */
static char *leaf_of(const char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		len--;
	const char *slash = memrchr(path, '/', len);
	return slash ? strndup(slash + 1, len - (size_t)(slash + 1 - path)) : strndup(path, len);
}

static int get_file(const char *id, const char *path, const char *local, struct err *e)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX), below = BUF_INIT(PATH_MAX);
	AUTO(sending_done) struct sending s = { .daemon = DAEMON_INIT };
	auto_free char *leaf = leaf_of(path);
	struct stat st;

	if (!leaf)
		return err_sys(e, "%.100s", path);
	if (!local)
		local = leaf;
	if (strcmp(local, "-") != 0 && stat(local, &st) == 0 && S_ISDIR(st.st_mode)) {
		buf_printf(&below, "%s/%s", local, leaf);
		local = buf_str(&below);
	}
	if (make_url(&url, id, "/files/", path, e) < 0 || ask(&s, buf_str(&url), path, e) < 0)
		return -1;
	return strcmp(local, "-") == 0 ? copy_out(&s, e) : save_out(&s, local, e);
}

static int get_dir(const char *id, const char *path, const char *local, struct err *e)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	AUTO(sending_done) struct sending s = { .daemon = DAEMON_INIT };
	auto_free char *leaf = leaf_of(path);
	uint64_t left_out = 0;

	if (!leaf)
		return err_sys(e, "%.100s", path);
	if (!local)
		local = leaf[0] && strcmp(leaf, ".") != 0 ? leaf : ".";
	if (make_url(&url, id, "/archive?format=tar&path=", path, e) < 0 ||
	    ask(&s, buf_str(&url), path, e) < 0)
		return -1;
	if (strcmp(local, "-") == 0)
		return copy_out(&s, e);
	auto_close int dir = save_open_dir(local, e);
	if (dir < 0 || tree_unpack(&left_out, dir, take_piece, &s, e) < 0)
		return -1;
	progress_end(&s.progress);
	if (left_out)
		(void)fprintf(stderr,
			      "vial session get: left out %llu: links that lead out, or no files\n",
			      (unsigned long long)left_out);
	return 0;
}

static int get(int argc, char **argv, const struct request *req, struct err *e)
{
	(void)req;
	if (argc < 2)
		return err_set(e, ERR_INVALID, "which file?");
	if (argc > 3)
		return err_set(e, ERR_INVALID, "one file or directory at a time");
	const char *path = argv[1], *local = argc > 2 ? argv[2] : NULL;
	size_t len = strlen(path);
	bool is_dir = strcmp(path, ".") == 0 || (len > 0 && path[len - 1] == '/');

	if (len == 0)
		return err_set(e, ERR_INVALID, "which file?");
	return is_dir ? get_dir(argv[0], path, local, e) : get_file(argv[0], path, local, e);
}

/* ---- ls, rm -------------------------------------------------------------------------------- */

static int add_row(struct table *t, const struct json_object *o, bool is_recursive, struct err *e)
{
	auto_buf struct buf shown = BUF_INIT(64 << 10);
	const char *name, *type, *mode, *target = NULL;
	char when[32] = "", size_text[32];
	uint64_t size;
	size_t name_len, target_len = 0;
	double mtime = 0;
	struct tm tm;

	if (member_bytes(&name, &name_len, o, is_recursive ? "path" : "name", e) < 0 ||
	    member_text(&type, o, "type", e) < 0 || member_text(&mode, o, "mode", e) < 0 ||
	    member_number(&size, o, "size", INT64_MAX, e) < 0 ||
	    (!member_is_null(o, "target") &&
	     member_bytes(&target, &target_len, o, "target", e) < 0))
		return -1;
	if (member_double(&mtime, o, "mtime", e) == 0) {
		time_t at = (time_t)mtime;
		if (localtime_r(&at, &tm))
			(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	}
	bool is_dir = strcmp(type, "directory") == 0;
	term_escape(&shown, name, name_len);
	if (is_dir)
		buf_add_char(&shown, '/');
	if (target) {
		buf_add_str(&shown, " -> ");
		term_escape(&shown, target, target_len);
	}
	table_add(t, TERM_DIM, mode);
	table_add(t, TERM_PLAIN, is_dir ? "-" : units_show_size(size_text, size));
	table_add(t, TERM_DIM, when);
	table_add(t, is_dir ? TERM_BOLD : TERM_PLAIN, buf_str(&shown));
	return 0;
}

static int show_list(const struct json_object *answer, const struct request *req, struct err *e)
{
	auto_table struct table t = TABLE_INIT(4);
	const struct json_object *entries;
	bool is_cut = false;
	size_t count;

	t.cells.max = 256u << 20;
	if (req->json) {
		(void)puts(member_json(answer, "entries"));
		return 0;
	}
	if (member_array(&entries, &count, answer, "entries", e) < 0 ||
	    member_bool(&is_cut, answer, "truncated", e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (add_row(&t, member_item(entries, i), req->recursive, e) < 0)
			return -1;
	table_print(&t, stdout);
	if (is_cut)
		(void)fprintf(stderr, "vial session ls: there is more than is shown\n");
	return 0;
}

static int ls(int argc, char **argv, const struct request *req, struct err *e)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	auto_object struct json_object *answer = NULL;
	const char *path = argc > 1 ? argv[1] : "";

	if (argc > 2)
		return err_set(e, ERR_INVALID, "one directory at a time");
	if (make_url(&url, argv[0], req->recursive ? "/files?recursive=true&path=" : "/files?path=",
		     path, e) < 0 ||
	    daemon_call(&answer, "GET", buf_str(&url), e) < 0)
		return -1;
	return show_list(answer, req, e);
}

static int rm(int argc, char **argv, const struct request *req, struct err *e)
{
	if (argc < 2)
		return err_set(e, ERR_INVALID, "which file?");
	for (int i = 1; i < argc; i++) {
		auto_buf struct buf url = BUF_INIT(URL_MAX);
		auto_object struct json_object *answer = NULL;

		if (make_url(&url, argv[0], "/files/", argv[i], e) < 0)
			return -1;
		if (req->recursive)
			buf_add_str(&url, "?recursive=true");
		if (daemon_call(&answer, "DELETE", buf_str(&url), e) < 0)
			return -1;
	}
	return 0;
}

/* ---- the verbs ----------------------------------------------------------------------------- */

typedef int act_fn(int argc, char **argv, const struct request *req, struct err *e);

static int verb(const struct options *rows, act_fn *act, int argc, char **argv)
{
	struct request req = { 0 };
	struct options o = *rows;
	struct err e;
	int first, status;

	o.target = &req;
	if (cli_parse_session(&first, &status, &o, argc, argv))
		return status;
	return act(argc - first, argv + first, &req, &e) < 0 ? cli_report(o.verb, &e)
							     : cli_flush(0);
}

int session_put_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "ID SOURCE [NAME]", "ID SOURCE... DIRECTORY/",
						"ID - NAME", NULL };
	static const struct options rows = {
		.verb = "session put",
		.synopsis = synopsis,
		.about =
			"Copy files, and directories with all that is in them, to the workspace of "
			"a session. With - it is standard input.",
		.rows = no_rows,
	};

	return verb(&rows, put, argc, argv);
}

int session_get_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "ID NAME [LOCAL]", "ID DIRECTORY/ [LOCAL]",
						"ID NAME -", NULL };
	static const struct options rows = {
		.verb = "session get",
		.synopsis = synopsis,
		.about = "Copy a file out of the workspace of a session; with a slash at its end, "
			 "a directory with all that is in it. Nothing is written outside of LOCAL. "
			 "With - it goes to standard output, a directory as tar.",
		.rows = no_rows,
	};

	return verb(&rows, get, argc, argv);
}

int session_ls_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[-R] [--json] ID [DIRECTORY]", NULL };
	static const struct options rows = {
		.verb = "session ls",
		.synopsis = synopsis,
		.about = "List the files in the workspace of a session.",
		.rows = ls_rows,
		.count = ARRAY_LEN(ls_rows),
	};

	return verb(&rows, ls, argc, argv);
}

int session_rm_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[-r] ID NAME...", NULL };
	static const struct options rows = {
		.verb = "session rm",
		.synopsis = synopsis,
		.about = "Remove files from the workspace of a session.",
		.rows = rm_rows,
		.count = ARRAY_LEN(rm_rows),
	};

	return verb(&rows, rm, argc, argv);
}
