#include "guest/python.h"

#include "base/own.h"
#include "guest/call.h"
#include "guest/patch.h"
#include "guest/python_impl.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct python py;

static const struct {
	const char *name;
	void *at;
} symbols[] = {
#define FUNCTION(type, name, arguments) { #name, &py.name },
#define OBJECT(name)                    { #name, &py.name },
#include "guest/python_api.def"
#undef FUNCTION
#undef OBJECT
};

static bool find_api(void)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *found = dlsym(RTLD_DEFAULT, symbols[i].name);
		if (!found)
			return false;
		memcpy(symbols[i].at, &found, sizeof(found));
	}
	return true;
}

/* ---- the end ------------------------------------------------------------------------------- */

static struct {
	PyObject *run_exitfuncs, *thread_count, *collect;
	struct loaded {
		PyObject *module, *names; /* borrowed: both live as long as the process */
		intptr_t size;            /* of names, when it was loaded */
	} * loaded;                       /* in the order of sys.modules */
	size_t count;
	unsigned long long libraries; /* shared objects ever loaded */
} zygote;

static PyObject *call(PyObject *callable)
{
	PyObject *answer = callable ? py.PyObject_CallFunction(callable, NULL) : NULL;

	if (!answer)
		py.PyErr_Clear();
	return answer;
}

static PyObject *module_named(const char *name)
{
	PyObject *key = py.PyUnicode_FromString(name);
	PyObject *module = key ? py.PyImport_GetModule(key) : NULL;

	if (key)
		py.Py_DecRef(key);
	if (!module)
		py.PyErr_Clear();
	return module;
}

static PyObject *attribute(PyObject *o, const char *name)
{
	PyObject *value = o ? py.PyObject_GetAttrString(o, name) : NULL;

	if (!value)
		py.PyErr_Clear();
	return value;
}

static bool is_true(PyObject *o)
{
	bool yes = o && py.PyObject_IsTrue(o) == 1;

	if (o)
		py.Py_DecRef(o);
	return yes;
}

/* A tracer or profiler would see us. */
static bool is_watched(void)
{
	return is_true(call(py.PySys_GetObject("gettrace"))) ||
	       is_true(call(py.PySys_GetObject("getprofile")));
}

static bool is_alone(void)
{
	PyObject *others = call(zygote.thread_count);

	return others && !is_true(others);
}

static void end_threads(void)
{
	PyObject *threading = module_named("threading"),
		 *method = attribute(threading, "_shutdown");
	PyObject *done = method ? py.PyObject_CallFunction(method, NULL) : NULL;

	if (done)
		py.Py_DecRef(done);
	else if (method)
		py.PyErr_WriteUnraisable(threading);
	if (method)
		py.Py_DecRef(method);
	if (threading)
		py.Py_DecRef(threading);
}

/* As it does itself: a failure is told for stdout only. */
static int flush(const char *name, bool tell)
{
	PyObject *file = py.PySys_GetObject(name), *method = NULL;

	if (!file || file == py._Py_NoneStruct || is_true(attribute(file, "closed")))
		return 0;
	method = py.PyObject_GetAttrString(file, "flush");
	PyObject *done = method ? py.PyObject_CallFunction(method, NULL) : NULL;
	if (method)
		py.Py_DecRef(method);
	if (done)
		py.Py_DecRef(done);
	else if (tell)
		py.PyErr_WriteUnraisable(file);
	else
		py.PyErr_Clear();
	return done ? 0 : -1;
}

static int flush_both(void)
{
	int out = flush("stdout", true), err = flush("stderr", false);

	return out < 0 || err < 0 ? -1 : 0;
}

/* ---- modules ------------------------------------------------------------------------------- */

/* A module of the program's, or whatever it put in sys.modules. */
struct owned {
	PyObject *key, *module;
	PyObject *names;  /* the module's, or NULL; they may die with it */
	PyObject *canary; /* a weak reference to something among them, which tells */
};

static void collect(void)
{
	PyObject *found = call(zygote.collect);

	if (found)
		py.Py_DecRef(found);
}

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
	if (keys)
		py.Py_DecRef(keys);
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

static void set_canary(struct owned *o)
{
	if (py.PyObject_IsInstance(o->module, py.PyModule_Type) != 1)
		return;
	PyObject *canary = py.PySet_New(NULL), *key = py.PyUnicode_FromString("");

	o->names = py.PyModule_GetDict(o->module);
	if (canary && key && py.PyDict_SetItem(o->names, key, canary) == 0)
		o->canary = py.PyWeakref_NewRef(canary, NULL);
	if (canary)
		py.Py_DecRef(canary);
	if (key)
		py.Py_DecRef(key);
}

static int by_module(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct loaded *)a)->module;
	uintptr_t y = (uintptr_t)((const struct loaded *)b)->module;

	return (x > y) - (x < y);
}

