#pragma once
/*
 * log - what the server says on stderr: one event per line, as text or as JSON.
 *
 *   2026-11-16T07:04:05.123Z info request method=POST route=/v1/runs status=200 ms=1.932
 *   {"time":"2026-11-16T07:04:05.123Z","level":"info","event":"request","method":"POST",...}
 *
 * Whatever clients and guests had a hand in is escaped: a line is a line, and controls nothing.
 * More lines than `rate` in a second are dropped and counted, and so are those that nobody takes:
 * the server never waits for its log.  With a loop, lines that tell of nothing wrong are written
 * together, when whoever they are about has been answered.
 *
 *   struct log_line line;
 *   if (log_begin(&line, log, LOG_INFO, "request")) {
 *           log_text(&line, "method", "GET");
 *           log_end(&line);
 *   }
 */
#include "base/json.h"
#include "base/loop.h"

#include <limits.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVELS };
enum log_format { LOG_AS_TEXT, LOG_AS_JSON };

struct log_bucket {
	double lines;
	uint64_t at_us;
};

struct log {
	int fd;
	enum log_format format;
	enum log_level level;        /* and all that is worse */
	unsigned rate;               /* lines per second; 0: without a bound */
	struct log_bucket good, bad; /* a flood of requests must not hide what went wrong */
	uint64_t lines[LOG_LEVELS], dropped;
	uint64_t told, telling; /* of the dropped; telling: by a line that waits, else 0 */
	struct loop *loop; /* NULL: each line is written at once */
	struct afterwards later;
	char waiting[PIPE_BUF]; /* a pipe takes so much at once, or nothing */
	size_t waiting_len;
	uint64_t waiting_lines[LOG_LEVELS];
};

bool log_level_read(enum log_level *ret, const char *name); /* false: no such level */
const char *log_level_name(enum log_level level);
bool log_format_read(enum log_format *ret, const char *name);

struct log_line {
	struct log *log;
	enum log_level level;
	struct buf text;
	struct json json;
};

/* False: nobody wants to hear it, or too much was said. */
bool log_begin(struct log_line *l, struct log *log, enum log_level level, const char *event);
void log_text(struct log_line *l, const char *key, const char *value); /* NULL: left out */
void log_int(struct log_line *l, const char *key, int64_t value);
void log_ms(struct log_line *l, const char *key, double value);
void log_end(struct log_line *l);
void log_flush(struct log *log);
