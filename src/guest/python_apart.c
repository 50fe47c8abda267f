/*
 * python_apart - the end of a warm CPython: the modules of its program are taken apart, no more.
 */
#include "base/own.h"
#include "guest/call.h"
#include "guest/python_impl.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	PyObject *run_exitfuncs, *collect;
	struct loaded {
		PyObject *module, *names; /* borrowed: both live as long as the process */
		intptr_t size;            /* of names, when it was loaded */
	} * loaded;                       /* in the order of sys.modules */
	size_t count;
	unsigned long long libraries; /* shared objects ever loaded */
} zygote;

static void end_threads(void)
{
	PyObject *threading = python_module("threading");
	PyObject *method = python_attribute(threading, "_shutdown");
	PyObject *done = method ? py.PyObject_CallFunction(method, NULL) : NULL;

	if (method && !done)
		py.PyErr_WriteUnraisable(threading);
	python_release(done);
	python_release(method);
	python_release(threading);
}

/* A module of the program's, or whatever it put in sys.modules. */
struct owned {
	PyObject *key, *value;
	PyObject *module; /* weak references: to the value, if it is a module, */
	PyObject *canary; /* and to something among its names, which may outlive it */
};

/* As _PyModule_Clear(): what is private first. */
static void clear_names(PyObject *names)
{
	PyObject *keys = py.PyDict_Keys(names);
	intptr_t count = keys ? py.PyList_Size(keys) : 0;

	for (int pass = 0; pass < 2; pass++) {
		for (intptr_t i = 0; i < count; i++) {
			PyObject *key = py.PyList_GetItem(keys, i);
			const char *name = py.PyUnicode_AsUTF8(key);
			bool is_private = name && name[0] == '_' && name[1] != '_';

			if (name && strcmp(name, "__builtins__") != 0 && is_private == (pass == 0))
				(void)py.PyDict_SetItem(names, key, py._Py_NoneStruct);
			py.PyErr_Clear();
		}
	}
	python_release(keys);
}

/* What the program added to a module that was there before it. */
static void clear_added(const struct loaded *l)
{
	PyObject *key, *value, *added[64];
	intptr_t at = 0, seen = 0, size = py.PyDict_Size(l->names);
	size_t count = 0;

	if (size <= l->size)
		return;
	while (count < sizeof(added) / sizeof(added[0]) &&
	       py.PyDict_Next(l->names, &at, &key, &value))
		if (seen++ >= l->size && value != py._Py_NoneStruct)
			added[count++] = key;
	for (size_t i = 0; i < count; i++)
		(void)py.PyDict_SetItem(l->names, added[i], py._Py_NoneStruct);
}

static void let_go(struct owned *o, PyObject *modules)
{
	if (py.PyObject_IsInstance(o->value, py.PyModule_Type) == 1) {
		PyObject *canary = py.PySet_New(NULL), *key = py.PyUnicode_FromString("");
		PyObject *names = py.PyModule_GetDict(o->value);

		if (canary && key && py.PyDict_SetItem(names, key, canary) == 0)
			o->canary = py.PyWeakref_NewRef(canary, NULL);
		o->module = py.PyWeakref_NewRef(o->value, NULL);
		python_release(canary);
		python_release(key);
	}
	py.Py_DecRef(o->value);
	(void)py.PyDict_SetItem(modules, o->key, py._Py_NoneStruct);
}

/* What a weak reference refers to, or NULL.  Release it. */
static PyObject *alive(PyObject *reference)
{
	PyObject *o = python_call(reference);

	if (o != py._Py_NoneStruct)
		return o;
	python_release(o);
	return NULL;
}

static bool is_alive(PyObject *reference)
{
	PyObject *o = alive(reference);

	python_release(o);
	return o;
}

static bool any_left(const struct owned *owned, size_t count)
{
	while (count-- > 0)
		if (is_alive(owned[count].canary))
			return true;
	return false;
}

/* The classes it has seen are kept by caches of a module that stays: typing.List[X] keeps X.
 * Since 3.12, which knows typing._caches, they outlive that module too, and nobody ends them. */
static void empty_caches(void)
{
	PyObject *kept = python_attribute_of("typing", "_caches");
	PyObject *functions = kept ? NULL : python_attribute_of("typing", "_cleanups");
	intptr_t count = functions ? py.PyList_Size(functions) : 0;

	for (intptr_t i = 0; i < count; i++)
		python_release(python_call(py.PyList_GetItem(functions, i)));
	python_release(functions);
	python_release(kept);
	py.PyErr_Clear();
}

/* Where it is expected to be, which is after the last one; or anywhere. */
static bool is_loaded(PyObject *module, size_t *next)
{
	for (size_t i = *next; i < zygote.count + *next; i++) {
		size_t place = i < zygote.count ? i : i - zygote.count;
		if (zygote.loaded[place].module == module) {
			*next = place + 1;
			return true;
		}
	}
	return false;
}

/* What is in sys.modules and was not there before the program: the others are not even touched,
 * and that is what all this is about. */
