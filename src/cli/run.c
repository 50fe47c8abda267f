/*
 * run - vial run: one program, one fresh sandbox.
 *
 * request.c has checked what the user said; here it is run, by this process or
 * by the local daemon (remote.c).  Output passes through as it comes (relay.c);
 * what the guest hands back is saved by save.c and told by result.c.
 */
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/relay.h"
#include "cli/remote.h"
#include "cli/request.h"
#include "cli/result.h"
#include "cli/save.h"
#include "cli/term.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

enum { CANCEL_DRAIN_MS = 200, PATIENCE = 2 };

static struct vial_job *running; /* what a signal ends */
static int stop_fd = -1;         /* ... when the daemon runs it */
static volatile sig_atomic_t caught, times_caught;

/* Called by a signal, or by the relay's thread. */
static void cancel(void)
{
	uint64_t one = 1;

	vial_job_cancel(running);
	if (stop_fd >= 0)
		(void)!write(stop_fd, &one, sizeof(one));
}

static void on_signal(int signo)
{
	caught = signo;
	times_caught++;
	if (times_caught <= PATIENCE) {
		cancel();
		return;
	}
	(void)signal(signo, SIG_DFL); /* the user insists */
	(void)raise(signo);
}

/* A handler, not SIG_IGN: only handlers are undone by execve(), and guests inherit the rest. */
static void on_broken_pipe(int signo)
{
	(void)signo;
}

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

static void catch_signals(struct vial_job *job)
{
	struct sigaction end = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction pipe = { .sa_handler = on_broken_pipe, .sa_flags = SA_RESTART };
	struct sigaction old;

	running = job;
	for (size_t i = 0; i < ARRAY_LEN(ending); i++)
		if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup */
			(void)sigaction(ending[i], &end, NULL);
	(void)sigaction(SIGPIPE, &pipe, NULL);
}

static void release_signals(void)
{
	for (size_t i = 0; i < ARRAY_LEN(ending); i++) {
		struct sigaction now;

		if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler == on_signal)
			(void)signal(ending[i], SIG_DFL);
	}
}

static void save_one(struct saved *ret, const struct request *req, int dir_fd,
		     const struct vial_file *file)
{
	struct err e;
	int made;

	if (file->error || file->content.dropped) {
		ret->error = strdup(file->error ? file->error : "too large");
		return;
	}
	if (save_file(dir_fd, file, request_names_export(req, file->path), &e) < 0) {
		ret->error = strdup(e.msg);
		return;
	}
	made = req->export_to ? asprintf(&ret->path, "%s/%s", req->export_to, file->path)
			      : asprintf(&ret->path, "%s", file->path);
	if (made < 0)
		ret->path = NULL;
}

static void tell_saved(const struct saved *saved, const struct vial_file *file)
{
	auto_buf struct buf name = BUF_INIT(8192);
	auto_buf struct buf why = BUF_INIT(8192);
	const char *shown = saved->path ? saved->path : file->path;
	const char *error = saved->error ? saved->error : "no memory";
	size_t len = strlen(shown);

	if (strncmp(error, shown, len) == 0 && strncmp(error + len, ": ", 2) == 0)
		error += len + 2; /* once is enough */
	term_escape(&name, shown, len);
	term_escape(&why, error, strlen(error));
	if (!saved->path)
		(void)fprintf(stderr, "vial: %s: not saved: %s\n", buf_str(&name), buf_str(&why));
	else if (isatty(STDERR_FILENO)) /* for a person only: silence is success */
		(void)fprintf(stderr, "vial: saved %s\n", buf_str(&name));
}

/* False: something was delivered but not saved, or a file asked for by name is not there. */
static bool save_exports(struct saved *saved, const struct request *req, int dir_fd,
			 const struct vial_result *result)
{
	bool ok = true;

	for (size_t i = 0; i < result->export_count; i++) {
		const struct vial_file *file = &result->exports[i];

		save_one(&saved[i], req, dir_fd, file);
		if (!saved[i].path && (!file->error || request_names_export(req, file->path)))
			ok = false;
		if (!req->json)
			tell_saved(&saved[i], file);
	}
	return ok;
}

static int finish(const struct request *req, int dir_fd, const struct vial_result *result,
		  struct err *e)
{
	struct saved *saved = calloc(result->export_count + 1, sizeof(*saved));
	int status = result_exit_code(result), printed = 0;

	if (!saved)
		return err_sys(e, "exports");
	if (!req->json)
		result_print_remarks(result);
	if (!save_exports(saved, req, dir_fd, result) && status == 0 && !req->json)
		status = EXIT_OURS; /* with --json the result says so: the code is the guest's */
	if (req->json)
		printed = result_print_json(result, saved, e);
	for (size_t i = 0; i < result->export_count; i++) {
		free(saved[i].path);
		free(saved[i].error);
	}
	free(saved);
	if (printed < 0 && e->sys == EPIPE)
		return EXIT_BY_SIGNAL + SIGPIPE;
	return printed < 0 ? -1 : status;
}

