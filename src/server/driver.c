#include "server/driver.h"

#include <stddef.h>
#include <string.h>

enum { MEMBERS_MAX = 64 }; /* three times as many as there are */

/* What a member is, which is also where it goes. */
enum member_kind { IS_NUMBER, IS_STATUS, IS_FLAG, IS_STRING, IS_ARRAY, IS_OBJECT };

static const struct member {
	const char *name;
	enum member_kind kind;
	size_t offset;
} members[] = {
#define AT(field) offsetof(struct driver_message, field)
	{ "id", IS_NUMBER, AT(id) },
	{ "call", IS_NUMBER, AT(call) },
	{ "name", IS_STRING, AT(name) },
	{ "args", IS_ARRAY, AT(args) },
	{ "kwargs", IS_OBJECT, AT(kwargs) },
	{ "data", IS_OBJECT, AT(data) },
	{ "value", IS_OBJECT, AT(value) },
	{ "exception", IS_OBJECT, AT(exception) },
	{ "exit_code", IS_STATUS, AT(exit_code) },
	{ "status", IS_STATUS, AT(status) },
	{ "signal", IS_STATUS, AT(signal) },
	{ "rewind", IS_STRING, AT(rewind) },
	{ "checkpoints", IS_ARRAY, AT(checkpoints) },
	{ "rolled_back", IS_FLAG, AT(rolled_back) },
	{ "files_kept", IS_FLAG, AT(files_kept) },
	{ "interrupted", IS_FLAG, AT(interrupted) },
	{ "cut", IS_FLAG, AT(cut) },
#undef AT
};

static const struct {
	const char *name;
	enum driver_op op;
} ops[] = {
	{ "ready", DRIVER_READY },
	{ "call", DRIVER_CALL },
	{ "display", DRIVER_DISPLAY },
	{ "result", DRIVER_RESULT },
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool read_number(uint64_t *ret, struct slice value, int64_t max)
{
	int64_t number;

	if (slice_int(&number, value) < 0 || number < 0 || number > max)
		return false;
	*ret = (uint64_t)number;
	return true;
}

static bool set(struct driver_message *m, const struct member *member, struct slice value)
{
	static const char kinds[] = { [IS_STRING] = '"', [IS_ARRAY] = '[', [IS_OBJECT] = '{' };
	void *to = (char *)m + member->offset;
	uint64_t number;

	switch (member->kind) {
	case IS_NUMBER:
		return read_number(to, value, INT64_MAX);
	case IS_STATUS:
		if (!read_number(&number, value, 255))
			return false;
		*(int *)to = (int)number;
		return true;
	case IS_FLAG:
		*(bool *)to = value.at[0] == 't';
		return slice_kind(value) == 't';
	case IS_STRING:
	case IS_ARRAY:
	case IS_OBJECT:
		*(struct slice *)to = value;
		return slice_kind(value) == kinds[member->kind];
	}
	return false;
}

/* Members that nobody knows are those of a newer driver. */
static int read_members(struct driver_message *m, bool *ret_has_op, struct slice all, struct err *e)
{
	struct slice_item item;
	size_t count = 0;

	for (size_t at = 0; slice_next(&item, &at, all);) {
		if (++count > MEMBERS_MAX)
			return err_set(e, ERR_INVALID, "more than %d members", MEMBERS_MAX);
		if (slice_is(item.key, "op")) {
			size_t i = 0;
			while (i < COUNT(ops) && !slice_is(item.value, ops[i].name))
				i++;
			if (i == COUNT(ops))
				return err_set(e, ERR_INVALID, "unknown op");
			m->op = ops[i].op;
			*ret_has_op = true;
			continue;
		}
		if (slice_kind(item.value) == 'n')
			continue; /* as good as not there */
		for (size_t i = 0; i < COUNT(members); i++)
			if (slice_is(item.key, members[i].name) && !set(m, &members[i], item.value))
				return err_set(e, ERR_INVALID, "%s is none", members[i].name);
	}
	return 0;
}

/* What is read again and again. */
static bool has_many(struct slice object)
{
	struct slice_item item;
	size_t count = 0;

	for (size_t at = 0; count <= MEMBERS_MAX && slice_next(&item, &at, object);)
		count++;
	return count > MEMBERS_MAX;
}

static bool is_complete(const struct driver_message *m)
{
	if (m->op == DRIVER_READY)
		return true;
	if (m->id == 0)
		return false;
	if (m->op == DRIVER_CALL)
		return m->call && m->name.at && m->args.at && m->kwargs.at;
	return m->op == DRIVER_RESULT || m->data.at;
}

static bool is_deep(struct slice s)
{
	return slice_depth(s) > DRIVER_DEPTH_MAX;
}

int driver_read(struct driver_message *ret, char *line, size_t len, struct err *e)
{
	struct driver_message m = { .exit_code = -1, .status = -1 };
	bool has_op = false;
	struct slice all;

	if (slice_check(&all, line, len, e) < 0)
		return -1;
	if (slice_kind(all) != '{')
		return err_set(e, ERR_INVALID, "no object");
	if (read_members(&m, &has_op, all, e) < 0)
		return -1;
	if (!has_op || !is_complete(&m))
		return err_set(e, ERR_INVALID, "something is missing");
	if (m.exception.at && has_many(m.exception))
		return err_set(e, ERR_INVALID, "an exception of more than %d members", MEMBERS_MAX);
	m.is_deep = is_deep(m.args) || is_deep(m.kwargs) || is_deep(m.data) || is_deep(m.value) ||
		    is_deep(m.exception);
	*ret = m;
	return 0;
}
