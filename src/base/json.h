#pragma once
/*
 * json - a writer that cannot produce invalid JSON.
 *
 * Commas, nesting and escapes are its business; strings from guests are
 * repaired to UTF-8 on the way.  A NULL key writes an array element.
 *
 *   struct json j = { .out = &buf };
 *   json_open(&j, NULL, '{');
 *   json_string(&j, "outcome", "exited");
 *   json_close(&j);
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define JSON_DEPTH 32

struct json {
	struct buf *out;
	int depth;
	char close[JSON_DEPTH];
	bool has_items[JSON_DEPTH];
};

void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j);
void json_string(struct json *j, const char *key, const char *text);  /* NULL writes null */
void json_bytes(struct json *j, const char *key, const char *bytes, size_t len);
void json_int(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value); /* NaN and infinities write null */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
/* A value that is JSON already, and was checked to be. */
void json_raw(struct json *j, const char *key, const char *bytes, size_t len);
