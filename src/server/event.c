#include "server/event.h"

#include "base/base64.h"
#include "base/utf8.h"

#include <string.h>

static const char *const stream_names[] = { "stdout", "stderr" };

void event_end(struct json *j)
{
	json_close(j);
	buf_add_char(j->out, '\n');
}

/* How many of the last bytes may be the beginning of a longer character. */
static size_t unfinished(const char *bytes, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)bytes[len - back];
		size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		if ((c & 0xc0) != 0x80)
			return whole > back ? back : 0;
	}
	return 0;
}

static void write_output(struct buf *out, const char *stream, const char *bytes, size_t len)
{
	auto_buf struct buf coded = BUF_INIT(SIZE_MAX / 2);
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "event", "output");
	json_string(&j, "stream", stream);
	if (utf8_is_valid(bytes, len)) {
		json_bytes(&j, "data", bytes, len);
	} else {
		base64_encode(&coded, bytes, len);
		json_bytes(&j, "data_base64", buf_str(&coded), coded.len);
	}
	event_end(&j);
}

void event_output(struct buf *out, struct event_tail tails[2], enum vial_stream stream,
		  const char *bytes, size_t len)
{
	int which = stream == VIAL_STDERR;
	struct event_tail *tail = &tails[which];
	auto_buf struct buf joined = BUF_INIT(SIZE_MAX / 2);

	if (tail->len) {
		buf_add(&joined, tail->bytes, tail->len);
		buf_add(&joined, bytes, len);
		bytes = buf_str(&joined);
		len = joined.len;
	}
	tail->len = unfinished(bytes, len);
	if (!utf8_is_valid(bytes, len - tail->len))
		tail->len = 0; /* no text anyway */
	memcpy(tail->bytes, bytes + len - tail->len, tail->len);
	if (len > tail->len)
		write_output(out, stream_names[which], bytes, len - tail->len);
	out->dropped += joined.dropped;
}

void event_output_end(struct buf *out, struct event_tail tails[2])
{
	for (int i = 0; i < 2; i++) {
		if (tails[i].len)
			write_output(out, stream_names[i], tails[i].bytes, tails[i].len);
		tails[i].len = 0;
	}
}

void event_error(struct buf *out, const struct failure *f)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "event", "error");
	failure_json(&j, "error", f);
	event_end(&j);
}
