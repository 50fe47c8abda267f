#include "cli/past.h"

#include "base/units.h"
#include "cli/cli.h"
#include "cli/daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void past_path(struct buf *out)
{
	buf_add_str(out, "/v1/history?");
}

void past_filter(struct buf *path, const char *name, const char *value)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

	if (!value)
		return;
	buf_printf(path, "%s%s=", path->data[path->len - 1] == '?' ? "" : "&", name);
	for (; *value; value++) {
		if (strchr(plain, *value))
			buf_add_char(path, *value);
		else
			buf_printf(path, "%%%02X", (unsigned char)*value);
	}
}

int past_filter_number(struct buf *path, const char *text, unsigned usual, unsigned max,
		       struct err *e)
{
	uint64_t number = usual;
	char digits[24];

	if (text && units_count(&number, text, e) < 0)
		return err_context(e, "--number");
	if (number < 1 || number > max)
		return err_set(e, ERR_INVALID, "--number %.24s: must be 1 to %u", text, max);
	(void)snprintf(digits, sizeof(digits), "%" PRIu64, number);
	past_filter(path, "limit", digits);
	return 0;
}

int past_filter_time(struct buf *path, const char *name, const char *text, struct err *e)
{
	size_t len = text ? strlen(text) : 0;
	struct err ignored;
	char moment[32];
	uint64_t ms;

	if (len && !strchr("0123456789Zz", text[len - 1]) &&
	    units_duration(&ms, text, &ignored) == 0) {
		uint64_t seconds = ms / 1000, now = (uint64_t)time(NULL);
		if (seconds > now)
			return err_set(e, ERR_INVALID, "--%s %.40s: that is too long ago", name,
				       text);
		(void)snprintf(moment, sizeof(moment), "%" PRIu64, now - seconds);
		text = moment;
	}
	past_filter(path, name, text);
	return 0;
}

int past_record(struct json_object **ret, const char *id, const char *tenant, struct err *e)
{
	auto_buf struct buf path = BUF_INIT(4096);

	if (!daemon_is_id(id))
		return err_set(e, ERR_INVALID, "'%.64s' is not the id of a run", id);
	buf_printf(&path, "/v1/history/%s?", id);
	past_filter(&path, "tenant", tenant);
	return daemon_call(ret, "GET", buf_str(&path), e);
}

bool past_outcome(struct buf *out, const struct json_object *record)
{
	const char *outcome = "";
	uint64_t number;
	struct err ignored;

	(void)!member_text(&outcome, record, "outcome", &ignored);
	if (strcmp(outcome, "exited") == 0 &&
	    member_number(&number, record, "exit_code", 255, &ignored) == 0) {
		buf_printf(out, "exit %" PRIu64, number);
		return number == 0;
	}
	if (strcmp(outcome, "signaled") == 0 &&
	    member_number(&number, record, "signal", 255, &ignored) == 0) {
		buf_printf(out, "signal %" PRIu64, number);
		return false;
	}
	for (; *outcome; outcome++)
		buf_add_char(out, *outcome == '_' ? ' ' : *outcome);
	return false;
}
