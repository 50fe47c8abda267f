#pragma once
/*
 * odd - names of programs that their interpreter would take for something else.
 *
 * A file named "-c", "@x" or "inspect" is still a file, and is given as ./NAME.  Ordinary names
 * are given as they are: programs print them.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static inline bool is_odd(const char *source)
{
	unsigned char c = (unsigned char)source[0];

	return !(isalnum(c) || (c && strchr("_./", c)) || c >= 0x80) || !strchr(source, '.');
}
