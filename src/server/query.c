#include "server/query.h"

#include "vial/vial.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- time ------------------------------------------------------------------------------ */

/* Exactly `digits` of them. */
static bool take_number(int *ret, const char **at, int digits)
{
	int number = 0;

	for (int i = 0; i < digits; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		number = number * 10 + (**at - '0');
	}
	*ret = number;
	return true;
}

static bool take_char(const char **at, const char *any)
{
	if (!**at || !strchr(any, **at))
		return false;
	(*at)++;
	return true;
}

static bool take_date(struct tm *ret, const char **at)
{
	if (!take_number(&ret->tm_year, at, 4) || !take_char(at, "-") ||
	    !take_number(&ret->tm_mon, at, 2) || !take_char(at, "-") ||
	    !take_number(&ret->tm_mday, at, 2))
		return false;
	bool is_one = ret->tm_year >= 1970 && ret->tm_mon >= 1 && ret->tm_mon <= 12 &&
		      ret->tm_mday >= 1 && ret->tm_mday <= 31;
	ret->tm_year -= 1900;
	ret->tm_mon -= 1;
	return is_one;
}

static bool take_clock(struct tm *ret, int *ret_ms, const char **at)
{
	int scale = 100, digit;

	if (!take_number(&ret->tm_hour, at, 2) || !take_char(at, ":") ||
	    !take_number(&ret->tm_min, at, 2) || !take_char(at, ":") ||
	    !take_number(&ret->tm_sec, at, 2))
		return false;
	if (take_char(at, "."))
		for (int n = 0; n < 9 && take_number(&digit, at, 1); n++, scale /= 10)
			*ret_ms += digit * scale;
	return ret->tm_hour < 24 && ret->tm_min < 60 && ret->tm_sec <= 60;
}

static int time_of_number(int64_t *ret_ms, const char *text)
{
	char *end;

	errno = 0;
	double seconds = strtod(text, &end);
	if (*end || end == text || errno || !(seconds >= 0 && seconds < 1e11) ||
	    strspn(text, "0123456789.") != strlen(text))
		return -1;
	*ret_ms = (int64_t)(seconds * 1000);
	return 0;
}

int query_time(int64_t *ret_ms, const char *text)
{
	struct tm tm = { .tm_isdst = 0 };
	const char *at = text;
	int ms = 0, hours, minutes = 0;
	int64_t shift = 0;

	if (!take_date(&tm, &at))
		return time_of_number(ret_ms, text);
	if (*at && (!take_char(&at, "Tt ") || !take_clock(&tm, &ms, &at)))
		return -1;
	if (*at == '+' || *at == '-') {
		int sign = *at++ == '+' ? 1 : -1;
		if (!take_number(&hours, &at, 2) || (take_char(&at, ":") && !*at) ||
		    (*at && !take_number(&minutes, &at, 2)) || hours > 23 || minutes > 59)
			return -1;
		shift = sign * (hours * 3600 + minutes * 60);
	} else {
		(void)take_char(&at, "Zz");
	}
	struct tm day = { .tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday };
	bool is_one = timegm(&day) >= 0 && day.tm_mday == tm.tm_mday; /* not February 30 */
	time_t seconds = timegm(&tm);
	if (*at || seconds < 0 || !is_one)
		return -1;
	int64_t total = ((int64_t)seconds - shift) * 1000 + ms;
	if (total < 0)
		return -1;
	*ret_ms = total;
	return 0;
}

void query_show_time(char ret[32], int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	size_t len;

	if (ms < 0 || !gmtime_r(&seconds, &tm) ||
	    !(len = strftime(ret, 20, "%Y-%m-%dT%H:%M:%S", &tm))) {
		ret[0] = '\0';
		return;
	}
	(void)snprintf(ret + len, 32 - len, ".%03dZ", (int)(ms % 1000));
}

/* ---- filters --------------------------------------------------------------------------- */

static int read_word(char *ret, size_t size, const char *name, const char *value, struct failure *f)
{
	if (!value)
		return 0;
	if (strlen(value) >= size)
		return failure_at(f, name, "must be at most %zu bytes", size - 1);
	memcpy(ret, value, strlen(value) + 1);
	return 0;
}

