#include "server/trace.h"

#include <stdio.h>
#include <string.h>

/* Of version-id-parent-flags, each with its dash. */
enum {
	ID_AT = 3,
	PARENT_AT = ID_AT + TRACE_ID_LEN + 1,
	FLAGS_AT = PARENT_AT + TRACE_PARENT_LEN + 1
};

/* Small letters only, as the standard has it. */
static bool is_hex(const char *text, size_t len)
{
	return strspn(text, "0123456789abcdef") >= len;
}

static bool is_zero(const char *text, size_t len)
{
	return strspn(text, "0") >= len;
}

static bool has_form(const char *text)
{
	size_t len = strnlen(text, TRACE_TEXT_LEN + 1);

	if (len < TRACE_TEXT_LEN || !is_hex(text, 2) || strncmp(text, "ff", 2) == 0)
		return false;
	/* Later versions may say more after a dash; this one says no more. */
	if (len > TRACE_TEXT_LEN && (strncmp(text, "00", 2) == 0 || text[TRACE_TEXT_LEN] != '-'))
		return false;
	return text[ID_AT - 1] == '-' && is_hex(text + ID_AT, TRACE_ID_LEN) &&
	       text[PARENT_AT - 1] == '-' && is_hex(text + PARENT_AT, TRACE_PARENT_LEN) &&
	       text[FLAGS_AT - 1] == '-' && is_hex(text + FLAGS_AT, 2);
}

bool trace_parse(struct trace *ret, const char *text)
{
	*ret = (struct trace){ .text = "" };
	if (!has_form(text) || is_zero(text + ID_AT, TRACE_ID_LEN) ||
	    is_zero(text + PARENT_AT, TRACE_PARENT_LEN))
		return false;
	memcpy(ret->id, text + ID_AT, TRACE_ID_LEN);
	memcpy(ret->parent, text + PARENT_AT, TRACE_PARENT_LEN);
	/* Of the flags we know one, "sampled"; others are not ours to pass on. */
	char last = text[FLAGS_AT + 1];
	bool is_sampled = last <= '9' ? (last - '0') & 1 : (last - 'a' + 10) & 1;
	(void)snprintf(ret->text, sizeof(ret->text), "00-%s-%s-0%d", ret->id, ret->parent,
		       is_sampled);
	return true;
}