static size_t find_owned(struct owned *ret, size_t max, PyObject *modules)
{
	PyObject *key, *value;
	size_t count = 0, next = 0;
	intptr_t at = 0;

	while (count < max && py.PyDict_Next(modules, &at, &key, &value)) {
		if (value == py._Py_NoneStruct || is_loaded(value, &next))
			continue;
		py.Py_IncRef(key);
		py.Py_IncRef(value);
		ret[count++] = (struct owned){ .key = key, .value = value };
	}
	return count;
}

/* As Py_FinalizeEx() does it.  False: something of the program's is still there, held by what we
 * do not take apart. */
static bool end_modules(void)
{
	/* With its modules, what Python itself imports to show a source line is gone. */
	static const char *const helpers[] = { "io", "traceback", NULL };
	PyObject *modules = py.PyImport_GetModuleDict();
	size_t max = (size_t)py.PyDict_Size(modules);
	auto_free struct owned *owned = calloc(max + 1, sizeof(*owned));
	size_t count = owned ? find_owned(owned, max, modules) : 0;

	if (!owned)
		return false;
	for (size_t i = 0; helpers[i]; i++) {
		PyObject *key = py.PyUnicode_FromString(helpers[i]);
		(void)py.PyDict_SetItem(modules, key, py._Py_NoneStruct);
		python_release(key);
	}
	for (size_t i = 0; i < count; i++)
		let_go(&owned[i], modules);
	python_release(python_call(zygote.collect));
	for (size_t i = count; i-- > 0;) {
		PyObject *module = alive(owned[i].module);
		if (module)
			clear_names(py.PyModule_GetDict(module));
		python_release(module);
	}
	if (any_left(owned, count)) {
		empty_caches();
		python_release(python_call(zygote.collect));
		if (any_left(owned, count))
			return false;
	}
	if (!python_left_something())
		return true;
	for (size_t i = 0; i < zygote.count; i++)
		clear_added(&zygote.loaded[i]);
	return true;
}

static void end_sys(void)
{
	static const char *const special[] = {
		"path",       "argv",
		"ps1",        "ps2",
		"last_exc",   "last_type",
		"last_value", "last_traceback",
		"path_hooks", "path_importer_cache",
		"meta_path",  "__interactivehook__",
		NULL,
	};
	static const char *const files[] = { "stdin", "stdout", "stderr", NULL };

	for (size_t i = 0; special[i]; i++)
		(void)py.PySys_SetObject(special[i], py._Py_NoneStruct);
	for (size_t i = 0; files[i]; i++) {
		char original[16];
		(void)snprintf(original, sizeof(original), "__%s__", files[i]);
		PyObject *file = py.PySys_GetObject(original);
		(void)py.PySys_SetObject(files[i], file ? file : py._Py_NoneStruct);
	}
}

static int count_libraries(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(unsigned long long *)ret = info->dlpi_adds;
	return 1;
}

static unsigned long long libraries(void)
{
	unsigned long long count = 0;

	(void)dl_iterate_phdr(count_libraries, &count);
	return count;
}

/* First of what exit() calls: libraries that only the zygote loaded have nothing to say. */
static void leave(int status, void *unused)
{
	(void)unused;
	vial_end(status);
}

/* False: only Python's own end will do; what was done so far does no harm to it. */
static bool end_quickly(void)
{
	if (python_is_watched() || !python_is_alone())
		return false;
	bool awaited = python_is_awaited();
	if (awaited)
		end_threads(); /* there are none, but its functions could tell */
	if (awaited || python_has_exits())
		python_release(python_call(
			zygote.run_exitfuncs)); /* each failure was told when it happened */
	if (!python_is_alone() || !python_flush())
		return false;
	if (!python_leaves_nothing()) {
		python_release(python_call(zygote.collect));
		end_sys();
		if (!end_modules() || !python_flush())
			return false;
	}
	if (libraries() == zygote.libraries)
		(void)on_exit(leave, NULL);
	return true;
}

/* ---- the zygote ---------------------------------------------------------------------------- */

static bool note_modules(void)
{
	PyObject *modules = py.PyImport_GetModuleDict(), *key, *value;
	intptr_t at = 0;

	zygote.loaded = calloc((size_t)py.PyDict_Size(modules) + 1, sizeof(*zygote.loaded));
	if (!zygote.loaded)
		return false;
	PyObject *main = python_module("__main__"); /* multiprocessing has another name for it */
	python_release(main);
	while (py.PyDict_Next(modules, &at, &key, &value)) {
		if (value == main || py.PyObject_IsInstance(value, py.PyModule_Type) != 1)
			continue;
		PyObject *names = py.PyModule_GetDict(value);
		py.Py_IncRef(value);
		zygote.loaded[zygote.count++] =
			(struct loaded){ value, names, py.PyDict_Size(names) };
	}
	return true;
}

void python_prepare_apart(void)
{
	zygote.run_exitfuncs = python_attribute_of("atexit", "_run_exitfuncs");
	zygote.collect = python_attribute_of("gc", "collect");
	zygote.libraries = libraries();
	if (zygote.run_exitfuncs && zygote.collect && note_modules())
		python_prepare_end(end_quickly);
}
