#include "server/record.h"

#include "server/logged.h"
#include "server/metrics.h"

#include <inttypes.h>
#include <stdio.h>

void record_run(struct record *ret, const struct run *run, const struct vial_result *result)
{
	const struct vial_job *job = run_asked(run);

	(void)snprintf(ret->id, sizeof(ret->id), "%" PRIu64, run_id(run));
	ret->environment = job->environment;
	ret->code = job->code.bytes;
	ret->code_len = job->code.len;
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

void record_ended(struct server *s, const struct record *r)
{
	s->ended[r->outcome]++;
	metrics_note_run(s->metrics, r);
	logged_run(&s->log, r);
}
