#pragma once
/*
 * member - members of a JSON object that came from elsewhere, by name and type.
 *
 * What is missing, of another type or out of range is ERR_HOST: the other side is
 * not what it claims to be.  Everything found is borrowed from the object.  The
 * library's own header is not included here: it has names that base/json.h has.
 */
#include "base/err.h"
#include "base/own.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/* One object and nothing else. */
int member_parse(struct json_object **ret, const char *text, size_t len, struct err *e) MUST_USE;
struct json_object *member_keep(struct json_object *object); /* one more that will free it */
void member_free(struct json_object *object);                /* NULL is fine */
DEFINE_CLEANUP(struct json_object *, member_free)
#define auto_object AUTO(member_freep)

bool member_is_null(const struct json_object *object, const char *name); /* or is not there */

int member_object(const struct json_object **ret, const struct json_object *object,
		  const char *name, struct err *e) MUST_USE;
int member_array(const struct json_object **ret, size_t *ret_count,
		 const struct json_object *object, const char *name, struct err *e) MUST_USE;
const struct json_object *member_item(const struct json_object *array, size_t i);
int member_text(const char **ret, const struct json_object *object, const char *name,
		struct err *e) MUST_USE; /* without NULs */
int member_bytes(const char **ret, size_t *ret_len, const struct json_object *object,
		 const char *name, struct err *e) MUST_USE;
/* Whatever it is; NULL: the object itself. */
const char *member_json(const struct json_object *object, const char *name);
int member_number(uint64_t *ret, const struct json_object *object, const char *name, uint64_t max,
		  struct err *e) MUST_USE;
int member_double(double *ret, const struct json_object *object, const char *name,
		  struct err *e) MUST_USE; /* not negative */
int member_bool(bool *ret, const struct json_object *object, const char *name,
		struct err *e) MUST_USE;
