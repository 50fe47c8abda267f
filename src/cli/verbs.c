#include "cli/verbs.h"

#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/term.h"

#include <string.h>

static const char *verb_name(const void *list, size_t i)
{
	return ((const struct verb *)list)[i].name;
}

const struct verb *verbs_find(const struct verb *rows, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

const char *verbs_nearest(const struct verb *rows, size_t count, const char *name)
{
	return nearest_name(name, verb_name, rows, count);
}

void verbs_print(FILE *f, const struct verb *rows, size_t count)
{
	const char *bold = term_style(f, TERM_BOLD), *plain = term_style(f, TERM_PLAIN);
	int names = 0, arguments = 0;

	for (size_t i = 0; i < count; i++) {
		int name = (int)strlen(rows[i].name), argument = (int)strlen(rows[i].arguments);
		names = name > names ? name : names;
		arguments = argument > arguments ? argument : arguments;
	}
	for (size_t i = 0; i < count; i++)
		(void)fprintf(f, "  %s%-*s%s %-*s  %s\n", bold, names, rows[i].name, plain,
			      arguments, rows[i].arguments, rows[i].help);
}

static void usage(FILE *f, const char *above, const char *about, const struct verb *rows,
		  size_t count)
{
	(void)fprintf(f, "usage: vial %s VERB [OPTION...]\n\n", above);
	term_wrap(f, about, 0, 80);
	(void)fputc('\n', f);
	verbs_print(f, rows, count);
	(void)fprintf(f, "\n  vial %s VERB --help    the options of a verb\n", above);
}

int verbs_main(const char *above, const char *about, const struct verb *rows, size_t count,
	       int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	struct err e;

	if (!name) {
		usage(stderr, above, about, rows, count);
		return EXIT_USAGE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		usage(stdout, above, about, rows, count);
		return cli_flush(0);
	}
	const struct verb *verb = verbs_find(rows, count, name);
	if (verb)
		return verb->main(argc - 1, argv + 1);

	const char *guess = verbs_nearest(rows, count, name);

	if (guess)
		(void)err_set(&e, ERR_INVALID, "unknown verb '%s %.64s'; did you mean %s %s?",
			      above, name, above, guess);
	else
		(void)err_set(&e, ERR_INVALID, "unknown verb '%s %.64s'", above, name);
	return cli_report(above, &e);
}
