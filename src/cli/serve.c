/*
 * serve - vial serve: the daemon, with sandboxes ready before anybody asks.
 *
 * Only what the user said is read here; keeper/serve.h does the rest.
 */
#include "keeper/serve.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/term.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { ARMED_MAX = 1024, BOXES_MAX = 4096, QUEUE_MAX = 100000, RENEW_RUNS_MAX = 1000000000 };

#define RENEW_MS_MIN 1000u

struct request {
	const char *config, *socket, *listen, *armed, *max, *queue, *renew_runs, *renew_time;
	const char *log_format, *log_level;
};

#define AT(field) offsetof(struct request, field), NULL

/* clang-format off */
static const struct option rows[] = {
	{ "socket", 0, "PATH",
	  "the Unix socket (default: VIAL_SOCKET, else /run/vial/vial.sock as root, else "
	  "$XDG_RUNTIME_DIR/vial/vial.sock)", AT(socket) },
	{ "listen", 0, "ADDR:PORT",
	  "listen there as well: a loopback address, or none (default: 127.0.0.1:6000)",
	  AT(listen) },
	{ "armed", 0, "N",
	  "sandboxes kept ready, per environment (default: 4)", AT(armed) },
	{ "max", 0, "N",
	  "sandboxes at once, over all environments (default: 64)", AT(max) },
	{ "queue", 0, "N",
	  "runs that may wait for a sandbox; more are refused (default: 256)", AT(queue) },
	{ "renew-runs", 0, "N",
	  "replace the interpreter that runs are forked from after so many (default: 20000)",
	  AT(renew_runs) },
	{ "renew-time", 0, "TIME",
	  "... and after this time (default: 30m)", AT(renew_time) },
	{ "log-format", 0, "FORMAT",
	  "what happens, on stderr, as text or as json (default: text)", AT(log_format) },
	{ "log-level", 0, "LEVEL",
	  "what of it: error, warn, info or debug (default: info; DEBUG=1: debug)", AT(log_level) },
	{ "config", 0, "FILE",
	  "the operator's configuration (default: /etc/vial/vial.yaml)", AT(config) },
};
/* clang-format on */

static int read_count(unsigned *ret, const char *text, const char *name, unsigned max,
		      struct err *e)
{
	uint64_t value;

	if (!text)
		return 0;
	if (units_count(&value, text, e) < 0)
		return err_context(e, "--%s", name);
	if (value > max)
		return err_set(e, ERR_INVALID, "--%s: at most %u", name, max);
	*ret = (unsigned)value;
	return 0;
}

static bool is_loopback(const char *address)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, address, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* 127.0.0.1:6000 or [::1]:6000.  Who can connect can run programs: nobody from outside may. */
static int check_listen(const char *text, struct err *e)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	bool is_bracketed = len > 2 && text[0] == '[' && text[len - 1] == ']';
	auto_free char *address = strndup(text + is_bracketed, len - (is_bracketed ? 2 : 0));
	uint64_t port;

	if (!address)
		return err_sys(e, "--listen");
	if (len == 0 || is_bracketed != (strchr(address, ':') != NULL) ||
	    units_count(&port, colon + 1, e) < 0 || port == 0 || port > UINT16_MAX)
		return err_set(e, ERR_INVALID, "--listen: '%.60s' is not ADDR:PORT", text);
	if (!is_loopback(address))
		return err_set(e, ERR_INVALID,
			       "--listen: %.60s is not a loopback address such as 127.0.0.1", text);
	return 0;
}

/* What a flag says comes before what its variable said; the server reads that. */
static int pass_on(const char *flag, const char *variable, const char *value,
		   const char *const *words, struct err *e)
{
	if (!value)
		return 0;
	for (size_t i = 0; words[i]; i++)
		if (strcmp(words[i], value) == 0)
			return setenv(variable, value, 1) < 0 ? err_sys(e, "%s", variable) : 0;
	return err_set(e, ERR_INVALID, "--%s: there is no '%.40s'", flag, value);
}

static int read_log(const struct request *req, struct err *e)
{
	static const char *const formats[] = { "text", "json", NULL };
	static const char *const levels[] = { "error", "warn", "info", "debug", NULL };

	if (pass_on("log-format", "VIAL_LOG_FORMAT", req->log_format, formats, e) < 0)
		return -1;
	return pass_on("log-level", "VIAL_LOG_LEVEL", req->log_level, levels, e);
}

