#include "backend/node_answer.h"

#include "backend/foreign_json.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16, COUNT_MAX = 1 << 24 };

static unsigned count_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value) ||
	    !json_object_is_type(value, json_type_int))
		return 0;
	int64_t n = json_object_get_int64(value);
	return n < 0 ? 0 : n > COUNT_MAX ? COUNT_MAX : (unsigned)n;
}

static bool is_true(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) &&
	       json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return NULL;
	const char *text = json_object_get_string(value);
	return strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

int node_answer_parse(struct node_answer *ret, const char *text, size_t len, struct err *e)
{
	auto_foreign_json struct json_object *root = foreign_json_object(text, len, DEPTH_MAX);
	const char *name = root ? text_of(root, "node") : NULL;

	if (!name || strlen(name) > NODE_NAME_MAX ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(name))
		return err_set(e, ERR_INVALID, "that is not what a worker answers");
	*ret = (struct node_answer){ .is_ready = is_true(root, "ready"),
				     .is_draining = is_true(root, "draining"),
				     .slots = count_of(root, "slots"),
				     .busy = count_of(root, "busy"),
				     .waiting = count_of(root, "waiting"),
				     .sessions = count_of(root, "sessions") };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	return 0;
}

bool node_run_printed(const char *text, size_t len, const char *stdout_text)
{
	auto_foreign_json struct json_object *root = foreign_json_object(text, len, DEPTH_MAX);
	struct json_object *result;

	if (!root || !json_object_object_get_ex(root, "result", &result) ||
	    !json_object_is_type(result, json_type_object))
		return false;
	const char *printed = text_of(result, "stdout");
	return printed && strcmp(printed, stdout_text) == 0;
}
