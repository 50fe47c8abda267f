/*
 * main - vial-unpack: the one program that looks into images.
 *
 *   vial-unpack fill STORE                a tar on stdin becomes a directory
 *   vial-unpack inspect STORE [NAME]      what the image is
 *   vial-unpack unpack STORE ROOT [NAME]  its layers become a tree
 *
 * Started by lib/image.c in a sandbox without network or rights, that has these directories and
 * nothing else; by nobody else.  It tells on stdout what it does, a line each, "STEP DONE TOTAL
 * TEXT" with tabs between them; what it found out has a step that begins with "=" (lib/chore.h).
 * That, too, is not believed.
 */
#include "base/own.h"
#include "image/furnish.h"
#include "image/layer.h"
#include "image/pick.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define BYTES_MAX   (16ull << 30)
#define ENTRIES_MAX 1000000u

/* ---- telling --------------------------------------------------------------------------- */

static void tell(const char *step, uint64_t done, uint64_t total, const char *text)
{
	(void)printf("%s\t%llu\t%llu\t%s\n", step, (unsigned long long)done,
		     (unsigned long long)total, text);
	(void)fflush(stdout);
}

/* What would break the line is no fact worth having. */
static void tell_fact(const char *name, const char *text)
{
	for (const char *c = text; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return;
	if (text && *text)
		tell(name, 0, 0, text);
}

/* How far a step is, in MiB of what is read. */
struct meter {
	const char *step;
	char text[64];
	uint64_t done, total, told;
};

static void on_progress(uint64_t bytes, void *arg)
{
	struct meter *m = arg;

	m->done += bytes;
	if (m->done >> 20 == m->told)
		return;
	m->told = m->done >> 20;
	tell(m->step, m->told, m->total >> 20, m->text);
}

/* ---- the three ------------------------------------------------------------------------- */

static int open_root(struct root *ret, const char *path, struct err *e)
{
	ret->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret->left = (struct root_bounds){ BYTES_MAX, ENTRIES_MAX };
	return ret->fd < 0 ? err_sys(e, "%s", path) : 0;
}

static int fill(char **args, struct err *e)
{
	struct root store;
	struct meter meter = { .step = "read" };
	const struct layer_spec tar = {
		.fd = STDIN_FILENO, .bytes_max = BYTES_MAX, .progress = on_progress, .arg = &meter
	};

	if (open_root(&store, args[0], e) < 0)
		return -1;
	return layer_extract(&store, &tar, e) < 0 ? err_context(e, "archive") : 0;
}

static int pick_for_us(struct picked *ret, const struct root *store, const char *name,
		       struct err *e)
{
	static const char *const names[][2] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };
	struct utsname host;

	if (uname(&host) < 0)
		return err_sys(e, "uname");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(host.machine, names[i][0]) == 0)
			return pick(ret, store, name, names[i][1], e);
	return pick(ret, store, name, host.machine, e);
}

static int inspect(char **args, struct err *e)
{
	AUTO(picked_done) struct picked picked = { 0 };
	struct root store;
	char text[128];

	if (open_root(&store, args[0], e) < 0 || pick_for_us(&picked, &store, args[1], e) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "sha256:%s", picked.id.hex);
	tell_fact("=digest", text);
	tell_fact("=name", picked.name);
	(void)snprintf(text, sizeof(text), "%s/%s", picked.config.os, picked.config.arch);
	tell_fact("=platform", text);
	tell_fact("=workdir", picked.config.workdir);
	tell_fact("=command", picked.config.command);
	for (size_t i = 0; i < picked.config.env.count; i++)
		tell_fact("=env", picked.config.env.items[i]);
	return 0;
}

static int unpack_layer(struct root *root, const struct root *store, const struct picked *picked,
			size_t i, struct meter *meter, struct err *e)
{
	struct whiteouts *whiteouts = NULL;
	auto_close int fd = root_open(store, picked->layers[i].path, e);
	const struct layer_spec spec = {
		fd, picked->layers[i].digest, picked->config.diffs[i], BYTES_MAX, on_progress, meter
	};

	if (fd < 0)
		return -1;
	int failed =
		layer_check(&whiteouts, &spec, e) < 0 || layer_apply(root, &spec, whiteouts, e) < 0;
	whiteouts_free(whiteouts);
	return failed ? -1 : 0;
}

static int unpack(char **args, struct err *e)
{
	AUTO(picked_done) struct picked picked = { 0 };
	struct meter meter = { .step = "unpack" };
	struct root store, root;
	char libc[16];

	if (open_root(&store, args[0], e) < 0 || open_root(&root, args[1], e) < 0 ||
	    pick_for_us(&picked, &store, args[2], e) < 0)
		return -1;
	for (size_t i = 0; i < picked.layer_count; i++)
		meter.total += 2 * picked.layers[i].size; /* it is read twice */
	for (size_t i = 0; i < picked.layer_count; i++) {
		(void)snprintf(meter.text, sizeof(meter.text), "layer %zu of %zu", i + 1,
			       picked.layer_count);
		if (unpack_layer(&root, &store, &picked, i, &meter, e) < 0)
			return err_context(e, "%s", meter.text);
	}
	if (furnish(&root, e) < 0)
		return -1;
	if (furnish_libc(libc, sizeof(libc), &root))
		tell_fact("=libc", libc);
	return 0;
}

static const struct {
	const char *name;
	int least, most; /* arguments */
	int (*run)(char **args, struct err *e);
} modes[] = {
	{ "fill", 1, 1, fill },
	{ "inspect", 1, 2, inspect },
	{ "unpack", 2, 3, unpack },
};

int main(int argc, char **argv)
{
	struct err e;

	/* Names are bytes to us; archives that say which alphabet theirs are in mean this one. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)signal(SIGXFSZ, SIG_IGN); /* too large a file is an error like any other */
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name) != 0 || argc - 2 < modes[i].least ||
		    argc - 2 > modes[i].most)
			continue;
		if (modes[i].run(argv + 2, &e) == 0)
			return 0;
		for (char *c = e.msg; *c; c++)
			*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
		tell("failed", 0, 0, e.msg);
		return 1;
	}
	(void)fputs("vial-unpack is part of `vial env build --image`\n", stderr);
	return 2;
}
