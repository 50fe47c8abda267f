#pragma once
/*
 * call - how a boot script asks us for something.
 *
 * Interpreters differ in everything but this: all of them can ask for a priority.
 * So getpriority() is ours too, and some of the numbers it is asked for are none.  No
 * extension module, no foreign function interface, nothing that a program could import.
 */
#include <stdbool.h>

/*
 * Either argument, the other one being 0: Node has a say in the second only.  No process has
 * such a number.  The scripts have these, too.
 */
enum call {
	/* In the zygote, before its fork(): what has to be done once for all its guests.  Answers
	 * with call_prepared. */
	CALL_PREPARE = 0x76696100,
	/* In the zygote, as its fork(): but the interpreter does not know that it was one, and runs
	 * none of the functions that others asked it to run then. */
	CALL_SERVE = 0x76696104,
	/* In the zygote, before it loads anything. */
	CALL_LOADING = 0x76696103,
	/* In a guest, when it has warmed itself: wait for the code.  Answers with call_told. */
	CALL_WAIT = 0x76696101,
	/* In a guest that cannot run this program as a fresh interpreter would: become one. */
	CALL_AFRESH = 0x76696102,
	/* In a rehearsal of a session, as its last step: that is over. */
	CALL_REHEARSED = 0x76696105,
};

enum call_prepared {
	CALL_RENEWS = 1, /* numpy's generator is drawn anew by us, in each guest */
};

enum call_told {
	CALL_HAS_WORDS = 1,  /* GO_WORDS_FD is there */
	CALL_RENAMED = 2,    /* Python: it will run the program under its own name */
	CALL_PLAIN = 4,      /* Python: as far as the files go, it need not start afresh */
	CALL_SESSION = 8,    /* it is to serve a session, at GO_FD, and has no program */
	CALL_REHEARSAL = 16, /* ... which is only rehearsed, and has no server */
	CALL_LATER = 32,     /* Python: nothing yet, it waits where it opens its program */
};

/* What preload.c has for them; C only. */
void vial_serve(void);         /* returns in guests only */
void vial_receive(void);       /* wait for the code, write the files, leave the words */
void vial_end(int status);     /* say that this guest is done, and be gone */
bool vial_has_session(void);   /* what was received, or will be, is none to run, but to serve */
unsigned vial_file_count(void); /* how many files were */
bool vial_is_rehearsal(void);
bool vial_may_wait_late(void); /* in a rehearsal, or when one has shown that it comes to that */
void vial_waited_late(void);   /* it has */
void vial_rehearsed(void);     /* in a rehearsal, does not return */
const char *vial_session(void); /* the session driver as a program, or NULL */

/* call.c: wait for the code; answers as CALL_WAIT. */
int call_take_code(void);

/* afresh.c: the command that this process was started with, with the program's own name, arguments
 * and variables from the words; or with the session driver.  Does not return. */
_Noreturn void start_afresh(void);
