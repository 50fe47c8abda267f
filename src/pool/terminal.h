#pragma once
/*
 * terminal - a shell in a live sandbox, at a pseudo terminal of its own.
 *
 * What is at the other end is the guest's business.  Its master is not: nobody inside has it
 * (keeper/shell.h), and reading or writing it never waits.
 */
#include "pool/live.h"

struct terminal;

struct terminal_options {
	uint16_t columns, rows;
	const char *const *env; /* "NAME=VALUE", NULL-terminated; copied */
};

/* Each may close the terminal. */
struct terminal_events {
	void (*on_open)(void *arg);
	void (*on_output)(const char *bytes, size_t len, void *arg);
	void (*on_room)(void *arg); /* after terminal_write() had not taken all */
	/* Once, last.  `e` is why there never was one, or is none any more; else NULL. */
	void (*on_end)(int exit_code, int signal, const struct err *e, void *arg);
	void *arg;
};

/* The sandbox must be ready.  Never calls back before it returns. */
int live_terminal(struct terminal **ret, struct live *live, const struct terminal_options *options,
		  const struct terminal_events *events, struct err *e) MUST_USE;

size_t terminal_write(struct terminal *t, const char *bytes, size_t len); /* how much was taken */
void terminal_resize(struct terminal *t, uint16_t columns, uint16_t rows);
void terminal_pause(struct terminal *t, bool is_paused); /* no on_output meanwhile */
void terminal_close(struct terminal *t);                 /* the shell is killed, and nobody told */
