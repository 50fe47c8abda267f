/*
 * execute - vial_run(): one job, one fresh sandbox, one result.
 */
#include "engine/run.h"
#include "lib/outlet.h"
#include "lib/result.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct execution {
	struct vial_job *job;
	struct vial *host;
	struct lease lease;
	struct plan plan;
	struct box_spec spec;
	struct box *box;
	struct cgroup *cgroup, *compile_cgroup;
	struct workspace workspace;
	int bare_dir; /* the box's own, where that is a place on the host; else -1 */
	struct timespec mark;
	bool emptied; /* the run's group holds nobody any more */
	struct outlet outlet; /* where hosts may be reached */
};

static void execution_done(struct execution *x)
{
	outlet_done(&x->outlet);
	/* A group goes when the last of its processes is gone: usually before pid 1, which has its
	 * namespaces to take down, else after it. */
	if (x->emptied)
		cgroup_free(take_ptr(&x->cgroup));
	box_free(x->box);
	cgroup_free(x->cgroup);
	cgroup_free(x->compile_cgroup);
	plan_done(&x->plan);
	if (x->bare_dir >= 0)
		(void)close(x->bare_dir);
	lease_done(&x->lease); /* last: the names above are ours while we hold it */
}

static int create_cgroups(struct execution *x, struct err *e)
{
	struct cgroup_host *cgroups;

	if (x->job->weak != WEAK_WHERE_MISSING && x->job->weak & (1u << LAYER_CGROUP))
		return 0;
	if (host_cgroups(&cgroups, x->host, e) < 0)
		return -1;
	if (cgroup_version(cgroups) == CGROUP_NONE)
		return host_check_layers(x->host, x->job->weak, e);
	if (x->plan.compile && cgroup_create(&x->compile_cgroup, cgroups, x->lease.index, "c",
					     &x->plan.compile_limits, e) < 0)
		return -1;
	return cgroup_create(&x->cgroup, cgroups, x->lease.index, "", &x->job->limits, e);
}

/* Without looking for cgroups, which is done while the sandbox is made; but when something else is
 * missing already, all that is missing shall be said at once. */
static int check_layers(const struct execution *x, struct err *e)
{
	if (host_check_layers(x->host, x->job->weak | 1u << LAYER_CGROUP, e) == 0)
		return 0;
	return host_check_layers(x->host, x->job->weak, e);
}

/* Whoever named the files is told what is wrong with their names. */
static int put_failed(const char *name, struct err *e)
{
	if (e->code == ERR_SYS && (e->sys == ENOTDIR || e->sys == EISDIR || e->sys == ELOOP))
		(void)err_set(e, ERR_INVALID, "%.100s: another file is in its way", name);
	return -1;
}

static int put_files(struct execution *x, struct err *e)
{
	const struct vial_job *job = x->job;

	if (job->code.bytes && !x->plan.code_aside &&
	    workspace_put(&x->workspace, job->code.name, job->code.bytes, job->code.len, e) < 0)
		return -1;
	for (size_t i = 0; i < job->file_count; i++) {
		const struct job_file *f = &job->files[i];
		int failed = f->bytes ? workspace_put(&x->workspace, f->name, f->bytes, f->len, e)
				      : workspace_put_fd(&x->workspace, f->name, f->host_fd, e);
		if (failed < 0)
			return put_failed(f->name, e);
	}
	workspace_mark(&x->mark);
	return 0;
}

/* Where a sandbox cannot be made because there are no namespaces, that is what is wrong. */
static int explain_failure(struct execution *x, struct err *e)
{
	if (!x->plan.bare && e->code != ERR_LIMIT && host_is_bare(x->host))
		(void)!host_check_layers(x->host, x->job->weak, e);
	return -1;
}

