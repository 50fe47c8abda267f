#include "cli/result.h"

#include "base/buf.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/term.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int result_exit_code(const struct vial_result *result)
{
	switch (result->outcome) {
	case VIAL_EXITED:
		return result->exit_code;
	case VIAL_TIMED_OUT:
		return EXIT_TIMEOUT;
	case VIAL_OUT_OF_MEMORY: /* an uncaught MemoryError has a code of its own */
		return result->exit_code >= 0 ? result->exit_code : EXIT_OUT_OF_MEMORY;
	case VIAL_OUT_OF_DISK:
	case VIAL_SIGNALED:
	case VIAL_CANCELLED:
		return EXIT_BY_SIGNAL + (result->signal ? result->signal : SIGKILL);
	}
	return EXIT_OURS;
}

int result_print_json(const struct vial_result *result, const struct saved *saved, struct err *e)
{
	auto_free struct vial_saved *told = calloc(result->export_count + 1, sizeof(*told));
	auto_free char *text = NULL;
	struct vial_error error;
	size_t len;

	if (!told)
		return err_sys(e, "exports");
	for (size_t i = 0; i < result->export_count; i++)
		told[i] = (struct vial_saved){ saved[i].path, saved[i].error };
	if (vial_result_json(&text, &len, result, told, &error) < 0)
		return cli_from_vial(e, &error);
	if (fwrite(text, 1, len, stdout) != len || putchar('\n') == EOF || fflush(stdout) != 0)
		return err_sys(e, "stdout");
	return 0;
}

static const char *show_time(char out[32], double ms)
{
	/* A tenth of a second is near enough to recognise the limit in it. */
	return units_show_duration(out, ms < 1000 ? (uint64_t)ms : (uint64_t)round(ms / 100) * 100);
}

static void print_end(const struct vial_result *r)
{
	const char *where = strcmp(r->stage, "compile") == 0 ? " while compiling" : "";
	const char *name = sigabbrev_np(r->signal);
	char time[32];

	if (r->outcome == VIAL_TIMED_OUT && strcmp(r->limit, "cpu-time") == 0)
		(void)fprintf(stderr, "vial: killed after %s of CPU time%s (cpu-time)\n",
			      show_time(time, r->cpu_ms), where);
	else if (r->outcome == VIAL_TIMED_OUT)
		(void)fprintf(stderr, "vial: killed after %s%s (%s)\n",
			      show_time(time, r->wall_ms), where, r->limit);
	else if (r->outcome == VIAL_OUT_OF_MEMORY)
		(void)fprintf(stderr, "vial: %s out of memory%s (memory)\n",
			      r->exit_code >= 0 ? "ran" : "killed:", where);
	else if (r->outcome == VIAL_OUT_OF_DISK)
		(void)fprintf(stderr, "vial: killed: the workspace was full%s (%s)\n", where,
			      r->limit);
	else if (r->outcome == VIAL_SIGNALED && name)
		(void)fprintf(stderr, "vial: ended by SIG%s%s\n", name, where);
	else if (r->outcome == VIAL_SIGNALED)
		(void)fprintf(stderr, "vial: ended by signal %d%s\n", r->signal, where);
}

static void print_cut(const char *stream, const struct vial_bytes *bytes)
{
	char size[32];

	if (bytes->dropped)
		(void)fprintf(stderr, "vial: %s was cut at %s (%" PRIu64 " bytes dropped)\n",
			      stream, units_show_size(size, bytes->len), bytes->dropped);
}

/* A program may well have kept this to itself. */
static void print_network(const struct vial_network *n)
{
	for (size_t i = 0; n && i < n->refusal_count; i++) {
		auto_buf struct buf text = BUF_INIT(4096);
		term_escape(&text, n->refusals[i].message, strlen(n->refusals[i].message));
		(void)fprintf(stderr, "vial: network: %s\n", buf_str(&text));
	}
	if (n && n->refused + n->failed > n->refusal_count)
		(void)fprintf(stderr, "vial: network: %" PRIu64 " connections more were refused\n",
			      n->refused + n->failed - n->refusal_count);
}

void result_print_remarks(const struct vial_result *result)
{
	print_cut("stdout", &result->out);
	print_cut("stderr", &result->err);
	print_end(result);
	print_network(result->network);
}
