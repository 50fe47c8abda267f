#include "lib/chore.h"

#include <stdio.h>
#include <string.h>

struct listener {
	const struct chore *chore;
	struct vial_job *job;
	struct buf line;
	char failure[200];
	bool stopped;
};

static void listener_done(struct listener *l)
{
	buf_done(&l->line);
}

static bool wants_stop(const struct chore *chore, const struct vial_build_progress *now)
{
	return chore->want->progress && chore->want->progress(now, chore->want->arg) != 0;
}

int chore_tell(const struct chore *chore, const char *step, const char *text)
{
	return wants_stop(chore, &(struct vial_build_progress){ step, text, 0, 0 }) ? -1 : 0;
}

static void tell(struct listener *l, const struct vial_build_progress *now)
{
	if (!l->stopped && wants_stop(l->chore, now)) {
		l->stopped = true;
		vial_job_cancel(l->job);
	}
}

static void keep(const struct listener *l, const char *line)
{
	if (l->chore->log)
		buf_printf(l->chore->log, "%s\n", line);
}

static void on_line(struct listener *l)
{
	char *step = l->line.data, *rest = NULL;
	char *done = strchr(step, '\t'), *total = done ? strchr(done + 1, '\t') : NULL;
	char *text = total ? strchr(total + 1, '\t') : NULL;

	if (!text) {
		keep(l, step);
		tell(l, &(struct vial_build_progress){ "log", step, 0, 0 });
		return;
	}
	*done = *total = *text = '\0';
	text++;
	if (step[0] == '=') {
		if (l->chore->on_fact)
			l->chore->on_fact(step + 1, text, l->chore->arg);
		return;
	}
	if (strcmp(step, "failed") == 0) {
		(void)snprintf(l->failure, sizeof(l->failure), "%s", text);
		return;
	}
	if (strcmp(step, "log") == 0)
		keep(l, text);
	tell(l, &(struct vial_build_progress){ step, text, (unsigned)strtoul(done + 1, &rest, 10),
					       (unsigned)strtoul(total + 1, &rest, 10) });
}

static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	struct listener *l = arg;

	(void)stream;
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != '\n') {
			buf_add_char(&l->line, bytes[i] ? bytes[i] : ' ');
			continue;
		}
		if (l->line.len)
			on_line(l);
		buf_reset(&l->line);
	}
}

int chore_job(struct vial_job **ret, struct vial *host, const char *language, struct err *e)
{
	static const char *const limits[][2] = {
		{ "timeout", "2h" }, { "cpu-time", "8h" },   { "memory", "4g" },
		{ "cpus", "64" },    { "workspace", "16g" }, { "file-size", "4g" },
		{ "tmp", "2g" },     { "files", "1000000" }, { "processes", "512" },
		{ "output", "64m" },
	};
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	struct vial_error *error = (struct vial_error *)e;

	if (vial_job_create(&job, host, language, error) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (vial_job_limit(job, limits[i][0], limits[i][1], error) < 0)
			return -1;
	job->weak = WEAK_WHERE_MISSING; /* asked for is a build, not a run that must be isolated */
	*ret = take_ptr(&job);
	return 0;
}

int chore_run(const struct vial_result **ret, struct vial_job *job, const struct chore *chore,
	      struct err *e)
{
	AUTO(listener_done) struct listener l = { chore, job, BUF_INIT(8192), "", false };
	AUTO(vial_result_freep) const struct vial_result *r = NULL;

	vial_job_on_output(job, on_output, &l);
	if (vial_run(&r, job, (struct vial_error *)e) < 0)
		return -1;
	if (l.stopped)
		return err_set(e, ERR_BUSY, "stopped");
	if (r->outcome == VIAL_EXITED && r->exit_code == 0) {
		*ret = take_ptr(&r);
		return 0;
	}
	if (l.failure[0])
		return err_set(e, ERR_SYS, "%s", l.failure);
	if (r->exception.type[0])
		return err_set(e, ERR_SYS, "%.40s: %.180s", r->exception.type,
			       r->exception.message);
	return err_set(e, ERR_SYS, "%s (limit: %.20s)", vial_outcome_name(r->outcome),
		       r->limit[0] ? r->limit : "none");
}
