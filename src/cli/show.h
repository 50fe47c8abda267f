#pragma once
/*
 * show - what a session's step was worth, for a person: value, pictures, exception, and how the
 * session came out of it.
 */
#include "cli/live.h"

struct show {
	bool is_quiet;  /* no values: what a program prints is all that is wanted */
	unsigned saved; /* pictures so far */
};

/* For live_step.on_display; `arg` is a struct show.  Pictures are saved where we are, and named. */
void show_display(const struct json_object *data, void *arg);

/* Returns the exit code that it deserves. */
int show_answer(struct show *show, const struct live_answer *a);
