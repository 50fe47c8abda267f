/*
 * cpp - C++; see c.c for how it fails.
 */
#include "runtime/read.h"

/* clang-format off */
const struct runtime runtime_cpp = {
	.name = "cpp",
	.title = "C++",
	.aliases = (const char *const[]){ "c++", "cxx", NULL },
	.extension = ".cpp",
	.more_extensions = (const char *const[]){ ".cc", ".cxx", ".c++", NULL },
	.source_name = "main.cpp",
	.tools = (const char *const[]){ "/usr/bin/g++", "/usr/bin/c++", "/usr/bin/clang++", NULL },
	.compile = (const char *const[]){
		"%i", "-O2", "-pipe", "-std=gnu++17", "-o", "%o", "%f", "-lm", "-pthread", NULL,
	},
	.run = (const char *const[]){ "%o", NULL },
	.version = (const char *const[]){ "%i", "--version", NULL },
	.limit_data = true,
	.compile_memory_bytes = 1u << 30,
	.package = "g++",
	.read_error = read_native_error,
};
