/*
 * Layers: what they hold is made below a directory, or refused; nothing is made beside it, no
 * special file and no set-id bit in it.
 */
#include "base/own.h"
#include "image/layer.h"

#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char top[] = "/tmp/vial-fuzz-XXXXXX"; /* holds "root", where layers go, and nothing else */

static void clean(void)
{
	(void)rmdir(top);
}

/* Look at all that was made, and remove it. */
static void judge(const char *path)
{
	char *const roots[] = { (char *)path, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *at;

	while (walk && (at = fts_read(walk))) {
		mode_t mode = at->fts_statp->st_mode;

		if (at->fts_info == FTS_D) {
			if (at->fts_level == 1 && strcmp(at->fts_name, "root") != 0)
				abort();
			continue;
		}
		if (at->fts_info == FTS_ERR || at->fts_info == FTS_DNR || at->fts_info == FTS_NS)
			abort();
		if (!S_ISDIR(mode) && !S_ISREG(mode) && !S_ISLNK(mode))
			abort();
		if (!S_ISLNK(mode) && (mode & 07000))
			abort();
		if (at->fts_level > 0 && remove(at->fts_accpath) < 0)
			abort();
	}
	if (walk)
		(void)fts_close(walk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_made;
	auto_close int fd = memfd_create("layer", MFD_CLOEXEC);
	struct whiteouts *whiteouts = NULL;
	struct err e = { 0 };
	char path[64];

	if (!is_made && (!mkdtemp(top) || atexit(clean) != 0))
		abort();
	is_made = true;
	(void)snprintf(path, sizeof(path), "%s/root", top);
	if (fd < 0 || mkdir(path, 0755) < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct root root = { dir, { 1u << 20, 256 } };
	const struct layer_spec spec = { .fd = fd, .bytes_max = 4u << 20 };
	int failed = layer_check(&whiteouts, &spec, &e);

	/* Twice: what is there already is replaced, or hidden. */
	for (int i = 0; failed == 0 && i < 2; i++)
		failed = layer_apply(&root, &spec, whiteouts, &e);
	if (failed < 0 && (e.code == ERR_NONE || !e.msg[0]))
		abort();
	whiteouts_free(whiteouts);
	judge(top);
	return 0;
}
