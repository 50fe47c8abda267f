#include "server/entry.h"

#include <string.h>

_Static_assert(ENTRY_MAX > 7 * ENTRY_BYTES_MAX, "all of it fits");

static void write_number(struct buf *out, int64_t number)
{
	buf_add(out, &number, sizeof(number));
}

static void write_text(struct buf *out, struct entry_text text, size_t max)
{
	uint32_t len = (uint32_t)(text.len < max ? text.len : max);

	buf_add(out, &len, sizeof(len));
	buf_add(out, text.at, len);
}

void entry_write(struct buf *out, const struct entry *entry)
{
#define NUMBER(name) write_number(out, entry->name);
#define NAME(name)   write_text(out, entry->name, ENTRY_NAME_MAX);
#define BYTES(name)  write_text(out, entry->name, ENTRY_BYTES_MAX);
#include "server/entry.def"
#undef NUMBER
#undef NAME
#undef BYTES
}

struct reader {
	const char *at;
	size_t left;
	bool failed;
};

static void take(void *to, struct reader *r, size_t len)
{
	if (r->failed || len > r->left) {
		r->failed = true;
		memset(to, 0, len);
		return;
	}
	memcpy(to, r->at, len);
	r->at += len;
	r->left -= len;
}

static int64_t read_number(struct reader *r)
{
	int64_t number;

	take(&number, r, sizeof(number));
	return number;
}

static struct entry_text read_text(struct reader *r, size_t max)
{
	struct entry_text text;
	uint32_t len;

	take(&len, r, sizeof(len));
	if (r->failed || len > max || len > r->left) {
		r->failed = true;
		return (struct entry_text){ "", 0 };
	}
	text = (struct entry_text){ r->at, len };
	r->at += len;
	r->left -= len;
	return text;
}

int entry_read(struct entry *ret, const char *bytes, size_t len, struct err *e)
{
	struct reader r = { bytes, len, false };
	struct entry entry = { 0 };

#define NUMBER(name) entry.name = read_number(&r);
#define NAME(name)   entry.name = read_text(&r, ENTRY_NAME_MAX);
#define BYTES(name)  entry.name = read_text(&r, ENTRY_BYTES_MAX);
#include "server/entry.def"
#undef NUMBER
#undef NAME
#undef BYTES
	if (r.failed || r.left)
		return err_set(e, ERR_INVALID, "not an entry");
	*ret = entry;
	return 0;
}
