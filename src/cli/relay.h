#pragma once
/*
 * relay - a guest's output on its way to our stdout and stderr.
 *
 * vial_run() must never wait for whoever reads our output: while it waits it
 * watches no clock.  So its callback writes what can be written at once; the rest
 * is queued, and a thread writes it.  The queue is bounded by the run's output
 * limit, which cuts before us.
 */
#include "base/err.h"
#include "base/own.h"

#include <vial/vial.h>

struct relay;

/* When a write fails, `cancel` is called, in any thread: nobody is listening any more. */
int relay_create(struct relay **ret, void (*cancel)(void), struct err *e) MUST_USE;

/* For vial_job_on_output(); `relay` is a struct relay. */
void relay_output(enum vial_stream stream, const char *bytes, size_t len, void *relay);

/*
 * Write what is queued, for at most `wait_ms` when that is not negative.
 * Returns 0 or the errno of the write that failed.
 */
int relay_drain(struct relay *r, int wait_ms);
