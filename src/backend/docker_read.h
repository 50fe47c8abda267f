#pragma once
/*
 * docker_read - what Docker's engine answers, bounded and checked.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DOCKER_NAME_MAX = 128, DOCKER_ID_MAX = 65 };

struct docker_container {
	char name[DOCKER_NAME_MAX];
	char id[DOCKER_ID_MAX]; /* the engine's own, which no other ever has */
	char address[64]; /* "": it has none */
	char state[32];
	uint64_t created; /* Unix time */
	bool is_running, is_coming;
};

/* Each of a list, in its order; -1: what came is none, and some may have been told. */
int docker_read_list(const char *text, size_t len,
		     void (*tell)(const struct docker_container *c, void *arg), void *arg,
		     struct err *e) MUST_USE;
/* Of one that was made; -1: that is not said. */
int docker_read_id(char *ret, size_t size, const char *text, size_t len) MUST_USE;
/* What an error says, for people. */
void docker_read_message(char *ret, size_t size, const char *text, size_t len);
