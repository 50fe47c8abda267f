#pragma once
/*
 * foreign - variables of the environment that other systems' users set.
 */
struct foreign {
	const char *variable;
	const char *key; /* "server.max", "limits.memory"; NULL: without effect on one host */
	const char *if_true; /* what the key is set to when it says yes; NULL: its own value */
};

extern const struct foreign foreign_variables[]; /* ends with a NULL name */
const char *foreign_value(const char *variable); /* NULL: not set, or empty */
