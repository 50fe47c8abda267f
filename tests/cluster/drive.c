/*
 * drive - a backend by hand: what it tells is printed, what it shall do is read, a line each.
 *
 *	cluster-drive BACKEND       settings come from the environment, as for `vial serve`
 *
 *	create NAME            made NAME [why not]
 *	remove NAME GRACE_MS   removed NAME [why not]
 *
 *	worker ID PHASE URL WHY, gone ID, synced, trouble WHY: as backend.h has them
 */
#include "backend/backend.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

enum { LINE_MAX_ = 1024 };

struct drive {
	struct loop *loop;
	const struct backend_class *class;
	struct backend *backend;
	struct watch input;
	char line[LINE_MAX_];
	size_t len;
};

struct wish {
	const char *what;
	char name[WORKER_ID_MAX + 1];
};

static void on_worker(const struct backend_worker *w, void *arg)
{
	static const char *const phases[] = { "pending", "running", "ended" };

	(void)arg;
	printf("worker %s %s %s %s\n", w->id, phases[w->phase], w->url ? w->url : "-",
	       w->why ? w->why : "-");
}

static void on_gone(const char *id, void *arg)
{
	(void)arg;
	printf("gone %s\n", id);
}

static void on_synced(void *arg)
{
	(void)arg;
	printf("synced\n");
}

static void on_trouble(const struct err *e, void *arg)
{
	(void)arg;
	printf("trouble %s: %s\n", err_code_name(e->code), e->msg);
}

static void on_done(const struct err *failed, void *arg)
{
	struct wish *wish = arg;

	if (failed)
		printf("%s %s %s: %s\n", wish->what, wish->name, err_code_name(failed->code),
		       failed->msg);
	else
		printf("%s %s\n", wish->what, wish->name);
	free(wish);
}

static void take(struct drive *d, const char *line)
{
	struct wish *wish = calloc(1, sizeof(*wish));
	char verb[16] = "";
	uint64_t grace_ms = 0;
	struct err e;

	if (!wish || sscanf(line, "%15s %253s %" SCNu64, verb, wish->name, &grace_ms) < 2) {
		free(wish);
		return;
	}
	bool is_creation = strcmp(verb, "create") == 0;
	wish->what = is_creation ? "made" : "removed";
	if ((is_creation
		     ? d->class->create(d->backend, wish->name, on_done, wish, &e)
		     : d->class->remove(d->backend, wish->name, grace_ms, on_done, wish, &e)) < 0)
		on_done(&e, wish);
}

static void on_input(struct watch *w, uint32_t events)
{
	struct drive *d = holder_of(w, struct drive, input);
	ssize_t got = read(w->fd, d->line + d->len, sizeof(d->line) - 1 - d->len);
	char *end;

	(void)events;
	if (got <= 0) {
		loop_stop(d->loop);
		return;
	}
	d->len += (size_t)got;
	d->line[d->len] = '\0';
	while ((end = strchr(d->line, '\n'))) {
		*end = '\0';
		take(d, d->line);
		d->len -= (size_t)(end + 1 - d->line);
		memmove(d->line, end + 1, d->len + 1);
	}
}

static int drive(struct drive *d, const char *name, struct settings *settings, struct err *e)
{
	AUTO(http_client_freep) struct http_client *client = NULL;

	if (settings_default(settings, e) < 0 || settings_environment(settings, e) < 0)
		return -1;
	d->class = backend_find(name);
	if (!d->class)
		return err_set(e, ERR_INVALID, "there is no backend '%.40s'", name);
	if (loop_create(&d->loop, e) < 0 || http_client_create(&client, d->loop, e) < 0)
		return -1;
	const struct backend_options options = {
		.loop = d->loop,
		.client = client,
		.settings = &settings->values,
		.fleet = settings->values.fleet,
		.events = { on_worker, on_gone, on_synced, on_trouble, NULL },
	};
	if (d->class->open(&d->backend, &options, e) < 0)
		return -1;
	d->input = (struct watch){ .fd = STDIN_FILENO, .on_ready = on_input };
	d->class->start(d->backend);
	int done = loop_watch(d->loop, &d->input, EPOLLIN, e) < 0 ? -1 : loop_run(d->loop, e);
	d->class->close(d->backend);
	return done;
}

int main(int argc, char **argv)
{
	struct drive d = { 0 };
	struct settings settings = { 0 };
	struct err e;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	int done = argc == 2 ? drive(&d, argv[1], &settings, &e)
			     : err_set(&e, ERR_INVALID, "usage: cluster-drive BACKEND");
	if (done < 0)
		(void)fprintf(stderr, "cluster-drive: %s\n", e.msg);
	loop_free(d.loop);
	settings_done(&settings);
	return done < 0;
}
