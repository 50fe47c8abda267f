#include "dispatch/merge.h"

#include "backend/foreign_json.h"
#include "base/node.h"
#include "server/query.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	DEPTH_MAX = 64,
	MARK_MAX = 64,
	SAME_MAX = 1000, /* entries that are compared with each other */
};

struct json_object *merge_parse(const char *text, size_t len)
{
	return foreign_json_object(text, len, DEPTH_MAX);
}

size_t merge_values(const char *text, size_t len)
{
	return foreign_json_values(text, len);
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(o, key, &value) ? value : NULL;
}

void merge_free(struct json_object *o)
{
	(void)json_object_put(o);
}

void merge_write(struct buf *to, struct json_object *o)
{
	buf_add_str(to, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
								  JSON_C_TO_STRING_NOSLASHESCAPE));
}

struct json_object *merge_take(struct json_object *o, const char *key)
{
	struct json_object *value = json_object_get(member(o, key));

	json_object_object_del(o, key);
	return value;
}

void merge_put(struct json_object *o, const char *key, struct json_object *value)
{
	(void)json_object_object_add(o, key, value);
}

/* ---- sums and lists -------------------------------------------------------------------------- */

/* By what an entry is the same thing as another; NULL: it is one of its own. */
static const char *identity(struct json_object *entry, const char **ret_key)
{
	static const char *const keys[] = { "name", "day", "kind", "outcome" };

	if (!json_object_is_type(entry, json_type_object) || member(entry, "id"))
		return NULL;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct json_object *value = member(entry, keys[i]);
		if (json_object_is_type(value, json_type_string)) {
			*ret_key = keys[i];
			return json_object_get_string(value);
		}
	}
	return NULL;
}

static struct json_object *find_same(struct json_object *list, struct json_object *entry)
{
	const char *key = NULL, *other = NULL, *name = identity(entry, &key);

	for (size_t i = 0; name && i < json_object_array_length(list); i++) {
		struct json_object *has = json_object_array_get_idx(list, i);
		const char *its = identity(has, &other);
		if (its && strcmp(key, other) == 0 && strcmp(its, name) == 0)
			return has;
	}
	return NULL;
}

static void merge_list(struct json_object *to, struct json_object *from)
{
	size_t before = json_object_array_length(to), more = json_object_array_length(from);
	bool is_compared = before <= SAME_MAX && more <= SAME_MAX;

	for (size_t i = 0; i < more; i++) {
		struct json_object *entry = json_object_array_get_idx(from, i);
		struct json_object *same = is_compared ? find_same(to, entry) : NULL;
		bool is_text = json_object_is_type(entry, json_type_string);
		if (same)
			merge_into(same, entry);
		else if (!is_text || before == 0) /* names of things are the same everywhere */
			(void)json_object_array_add(to, json_object_get(entry));
	}
}

/* As people write it: sums have no more digits than what they are made of. */
static struct json_object *number(double value)
{
	char text[40];

