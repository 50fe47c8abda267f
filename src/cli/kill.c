/*
 * kill - vial kill: end what the local daemon is running.
 */
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/member.h"
#include "cli/options.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_SOME = 1 }; /* some were not there to be killed */

struct request {
	bool all;
};

static const struct option rows[] = {
	{ "all", 0, NULL, "every run there is", offsetof(struct request, all), NULL },
};

/* Everything that runs now; what has ended by itself meanwhile was to end anyway. */
static int kill_all(struct err *e)
{
	auto_object struct json_object *answer = NULL;
	const struct json_object *runs;
	size_t count;

	if (daemon_call(&answer, "GET", "/v1/runs", e) < 0 ||
	    member_array(&runs, &count, answer, "runs", e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const char *id;

		if (member_text(&id, member_item(runs, i), "id", e) < 0 ||
		    (daemon_kill(id, e) < 0 && e->code != ERR_GONE))
			return -1;
	}
	return 0;
}

static int kill_named(char *const *ids, struct err *e)
{
	int status = 0;

	for (; *ids; ids++) {
		if (daemon_kill(*ids, e) == 0)
			continue;
		if (e->code != ERR_GONE)
			return -1;
		(void)fprintf(stderr, "vial: %s: no such run\n", *ids); /* an id is plain letters */
		status = EXIT_SOME;
	}
	return status;
}

int kill_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "ID...", "--all", NULL };
	struct request req = { 0 };
	struct options o = { "kill",
			     synopsis,
			     "End runs of the local daemon: the program and all it started. "
			     "vial ps lists their ids.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (req.all == (first < argc)) {
		(void)err_set(&e, ERR_INVALID,
			      req.all ? "--all leaves nothing to name"
				      : "which run? name an id, or --all");
		return cli_report(o.verb, &e);
	}
	status = req.all ? kill_all(&e) : kill_named(argv + first, &e);
	return status < 0 ? cli_report(o.verb, &e) : status;
}