static int read_flag(bool *ret, const char *name, const char *value, struct failure *f)
{
	bool is_true = value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0);
	bool is_false = !value || strcmp(value, "0") == 0 || strcmp(value, "false") == 0;

	if (!is_true && !is_false)
		return failure_at(f, name, "must be true or false");
	*ret = is_true;
	return 0;
}

static int read_moment(int64_t *ret, const char *name, const char *value, struct failure *f)
{
	if (value && query_time(ret, value) < 0)
		return failure_at(f, name,
				  "must be a time such as 2026-11-16T09:30:00Z, "
				  "or seconds since 1970");
	return 0;
}

static int read_outcome(struct query *q, const char *value, struct failure *f)
{
	if (!value)
		return 0;
	for (int i = VIAL_EXITED; i <= VIAL_CANCELLED; i++)
		if (strcmp(vial_outcome_name((enum vial_outcome)i), value) == 0)
			return read_word(q->outcome, sizeof(q->outcome), "outcome", value, f);
	f->hint = "there are exited, signaled, timed_out, out_of_memory, out_of_disk, cancelled";
	return failure_at(f, "outcome", "there is no such outcome");
}

static int read_kind(struct query *q, const char *value, struct failure *f)
{
	static const char *const kinds[] = { "run",     "step", "batch",
					     "execute", "exec", "terminal" };

	if (!value)
		return 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i], value) == 0)
			return read_word(q->kind, sizeof(q->kind), "kind", value, f);
	f->hint = "there are run, step, batch, execute, exec, terminal";
	return failure_at(f, "kind", "there is no such kind");
}

static bool read_whole(int64_t *ret, const char **at)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoll(*at, &end, 10);
	*at = end;
	return errno == 0;
}

static int read_cursor(struct query *q, const char *value, struct failure *f)
{
	const char *at = value;

	if (!value)
		return 0;
	if (!read_whole(&q->before_ended, &at) || *at++ != '.' ||
	    !read_whole(&q->before_seq, &at) || *at)
		return failure_at(f, "cursor", "must be the \"next\" of an earlier answer");
	return 0;
}

static int read_after(struct query *q, const char *value, struct failure *f)
{
	const char *at = value;

	if (value && (!read_whole(&q->after, &at) || *at))
		return failure_at(f, "after", "must be the \"last\" of an earlier answer");
	return 0;
}

static int read_limit(struct query *q, const char *value, struct failure *f)
{
	int64_t limit = QUERY_PAGE, max = q->full ? QUERY_PAGE_FULL_MAX : QUERY_PAGE_MAX;
	const char *at = value;

	if (value && (!read_whole(&limit, &at) || *at || limit < 1 || limit > max))
		return failure_at(f, "limit", "must be a whole number from 1 to %" PRId64, max);
	q->limit = (int)limit;
	return 0;
}

int query_read(struct query *ret, query_get *get, const void *from, struct failure *f)
{
	static const struct {
		const char *name;
		size_t at, size;
	} words[] = {
#define WORD(name) { #name, offsetof(struct query, name), sizeof(((struct query *)0)->name) }
		WORD(session),
		WORD(environment),
		WORD(text),
#undef WORD
	};
	struct query q = { .what = QUERY_LIST,
			   .until = INT64_MAX,
			   .before_ended = INT64_MAX,
			   .before_seq = INT64_MAX,
			   .after = -1 };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (read_word((char *)&q + words[i].at, words[i].size, words[i].name,
			      get(from, words[i].name), f) < 0)
			return -1;
	if (read_kind(&q, get(from, "kind"), f) < 0 ||
	    read_outcome(&q, get(from, "outcome"), f) < 0 ||
	    read_flag(&q.failed, "failed", get(from, "failed"), f) < 0 ||
	    read_flag(&q.full, "full", get(from, "full"), f) < 0 ||
	    read_moment(&q.since, "since", get(from, "since"), f) < 0 ||
	    read_moment(&q.until, "until", get(from, "until"), f) < 0 ||
	    read_cursor(&q, get(from, "cursor"), f) < 0 ||
	    read_after(&q, get(from, "after"), f) < 0 || read_limit(&q, get(from, "limit"), f) < 0)
		return -1;
	*ret = q;
	return 0;
}
