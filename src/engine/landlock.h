#pragma once
/*
 * landlock - file access by path, a second line behind the mount tree.
 *
 * Everything below / may be read and executed; only the listed directories may
 * be written, and nowhere is a device node made.  Signals and abstract sockets do
 * not leave the domain (ABI 6); TCP is left alone.  A rule is made on an open
 * directory, so the child applies it after the root has been entered.
 *
 * A "no files" profile (reads refused with EACCES outside the runtime's own
 * directories) is the same call with other rows.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum landlock_access { LANDLOCK_READ = 1u << 0, LANDLOCK_WRITE = 1u << 1, LANDLOCK_EXEC = 1u << 2 };

struct landlock_rule {
	const char *path; /* as seen inside; a missing path is skipped */
	unsigned access;
};

/*
 * ABI 1 (Linux 5.13 to 5.18) lets no file change its directory: rename() and
 * link() answer EXDEV, which ordinary programs do not expect below /tmp.
 */
enum { LANDLOCK_ABI_USABLE = 2 };

/* The kernel's ABI version; 0 when Landlock is absent or off. */
int landlock_abi(void);

/* From which on signals can be kept in. */
enum { LANDLOCK_ABI_SCOPED = 6 };

/* Child side: signals leave neither this process nor those it will fork.  Files are as before. */
int landlock_scope_signals(struct err *e) MUST_USE;

/* Child side, in the sandbox's root, after no_new_privs.  No malloc. */
int landlock_restrict(const struct landlock_rule *rules, size_t count, int abi,
		      struct err *e) MUST_USE;
