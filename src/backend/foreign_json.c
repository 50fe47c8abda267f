#include "backend/foreign_json.h"

#include <limits.h>
#include <stdbool.h>

void foreign_json_put(struct json_object **o)
{
	(void)json_object_put(*o);
}

size_t foreign_json_values(const char *text, size_t len)
{
	size_t values = 1;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string)
			values += text[i] == ',' || text[i] == ':' || text[i] == '[' ||
				  text[i] == '{';
	}
	return values;
}

struct json_object *foreign_json(const char *text, size_t len, int depth_max)
{
	if (len > INT_MAX || foreign_json_values(text, len) > FOREIGN_VALUES_MAX)
		return NULL;
	struct json_tokener *tokener = json_tokener_new_ex(depth_max);

	if (!tokener)
		return NULL;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	struct json_object *root = json_tokener_parse_ex(tokener, text, (int)len);
	bool is_whole = json_tokener_get_error(tokener) == json_tokener_success;
	json_tokener_free(tokener);
	if (is_whole)
		return root;
	(void)json_object_put(root);
	return NULL;
}

struct json_object *foreign_json_object(const char *text, size_t len, int depth_max)
{
	struct json_object *root = foreign_json(text, len, depth_max);

	if (json_object_is_type(root, json_type_object))
		return root;
	(void)json_object_put(root);
	return NULL;
}
