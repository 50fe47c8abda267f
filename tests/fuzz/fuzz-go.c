/*
 * What an armed guest is told: read to its end, or refused with a reason; files only below the
 * current directory, and words that the interpreters' boot scripts can take apart.
 */
#include "base/own.h"
#include "guest/go.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void check_words(const struct go_words *words)
{
	if (words->len == 0)
		return;
	const char *end = words->bytes + words->len;
	for (const char *at = words->bytes; at < end; at += strlen(at) + 1)
		if (!strchr("nsmae", *at) || !memchr(at, '\0', (size_t)(end - at)))
			abort();
}

static void receive(int control)
{
	struct go_words words = { 0 };
	struct err e = { 0 };

	if (go_receive(&words, control, &e) < 0) {
		if (e.code == ERR_NONE || !e.msg[0] || words.bytes)
			abort();
	} else {
		check_words(&words);
	}
	free(words.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/tmp/vial-fuzz.XXXXXX";
	auto_close int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	auto_close int control = pair[0], sender = pair[1];
	if (before < 0 || send(sender, data, size, MSG_DONTWAIT) != (ssize_t)size ||
	    shutdown(sender, SHUT_WR) < 0 || !mkdtemp(path) || chdir(path) < 0)
		abort();
	receive(control);
	if (fchdir(before) < 0)
		abort();
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
