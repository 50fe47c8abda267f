#include "server/record.h"

#include "base/units.h"
#include "server/history.h"
#include "server/logged.h"
#include "server/metrics.h"

void record_run(struct record *ret, const struct run *run, const struct vial_result *result)
{
	const struct vial_job *job = run_asked(run);

	_Static_assert(sizeof(ret->id) >= UNITS_DECIMAL_MAX, "an id is a number");
	(void)units_decimal(ret->id, run_id(run));
	ret->environment = job->environment;
	ret->code = job->code.bytes;
	ret->code_len = ret->code_size = job->code.len;
	ret->wait_ms = run_wait_ms(run);
	ret->outcome = result->outcome;
	ret->exit_code = result->exit_code;
	ret->signal = result->signal;
	ret->oom = result->oom;
	ret->limit = result->limit;
	ret->wall_ms = result->wall_ms;
	ret->cpu_ms = result->cpu_ms;
	ret->peak_memory = result->peak_memory;
	ret->out = result->out;
	ret->err = result->err;
	ret->exception.type = result->exception.type;
	ret->exception.message = result->exception.message;
	ret->exception.traceback = result->exception.traceback;
	ret->exception.line = result->exception.line;
}

void record_said_done(struct record_said *said)
{
	buf_done(&said->type);
	buf_done(&said->message);
	buf_done(&said->traceback);
}

void record_exception(struct record *ret, struct record_said *said, struct slice exception)
{
	struct slice_item item;
	int64_t line;

	for (size_t at = 0; slice_kind(exception) == '{' && slice_next(&item, &at, exception);) {
		if (slice_is(item.key, "type"))
			slice_text(&said->type, item.value);
		else if (slice_is(item.key, "message"))
			slice_text(&said->message, item.value);
		else if (slice_is(item.key, "traceback"))
			slice_text(&said->traceback, item.value);
		else if (slice_is(item.key, "line") && slice_int(&line, item.value) == 0 &&
			 line > 0)
			ret->exception.line = (long)line;
	}
	ret->exception.type = buf_str(&said->type);
	ret->exception.message = buf_str(&said->message);
	ret->exception.traceback = buf_str(&said->traceback);
}

void record_go_on(struct server *s)
{
	uint64_t last = history_last_run(s->history);

	if (last >> 32 == id_own_node())
		pool_number_after(s->pool, last);
}

void record_ended(struct server *s, const struct record *r)
{
	tenant_charge_cpu(r->tenant, r->cpu_ms);
	metrics_note_run(s->metrics, r);
	logged_run(&s->log, r);
	history_keep(s->history, r);
	/* A history that could not be had at the start may be there now. */
	record_go_on(s);
}