	if (!isfinite(value)) /* of what made no sense before */
		value = DBL_MAX;
	(void)snprintf(text, sizeof(text), "%.9g", value);
	if (!strpbrk(text, ".eE"))
		(void)snprintf(text, sizeof(text), "%.1f", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *sum(struct json_object *a, struct json_object *b)
{
	if (json_object_is_type(a, json_type_int) && json_object_is_type(b, json_type_int)) {
		int64_t total;
		if (__builtin_add_overflow(json_object_get_int64(a), json_object_get_int64(b),
					   &total))
			total = INT64_MAX;
		return json_object_new_int64(total);
	}
	return number(json_object_get_double(a) + json_object_get_double(b));
}

static bool is_number(struct json_object *o)
{
	return json_object_is_type(o, json_type_int) || json_object_is_type(o, json_type_double);
}

void merge_into(struct json_object *to, struct json_object *from)
{
	json_object_object_foreach(from, key, value)
	{
		struct json_object *has = member(to, key);
		if (!has && !json_object_object_get_ex(to, key, NULL))
			(void)json_object_object_add(to, key, json_object_get(value));
		else if (!has && value)
			(void)json_object_object_add(to, key, json_object_get(value));
		else if (is_number(has) && is_number(value))
			(void)json_object_object_add(to, key, sum(has, value));
		else if (json_object_is_type(has, json_type_array) &&
			 json_object_is_type(value, json_type_array))
			merge_list(has, value);
		else if (json_object_is_type(has, json_type_object) &&
			 json_object_is_type(value, json_type_object))
			merge_into(has, value);
	}
}

/* ---- history --------------------------------------------------------------------------------- */

/* NODE:MARK,NODE:MARK... */
bool merge_mark_of(char *ret, size_t size, const char *marks, const char *node)
{
	size_t len = strlen(node);

	for (const char *at = marks; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t whole = strcspn(at, ",");
		if (whole <= len || strncmp(at, node, len) != 0 || at[len] != ':' ||
		    whole - len - 1 >= size)
			continue;
		memcpy(ret, at + len + 1, whole - len - 1);
		ret[whole - len - 1] = '\0';
		return true;
	}
	return false;
}

bool merge_marks_are_valid(const char *marks)
{
	for (const char *at = marks; *at; at += *at == ',') {
		size_t node = strspn(at, "0123456789abcdef"), mark;
		if (node != NODE_DIGITS || at[node] != ':')
			return false;
		at += node + 1;
		mark = strspn(at, "0123456789.");
		at += mark;
		if (mark == 0 || mark >= MARK_MAX || (*at && *at != ','))
			return false;
	}
	return true;
}

static struct json_object *records_of(const struct merge_page *page)
{
	struct json_object *list = page->answer ? member(page->answer, "records") : NULL;

	return json_object_is_type(list, json_type_array) ? list : NULL;
}

/* When the next of its records that are not shown ended; -1: there is none. */
static int64_t next_ended(const struct merge_page *page)
{
	struct json_object *list = records_of(page);
	int64_t ms;

	if (!list || page->shown >= json_object_array_length(list))
		return -1;
	struct json_object *record = json_object_array_get_idx(list, page->shown);
	struct json_object *ended =
		json_object_is_type(record, json_type_object) ? member(record, "ended") : NULL;
	return ended && query_time(&ms, json_object_get_string(ended)) == 0 ? ms : 0;
}

static void add_record(struct buf *out, struct merge_page *page, bool is_first)
{
	struct json_object *record = json_object_array_get_idx(records_of(page), page->shown++);

	if (!is_first)
		buf_add_char(out, ',');
	merge_write(out, record);
}

static struct merge_page *choose(struct merge_page *pages, size_t count, bool is_forth)
{
	struct merge_page *best = NULL;

	for (size_t i = 0; i < count; i++) {
		int64_t ended = next_ended(&pages[i]);
		if (ended >= 0 &&
		    (!best || (is_forth ? ended < next_ended(best) : ended > next_ended(best))))
			best = &pages[i];
	}
	return best;
}

static void add_mark(struct buf *marks, const struct merge_page *page, const char *mark)
{
	if (mark && mark[0] && strlen(mark) < MARK_MAX &&
	    strspn(mark, "0123456789.") == strlen(mark))
		buf_printf(marks, "%s%s:%s", marks->len ? "," : "", page->node, mark);
}

/* From where this worker's go on: its own word if all of its page is shown, else from the first
 * that is not.  Those of one moment are never torn apart, so that the moment will do. */
static void add_next(struct buf *marks, const struct merge_page *page)
{
	struct json_object *own = page->answer ? member(page->answer, "next") : NULL;
	int64_t ended = next_ended(page);
	char mark[MARK_MAX];

	if (ended < 0) {
		add_mark(marks, page, own ? json_object_get_string(own) : NULL);
		return;
	}
	(void)snprintf(mark, sizeof(mark), "%" PRId64 ".%" PRId64, ended, INT64_MAX);
	add_mark(marks, page, mark);
}

static void add_marks(struct buf *out, const char *key, const struct buf *marks)
{
	if (marks->len)
		buf_printf(out, ",\"%s\":\"%s\"", key, buf_str(marks));
	else
		buf_printf(out, ",\"%s\":null", key);
}

void merge_pages(struct buf *out, struct merge_page *pages, size_t count, size_t limit,
		 bool is_forth)
{
	auto_buf struct buf next = BUF_INIT(count * (MARK_MAX + 16) + 1);
	auto_buf struct buf last = BUF_INIT(count * (MARK_MAX + 16) + 1);
	struct merge_page *page;
	size_t shown = 0;

	buf_add_str(out, "{\"records\":[");
	while ((is_forth || shown < limit) && (page = choose(pages, count, is_forth))) {
		int64_t ended = next_ended(page);
		do {
			add_record(out, page, shown++ == 0);
		} while (next_ended(page) == ended);
	}
	buf_add_char(out, ']');
	for (size_t i = 0; i < count; i++) {
		struct json_object *own = pages[i].answer ? member(pages[i].answer, "last") : NULL;
		add_mark(&last, &pages[i], own ? json_object_get_string(own) : NULL);
		if (!is_forth)
			add_next(&next, &pages[i]);
	}
	add_marks(out, "next", &next);
	add_marks(out, "last", &last);
	buf_add_str(out, "}\n");
}
