/*
 * spawn - start commands and time them, adding as little as possible of its own.
 *
 *	bench-spawn rounds N GAP_MS STRETCH,... < commands   each so often in a round
 *	bench-spawn storm MILLISECONDS WIDTH < commands      the first, WIDTH at once
 *
 * Commands come on standard input: each word ended by a NUL, each command by an
 * empty word.  The word "%n" becomes a name that no other run has.  Commands run
 * with /dev/null as all of their standard streams.  A command "@ask SOCKET WORD REQUEST..."
 * starts nothing: it sends the request to a Unix socket, over a connection that is kept, and is
 * over when the answer is there: a line, or what an HTTP answer's Content-Length says.  It succeeds
 * if the answer has the word in it.  Of several requests each connection has one.  "@after SOCKET
 * WORD FIRST REQUEST" asks something else first, which is not timed; "@call SOCKET WORD REQUEST"
 * asks for a stream, and answers the one callback in it over a second connection.
 *
 * rounds prints "COMMAND MICROSECONDS STATUS" per run, from before the spawn until
 * the wait returned; storm prints "RUNS FAILED MICROSECONDS" in the end.  In each round
 * the order of commands is drawn anew, so that what one command leaves to the kernel (network
 * namespaces are dismantled after the exit) falls on all others alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

extern char **environ;

enum { WIDTH_MAX = 64, REST_MS = 100 };

struct conversation {
	int fd; /* 0: not open yet */
	size_t len;
	char answer[16384];
};

struct command {
	char *words[128]; /* NULL-terminated */
	size_t count;
	struct conversation *talks[WIDTH_MAX];
};

static struct command commands[32];
static size_t command_count;
static char text[65536]; /* what the words point into */
static FILE *out, *complaints;

static _Noreturn void fail(const char *what)
{
	fprintf(complaints, "bench-spawn: %s: %s\n", what, errno ? strerror(errno) : "malformed");
	exit(2);
}

static int64_t now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void add_word(char *word)
{
	struct command *command = &commands[command_count];

	errno = 0;
	if (command_count == ARRAY_LEN(commands))
		fail("commands");
	if (*word == '\0') {
		if (command->count == 0)
			fail("empty command");
		command_count++;
		return;
	}
	if (command->count + 1 == ARRAY_LEN(command->words))
		fail(command->words[0]);
	command->words[command->count++] = word;
}

static void read_commands(void)
{
	size_t len = fread(text, 1, sizeof(text), stdin);

	errno = 0;
	if (len < 2 || len == sizeof(text) || text[len - 1] != '\0')
		fail("standard input");
	for (char *word = text; word < text + len; word += strlen(word) + 1)
		add_word(word);
	if (text[len - 2] != '\0')
		fail("last command");
}

static pid_t start(const struct command *command)
{
	static unsigned long number;
	char name[64];
	char *words[ARRAY_LEN(command->words)];
	pid_t pid;

	(void)snprintf(name, sizeof(name), "bench-%ld-%lu", (long)getpid(), number++);
	for (size_t i = 0; i <= command->count; i++) {
		words[i] = command->words[i];
		if (words[i] && strcmp(words[i], "%n") == 0)
			words[i] = name;
	}
	/* glibc's is a vfork: the child borrows our memory until it has exec'd. */
	errno = posix_spawn(&pid, words[0], NULL, NULL, words, environ);
	if (errno)
		fail(words[0]);
	return pid;
}

static int finish(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			fail("wait");
	return status;
}

/* ---- asking a daemon --------------------------------------------------------------------- */

static int is_a(const struct command *command, const char *kind)
{
	return command->count > 3 && strcmp(command->words[0], kind) == 0;
}

static struct conversation *talk_of(struct command *command, size_t which)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct conversation *talk = command->talks[which];

	if (talk)
		return talk;
	talk = command->talks[which] = calloc(1, sizeof(*talk));
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", command->words[1]);
	if (talk)
		talk->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!talk || talk->fd < 0 || connect(talk->fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		fail(command->words[1]);
	return talk;
}

