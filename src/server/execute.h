#pragma once
/*
 * execute - POST /execute: what its two ways have in common, a fresh sandbox and a session.
 */
#include "server/snippet.h"

struct step;
struct step_end;

/* The answer to a run, in that route's words. */
unsigned execute_render(struct buf *text, const struct snippet *s,
			const struct vial_result *result, const struct buf *note);

/* Run it in the session of its name, or answer why not.  It is not the caller's any more. */
void execute_in_session(struct snippet *s);

/* Its step there is over: answer; or run it once more, read otherwise. */
void execute_step_ended(struct step *step, const struct step_end *end);
