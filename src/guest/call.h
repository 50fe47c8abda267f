#pragma once
/*
 * call - how a boot script asks us for something.
 *
 * Interpreters differ in everything but this: all of them can ask for a priority.
 * So getpriority() is ours too, and some of the numbers it is asked for are none.  No
 * extension module, no foreign function interface, nothing that a program could import.
 */

/* The first argument; the second is 0.  The scripts have these numbers as well. */
enum call {
	/* In the zygote, before its fork(): what has to be done once for all its guests. */
	CALL_PREPARE = 0x76696100,
	/* In a guest, when it has warmed itself: wait for the code.  Answers with call_told. */
	CALL_WAIT = 0x76696101,
};

enum call_told {
	CALL_HAS_WORDS = 1, /* GO_WORDS_FD is there */
	CALL_RENAMED = 2,   /* the interpreter will run the program under its own name */
};

/* What preload.c has for them; C only. */
void vial_receive(void);       /* wait for the code, write the files, leave the words */
void vial_end(int status);     /* say that this guest is done, and be gone */