static void put(const struct command *command, struct conversation *talk, const char *request)
{
	size_t len = strlen(request);

	talk->len = 0;
	if (write(talk->fd, request, len) != (ssize_t)len)
		fail(command->words[1]);
}

static void put_question(struct command *command, size_t which)
{
	put(command, command->talks[which], command->words[3 + which % (command->count - 3)]);
}

static void take(const struct command *command, struct conversation *talk)
{
	ssize_t n = read(talk->fd, talk->answer + talk->len, sizeof(talk->answer) - talk->len - 1);

	if (n <= 0)
		fail(command->words[1]);
	talk->len += (size_t)n;
	talk->answer[talk->len] = '\0';
}

/* Takes what is there; true when the answer is complete. */
static int has_answer(const struct command *command, struct conversation *talk)
{
	static const char last_chunk[] = "\r\n0\r\n\r\n";
	const char *body, *length;

	take(command, talk);
	if (strncmp(talk->answer, "HTTP/", 5) != 0)
		return talk->answer[talk->len - 1] == '\n';
	body = strstr(talk->answer, "\r\n\r\n");
	length = strcasestr(talk->answer, "\r\nContent-Length:");
	if (!body || !length)
		return body && strstr(body, last_chunk);
	return (size_t)(body + 4 - talk->answer) + strtoul(length + 17, NULL, 10) <= talk->len;
}

/* Microseconds; -1: the answer was wrong. */
static int64_t ask(struct command *command, const char *request)
{
	struct conversation *talk = talk_of(command, 0);
	int64_t begin = now_us();

	put(command, talk, request);
	while (!has_answer(command, talk))
		continue;
	return strstr(talk->answer, command->words[2]) ? now_us() - begin : -1;
}

static int64_t ask_after(struct command *command)
{
	return ask(command, command->words[3]) < 0 ? -1 : ask(command, command->words[4]);
}

static const char *find(const struct command *command, struct conversation *talk, const char *what)
{
	const char *at;

	talk->answer[talk->len] = '\0';
	while (!(at = strstr(talk->answer, what)))
		take(command, talk);
	return at + strlen(what);
}

static int64_t ask_with_call(struct command *command)
{
	struct conversation *talk = talk_of(command, 0), *other = talk_of(command, 1);
	static const char value[] = "{\"value\": 1}";
	int64_t begin = now_us();
	char request[512];

	put(command, talk, command->words[3]);
	unsigned long call = strtoul(find(command, talk, "\"call\":"), NULL, 10);
	const char *id = find(command, talk, "\"id\":\"");
	(void)snprintf(request, sizeof(request),
		       "POST /v1/runs/%.*s/calls/%lu HTTP/1.1\r\nHost: localhost\r\n"
		       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		       (int)strcspn(id, "\""), id, call, strlen(value), value);
	put(command, other, request);
	while (!has_answer(command, talk))
		continue;
	int64_t end = now_us();
	while (!has_answer(command, other))
		continue;
	return strstr(talk->answer, command->words[2]) ? end - begin : -1;
}

static void question_storm(struct command *command, long milliseconds, long width)
{
	int64_t begin = now_us(), stop = begin + milliseconds * 1000, end = begin;
	struct pollfd fds[WIDTH_MAX];
	long running = 0, runs = 0, failed = 0;

	errno = 0;
	if (width > WIDTH_MAX)
		fail("width");
	for (; running < width; running++) {
		fds[running] = (struct pollfd){ talk_of(command, (size_t)running)->fd, POLLIN, 0 };
		put_question(command, (size_t)running);
	}
	while (running > 0) {
		if (poll(fds, (nfds_t)width, -1) < 0)
			fail("poll");
		for (long i = 0; i < width; i++) {
			struct conversation *talk = command->talks[i];
			if (!fds[i].revents || !has_answer(command, talk))
				continue;
			runs++;
			failed += strstr(talk->answer, command->words[2]) == NULL;
			end = now_us();
			if (end < stop) {
				put_question(command, (size_t)i);
			} else {
				fds[i].fd = -1;
				running--;
			}
		}
	}
	fprintf(out, "%ld %ld %lld\n", runs, failed, (long long)(end - begin));
}