/* Where it listens, and two lines to paste.  Machines that read the log read of it there. */
static void show_ready(const struct serve_options *options)
{
	const char *format = getenv("VIAL_LOG_FORMAT");

	if (format && strcmp(format, "json") == 0)
		return;
	const char *bold = term_style(stderr, TERM_BOLD), *plain = term_style(stderr, TERM_PLAIN);
	auto_buf struct buf socket = BUF_INIT(1024);
	char usual[DAEMON_PATH_MAX];
	struct err e;
	bool is_usual = daemon_path(usual, &e) == 0 && strcmp(usual, options->socket) == 0;

	term_escape(&socket, options->socket, strlen(options->socket));
	(void)fprintf(stderr, "%svial is ready%s on %s%s%s\n\n", bold, plain, buf_str(&socket),
		      options->listen ? " and http://" : "",
		      options->listen ? options->listen : "");
	if (options->listen)
		(void)fprintf(stderr, "  curl http://%s/v1/runs", options->listen);
	else
		(void)fprintf(stderr, "  curl --unix-socket %s http://vial/v1/runs",
			      buf_str(&socket));
	(void)fprintf(stderr, " --json '{\"language\": \"python\", \"code\": \"print(6 * 7)\"}'\n");
	(void)fprintf(stderr, "  %s%s%svial run -l python -c 'print(6 * 7)'\n\n",
		      is_usual ? "" : "VIAL_SOCKET=", is_usual ? "" : buf_str(&socket),
		      is_usual ? "" : " ");
}

static int read_request(struct serve_options *ret, char socket[DAEMON_PATH_MAX],
			const struct request *req, struct err *e)
{
	if (read_count(&ret->armed, req->armed, "armed", ARMED_MAX, e) < 0 ||
	    read_count(&ret->max, req->max, "max", BOXES_MAX, e) < 0 ||
	    read_count(&ret->queue, req->queue, "queue", QUEUE_MAX, e) < 0 ||
	    read_count(&ret->renew_runs, req->renew_runs, "renew-runs", RENEW_RUNS_MAX, e) < 0)
		return -1;
	if (ret->max == 0 || ret->renew_runs == 0)
		return err_set(e, ERR_INVALID, "--%s: at least 1", ret->max ? "renew-runs" : "max");
	if (req->renew_time && units_duration(&ret->renew_ms, req->renew_time, e) < 0)
		return err_context(e, "--renew-time");
	if (ret->renew_ms < RENEW_MS_MIN)
		return err_set(e, ERR_INVALID, "--renew-time: at least a second");
	if (req->listen)
		ret->listen = strcmp(req->listen, "none") == 0 ? NULL : req->listen;
	if (ret->listen && check_listen(ret->listen, e) < 0)
		return -1;
	if (req->socket && strlen(req->socket) >= DAEMON_PATH_MAX)
		return err_set(e, ERR_INVALID,
			       "--socket: a path of a socket has less than %d bytes",
			       DAEMON_PATH_MAX);
	if (req->socket)
		(void)snprintf(socket, DAEMON_PATH_MAX, "%s", req->socket);
	else if (daemon_path(socket, e) < 0)
		return err_context(e, "--socket");
	ret->socket = socket;
	ret->config = req->config;
	return 0;
}

int serve_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[OPTION...]", NULL };
	struct serve_options options = {
		.listen = "127.0.0.1:6000",
		.armed = 4,
		.max = 64,
		.queue = 256,
		/* Its address layout and hash seed are those of all its forks: not for ever. */
		.renew_runs = 20000,
		.renew_ms = 30 * 60 * 1000,
		.on_ready = show_ready,
	};
	struct request req = { 0 };
	struct options o = { "serve",
			     synopsis,
			     "Keep sandboxes ready and run programs in them for whoever asks: vial "
			     "run, or any client of its HTTP interface. Runs in the foreground "
			     "until it is interrupted.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	char socket[DAEMON_PATH_MAX];
	struct err e;
	int first = options_parse(&o, argc, argv, &e);

	if (first >= 0 && o.wants_help) {
		options_usage(stdout, &o);
		return cli_flush(0);
	}
	if (first < 0 || options_no_operands(first, argc, argv, &e) < 0 ||
	    read_request(&options, socket, &req, &e) < 0 || read_log(&req, &e) < 0)
		return cli_report(o.verb, &e);
	if (keeper_serve(&options, &e) < 0) {
		if (e.code != ERR_BUG)
			e.code = ERR_HOST; /* nothing is wrong with what the user said */
		return cli_report(o.verb, &e);
	}
	return 0;
}