/* What ran it leaves its result in one of the two. */
struct ending {
	const struct vial_result *local;
	struct answer answer;
	const struct vial_result *result;
};

static void ending_done(struct ending *end)
{
	vial_result_free(end->local);
	answer_done(&end->answer);
}

static int run_here(struct ending *end, const struct request *req, struct err *e)
{
	struct vial_error error;

	if (vial_run(&end->local, req->job, &error) < 0)
		return cli_from_vial(e, &error);
	end->result = end->local;
	return 0;
}

/* 0 when it was run, 1 when it is to be run here. */
static int run_there(struct ending *end, const struct request *req, struct relay *relay,
		     struct err *e)
{
	auto_remote struct remote remote = REMOTE_INIT;
	struct remote_watch watch = { stop_fd, relay ? relay_output : NULL, relay };
	struct err why;
	int is_there = remote_prepare(&remote, &why, req, e);

	if (is_there > 0)
		is_there = remote_run(&end->answer, &why, &remote, &watch, e);
	if (is_there < 0)
		return -1;
	if (is_there > 0) {
		end->result = &end->answer.result;
		return 0;
	}
	if (!req->daemon)
		return 1;
	*e = why;
	return err_context(e, "--daemon");
}

/* Returns the exit code. */
static int settle(const struct request *req, const struct ending *end, int dir_fd, int broken,
		  struct err *e)
{
	if (broken == EPIPE)
		return EXIT_BY_SIGNAL + SIGPIPE; /* as if it had written there itself */
	if (broken) {
		errno = broken;
		return err_sys(e, "output");
	}
	if (!end->result)
		return EXIT_BY_SIGNAL + caught; /* before there was anything to tell of */
	if (end->result->outcome == VIAL_CANCELLED && !caught && !req->json)
		(void)fputs("vial: killed by request (vial kill)\n", stderr);

	int status = finish(req, dir_fd, end->result, e);

	return status >= 0 && caught ? EXIT_BY_SIGNAL + caught : status;
}

/* Returns the exit code. */
static int run(const struct request *req, struct err *e)
{
	AUTO(ending_done) struct ending end = { .answer = ANSWER_INIT };
	auto_close int dir_fd = -1;
	auto_close int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct relay *relay = NULL;
	int broken = 0;

	if (stop < 0)
		return err_sys(e, "eventfd");
	if (request_wants_export(req)) {
		dir_fd = save_open_dir(req->export_to ? req->export_to : ".", e);
		if (dir_fd < 0) {
			e->code = ERR_INVALID;
			return err_context(e, "--export-to");
		}
	}
	if (!req->json) {
		if (relay_create(&relay, cancel, e) < 0)
			return -1;
		vial_job_on_output(req->job, relay_output, relay);
	}

	stop_fd = stop;
	catch_signals(req->job);
	int ended = run_there(&end, req, relay, e);
	if (ended > 0)
		ended = run_here(&end, req, e);
	release_signals();

	if (relay)
		broken = relay_drain(relay, caught ? CANCEL_DRAIN_MS : -1);
	if (ended < 0 && !(e->sys == ECANCELED && (caught || broken))) {
		if (e->code != ERR_INVALID && e->code != ERR_BUG)
			e->code = ERR_HOST; /* the input was fine: a tool or a layer is missing */
		return -1;
	}
	return settle(req, &end, dir_fd, broken, e);
}

static int explain(const struct request *req, struct err *e)
{
	auto_remote struct remote remote = REMOTE_INIT;
	auto_free char *plan = NULL;
	char path[DAEMON_PATH_MAX];
	struct vial_error error;
	struct err why;
	int is_there = remote_prepare(&remote, &why, req, e);

	if (is_there < 0)
		return -1;
	if (vial_job_explain(&plan, req->job, &error) < 0)
		return cli_from_vial(e, &error);
	(void)fputs(plan, stdout);
	if (is_there > 0 && daemon_path(path, e) == 0)
		(void)printf("daemon\n  %s runs it\n", path);
	else
		(void)printf("daemon\n  not used: %s\n", why.msg);
	return cli_flush(0);
}

int run_main(int argc, char **argv)
{
	struct request req;
	struct err e;
	int status = request_init(&req, &e);

	if (status == 0)
		status = request_parse(&req, argc, argv, &e);
	if (status == 0 && req.options.wants_help) {
		options_usage(stdout, &req.options);
		status = cli_flush(0);
	} else if (status == 0) {
		status = req.explain ? explain(&req, &e) : run(&req, &e);
	}
	request_done(&req);
	return status < 0 ? cli_report("run", &e) : status;
}
