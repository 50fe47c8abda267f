#include "backend/docker_read.h"

#include "backend/foreign_json.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

static struct json_object *member(struct json_object *o, const char *key, enum json_type type)
{
	struct json_object *value = NULL;

	if (!json_object_is_type(o, json_type_object) ||
	    !json_object_object_get_ex(o, key, &value) || !json_object_is_type(value, type))
		return NULL;
	return value;
}

static void copy_text(char *ret, size_t size, struct json_object *o, const char *key)
{
	struct json_object *value = member(o, key, json_type_string);

	(void)snprintf(ret, size, "%s", value ? json_object_get_string(value) : "");
}

/* The first of its networks where it has one. */
static void read_address(struct docker_container *c, struct json_object *o)
{
	struct json_object *networks = member(member(o, "NetworkSettings", json_type_object),
					      "Networks", json_type_object);
	struct in_addr ignored;

	if (!networks)
		return;
	json_object_object_foreach(networks, name, network)
	{
		(void)name;
		copy_text(c->address, sizeof(c->address), network, "IPAddress");
		if (inet_pton(AF_INET, c->address, &ignored) == 1)
			return;
		c->address[0] = '\0';
	}
}

/* It becomes a part of a path. */
static int read_id(char *ret, size_t size, struct json_object *o)
{
	copy_text(ret, size, o, "Id");
	return ret[0] && strspn(ret, "0123456789abcdef") == strlen(ret) ? 0 : -1;
}

/* False: it is none that we could have made. */
static bool read_container(struct docker_container *c, struct json_object *o)
{
	struct json_object *names = member(o, "Names", json_type_array);
	struct json_object *name = names ? json_object_array_get_idx(names, 0) : NULL;
	struct json_object *created = member(o, "Created", json_type_int);
	const char *text =
		json_object_is_type(name, json_type_string) ? json_object_get_string(name) : "";

	*c = (struct docker_container){ .created = 0 };
	text += text[0] == '/';
	if (!text[0] || strlen(text) >= sizeof(c->name) ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(text))
		return false;
	(void)snprintf(c->name, sizeof(c->name), "%s", text);
	if (read_id(c->id, sizeof(c->id), o) < 0)
		return false;
	copy_text(c->state, sizeof(c->state), o, "State");
	c->is_running = strcmp(c->state, "running") == 0;
	c->is_coming = strcmp(c->state, "created") == 0 || strcmp(c->state, "restarting") == 0;
	if (created && json_object_get_int64(created) > 0)
		c->created = (uint64_t)json_object_get_int64(created);
	if (c->is_running)
		read_address(c, o);
	return true;
}

int docker_read_list(const char *text, size_t len,
		     void (*tell)(const struct docker_container *c, void *arg), void *arg,
		     struct err *e)
{
	auto_foreign_json struct json_object *root = foreign_json(text, len, DEPTH_MAX);
	struct docker_container c;

	if (!json_object_is_type(root, json_type_array))
		return err_set(e, ERR_INVALID, "that is not what Docker's engine answers");
	for (size_t i = 0; i < json_object_array_length(root); i++)
		if (read_container(&c, json_object_array_get_idx(root, i)))
			tell(&c, arg);
	return 0;
}

int docker_read_id(char *ret, size_t size, const char *text, size_t len)
{
	auto_foreign_json struct json_object *root = foreign_json(text, len, DEPTH_MAX);

	return read_id(ret, size, root);
}

void docker_read_message(char *ret, size_t size, const char *text, size_t len)
{
	auto_foreign_json struct json_object *root = foreign_json(text, len, DEPTH_MAX);

	copy_text(ret, size, root, "message");
	for (char *c = ret; *c; c++)
		if ((unsigned char)*c < 0x20)
			*c = ' ';
}
