#pragma once
/*
 * notice - the file of tokens has changed: the server is handed it, opened.
 *
 * The server cannot open files, and reads this one; the keeper can, and does not look into it.
 * The directory is watched, for the file is replaced and need not be there at first.
 */
#include "keeper/keeper.h"
#include "keeper/tokens.h"

struct notice {
	struct keeper *keeper;
	struct watch watch;
	char path[TOKENS_PATH_MAX];
};

/* From now on no change is missed; a directory that is missing is made. */
int notice_open(struct notice *n, struct keeper *keeper, const char *path, struct err *e) MUST_USE;
int notice_start(struct notice *n, struct err *e) MUST_USE; /* when there is a server */
void notice_close(struct notice *n);
