#include "cli/options.h"

#include "base/nearest.h"
#include "base/own.h"
#include "cli/term.h"

#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

static const struct option help_row = { "help", 'h', NULL, "show this text", 0, NULL };

void options_done(struct options *o)
{
	free(o->uses);
	o->uses = NULL;
	o->use_count = 0;
}

static const char *row_name(const void *list, size_t i)
{
	return ((const struct option *)list)[i].name;
}

static const struct option *find_long(const struct options *o, const char *name, size_t len)
{
	for (size_t i = 0; i < o->count; i++) {
		const char *have = o->rows[i].name;
		if (have && strlen(have) == len && memcmp(have, name, len) == 0)
			return &o->rows[i];
	}
	return len == 4 && memcmp(name, "help", 4) == 0 ? &help_row : NULL;
}

static const struct option *find_letter(const struct options *o, char letter)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->rows[i].name && o->rows[i].letter == letter)
			return &o->rows[i];
	return letter == help_row.letter ? &help_row : NULL;
}

static int take(struct options *o, const struct option *opt, const char *value, struct err *e)
{
	char *field = (char *)o->target + opt->at;

	if (opt == &help_row) {
		o->wants_help = true;
		return 0;
	}
	if (!opt->apply) {
		if (opt->arg)
			*(const char **)(void *)field = value;
		else
			*(bool *)(void *)field = true;
		return 0;
	}

	struct option_use *uses = reallocarray(o->uses, o->use_count + 1, sizeof(*uses));

	if (!uses)
		return err_sys(e, "--%s", opt->name);
	o->uses = uses;
	uses[o->use_count++] = (struct option_use){ opt, value };
	return 0;
}

static int unknown(const struct options *o, const char *name, size_t len, struct err *e)
{
	auto_free char *word = strndup(name, len);
	const char *guess = word ? nearest_name(word, row_name, o->rows, o->count) : NULL;

	if (guess)
		return err_set(e, ERR_INVALID, "unknown option --%.64s; did you mean --%s?", word,
			       guess);
	return err_set(e, ERR_INVALID, "unknown option --%.*s", len < 64 ? (int)len : 64, name);
}

/* One word that begins with "--"; returns how many words it took. */
static int parse_long(struct options *o, char **words, struct err *e)
{
	const char *name = words[0] + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct option *opt = find_long(o, name, len);

	if (!opt)
		return unknown(o, name, len, e);
	if (!opt->arg && equals)
		return err_set(e, ERR_INVALID, "--%s takes no value", opt->name);
	if (!opt->arg || equals)
		return take(o, opt, equals ? equals + 1 : NULL, e) < 0 ? -1 : 1;
	if (!words[1])
		return err_set(e, ERR_INVALID, "--%s needs a value: --%s %s", opt->name, opt->name,
			       opt->arg);
	return take(o, opt, words[1], e) < 0 ? -1 : 2;
}

/* One word that begins with a single '-': switches, the last of which may have a value. */
static int parse_letters(struct options *o, char **words, struct err *e)
{
	for (const char *c = words[0] + 1; *c; c++) {
		const struct option *opt = find_letter(o, *c);

		if (!opt)
			return err_set(e, ERR_INVALID, "unknown option -%c", *c);
		if (!opt->arg) {
			if (take(o, opt, NULL, e) < 0)
				return -1;
			continue;
		}
		if (c[1])
			return take(o, opt, c + 1, e) < 0 ? -1 : 1;
		if (!words[1])
			return err_set(e, ERR_INVALID, "-%c needs a value: -%c %s", *c, *c,
				       opt->arg);
		return take(o, opt, words[1], e) < 0 ? -1 : 2;
	}
	return 1;
}

static bool is_operand(const char *word)
{
	return word[0] != '-' || !word[1];
}

static void move_up(char **words, int to, int from)
{
	char *word = words[from];

	memmove(words + to + 1, words + to, (size_t)(from - to) * sizeof(*words));
	words[to] = word;
}

int options_parse(struct options *o, int argc, char **argv, struct err *e)
{
	int first = 1, at = 1; /* argv[0] is the verb; between them are operands */
	bool is_end = false;

	while (at < argc && !is_end && !o->wants_help) {
		if (is_operand(argv[at])) {
			is_end = o->is_before_program;
			at++;
			continue;
		}
		is_end = strcmp(argv[at], "--") == 0;
		int taken = is_end               ? 1
			    : argv[at][1] == '-' ? parse_long(o, argv + at, e)
						 : parse_letters(o, argv + at, e);
		if (taken < 0)
			return -1;
		while (taken-- > 0)
			move_up(argv, first++, at++);
	}
	return first;
}

int options_apply(struct options *o, struct err *e)
{
	for (size_t i = 0; i < o->use_count; i++) {
		const struct option *opt = o->uses[i].opt;

		if (opt->apply(o->target, opt, o->uses[i].value, e) < 0)
			return err_context(e, "--%s", opt->name);
	}
	return 0;
}

int options_no_operands(int first, int argc, char **argv, struct err *e)
{
	if (first < argc)
		return err_set(e, ERR_INVALID, "unexpected argument '%.64s'", argv[first]);
	return 0;
}

static void usage_row(FILE *f, const struct option *opt)
{
	if (!opt->name) {
		(void)fprintf(f, "\n%s%s:%s\n", term_style(f, TERM_BOLD), opt->help,
			      term_style(f, TERM_PLAIN));
		return;
	}

	int width = opt->letter ? fprintf(f, "  -%c, --%s", opt->letter, opt->name)
				: fprintf(f, "      --%s", opt->name);
	if (opt->arg)
		width += fprintf(f, " %s", opt->arg);
	if (width > HELP_COLUMN - 2)
		(void)fprintf(f, "\n%*s", HELP_COLUMN, "");
	else
		(void)fprintf(f, "%*s", HELP_COLUMN - width, "");
	term_wrap(f, opt->help, HELP_COLUMN, HELP_WIDTH);
}

void options_usage(FILE *f, const struct options *o)
{
	for (size_t i = 0; o->synopsis[i]; i++)
		(void)fprintf(f, "%s vial %s %s\n", i == 0 ? "usage:" : "      ", o->verb,
			      o->synopsis[i]);
	(void)fputc('\n', f);
	term_wrap(f, o->about, 0, HELP_WIDTH);

	if (o->count == 0 || o->rows[0].name)
		(void)fprintf(f, "\n%sOptions:%s\n", term_style(f, TERM_BOLD),
			      term_style(f, TERM_PLAIN));
	for (size_t i = 0; i < o->count; i++)
		usage_row(f, &o->rows[i]);
	(void)fputs(o->count && !o->rows[0].name ? "\n" : "", f);
	usage_row(f, &help_row);
}
