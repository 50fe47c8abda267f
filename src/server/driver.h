#pragma once
/*
 * driver - what a session's interpreter says (docs/SESSION-PROTOCOL.md), read and not believed.
 *
 * Whoever wrote the code that runs there may have written the message.  It has the shape that
 * is promised here, or is none at all; whether it makes sense now is for the caller to judge.
 */
#include "server/slice.h"

enum driver_op { DRIVER_READY, DRIVER_CALL, DRIVER_DISPLAY, DRIVER_RESULT };

enum { DRIVER_DEPTH_MAX = 128 }; /* of what is passed on: programs that read it have bounds, too */

struct driver_message {
	enum driver_op op;
	uint64_t id;          /* all but READY: of the step */
	uint64_t call;        /* CALL: its number, */
	struct slice name;    /*       a string, */
	struct slice args;    /*       an array, */
	struct slice kwargs;  /*       an object */
	struct slice data;    /* DISPLAY: an object */
	struct slice value;   /* RESULT: an object, or none, */
	struct slice exception; /*       an object, or none, */
	int exit_code;        /*         -1: the program did not ask to exit, */
	int status;           /*         -1: the language has none of steps */
	int signal;           /*         0: none ended the step, */
	struct slice rewind;  /*         why the step cannot be taken back, a string, or none */
	struct slice checkpoints; /*     an array, or none */
	bool rolled_back;     /*         the step is as if it had never been, */
	bool files_kept;      /*         but for its files */
	bool interrupted, cut;
	bool is_deep; /* deeper than DRIVER_DEPTH_MAX */
};

/* The line ends in a NUL.  What is read points into it. */
int driver_read(struct driver_message *ret, char *line, size_t len, struct err *e) MUST_USE;
