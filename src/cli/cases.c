#include "cli/cases.h"

#include "base/own.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CASES_MAX = 100000 };

static const char suffix[] = ".in";

void cases_done(struct cases *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->items[i].name);
		free(c->items[i].input);
		free(c->items[i].output);
	}
	free(c->items);
	*c = (struct cases)CASES_INIT;
}

static bool is_input(const char *name)
{
	size_t len = strlen(name), n = sizeof(suffix) - 1;

	return len > n && strcmp(name + len - n, suffix) == 0;
}

/* The file with what is expected, beside the input; NULL with *e. */
static char *find_output(const char *input, struct err *e)
{
	static const char *const endings[] = { ".out", ".ans" };
	int len = (int)(strlen(input) - (sizeof(suffix) - 1));
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		auto_free char *path = NULL;
		if (asprintf(&path, "%.*s%s", len, input, endings[i]) < 0) {
			path = NULL;
			(void)err_sys(e, "cases");
			return NULL;
		}
		if (stat(path, &st) == 0)
			return take_ptr(&path);
	}
	(void)err_set(e, ERR_INVALID, "%.80s has no %.*s.out or .ans beside it", input,
		      len < 80 ? len : 80, input);
	return NULL;
}

static int add_one(struct cases *c, const char *input, struct err *e)
{
	struct test_case *items = NULL, made = { NULL, NULL, NULL };
	const char *slash = strrchr(input, '/'), *base = slash ? slash + 1 : input;

	if (c->count == CASES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d cases", CASES_MAX);
	made.output = find_output(input, e);
	if (!made.output)
		return -1;
	made.input = strdup(input);
	made.name = strndup(base, strlen(base) - (sizeof(suffix) - 1));
	items = reallocarray(c->items, c->count + 1, sizeof(*items));
	if (items)
		c->items = items;
	if (!items || !made.input || !made.name) {
		free(made.name);
		free(made.input);
		free(made.output);
		return err_sys(e, "cases");
	}
	c->items[c->count++] = made;
	return 0;
}

static int wanted(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && is_input(entry->d_name);
}

static int add_dir(struct cases *c, const char *path, struct err *e)
{
	struct dirent **entries;
	int count = scandir(path, &entries, wanted, versionsort), failed = 0;

	if (count < 0)
		return err_sys(e, "%.150s", path);
	for (int i = 0; i < count; i++) {
		auto_free char *input = NULL;
		if (failed == 0 && asprintf(&input, "%s/%s", path, entries[i]->d_name) < 0) {
			input = NULL;
			failed = err_sys(e, "cases");
		}
		if (failed == 0 && input)
			failed = add_one(c, input, e);
		free(entries[i]);
	}
	free(entries);
	if (count == 0)
		return err_set(e, ERR_INVALID, "%.150s: there is no file NAME.in", path);
	return failed;
}

int cases_add(struct cases *c, const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		(void)err_sys(e, "%.150s", path);
		e->code = ERR_INVALID; /* the user named it */
		return -1;
	}
	if (S_ISDIR(st.st_mode))
		return add_dir(c, path, e);
	if (is_input(path))
		return add_one(c, path, e);
	return err_set(e, ERR_INVALID, "%.150s: name a directory, or files NAME.in", path);
}
