/*
 * python_random - numpy's generator, anew in each guest.
 *
 * numpy.random.seed() would do, and touches two hundred pages of memory for it.  What it amounts to
 * is 624 random words in the generator's state, which numpy shows to C by a capsule.
 */
#include "guest/python.h"
#include "guest/python_impl.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

struct twister { /* numpy's mt19937_state; its layout is held against what Python says of it */
	uint32_t key[624];
	int pos; /* of the next word in key; behind the last: all are made anew first */
};

static struct twister *generator; /* NULL: there is none, or not as we know it */

/* What follows is nothing if anything before was. */
static PyObject *take(PyObject *o, PyObject *(*get)(PyObject *o, const char *name),
		      const char *name)
{
	PyObject *found = o ? get(o, name) : NULL;

	if (!found)
		py.PyErr_Clear();
	if (o)
		py.Py_DecRef(o);
	return found;
}

static PyObject *bit_generator(void)
{
	PyObject *name = py.PyUnicode_FromString("numpy.random.mtrand");
	PyObject *module = name ? py.PyImport_GetModule(name) : NULL;

	if (name)
		py.Py_DecRef(name);
	py.PyErr_Clear();
	return take(take(module, py.PyObject_GetAttrString, "_rand"), py.PyObject_GetAttrString,
		    "_bit_generator");
}

static struct twister *find_state(void)
{
	PyObject *capsule = take(bit_generator(), py.PyObject_GetAttrString, "capsule");
	struct twister **shown = capsule ? py.PyCapsule_GetPointer(capsule, "BitGenerator") : NULL;

	py.PyErr_Clear();
	if (capsule)
		py.Py_DecRef(capsule); /* the generator has it, and lives as long as we do */
	return shown ? *shown : NULL;
}

static long say_pos(void)
{
	PyObject *state = take(bit_generator(), py.PyObject_GetAttrString, "state");
	PyObject *pos = take(take(state, py.PyMapping_GetItemString, "state"),
			     py.PyMapping_GetItemString, "pos");
	long value = pos ? py.PyLong_AsLong(pos) : -1;

	py.PyErr_Clear();
	if (pos)
		py.Py_DecRef(pos);
	return value;
}

bool python_find_generator(void)
{
	struct twister *found = find_state();

	if (found && say_pos() == found->pos)
		generator = found;
	return generator;
}

void python_renew(void)
{
	if (!generator)
		return;
	for (size_t have = 0; have < sizeof(generator->key);) {
		ssize_t n =
			getrandom((char *)generator->key + have, sizeof(generator->key) - have, 0);
		if (n < 0 && errno != EINTR)
			_exit(125); /* never with what others have */
		have += n > 0 ? (size_t)n : 0;
	}
	generator->key[0] |= 0x80000000u; /* all zeros would stay so */
	generator->pos = (int)(sizeof(generator->key) / sizeof(generator->key[0]));
}