/* ---- rounds and storms ------------------------------------------------------------------- */

/* A permutation of 0..count-1 from a generator that starts alike in every run of the bench. */
static void shuffle(size_t *order, size_t count)
{
	static uint64_t state = 88172645463325252u;

	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t i = count - 1; i > 0; i--) {
		size_t other, held = order[i];

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		other = state % (i + 1);
		order[i] = order[other];
		order[other] = held;
	}
}

static int64_t spawn(struct command *command)
{
	int64_t begin = now_us();

	return finish(start(command)) == 0 ? now_us() - begin : -1;
}

static void run_once(size_t which)
{
	struct command *command = &commands[which];
	int64_t us = is_a(command, "@ask")     ? ask(command, command->words[3])
		     : is_a(command, "@after") ? ask_after(command)
		     : is_a(command, "@call")  ? ask_with_call(command)
					       : spawn(command);

	fprintf(out, "%zu %lld %d\n", which, (long long)us, us < 0);
}

static void rounds(long count, long gap_ms, const long *stretches)
{
	/* At least what a daemon needs to be ready again after another command's stretch. */
	const long rest_ms = gap_ms > 0 ? gap_ms : REST_MS;
	const struct timespec rest = { rest_ms / 1000, rest_ms % 1000 * 1000000 };
	size_t order[ARRAY_LEN(commands)];

	while (count-- > 0) {
		shuffle(order, command_count);
		for (size_t i = 0; i < command_count; i++)
			for (long n = 0; n < stretches[order[i]]; n++) {
				if (gap_ms > 0 || n == 0)
					(void)nanosleep(&rest, NULL);
				run_once(order[i]);
			}
		if (fflush(out) != 0)
			fail("output");
	}
}

static void storm(long milliseconds, long width)
{
	int64_t begin = now_us(), stop = begin + milliseconds * 1000, end = begin;
	long running = 0, runs = 0, failed = 0;

	if (is_a(&commands[0], "@ask")) {
		question_storm(&commands[0], milliseconds, width);
		return;
	}
	while (running < width) {
		(void)start(&commands[0]);
		running++;
	}
	while (running > 0) {
		runs++;
		failed += finish(-1) != 0;
		running--;
		end = now_us();
		if (end < stop) {
			(void)start(&commands[0]);
			running++;
		}
	}
	fprintf(out, "%ld %ld %lld\n", runs, failed, (long long)(end - begin));
}

static long number(const char *word)
{
	char *end;
	long value = strtol(word, &end, 10);

	errno = 0;
	if (end == word || *end || value < 0 || value > 10000000)
		fail(word);
	return value;
}

/* Our own streams become /dev/null: children inherit them without any work. */
static void detach_streams(void)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int err_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	complaints = stderr;
	if (null_fd < 0 || out_fd < 0 || err_fd < 0)
		fail("standard streams");
	out = fdopen(out_fd, "w");
	complaints = fdopen(err_fd, "w");
	if (!out || !complaints)
		exit(2);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null_fd, fd) < 0)
			fail("/dev/null");
}

/* One for each command. */
static void read_stretches(long ret[ARRAY_LEN(commands)], char *list)
{
	for (size_t i = 0; i < command_count; i++) {
		char *word = strsep(&list, ",");

		if (!word)
			fail("too few stretches");
		ret[i] = number(word);
	}
}

int main(int argc, char **argv)
{
	long stretches[ARRAY_LEN(commands)];
	int is_rounds = argc == 5 && strcmp(argv[1], "rounds") == 0;
	int is_storm = argc == 4 && strcmp(argv[1], "storm") == 0;

	if (!is_rounds && !is_storm) {
		fprintf(stderr, "usage: bench-spawn rounds N GAP_MS STRETCH,... | "
				"storm MILLISECONDS WIDTH\n");
		return 2;
	}
	complaints = stderr;
	read_commands();
	detach_streams();
	if (is_rounds) {
		read_stretches(stretches, argv[4]);
		rounds(number(argv[2]), number(argv[3]), stretches);
	} else {
		storm(number(argv[2]), number(argv[3]));
	}
	return fclose(out) == 0 ? 0 : 2;
}
