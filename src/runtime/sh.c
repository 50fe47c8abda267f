/*
 * sh - whatever the host calls sh: dash, bash, busybox.
 */
#include "runtime/read.h"

/* clang-format off */
const struct runtime runtime_sh = {
	.name = "sh",
	.title = "POSIX shell",
	.aliases = (const char *const[]){ "dash", NULL },
	.extension = ".sh",
	.source_name = "main.sh",
	.tools = (const char *const[]){ "/usr/bin/sh", "/bin/sh", NULL },
	.run = (const char *const[]){ "%i", "%s", NULL },
	/* dash knows no --version: say at least which shell it is. */
	.version = (const char *const[]){
		"%i", "-c", "basename \"$(readlink /proc/$$/exe)\"", NULL,
	},
	.limit_data = true,
	.package = "dash",
	.read_error = read_shell_error,
};
