/*
 * python_plain - whether a program would run in a fresh interpreter as it will in this one.
 *
 * In C because it stands between a program's arrival and its first line, every time.
 */
#include "base/own.h"
#include "guest/python.h"
#include "guest/python_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct names { /* sorted */
	char **items;
	size_t count;
};

static struct names before, loaded; /* modules of any Python, and those that only ours has */
static char home[PATH_MAX];         /* where it was when it looked for its program */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has(const struct names *names, const char *name)
{
	return bsearch(&name, names->items, names->count, sizeof(name), by_name);
}

/* The modules that are there and not in `but`, without what follows a dot. */
static bool note(struct names *ret, const struct names *but)
{
	PyObject *modules = py.PyImport_GetModuleDict(), *key, *value;
	intptr_t at = 0;

	ret->items = calloc((size_t)py.PyDict_Size(modules) + 1, sizeof(*ret->items));
	while (ret->items && py.PyDict_Next(modules, &at, &key, &value)) {
		const char *name = py.PyUnicode_AsUTF8(key);
		char *top = name ? strndup(name, strcspn(name, ".")) : NULL;

		if (top && (!but || !has(but, top)))
			ret->items[ret->count++] = top;
		else
			free(top);
	}
	py.PyErr_Clear();
	if (ret->items)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_name);
	return ret->items;
}

void python_note_first(void)
{
	(void)note(&before, NULL);
}

bool python_note_loaded(void)
{
	return getcwd(home, sizeof(home)) && before.items && note(&loaded, &before);
}

/* It would be imported in the place of a module that we have. */
static bool hides_one(char *name)
{
	name[strcspn(name, ".")] = '\0';
	return has(&loaded, name);
}

static bool hides_none(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool hides = !dir;

	while (!hides && (entry = readdir(dir)))
		hides = hides_one(entry->d_name);
	if (dir)
		(void)closedir(dir);
	return !hides;
}

/* An archive of modules may be a program, too.  Its directory is at its end, before a comment. */
static bool is_archive(int fd, const struct stat *st)
{
	enum { END = 22, COMMENT_MAX = 65535 };
	static char tail[END + COMMENT_MAX];
	size_t want = (size_t)st->st_size < sizeof(tail) ? (size_t)st->st_size : sizeof(tail);
	ssize_t got = pread(fd, tail, want, st->st_size - (off_t)want);

	return got < 0 || memmem(tail, (size_t)got, "PK\5\6", 4);
}

bool python_hides_none(bool is_empty)
{
	return loaded.items && (is_empty || hides_none("."));
}

bool python_is_plain(const char *program, bool is_alone)
{
	auto_close int fd = open(program, O_RDONLY | O_CLOEXEC);
	char cwd[PATH_MAX], dir[PATH_MAX] = ".";
	const char *slash = strrchr(program, '/');
	struct stat st;

	if (!loaded.items || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    is_archive(fd, &st) || !getcwd(cwd, sizeof(cwd)) || strcmp(cwd, home) != 0)
		return false;
	if (is_alone)
		return true;
	if (slash && (size_t)(slash - program) < sizeof(dir))
		*(char *)mempcpy(dir, program, (size_t)(slash - program)) = '\0';
	return hides_none(dir);
}
