/*
 * run - vial run: one program, one fresh sandbox.
 *
 * request.c has checked what the user said; here it is run.  Output passes
 * through as it comes (relay.c); what the guest hands back is saved by save.c
 * and told by result.c.
 */
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/relay.h"
#include "cli/request.h"
#include "cli/result.h"
#include "cli/save.h"
#include "cli/term.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { CANCEL_DRAIN_MS = 200, PATIENCE = 2 };

static struct vial_job *running; /* what a signal ends */
static volatile sig_atomic_t caught, times_caught;

static void on_signal(int signo)
{
	caught = signo;
	times_caught++;
	if (times_caught <= PATIENCE) {
		vial_job_cancel(running);
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

/* Returns the exit code. */
static int run(const struct request *req, struct err *e)
{
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	auto_close int dir_fd = -1;
	struct relay *relay = NULL;
	struct vial_error error;
	int broken = 0;

	if (request_wants_export(req)) {
		dir_fd = save_open_dir(req->export_to ? req->export_to : ".", e);
		if (dir_fd < 0) {
			e->code = ERR_INVALID;
			return err_context(e, "--export-to");
		}
	}
	if (!req->json) {
		if (relay_create(&relay, req->job, e) < 0)
			return -1;
		vial_job_on_output(req->job, relay_output, relay);
	}

	catch_signals(req->job);
	int ended = vial_run(&result, req->job, &error);
	release_signals();

	if (relay)
		broken = relay_drain(relay, caught ? CANCEL_DRAIN_MS : -1);
	if (ended < 0) {
		(void)cli_from_vial(e, &error);
		if (e->code != ERR_INVALID && e->code != ERR_BUG)
			e->code = ERR_HOST; /* the input was fine: a tool or a layer is missing */
		return -1;
	}
	if (broken == EPIPE)
		return EXIT_BY_SIGNAL + SIGPIPE; /* as if it had written there itself */
	if (broken) {
		errno = broken;
		return err_sys(e, "output");
	}

	int status = finish(req, dir_fd, result, e);

	return status >= 0 && caught ? EXIT_BY_SIGNAL + caught : status;
}

static int explain(const struct request *req, struct err *e)
{
	auto_free char *plan = NULL;
	struct vial_error error;

	if (vial_job_explain(&plan, req->job, &error) < 0)
		return cli_from_vial(e, &error);
	(void)fputs(plan, stdout);
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
