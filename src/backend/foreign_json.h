#pragma once
/*
 * foreign_json - what a worker or an engine answers, read with a bound on its depth.
 */
#include <json-c/json.h>
#include <stddef.h>

void foreign_json_put(struct json_object **o);
#define auto_foreign_json __attribute__((cleanup(foreign_json_put)))

/* NULL: it is not whole, nested too deeply, or no object where one is wanted. */
struct json_object *foreign_json(const char *text, size_t len, int depth_max);
struct json_object *foreign_json_object(const char *text, size_t len, int depth_max);
