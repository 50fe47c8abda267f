#include "server/failure.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

static const unsigned statuses[ERR_COUNT_] = {
	[ERR_NONE] = 500, [ERR_INVALID] = 400, [ERR_LIMIT] = 413,
	[ERR_BUSY] = 503, [ERR_GONE] = 404,    [ERR_DENIED] = 403,
	[ERR_HOST] = 500, [ERR_SYS] = 500,     [ERR_BUG] = 500,
};

unsigned failure_status(const struct failure *f)
{
	return f->status ? f->status : statuses[f->err.code];
}

int(failure_at)(struct failure *f, const char *field, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)snprintf(f->field, sizeof(f->field), "%s", field);
	return err_set(&f->err, ERR_INVALID, "%s", text);
}

void failure_json(struct json *j, const char *key, const struct failure *f)
{
	json_open(j, key, '{');
	json_string(j, "code", f->code ? f->code : err_code_name(f->err.code));
	json_string(j, "message", f->err.msg);
	json_string(j, "field", f->field[0] ? f->field : NULL);
	json_string(j, "hint", f->hint);
	if (f->quota)
		json_string(j, "quota", f->quota);
	json_close(j);
}
