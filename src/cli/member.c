#include "cli/member.h"

#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#include <json-c/json_util.h>
#include <limits.h>
#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 128 }; /* values of sessions are nested as deep as they like, up to a point */

int member_parse(struct json_object **ret, const char *text, size_t len, struct err *e)
{
	struct json_tokener *parser = json_tokener_new_ex(DEPTH_MAX);
	auto_object struct json_object *object = NULL;

	if (!parser)
		return err_sys(e, "JSON");
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--; /* strict is strict: nothing may follow */
	json_tokener_set_flags(parser, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	if (len <= INT_MAX)
		object = json_tokener_parse_ex(parser, text, (int)len);
	json_tokener_free(parser);
	if (!json_object_is_type(object, json_type_object))
		return err_set(e, ERR_HOST, "the daemon does not speak JSON");
	*ret = take_ptr(&object);
	return 0;
}

struct json_object *member_keep(struct json_object *object)
{
	return json_object_get(object);
}

void member_free(struct json_object *object)
{
	(void)json_object_put(object);
}

static int find(struct json_object **ret, const struct json_object *object, const char *name,
		enum json_type type, struct err *e)
{
	struct json_object *found = NULL;

	if (!json_object_object_get_ex(object, name, &found))
		return err_set(e, ERR_HOST, "the daemon's answer has no '%s'", name);
	if (!json_object_is_type(found, type))
		return err_set(e, ERR_HOST, "the daemon's answer has a '%s' that is no %s", name,
			       json_type_to_name(type));
	*ret = found;
	return 0;
}

bool member_is_null(const struct json_object *object, const char *name)
{
	struct json_object *found = NULL;

	return !json_object_object_get_ex(object, name, &found) || !found;
}

int member_object(const struct json_object **ret, const struct json_object *object,
		  const char *name, struct err *e)
{
	struct json_object *found = NULL;

	if (find(&found, object, name, json_type_object, e) < 0)
		return -1;
	*ret = found;
	return 0;
}

int member_array(const struct json_object **ret, size_t *ret_count,
		 const struct json_object *object, const char *name, struct err *e)
{
	struct json_object *found = NULL;

	if (find(&found, object, name, json_type_array, e) < 0)
		return -1;
	*ret = found;
	*ret_count = json_object_array_length(found);
	return 0;
}

const struct json_object *member_item(const struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

int member_bytes(const char **ret, size_t *ret_len, const struct json_object *object,
		 const char *name, struct err *e)
{
	struct json_object *found = NULL;

	if (find(&found, object, name, json_type_string, e) < 0)
		return -1;
	*ret = json_object_get_string(found);
	*ret_len = (size_t)json_object_get_string_len(found);
	return 0;
}

int member_text(const char **ret, const struct json_object *object, const char *name, struct err *e)
{
	const char *text;
	size_t len;

	if (member_bytes(&text, &len, object, name, e) < 0)
		return -1;
	if (strlen(text) != len)
		return err_set(e, ERR_HOST, "the daemon's answer has a NUL in '%s'", name);
	*ret = text;
	return 0;
}

const char *member_json(const struct json_object *object, const char *name)
{
	struct json_object *found = name ? NULL : (struct json_object *)object;

	if (name)
		(void)json_object_object_get_ex(object, name, &found);
	return json_object_to_json_string_ext(found, JSON_C_TO_STRING_SPACED |
							    JSON_C_TO_STRING_NOSLASHESCAPE);
}

int member_number(uint64_t *ret, const struct json_object *object, const char *name, uint64_t max,
		  struct err *e)
{
	struct json_object *found = NULL;

	if (find(&found, object, name, json_type_int, e) < 0)
		return -1;
	if (json_object_get_int64(found) < 0 || json_object_get_uint64(found) > max)
		return err_set(e, ERR_HOST, "the daemon's answer has a '%s' out of range", name);
	*ret = json_object_get_uint64(found);
	return 0;
}

int member_double(double *ret, const struct json_object *object, const char *name, struct err *e)
{
	struct json_object *found = NULL;
	double value;

	(void)json_object_object_get_ex(object, name, &found);
	if (!json_object_is_type(found, json_type_int) &&
	    find(&found, object, name, json_type_double, e) < 0)
		return -1;
	value = json_object_get_double(found);
	if (!isfinite(value) || value < 0)
		return err_set(e, ERR_HOST, "the daemon's answer has a '%s' out of range", name);
	*ret = value;
	return 0;
}

int member_bool(bool *ret, const struct json_object *object, const char *name, struct err *e)
{
	struct json_object *found = NULL;

	if (find(&found, object, name, json_type_boolean, e) < 0)
		return -1;
	*ret = json_object_get_boolean(found);
	return 0;
}
