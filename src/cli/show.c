#include "cli/show.h"

#include "base/base64.h"
#include "cli/cli.h"
#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { PICTURES_MAX = 10000, EXIT_FAILED = 1 };

static const struct {
	const char *mime, *suffix;
	bool is_text;
} pictures[] = {
	{ "image/png", "png", false },
	{ "image/jpeg", "jpg", false },
	{ "image/svg+xml", "svg", true },
};

/* A name that nobody has: what is there is never written over, whatever it is. */
static int create(char name[32], struct show *show, const char *suffix)
{
	int fd = -1;

	while (fd < 0 && show->saved < PICTURES_MAX) {
		(void)snprintf(name, 32, "picture-%u.%s", ++show->saved, suffix);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

static void save(struct show *show, const char *suffix, const char *bytes, size_t len)
{
	char name[32];
	auto_close int fd = create(name, show, suffix);

	while (fd >= 0 && len > 0) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		bytes += n;
		len -= (size_t)n;
	}
	if (fd < 0 || len > 0)
		(void)fprintf(stderr, "vial: a picture could not be saved: %s\n", strerror(errno));
	else
		(void)printf("[%s]\n", name);
}

/* True: it was one, and is dealt with. */
static bool save_picture(struct show *show, const struct json_object *data)
{
	struct err ignored;

	for (size_t i = 0; i < ARRAY_LEN(pictures); i++) {
		auto_buf struct buf bytes = BUF_INIT(64u << 20);
		const char *text;
		size_t len;

		if (member_is_null(data, pictures[i].mime) ||
		    member_bytes(&text, &len, data, pictures[i].mime, &ignored) < 0)
			continue;
		if (pictures[i].is_text)
			save(show, pictures[i].suffix, text, len);
		else if (base64_decode(&bytes, text, len, &ignored) == 0)
			save(show, pictures[i].suffix, buf_str(&bytes), bytes.len);
		return true;
	}
	return false;
}

/* Line by line, and nothing in it that a terminal would obey. */
static void print_text(FILE *f, const char *text)
{
	while (*text) {
		auto_buf struct buf line = BUF_INIT(1u << 20);
		size_t len = strcspn(text, "\n");

		term_escape(&line, text, len);
		(void)fprintf(f, "%s\n", buf_str(&line));
		text += len + (text[len] == '\n');
	}
}

void show_display(const struct json_object *data, void *arg)
{
	struct show *show = arg;
	const char *text;
	struct err ignored;

	if (!save_picture(show, data) && !member_is_null(data, "text/plain") &&
	    member_text(&text, data, "text/plain", &ignored) == 0)
		print_text(stdout, text);
	(void)fflush(stdout);
}

static void show_end(const struct live_answer *a)
{
	if (strcmp(a->outcome, "timed_out") == 0)
		(void)fputs("vial: the time limit was reached\n", stderr);
	else if (strcmp(a->outcome, "out_of_memory") == 0)
		(void)fputs("vial: the memory limit was reached\n", stderr);
	else if (a->signal)
		(void)fprintf(stderr, "vial: ended by signal %d (%s)\n", a->signal,
			      strsignal(a->signal));
	if (strcmp(a->state, "lost") == 0)
		(void)fputs("vial: the interpreter ended; the next step finds a fresh one\n",
			    stderr);
	else if (strcmp(a->state, "rolled_back") == 0)
		(void)fputs("vial: the step was taken back; the session goes on\n", stderr);
}

int show_answer(struct show *show, const struct live_answer *a)
{
	if (a->exception && a->traceback[0])
		print_text(stderr, a->traceback);
	if (!show->is_quiet && !(a->data && save_picture(show, a->data)) && a->value)
		print_text(stdout, a->value);
	(void)fflush(stdout);
	show_end(a);
	if (strcmp(a->outcome, "timed_out") == 0)
		return EXIT_TIMEOUT;
	if (strcmp(a->outcome, "out_of_memory") == 0)
		return EXIT_OUT_OF_MEMORY;
	if (a->signal)
		return EXIT_BY_SIGNAL + a->signal;
	if (a->exception)
		return EXIT_FAILED;
	return a->exit_code > 0 ? a->exit_code : 0;
}