static bool is_loaded(PyObject *module)
{
	const struct loaded key = { .module = module };

	return bsearch(&key, zygote.loaded, zygote.count, sizeof(key), by_module);
}

/* What is in sys.modules and was not there before the program: the others are not even touched,
 * and that is what all this is about. */
static size_t find_owned(struct owned *ret, size_t max, PyObject *modules)
{
	PyObject *key, *value;
	size_t count = 0;
	intptr_t at = 0;

	while (count < max && py.PyDict_Next(modules, &at, &key, &value)) {
		if (value == py._Py_NoneStruct || is_loaded(value))
			continue;
		py.Py_IncRef(key);
		py.Py_IncRef(value);
		ret[count++] = (struct owned){ .key = key, .module = value };
	}
	return count;
}

static bool end_modules(void)
{
	PyObject *modules = py.PyImport_GetModuleDict();
	size_t max = (size_t)py.PyDict_Size(modules);
	auto_free struct owned *owned = calloc(max + 1, sizeof(*owned));
	size_t count = owned ? find_owned(owned, max, modules) : 0;

	if (!owned)
		return false;
	for (size_t i = 0; i < count; i++) {
		set_canary(&owned[i]);
		py.Py_DecRef(owned[i].module);
		(void)py.PyDict_SetItem(modules, owned[i].key, py._Py_NoneStruct);
	}
	collect();
	while (count-- > 0) {
		PyObject *canary = call(owned[count].canary);
		if (canary && canary != py._Py_NoneStruct) {
			py.Py_IncRef(owned[count].names); /* some live by what is among them */
			clear_names(owned[count].names);
			py.Py_DecRef(owned[count].names);
		}
		if (canary)
			py.Py_DecRef(canary);
	}
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

/* ---- all of it ----------------------------------------------------------------------------- */

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
static bool end_quickly(int *ret)
{
	if (is_watched() || !is_alone())
		return false;
	end_threads();
	PyObject *done = call(zygote.run_exitfuncs); /* each failure was told when it happened */
	if (done)
		py.Py_DecRef(done);
	if (!is_alone())
		return false;
	int before = flush_both();
	collect();
	end_sys();
	if (!end_modules())
		return false;
	*ret = flush_both() < 0 || before < 0 ? -1 : 0;
	if (libraries() == zygote.libraries)
		(void)on_exit(leave, NULL);
	return true;
}

static struct patch at_finalize, at_exit;

static int finalize_instead(void)
{
	int status;

	if (end_quickly(&status))
		return status;
	patch_out(&at_finalize);
	patch_out(&at_exit);
	return py.Py_FinalizeEx();
}

static void exit_instead(int status)
{
	int failed;

	if (!end_quickly(&failed)) {
		patch_out(&at_finalize);
		patch_out(&at_exit);
		py.Py_Exit(status);
	}
	exit(failed < 0 ? 120 : status);
}

/* ---- the zygote ---------------------------------------------------------------------------- */

static PyObject *attribute_of(const char *name, const char *function)
{
	PyObject *module = module_named(name), *found = attribute(module, function);

	if (module)
		py.Py_DecRef(module);
	return found;
}

static bool note_modules(void)
{
	PyObject *modules = py.PyImport_GetModuleDict(), *key, *value;
	intptr_t at = 0;

	zygote.loaded = calloc((size_t)py.PyDict_Size(modules) + 1, sizeof(*zygote.loaded));
	if (!zygote.loaded)
		return false;
	while (py.PyDict_Next(modules, &at, &key, &value)) {
		const char *name = py.PyUnicode_AsUTF8(key);
		if (!name || strcmp(name, "__main__") == 0 || strcmp(name, "sitecustomize") == 0 ||
		    py.PyObject_IsInstance(value, py.PyModule_Type) != 1)
			continue;
		PyObject *names = py.PyModule_GetDict(value);
		py.Py_IncRef(value);
		zygote.loaded[zygote.count++] =
			(struct loaded){ value, names, py.PyDict_Size(names) };
	}
	qsort(zygote.loaded, zygote.count, sizeof(*zygote.loaded), by_module);
	return true;
}

void python_prepare(void)
{
	if (!find_api())
		return;
	zygote.run_exitfuncs = attribute_of("atexit", "_run_exitfuncs");
	zygote.thread_count = attribute_of("_thread", "_count");
	zygote.collect = attribute_of("gc", "collect");
	zygote.libraries = libraries();
	python_find_name();
	if (!zygote.run_exitfuncs || !zygote.thread_count || !zygote.collect || !note_modules() ||
	    patch_in(&at_finalize, (void *)py.Py_FinalizeEx, (void (*)(void))finalize_instead) < 0)
		return;
	if (patch_in(&at_exit, (void *)py.Py_Exit, (void (*)(void))exit_instead) < 0)
		patch_out(&at_finalize);
}
