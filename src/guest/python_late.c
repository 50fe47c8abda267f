/*
 * python_late - a guest that waits for its program where Python is about to open it.
 *
 * A boot script can wait as soon as it is in its sandbox.  But then all that Python does between
 * the two is done while somebody waits for an answer.  The last thing it asks of anybody before it
 * opens its program is how long the name of that is, and it asks libc: so wcslen() is ours, too.
 * Nothing of the boot script is on the stack there, and the name may still be another.
 *
 * Whether this Python does ask is found out in the rehearsal.  Where it does not, its boot script
 * waits.
 */
#include "guest/call.h"
#include "guest/python.h"
#include "guest/python_impl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const wchar_t *awaited; /* that name, once we wait for somebody to ask */

static struct {
	PyObject *take_words;  /* the boot script's; takes what it was told */
	PyObject *home;        /* where programs are */
	PyObject *names, *key; /* logging's time of loading */
	bool is_float;
} zygote;

static void find_logging(void)
{
	PyObject *module = python_module("logging");
	PyObject *value = python_attribute(module, "_startTime");

	if (value) {
		zygote.names = py.PyModule_GetDict(module);
		zygote.key = py.PyUnicode_FromString("_startTime");
		zygote.is_float = py.PyObject_IsInstance(value, py.PyFloat_Type) == 1;
	}
	python_release(value);
	/* The module itself is kept. */
}

/* Whether the first of its paths is that of its program. */
static bool has_first_path(void)
{
	PyObject *flags = py.PySys_GetObject("flags");

	return python_number(python_attribute(flags, "isolated")) == 0 &&
	       python_number(python_attribute(flags, "safe_path")) <= 0; /* -1: before 3.11 */
}

void python_find_late(void)
{
	char cwd[PATH_MAX];

	find_logging();
	py.PyErr_Clear();
	zygote.take_words = has_first_path() ? py.PySys_GetObject("_vial_take_words") : NULL;
	if (!zygote.take_words)
		return;
	py.Py_IncRef(zygote.take_words);
	zygote.home = getcwd(cwd, sizeof(cwd)) ? py.PyUnicode_DecodeFSDefault(cwd) : NULL;
	py.PyErr_Clear();
}

bool python_wait_late(void)
{
	awaited = zygote.take_words && zygote.home ? python_name() : NULL;
	return awaited;
}

/* In a fresh Python it was loaded by the program. */
void python_set_loading_time(void)
{
	struct timespec now;

	if (!zygote.names || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return;
	PyObject *value =
		zygote.is_float
			? py.PyFloat_FromDouble((double)now.tv_sec + (double)now.tv_nsec / 1e9)
			: py.PyLong_FromLongLong(now.tv_sec * 1000000000ll + now.tv_nsec);
	if (value)
		(void)py.PyDict_SetItem(zygote.names, zygote.key, value);
	python_release(value);
	py.PyErr_Clear();
}

static PyObject *find_home(const char *program)
{
	char real[PATH_MAX];

	if (!realpath(program, real))
		return NULL;
	char *slash = strrchr(real, '/');
	slash[slash == real] = '\0';
	return py.PyUnicode_DecodeFSDefault(real);
}

/* Python looked for the directory of its program before there was one, or of another. */
static void set_first_path(bool is_renamed)
{
	PyObject *path = py.PySys_GetObject("path"),
		 *first = path ? py.PyList_GetItem(path, 0) : NULL;
	const char *text = first ? py.PyUnicode_AsUTF8(first) : NULL;

	if (text && (is_renamed || !*text)) {
		PyObject *home = is_renamed ? find_home(python_program()) : zygote.home;
		if (!is_renamed)
			py.Py_IncRef(home);
		if (home)
			(void)py.PyList_SetItem(path, 0, home); /* takes it */
	}
	py.PyErr_Clear();
}

static void take_program(void)
{
	awaited = NULL;
	vial_waited_late();
	int told = call_take_code();
	if (!(told & CALL_PLAIN) || (told & CALL_SESSION))
		start_afresh();
	set_first_path(told & CALL_RENAMED);
	if (told & CALL_HAS_WORDS)
		python_release(py.PyObject_CallFunction(zygote.take_words, "i", told));
}

__attribute__((visibility("default"))) size_t wcslen(const wchar_t *text)
{
	static size_t (*real)(const wchar_t *);

	if (text == awaited)
		take_program();
	if (!real)
		real = (size_t(*)(const wchar_t *))dlsym(RTLD_NEXT, "wcslen");
	return real(text);
}