/* The slot is built by its pid 1 while we make the cgroups. */
static int prepare(struct execution *x, struct err *e)
{
	if (check_layers(x, e) < 0 || ids_lease(&x->lease, &x->host->ids, e) < 0 ||
	    plan_make(&x->plan, x->job, &x->lease, e) < 0)
		return -1;
	x->spec = (struct box_spec){
		.lease = &x->lease,
		.mounts = x->plan.mounts,
		.mount_count = x->plan.mount_count,
		.root_fd = x->plan.root_fd,
		.workspace = x->plan.workdir,
		.workspace_writable = x->job->writable,
		.share_network = x->job->network_host,
		.weak = x->plan.weak,
		.bare = x->plan.bare,
	};
	if (job_hosts(x->job)) {
		x->spec.listen_port = EGRESS_PORT;
		x->spec.listen_backlog = EGRESS_BACKLOG;
	}
	if (box_create(&x->box, &x->spec, e) < 0 || create_cgroups(x, e) < 0 ||
	    (job_hosts(x->job) && outlet_start(&x->outlet, x->host, e) < 0) ||
	    box_ready(x->box, e) < 0)
		return explain_failure(x, e);
	if ((job_hosts(x->job) && outlet_open(&x->outlet, x->box, x->job, e) < 0))
		return -1;
	if (x->plan.bare) {
		x->bare_dir = open(x->plan.bare, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (x->bare_dir < 0)
			return err_sys(e, "%.100s", x->plan.bare);
	}
	x->workspace =
		(struct workspace){ box_workspace(x->box), x->lease.own_uids, x->lease.guest_uid };
	return put_files(x, e);
}

static struct guest_spec guest_of(const struct execution *x)
{
	return (struct guest_spec){
		.envp = (const char *const *)x->plan.env.items,
		.cwd = x->plan.workdir,
		.rules = x->plan.rules,
		.rule_count = x->plan.rule_count,
		.landlock_abi = x->host->landlock_abi,
		.seccomp = plan_filter(&x->plan, x->host),
		.is_bare = x->plan.bare,
	};
}

static void relay(int stream, const char *bytes, size_t len, void *arg)
{
	const struct vial_job *job = arg;

	job->on_output((enum vial_stream)stream, bytes, len, job->on_output_arg);
}

/* What a compiler says matters only when it fails; then it is the run's output. */
static int compile(struct execution *x, struct result *r, bool *ret_ok, struct err *e)
{
	struct guest_spec guest = guest_of(x);
	const struct run_io io = { .in_fd = -1,
				   .cancel_fd = x->job->cancel_fd,
				   .out = &r->out,
				   .err = &r->err };
	struct run_end end;

	guest.argv = (const char *const *)x->plan.compile;
	guest.limits = &x->plan.compile_limits;
	guest.cgroup = x->compile_cgroup;
	if (run_guest(&end, x->box, &guest, &io, false, e) < 0)
		return -1;
	*ret_ok = end.how == RUN_EXITED && end.exit_code == 0;
	r->pub.compile_ms = end.wall_ms;
	if (*ret_ok) {
		buf_reset(&r->out);
		buf_reset(&r->err);
		return 0;
	}
	if (x->job->on_output && r->out.len)
		relay(VIAL_STDOUT, r->out.data, r->out.len, x->job);
	if (x->job->on_output && r->err.len)
		relay(VIAL_STDERR, r->err.data, r->err.len, x->job);
	result_set_end(r, &end, "compile");
	return 0;
}

/* The host directories this run may write to: their growth is watched. */
static size_t watched(struct workspace ret[RUN_WATCH_MAX], const struct execution *x)
{
	const struct vial_job *job = x->job;
	size_t count = 0;

	if (x->bare_dir >= 0) /* no file system of its own has a size */
		ret[count++] = (struct workspace){ .fd = x->bare_dir };
	for (size_t i = 0; i < job->dir_count && count < RUN_WATCH_MAX; i++)
		if (job->dirs[i].writable && (job->dirs[i].inside || job->writable))
			ret[count++] = (struct workspace){ .fd = job->dirs[i].fd };
	return count;
}

static int run(struct execution *x, struct result *r, struct err *e)
{
	const struct vial_job *job = x->job;
	struct guest_spec guest = guest_of(x);
	struct workspace watch[RUN_WATCH_MAX];
	size_t watch_count = watched(watch, x);
	struct limits limits = job->limits;

	if (watch_count && limits.file_bytes > limits.workspace_bytes)
		limits.file_bytes =
			limits.workspace_bytes; /* exact for each file, where the sum is not */
	const struct run_io io = {
		.in = job->stdin_bytes,
		.in_len = job->stdin_len,
		.in_fd = job->stdin_fd,
		.cancel_fd = job->cancel_fd,
		.out = &r->out,
		.err = &r->err,
		.on_output = job->on_output ? relay : NULL,
		.arg = x->job,
		.watch = watch,
		.watch_count = watch_count,
	};
	struct run_end end;

	guest.argv = (const char *const *)x->plan.run;
	guest.limits = &limits;
	guest.data_bytes = x->plan.data_bytes;
	guest.cgroup = x->cgroup;
	if (run_guest(&end, x->box, &guest, &io, true, e) < 0)
		return -1;
	x->emptied = end.emptied;
	result_set_end(r, &end, "run");
	return 0;
}

int vial_run(const struct vial_result **ret, struct vial_job *job, struct vial_error *error)
{
	AUTO(execution_done)
	struct execution x = { .job = job,
			       .host = job->host,
			       .lease.fd = -1,
			       .bare_dir = -1,
			       .outlet = { .channel = -1, .pidfd = -1, .lease.fd = -1 } };
	auto_result struct result *r = NULL;
	struct err *e = err_of(error);
	bool go_on = true;

	if (job_check(job, e) < 0 || job_hear_cancel(job, e) < 0 ||
	    result_create(&r, &job->limits, e) < 0)
		return -1;
	if (prepare(&x, e) < 0)
		return -1;
	if (x.plan.compile && compile(&x, r, &go_on, e) < 0)
		return -1;
	if (go_on && run(&x, r, e) < 0)
		return -1;
	if (job_hosts(job))
		r->pub.network = outlet_close(&x.outlet);
	result_read_error(r, job->runtime);
	if (result_collect(r, &x.workspace, &x.mark, job, e) < 0)
		return -1;
	*ret = &take_ptr(&r)->pub;
	return 0;
}
