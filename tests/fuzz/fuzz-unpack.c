/*
 * An archive that is unpacked into a workspace: whatever it is, nothing is made outside, nothing
 * inside but files, directories and links that stay there, and not more than there is room for.
 */
#include "base/own.h"
#include "keeper/filer.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 20, SLACK = 64 << 10 };

static char place[] = "/tmp/vial-fuzz.XXXXXX";
static uint64_t total;

static void check_link(const char *path, int level)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	int depth = level - 2; /* below the workspace: directories on the way to the link */

	if (n <= 0 || target[0] == '/')
		abort();
	target[n] = '\0';
	for (char *rest = target, *part; (part = strsep(&rest, "/"));) {
		if (strcmp(part, "..") == 0)
			depth--;
		else if (*part && strcmp(part, ".") != 0)
			depth++;
		if (depth < 0)
			abort();
	}
}

static int check_and_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)type;
	if (ftw->level == 1 && strcmp(path + ftw->base, "ws") != 0)
		abort();
	if (S_ISLNK(st->st_mode))
		check_link(path, ftw->level);
	else if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		abort();
	if (S_ISREG(st->st_mode))
		total += (uint64_t)st->st_blocks * 512 / st->st_nlink;
	return remove(path);
}

/* As the server does: the request, pieces, the end. */
static void say(int socket, const uint8_t *data, size_t size)
{
	static const struct filer_request unpack = { .kind = FILER_UNPACK, .max = ROOM };
	static struct filer_answer piece;
	bool sent = send(socket, &unpack, sizeof(unpack), 0) == sizeof(unpack);

	for (size_t n; sent && size > 0; data += n, size -= n) {
		n = size < FILER_CHUNK ? size : FILER_CHUNK;
		piece.kind = FILER_DATA;
		piece.len = (uint32_t)n;
		memcpy(piece.bytes, data, n);
		sent = send(socket, &piece, FILER_HEAD + n, 0) == (ssize_t)(FILER_HEAD + n);
	}
	piece.kind = FILER_END;
	piece.len = 0;
	if (!sent || send(socket, &piece, FILER_HEAD, 0) != (ssize_t)FILER_HEAD ||
	    shutdown(socket, SHUT_WR) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct filer_answer answer;
	char path[sizeof(place) + 4];
	int pair[2];

	memcpy(place + sizeof(place) - 7, "XXXXXX", 6);
	if (size > 3 * FILER_CHUNK)
		return -1;
	if (!mkdtemp(place) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	(void)snprintf(path, sizeof(path), "%s/ws", place);
	if (mkdir(path, 0755) < 0)
		abort();
	{
		auto_close int ours = pair[0], theirs = pair[1];
		auto_close int ws = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		say(ours, data, size);
		if (filer_main(theirs, ws) != 0)
			abort();
		ssize_t n = recv(ours, &answer, sizeof(answer), MSG_DONTWAIT);
		if (n < (ssize_t)FILER_HEAD ||
		    (answer.kind != FILER_END && answer.kind != FILER_ERROR))
			abort();
	}
	total = 0;
	if (nftw(place, check_and_remove, 16, FTW_DEPTH | FTW_PHYS) != 0 || total > ROOM + SLACK)
		abort();
	return 0;
}
