#include "server/log.h"

#include "base/units.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
	LOG_LINE_MAX = 4000,
	VALUE_MAX = 256, /* of what a client chose */
	BURST = 5,       /* seconds of the rate that may come at once */
};

static const char *const level_names[] = {
	[LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"
};

bool log_level_read(enum log_level *ret, const char *name)
{
	for (int i = 0; i < LOG_LEVELS; i++)
		if (strcmp(level_names[i], name) == 0) {
			*ret = (enum log_level)i;
			return true;
		}
	return false;
}

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

bool log_format_read(enum log_format *ret, const char *name)
{
	*ret = strcmp(name, "json") == 0 ? LOG_AS_JSON : LOG_AS_TEXT;
	return *ret == LOG_AS_JSON || strcmp(name, "text") == 0;
}

/* ---- how much -------------------------------------------------------------------------- */

static bool take(struct log_bucket *b, unsigned rate)
{
	double burst = (double)rate * BURST;
	uint64_t now = loop_now();

	if (rate == 0)
		return true;
	b->lines += b->at_us ? (double)(now - b->at_us) / 1e6 * rate : burst;
	if (b->lines > burst)
		b->lines = burst;
	b->at_us = now;
	if (b->lines < 1)
		return false;
	b->lines--;
	return true;
}

/* ---- a line ---------------------------------------------------------------------------- */

static bool is_plain(const char *text)
{
	size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789._-/:{}+@%*,");

	return len > 0 && !text[len];
}

static void add_quoted(struct buf *out, const char *text, size_t len)
{
	buf_add_char(out, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			buf_add(out, (char[]){ '\\', (char)c }, 2);
		else if (c >= 0x20 && c < 0x7f)
			buf_add_char(out, (char)c);
		else
			buf_printf(out, "\\x%02x", c);
	}
	buf_add_char(out, '"');
}

static void add_key(struct log_line *l, const char *key)
{
	buf_add_char(&l->text, ' ');
	buf_add_str(&l->text, key);
	buf_add_char(&l->text, '=');
}

void log_text(struct log_line *l, const char *key, const char *value)
{
	if (!value)
		return;
	size_t len = strnlen(value, VALUE_MAX);
	if (l->log->format == LOG_AS_JSON) {
		json_bytes(&l->json, key, value, len);
		return;
	}
	add_key(l, key);
	if (is_plain(value) && !value[len])
		buf_add(&l->text, value, len);
	else
		add_quoted(&l->text, value, len);
}

void log_int(struct log_line *l, const char *key, int64_t value)
{
	if (l->log->format == LOG_AS_JSON) {
		json_int(&l->json, key, value);
		return;
	}
	add_key(l, key);
	buf_printf(&l->text, "%" PRId64, value);
}

void log_ms(struct log_line *l, const char *key, double value)
{
	char text[40];

	(void)snprintf(text, sizeof(text), "%.3f", value);
	if (l->log->format == LOG_AS_JSON) {
		json_raw(&l->json, key, text, strlen(text));
		return;
	}
	add_key(l, key);
	buf_add_str(&l->text, text);
}

static void start(struct log_line *l, struct log *log, enum log_level level, const char *event)
{
	char time[40];

	*l = (struct log_line){ .log = log, .level = level, .text = BUF_INIT(LOG_LINE_MAX) };
	l->json.out = &l->text;
	(void)units_show_now(time);
	if (log->format == LOG_AS_JSON) {
		json_open(&l->json, NULL, '{');
		json_string(&l->json, "time", time);
		json_string(&l->json, "level", level_names[level]);
		json_string(&l->json, "event", event);
	} else {
		buf_printf(&l->text, "%s %s %s", time, level_names[level], event);
	}
}

/* What is not taken at once is lost: a reader that sleeps must not hold up everybody. */
static bool write_now(const struct log *log)
{
	struct pollfd room = { .fd = log->fd, .events = POLLOUT };

	return poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) &&
	       write(log->fd, log->waiting, log->waiting_len) == (ssize_t)log->waiting_len;
}

void log_flush(struct log *log)
{
	if (log->loop)
		loop_cancel_afterwards(log->loop, &log->later);
	if (log->waiting_len == 0)
		return;
	bool is_written = write_now(log);
	for (int i = 0; i < LOG_LEVELS; i++) {
		*(is_written ? &log->lines[i] : &log->dropped) += log->waiting_lines[i];
		log->waiting_lines[i] = 0;
	}
	if (is_written && log->telling) {
		log->lines[LOG_WARN]++;
		log->told = log->telling;
	}
	log->telling = 0;
	log->waiting_len = 0;
}

static void on_later(struct afterwards *a)
{
	log_flush(holder_of(a, struct log, later));
}

/* False: it is longer than a line may be. */
static bool finish(struct log_line *l)
{
	struct log *log = l->log;

	if (log->format == LOG_AS_JSON)
		json_close(&l->json);
	buf_add_char(&l->text, '\n');
	if (log->waiting_len + l->text.len > sizeof(log->waiting))
		log_flush(log);
	bool fits = !l->text.dropped;
	if (fits) {
		memcpy(log->waiting + log->waiting_len, l->text.data, l->text.len);
		log->waiting_len += l->text.len;
	}
	buf_done(&l->text);
	return fits;
}

static void tell_of_dropped(struct log *log)
{
	struct log_line l;

	start(&l, log, LOG_WARN, "log_dropped");
	log_int(&l, "lines", (int64_t)(log->dropped - log->told));
	if (finish(&l))
		log->telling = log->dropped;
}

bool log_begin(struct log_line *l, struct log *log, enum log_level level, const char *event)
{
	if (level > log->level)
		return false;
	if (!take(level <= LOG_WARN ? &log->bad : &log->good, log->rate)) {
		log->dropped++;
		return false;
	}
	if (log->dropped > log->told && !log->telling)
		tell_of_dropped(log);
	start(l, log, level, event);
	return true;
}

void log_end(struct log_line *l)
{
	struct log *log = l->log;

	*(finish(l) ? &log->waiting_lines[l->level] : &log->dropped) += 1;
	log->later.on_rest = on_later;
	if (log->loop && l->level > LOG_WARN)
		loop_do_afterwards(log->loop, &log->later);
	else
		log_flush(log);
}
