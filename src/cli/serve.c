/*
 * serve - vial serve: the daemon, with sandboxes ready before anybody asks.
 *
 * Only what the user said is read here; keeper/serve.h does the rest.
 */
#include "keeper/serve.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/term.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FLAGS_MAX = 64 };

struct request {
	const char *config;
	struct serve_flag flags[FLAGS_MAX];
	size_t flag_count;
	struct buf listen;         /* --listen, with commas */
	char names[FLAGS_MAX][32]; /* "--max" */
	char keys[FLAGS_MAX][64];
};

static int add_flag(struct request *req, const char *name, const char *key, const char *value,
		    struct err *e)
{
	size_t i = 0;

	while (i < req->flag_count && strcmp(req->keys[i], key) != 0)
		i++; /* the last one counts */
	if (i == FLAGS_MAX || strlen(key) >= sizeof(req->keys[0]))
		return err_set(e, ERR_INVALID, "'%.60s' is too much", key);
	(void)snprintf(req->keys[i], sizeof(req->keys[i]), "%s", key);
	(void)snprintf(req->names[i], sizeof(req->names[i]), "--%s", name);
	req->flags[i] = (struct serve_flag){ req->keys[i], value, req->names[i] };
	req->flag_count += i == req->flag_count;
	return serve_check_flag(&req->flags[i], e);
}

/* An option that is a setting of the same name. */
static int set_named(void *target, const struct option *opt, const char *value, struct err *e)
{
	char key[64];

	(void)snprintf(key, sizeof(key), "%s", opt->name);
	for (char *c = key; *c; c++)
		*c = *c == '-' ? '_' : *c;
	return add_flag(target, opt->name, key, value, e);
}

static int set_listen(void *target, const struct option *opt, const char *value, struct err *e)
{
	struct request *req = target;

	if (strcmp(value, "none") == 0)
		buf_reset(&req->listen);
	else
		buf_printf(&req->listen, "%s%s", req->listen.len ? "," : "", value);
	return add_flag(req, opt->name, "listen", buf_str(&req->listen), e);
}

static int set_any(void *target, const struct option *opt, const char *value, struct err *e)
{
	size_t len = strcspn(value, "=");
	char key[64];

	if (!value[len] || len >= sizeof(key))
		return err_set(e, ERR_INVALID, "'%.60s' is not KEY=VALUE", value);
	(void)snprintf(key, sizeof(key), "%.*s", (int)len, value);
	return add_flag(target, opt->name, key, value + len + 1, e) < 0 ? err_context(e, "%s", key)
									: 0;
}

/* clang-format off */
static const struct option rows[] = {
	{ "socket", 0, "PATH",
	  "the Unix socket, or none (default: /run/vial/vial.sock as root, else "
	  "$XDG_RUNTIME_DIR/vial/vial.sock)", 0, set_named },
	{ "listen", 0, "ADDR:PORT",
	  "listen there as well, also https://ADDR:PORT; may be given more than once, or none "
	  "(default: 127.0.0.1:6000)", 0, set_listen },
	{ "backend", 0, "NAME",
	  "where programs run: local, or in workers of null, docker, kubernetes (default: local)",
	  0, set_named },
	{ "armed", 0, "N",
	  "sandboxes kept ready, per environment (default: 4)", 0, set_named },
	{ "max", 0, "N",
	  "sandboxes at once, over all environments (default: 64)", 0, set_named },
	{ "queue", 0, "N",
	  "runs that may wait for a sandbox; more are refused (default: 256)", 0, set_named },
	{ "renew-runs", 0, "N",
	  "replace the interpreter that runs are forked from after so many (default: 20000)",
	  0, set_named },
	{ "renew-time", 0, "TIME",
	  "... and after this time (default: 30m)", 0, set_named },
	{ "allow-weak", 0, "LAYERS",
	  "start where these layers are missing (see vial doctor), comma separated", 0, set_named },
	{ "log-format", 0, "FORMAT",
	  "what happens, on stderr, as text or as json (default: text)", 0, set_named },
	{ "log-level", 0, "LEVEL",
	  "what of it: error, warn, info or debug (default: info; DEBUG=1: debug)", 0, set_named },
	{ "set", 0, "KEY=VALUE",
	  "any other setting of the server, see vial.yaml(5) and 'vial config show'", 0, set_any },
	{ "config", 0, "FILE",
	  "the operator's configuration (default: /etc/vial/vial.yaml)",
	  offsetof(struct request, config), NULL },
};
/* clang-format on */

