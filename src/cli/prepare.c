/*
 * prepare - vial prepare: fill the read-only build caches ahead of the first run.
 */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>

struct request {
	const char *config;
};

static const struct option rows[] = {
	{ "config", 0, "FILE", "the operator's configuration (default: /etc/vial/vial.yaml)",
	  offsetof(struct request, config), NULL },
};

/* Progress is for whoever waits, so each line leaves at once, pipe or not. */
static void show_line(const char *line, void *arg)
{
	auto_buf struct buf text = BUF_INIT(4096);

	term_escape(&text, line, strlen(line));
	(void)printf("%s: %s\n", (const char *)arg, buf_str(&text));
	(void)fflush(stdout);
}

static int prepare(struct vial *host, const char *language, struct err *e)
{
	struct vial_error error;
	char name[64];

	(void)snprintf(name, sizeof(name), "%s", language);
	if (vial_prepare(host, language, show_line, name, &error) < 0)
		return cli_from_vial(e, &error);
	return 0;
}

/* Without names: every compiled language that is installed. */
static int prepare_all(struct vial *host, struct err *e)
{
	const struct vial_language *langs;
	struct vial_error error;
	size_t count;

	if (vial_languages(&langs, &count, host, &error) < 0)
		return cli_from_vial(e, &error);
	for (size_t i = 0; i < count; i++)
		if (langs[i].compiled && langs[i].tool && prepare(host, langs[i].name, e) < 0)
			return -1;
	return 0;
}

int prepare_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[LANG...]", NULL };
	struct request req = { 0 };
	struct options o = { "prepare",
			     synopsis,
			     "Fill the build cache of the languages named, or of all compiled "
			     "languages that are installed, so that a first run is as fast as "
			     "later ones.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	AUTO(vial_closep) struct vial *host = NULL;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (cli_open(&host, req.config, &e) < 0)
		return cli_report(o.verb, &e);
	if (first == argc && prepare_all(host, &e) < 0)
		return cli_report(o.verb, &e);
	for (int i = first; i < argc; i++)
		if (prepare(host, argv[i], &e) < 0)
			return cli_report(o.verb, &e);
	return cli_flush(0);
}
