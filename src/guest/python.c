#include "guest/python.h"

#include "guest/call.h"
#include "guest/python_impl.h"

void python_loading(void)
{
	if (!python_find())
		return;
	python_set_arenas();
	python_note_first();
}

int python_prepare(void)
{
	if (!python_find())
		return 0;
	python_end_loading();
	int prepared = python_find_generator() ? CALL_RENEWS : 0;
	if (!python_note_loaded())
		return prepared;
	python_find_name();
	python_find_late();
	python_prepare_apart();
	return prepared;
}
