/*
 * python_objects - an interpreter's functions, and small questions to it.
 */
#include "guest/python_impl.h"

#include <dlfcn.h>
#include <stddef.h>
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

bool python_find(void)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *found = dlsym(RTLD_DEFAULT, symbols[i].name);
		if (!found)
			return false;
		memcpy(symbols[i].at, &found, sizeof(found));
	}
	return true;
}

PyObject *python_call(PyObject *callable)
{
	PyObject *answer = callable ? py.PyObject_CallFunction(callable, NULL) : NULL;

	if (!answer)
		py.PyErr_Clear();
	return answer;
}

void python_release(PyObject *o)
{
	if (o)
		py.Py_DecRef(o);
}

PyObject *python_module(const char *name)
{
	PyObject *key = py.PyUnicode_FromString(name);
	PyObject *module = key ? py.PyImport_GetModule(key) : NULL;

	python_release(key);
	if (!module)
		py.PyErr_Clear();
	return module;
}

PyObject *python_named(PyObject *o, PyObject *name)
{
	PyObject *value = py.PyObject_GetAttr(o, name);

	if (!value)
		py.PyErr_Clear();
	return value;
}

PyObject *python_attribute(PyObject *o, const char *name)
{
	PyObject *value = o ? py.PyObject_GetAttrString(o, name) : NULL;

	if (!value)
		py.PyErr_Clear();
	return value;
}

PyObject *python_attribute_of(const char *name, const char *function)
{
	PyObject *module = python_module(name), *found = python_attribute(module, function);

	python_release(module);
	return found;
}

long python_number(PyObject *o)
{
	long value = o ? py.PyLong_AsLong(o) : -1;

	python_release(o);
	return value;
}
