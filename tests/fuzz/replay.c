/*
 * replay - run a fuzz target over a corpus, as an ordinary test.
 *
 *	fuzz-units CORPUS...    files, or directories of files; TAP on stdout
 *
 * Each input lies in memory of exactly its size, so that a sanitizer sees a
 * read past its end.  A target that dislikes what it finds aborts.
 */
#include "base/buf.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count, failed;

static void replay_file(const char *path)
{
	auto_buf struct buf text = BUF_INIT(64u << 20);
	struct err e;

	if (buf_add_file(&text, AT_FDCWD, path, &e) < 0) {
		printf("not ok %d - %s: %s\n", ++count, path, e.msg);
		failed++;
		return;
	}
	auto_free uint8_t *exact = malloc(text.len ? text.len : 1);
	if (!exact)
		abort();
	memcpy(exact, buf_str(&text), text.len);
	printf("# %s\n", path); /* the last one named is the one that crashed */
	(void)fflush(stdout);
	(void)LLVMFuzzerTestOneInput(exact, text.len);
	printf("ok %d - %s\n", ++count, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

static void replay_path(const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, NULL, alphasort);

	if (n < 0) {
		replay_file(path);
		return;
	}
	for (int i = 0; i < n; i++) {
		char name[4096];
		if (entries[i]->d_name[0] != '.' &&
		    snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name) <
			    (int)sizeof(name))
			replay_file(name);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay_path(argv[i]);
	printf("1..%d\n", count);
	return failed || count == 0; /* an empty corpus proves nothing */
}
