/*
 * python_name - the program under its own name.
 */
#include "base/odd.h"
#include "guest/call.h"
#include "guest/go.h"
#include "guest/python.h"
#include "guest/python_impl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where Python keeps what it was told to run: in the structure behind _Py_GetConfig(), whose
 * layout is its own business.  They are found by what they point to. */
static struct {
	wchar_t *program; /* run_filename, with room for any; NULL: not found */
	bool is_absolute; /* ... which it is since 3.9 */
	wchar_t **argv;   /* argv.items[0] */
	char *usual;      /* the name it was started with */
	char *other;      /* the name it was given; NULL: none */
} named;

enum { CONFIG_WORDS = 64 }; /* larger than it has ever been; it is part of something larger still */

static bool is_readable(uintptr_t at)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char in_core[2];

	/* Strings and lists are allocated: aligned, and never in the first page. */
	return at >= page && at % sizeof(void *) == 0 &&
	       mincore((void *)(at & ~(page - 1)), page, in_core) == 0;
}

static bool is_text(uintptr_t at, const wchar_t *text)
{
	return text && is_readable(at) && wcscmp((const wchar_t *)at, text) == 0;
}

/* The same name, where a longer one has room: as Python would have allocated it. */
static wchar_t *make_room(wchar_t **place)
{
	char longest[PATH_MAX];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	wchar_t *room = py.Py_DecodeLocale(longest, NULL);
	if (room)
		*place = wcscpy(room, *place);
	return room;
}

void python_find_name(void)
{
	uintptr_t *(*config)(void) = (uintptr_t * (*)(void)) dlsym(RTLD_DEFAULT, "_Py_GetConfig");
	PyObject *argv = py.PySys_GetObject("argv"),
		 *first = argv ? py.PyList_GetItem(argv, 0) : NULL;
	const char *name = first ? py.PyUnicode_AsUTF8(first) : NULL;
	char absolute[PATH_MAX], cwd[PATH_MAX];

	py.PyErr_Clear();
	if (!name || !getcwd(cwd, sizeof(cwd)) ||
	    snprintf(absolute, sizeof(absolute), "%s/%s", cwd, name) >= (int)sizeof(absolute))
		return;
	named.usual = strdup(name);
	wchar_t *short_name = py.Py_DecodeLocale(name, NULL);
	wchar_t *long_name = py.Py_DecodeLocale(absolute, NULL);
	uintptr_t *words = config ? config() : NULL;
	for (size_t i = 0; words && i + 1 < CONFIG_WORDS; i++) {
		if (is_text(words[i], long_name) || is_text(words[i], short_name)) {
			named.is_absolute = is_text(words[i], long_name);
			named.program = make_room((wchar_t **)&words[i]);
		} else if (words[i] == 1 && is_readable(words[i + 1]) &&
			   is_text(*(uintptr_t *)words[i + 1], short_name)) {
			named.argv = (wchar_t **)words[i + 1];
		}
	}
	/* The names themselves are kept: a zygote does this once. */
}

static bool set_name(const char *name)
{
	char absolute[PATH_MAX], cwd[PATH_MAX];

	if (!named.program || !named.argv || !getcwd(cwd, sizeof(cwd)) ||
	    snprintf(absolute, sizeof(absolute), "%s/%s", cwd, name) >= (int)sizeof(absolute))
		return false;
	wchar_t *program = py.Py_DecodeLocale(named.is_absolute ? absolute : name, NULL);
	wchar_t *argv = py.Py_DecodeLocale(name, NULL);
	named.other = strdup(name);
	if (!program || !argv || !named.other)
		return false;
	(void)wcscpy(named.program, program); /* no character takes more than its bytes */
	*named.argv = argv;                   /* what was there is used by nobody, and lost */
	return true;
}

const wchar_t *python_name(void)
{
	return named.program;
}

const char *python_program(void)
{
	return named.other ? named.other : named.usual;
}

const char *python_usual_name(void)
{
	return named.usual;
}

int python_told(bool has_words, bool is_session, unsigned file_count)
{
	char words[PATH_MAX + 2];
	const char *program = named.usual;
	int told = 0;

	if (is_session)
		return python_hides_none(file_count == 0) ? CALL_PLAIN : 0;
	ssize_t n = has_words ? pread(GO_WORDS_FD, words, sizeof(words) - 1, 0) : 0;
	if (n > 1 && words[0] == GO_NAME) { /* it is the first, if there is one */
		words[n] = '\0';
		program = words + 1;
		/* An odd one is another in sys.argv: it is started afresh. */
		told |= !is_odd(program) && set_name(program) ? CALL_RENAMED : 0;
	}
	/* Another name may be that of one of its own modules; the usual one is not. */
	bool is_alone = file_count == 1 && program == named.usual;
	return program && python_is_plain(program, is_alone) ? told | CALL_PLAIN : told;
}
