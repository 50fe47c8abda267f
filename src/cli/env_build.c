/*
 * env_build - vial env build: an environment from packages or an image, and the wait for it.
 */
#include "cli/cli.h"
#include "cli/env.h"
#include "cli/options.h"
#include "cli/term.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

enum { BAR_WIDTH = 24, LAST_LINES = 16, WORDS_MAX = 64 };

struct request {
	const char *config, *language, *preload, *image, *tag;
	bool locked, no_index, source, force;
	const char *links[WORDS_MAX + 1];
	size_t link_count;
};

static int add_links(void *target, const struct option *opt, const char *value, struct err *e)
{
	struct request *req = target;

	(void)opt;
	if (req->link_count == WORDS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d of them", WORDS_MAX);
	req->links[req->link_count++] = value;
	return 0;
}

#define AT(field) offsetof(struct request, field), NULL

/* clang-format off */
static const struct option rows[] = {
	{ "image", 0, "REF",
	  "make it of a container image: a tar, an OCI layout, or a name", AT(image) },
	{ "tag", 0, "NAME",
	  "what that image is called, or which of several it is", AT(tag) },
	{ "preload", 0, "MODULES",
	  "what a warm interpreter has imported, comma separated", AT(preload) },
	{ "language", 0, "LANG",
	  "the language (default: python, or what the image is made for)", AT(language) },
	{ "locked", 0, NULL,
	  "install exactly the versions of its lock", AT(locked) },
	{ "find-links", 0, "DIR",
	  "look for wheels there, too", 0, add_links },
	{ "no-index", 0, NULL,
	  "look there only; the build has no network", AT(no_index) },
	{ "source", 0, NULL,
	  "packages without a wheel may be built: their code runs, in the sandbox", AT(source) },
	{ "force", 0, NULL,
	  "build it even when it is there and the same", AT(force) },
	{ "config", 0, "FILE",
	  "the operator's configuration (default: /etc/vial/vial.yaml)", AT(config) },
};
/* clang-format on */

/* ---- signals ------------------------------------------------------------------------------- */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
static volatile sig_atomic_t caught;

static void on_signal(int signo)
{
	caught = signo;
	(void)signal(signo, SIG_DFL); /* whoever insists is obeyed; the next build cleans up */
}

static void catch_signals(void)
{
	struct sigaction end = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction old;

	for (size_t i = 0; i < ARRAY_LEN(ending); i++)
		if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup */
			(void)sigaction(ending[i], &end, NULL);
}

/* ---- the wait ------------------------------------------------------------------------------ */

struct view {
	const char *name;
	bool is_tty, is_utf8, is_current;
	char step[16];
	unsigned done;
	time_t shown;            /* when the last plain line was printed */
	char *lines[LAST_LINES]; /* what the installer said last; owned */
	size_t line_count;
};

static void view_done(struct view *v)
{
	for (size_t i = 0; i < LAST_LINES; i++)
		free(v->lines[i]);
}

static void keep_line(struct view *v, const char *text)
{
	char **slot = &v->lines[v->line_count++ % LAST_LINES];

	free(*slot);
	*slot = strdup(text);
}

static size_t columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static void clear_bar(const struct view *v)
{
	if (v->is_tty)
		(void)printf("\r\x1b[K");
}

/* One line that is written again and again: "python-data  install  [####----]  3/71  numpy". */
static void draw_bar(const struct view *v, const struct vial_build_progress *now)
{
	auto_buf struct buf line = BUF_INIT(1024);
	const char *full = v->is_utf8 ? "━" : "#", *empty = v->is_utf8 ? "─" : "-";
	unsigned filled = now->total ? now->done * BAR_WIDTH / now->total : 0;

	buf_printf(&line, "%s  %-8s  ", v->name, now->step);
	for (unsigned i = 0; now->total && i < BAR_WIDTH; i++)
		buf_add_str(&line, i < filled ? full : empty);
	if (now->total)
		buf_printf(&line, "  %u/%u", now->done, now->total);
	else if (now->done)
		buf_printf(&line, "%u", now->done);

	size_t used = term_width(buf_str(&line)), room = columns() - 1;

	if (used + 2 + strlen(now->text) < room) {
		buf_add_str(&line, "  ");
		term_escape(&line, now->text, strlen(now->text));
	}
	(void)printf("\r%s\x1b[K", buf_str(&line));
	(void)fflush(stdout);
}

/* In a pipe: a line when a step begins, when it ends, and once a second. */
static void print_line(struct view *v, const struct vial_build_progress *now)
{
	bool is_new = strcmp(v->step, now->step) != 0;
	time_t seconds = time(NULL);
	auto_buf struct buf text = BUF_INIT(1024);

	if (!is_new && (v->done == now->done || (v->shown == seconds && now->done != now->total)))
		return;
	v->shown = seconds;
	v->done = now->done;
	(void)snprintf(v->step, sizeof(v->step), "%s", now->step);
	term_escape(&text, now->text, strlen(now->text));
	(void)printf("%s: %s", v->name, now->step);
	if (now->total)
		(void)printf(" %u/%u", now->done, now->total);
	else if (now->done && !text.len)
		(void)printf(" %u", now->done);
	(void)printf("%s%s\n", text.len ? " " : "", buf_str(&text));
	(void)fflush(stdout);
}

static int on_progress(const struct vial_build_progress *now, void *arg)
{
	struct view *v = arg;

	if (strcmp(now->step, "log") == 0)
		keep_line(v, now->text);
	else if (strcmp(now->step, "current") == 0)
		v->is_current = true;
	else if (v->is_tty)
		draw_bar(v, now);
	else
		print_line(v, now);
	return caught != 0;
}

static void print_last_lines(const struct view *v)
{
	size_t first = v->line_count > LAST_LINES ? v->line_count - LAST_LINES : 0;

	for (size_t i = first; i < v->line_count; i++) {
		auto_buf struct buf text = BUF_INIT(4096);
		const char *line = v->lines[i % LAST_LINES];

		if (line)
			term_escape(&text, line, strlen(line));
		(void)fprintf(stderr, "  %s\n", buf_str(&text));
	}
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int parse(struct options *o, const char *operands[2], int argc, char **argv, struct err *e)
{
	int first = options_parse(o, argc, argv, e);

	if (first < 0)
		return -1;
	if (argc - first > 2 && !o->wants_help)
		return err_set(e, ERR_INVALID, "unexpected argument '%.64s'", argv[first + 2]);
	for (int i = first; i < argc && i < first + 2; i++)
		operands[i - first] = argv[i];
	return options_apply(o, e);
}

/* "numpy,pandas"; the text is ours to cut. */
static int split(const char *words[WORDS_MAX + 1], char *text, struct err *e)
{
	size_t count = 0;
	char *rest = NULL;

	for (char *word = strtok_r(text, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
		if (count == WORDS_MAX)
			return err_set(e, ERR_LIMIT, "--preload: more than %d modules", WORDS_MAX);
		words[count++] = word;
	}
	words[count] = NULL;
	return 0;
}

static int build(const struct request *req, const char *const operands[2], struct view *v,
		 struct err *e)
{
	AUTO(vial_closep) struct vial *host = NULL;
	auto_free char *text = req->preload ? strdup(req->preload) : NULL;
	const char *preload[WORDS_MAX + 1] = { NULL };
	struct vial_error error;
	struct vial_build want = {
		.image = req->image,
		.tag = req->tag,
		.source = operands[1],
		.language = req->language,
		.preload = text ? preload : NULL,
		.find_links = req->links,
		.no_index = req->no_index,
		.locked = req->locked,
		.from_source = req->source,
		.again = req->force,
		.progress = on_progress,
		.arg = v,
	};

	if (text && split(preload, text, e) < 0)
		return -1;
	if (cli_open(&host, req->config, e) < 0)
		return -1;
	catch_signals();
	return vial_environment_build(host, operands[0], &want, &error) < 0
		       ? cli_from_vial(e, &error)
		       : 0;
}

int env_build_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[OPTION...] NAME [REQUIREMENTS]", NULL };
	struct request req = { 0 };
	struct options o = {
		"env build",
		synopsis,
		"Build an environment from packages: REQUIREMENTS is a file as pip "
		"reads it, or a directory with requirements.txt and environment.yaml; "
		"without it, NAME is one that vial ships, or one to build again. The "
		"exact versions are kept in a lock beside it. pip runs in a sandbox, "
		"and installs wheels only. With --image it is a container image instead: "
		"what docker save writes, an OCI layout as a directory or a tar, or a "
		"name, for skopeo to ask a registry for.",
		rows,
		ARRAY_LEN(rows),
		&req,
		0
	};
	const char *operands[2] = { NULL, NULL };
	AUTO(view_done) struct view v = { .is_utf8 = term_is_utf8() };
	struct err e;
	int parsed = parse(&o, operands, argc, argv, &e);

	v.is_tty = isatty(STDOUT_FILENO);
	options_done(&o);
	if (parsed == 0 && o.wants_help) {
		options_usage(stdout, &o);
		return cli_flush(0);
	}
	if (parsed == 0 && req.tag && !req.image)
		parsed = err_set(&e, ERR_INVALID, "--tag is for an image: name that with --image");
	if (parsed == 0 && !operands[0])
		parsed = err_set(&e, ERR_INVALID, "which environment? name it");
	v.name = operands[0];
	if (parsed == 0)
		parsed = build(&req, operands, &v, &e);
	clear_bar(&v);
	if (caught && parsed < 0)
		return cli_flush(EXIT_BY_SIGNAL + caught);
	if (parsed < 0) {
		(void)fflush(stdout);
		print_last_lines(&v);
		return cli_report(o.verb, &e);
	}
	(void)printf("%s: %s\n", v.name, v.is_current ? "nothing to do" : "built");
	return cli_flush(0);
}
