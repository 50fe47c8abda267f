#include "lib/tree.h"

#include "base/own.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void close_walk(FTS **walk)
{
	if (*walk)
		(void)fts_close(*walk);
}

static FTS *open_walk(const char *path)
{
	char *const roots[] = { (char *)path, NULL };

	return fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
}

int tree_make_parents(const char *path, struct err *e)
{
	auto_free char *part = strdup(path);

	if (!part)
		return err_sys(e, "%.100s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "%.100s", part);
		*slash = '/';
	}
	return 0;
}

uint64_t tree_bytes(const char *path)
{
	AUTO(close_walk) FTS *walk = open_walk(path);
	uint64_t sum = 0;
	FTSENT *at;

	while (walk && (at = fts_read(walk)))
		if (at->fts_info != FTS_DP && at->fts_info != FTS_NS)
			sum += (uint64_t)at->fts_statp->st_blocks * 512;
	return sum;
}

static int clear(const char *path, bool whole, struct err *e)
{
	AUTO(close_walk) FTS *walk = open_walk(path);
	FTSENT *at;

	if (!walk)
		return err_sys(e, "%.100s", path);
	while ((at = fts_read(walk))) {
		if (at->fts_info == FTS_D) {
			/* An owner may have locked himself out. */
			if ((at->fts_statp->st_mode & 0700) != 0700)
				(void)chmod(at->fts_accpath, 0700);
			continue;
		}
		if (at->fts_level == FTS_ROOTLEVEL && !whole)
			continue;
		if (remove(at->fts_accpath) < 0 && errno != ENOENT)
			return err_sys(e, "%.100s", at->fts_path);
	}
	return 0;
}

int tree_remove(const char *path, struct err *e)
{
	return clear(path, true, e);
}

int tree_empty(const char *path, struct err *e)
{
	return clear(path, false, e);
}
