#pragma once
/*
 * uri - what addresses and headers of requests for files say.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Undo "%41" in place.  False: an escape is none, or stands for NUL; it is left as it is. */
bool uri_unescape(char *text);

enum range_kind {
	RANGE_NONE, /* all of it: none is asked for, or one that we do not know or serve */
	RANGE_PART,
	RANGE_OUTSIDE, /* of what there is: 416 */
};

/* The header Range, for something of `size` bytes: one range.  Several are answered with all. */
enum range_kind uri_range(uint64_t *ret_first, uint64_t *ret_count, const char *header,
			  uint64_t size);

/* Whether a list as in If-None-Match has this entity tag; weak ones are as good. */
bool uri_has_tag(const char *list, const char *tag);
