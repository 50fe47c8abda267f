#pragma once
/*
 * rewind - a session whose steps can be taken back (docs/SESSION-PROTOCOL.md).
 *
 * A shared object for interpreters that can be forked, loaded by their drivers, who call what is
 * below.  Before a step the session makes a copy of itself (copies.h), which knows the files as
 * they were (snapshot.h).  When a step ends badly, or is to be undone, a copy goes on as the
 * session, puts the files back, and says so.  A checkpoint is a copy with a name, that stays.
 *
 * Nothing here needs the interpreter to be in order: what a program does to the driver's own
 * functions does not reach this.
 */

/* Returns in what is the session's process from now on; the caller is its supervisor.  An
 * interpreter that cannot be copied stays what it is, and says so after each step. */
void vial_rewind_start(int fd, unsigned undo_steps, unsigned long long files_max);

/* In a branch, first of all: the same once more.  What could be gone back to ended with it. */
void vial_rewind_restart(void);

/* Before a branch is made of it: until the next message is there, in Ruby as a copy has to be. */
void vial_rewind_await(int fd);

/* Before a step.  `why`: the driver knows why it cannot be copied, or NULL.  0: it may run; 1: it
 * has run, and is no more; this is another process now. */
int vial_rewind_begin(unsigned long long step, const char *why);
int vial_rewind_is_covered(void);   /* whether the step can be taken back */
const char *vial_rewind_done(void); /* after a step, before its result: NULL, or why it cannot */
void vial_rewind_trim(void);        /* after its result: what is too old is let go of */

/* undo, restore, checkpoint, checkpoints or forget; answered over the channel.  1: this is another
 * process now. */
int vial_rewind_order(const char *op, unsigned long long id, const char *name, unsigned count,
		      const char *why);
