#pragma once
/*
 * foreign_json - what a worker or an engine answers, read with bounds on its depth and on how many
 * values it has.
 */
#include <json-c/json.h>
#include <stddef.h>

void foreign_json_put(struct json_object **o);
#define auto_foreign_json __attribute__((cleanup(foreign_json_put)))

enum { FOREIGN_VALUES_MAX = 1 << 20 };

/* How many at most: each takes a hundred bytes of memory, be its text as short as "[]". */
size_t foreign_json_values(const char *text, size_t len);

/* NULL: it is not whole, not UTF-8, has more than FOREIGN_VALUES_MAX values, is nested too
 * deeply, or is no object where one is wanted. */
struct json_object *foreign_json(const char *text, size_t len, int depth_max);
struct json_object *foreign_json_object(const char *text, size_t len, int depth_max);