/* Where it listens, and two lines to paste.  Machines that read the log read of it there. */
static void show_ready(const struct serve_where *where)
{
	if (strcmp(where->log_format, "json") == 0)
		return;
	const char *bold = term_style(stderr, TERM_BOLD), *plain = term_style(stderr, TERM_PLAIN);
	auto_buf struct buf socket = BUF_INIT(1024);
	char usual[DAEMON_PATH_MAX];
	struct err e;
	bool is_usual =
		where->socket && daemon_path(usual, &e) == 0 && strcmp(usual, where->socket) == 0;

	if (where->socket)
		term_escape(&socket, where->socket, strlen(where->socket));
	(void)fprintf(stderr, "%svial is ready%s on %s", bold, plain, buf_str(&socket));
	for (size_t i = 0; i < where->url_count; i++)
		(void)fprintf(stderr, "%s%s", i || where->socket ? " and " : "", where->urls[i]);
	(void)fputs("\n", stderr);
	if (where->url_count)
		(void)fputs(where->has_tokens
				    ? "Whoever comes over TCP needs a token.\n"
				    : "There are no tokens: it listens on loopback only, and "
				      "whoever is on this machine may use it.\n",
			    stderr);
	(void)fputs("\n", stderr);
	if (where->url_count)
		(void)fprintf(stderr, "  curl %s%s/v1/runs",
			      where->has_tokens ? "-H \"Authorization: Bearer $VIAL_TOKEN\" " : "",
			      where->urls[0]);
	else
		(void)fprintf(stderr, "  curl --unix-socket %s http://localhost/v1/runs",
			      buf_str(&socket));
	(void)fprintf(stderr, " --json '{\"language\": \"python\", \"code\": \"print(6 * 7)\"}'\n");
	if (where->socket)
		(void)fprintf(stderr, "  %s%s%s%s run -l python -c 'print(6 * 7)'\n",
			      is_usual ? "" : "VIAL_SOCKET=", is_usual ? "" : buf_str(&socket),
			      is_usual ? "" : " ", program_invocation_name);
	(void)fputc('\n', stderr);
}

static int serve(struct request *req, struct err *e)
{
	char usual[DAEMON_PATH_MAX];
	struct serve_options options = {
		.config = req->config,
		.usual_socket = daemon_path(usual, e) == 0 ? usual : NULL,
		.flags = req->flags,
		.flag_count = req->flag_count,
		.on_ready = show_ready,
	};

	if (keeper_serve(&options, e) == 0)
		return 0;
	if (e->code != ERR_BUG)
		e->code = ERR_HOST; /* nothing is wrong with what the user said */
	return -1;
}

int serve_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[OPTION...]", NULL };
	struct request req = { .listen = BUF_INIT(4096) };
	struct options o = { "serve",
			     synopsis,
			     "Keep sandboxes ready and run programs in them for whoever asks: vial "
			     "run, or any client of its HTTP interface. Runs in the foreground "
			     "until it is interrupted; SIGHUP makes it read its configuration "
			     "again.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	struct err e;
	int first = options_parse(&o, argc, argv, &e), status = 0;

	if (first >= 0 && o.wants_help) {
		options_usage(stdout, &o);
		status = cli_flush(0);
	} else if (first < 0 || options_no_operands(first, argc, argv, &e) < 0 ||
		   options_apply(&o, &e) < 0 || serve(&req, &e) < 0) {
		status = cli_report(o.verb, &e);
	}
	options_done(&o);
	buf_done(&req.listen);
	return status;
}
