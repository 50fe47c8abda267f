/*
 * filer_archive - whole trees of a workspace, packed and unpacked.
 *
 * libarchive reads and writes the formats; what is done about an entry is decided here.  An archive
 * may be anybody's: nothing is made outside of the directory it is unpacked in, no device, fifo or
 * socket is made at all, links stay inside, and what it may grow to is bounded by the workspace
 * and counted while it is read.  A tree may be hostile, too: only regular files are read, as
 * long as they had been when they were found; one that has become shorter ends the archive.
 */
#include "base/own.h"
#include "keeper/filer_impl.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

enum { SLACK = 64 << 20 }; /* of an archive, for what is not the files' own */

/* Names are bytes to us; archives that say which alphabet theirs are in mean this one. */
void filer_prepare(void)
{
	(void)setlocale(LC_CTYPE, "C.UTF-8");
}

/* ---- packing --------------------------------------------------------------------------- */

struct packing {
	struct filer *filer;
	struct archive *archive;
	struct archive_entry *entry;
	uint64_t entries;
	char path[PATH_MAX];
	char chunk[FILER_CHUNK];
};

static la_ssize_t on_packed(struct archive *a, void *arg, const void *bytes, size_t len)
{
	struct filer *f = arg;

	(void)a;
	for (size_t at = 0, n; at < len && !f->is_gone; at += n) {
		n = len - at < FILER_CHUNK ? len - at : FILER_CHUNK;
		memcpy(f->answer.bytes, (const char *)bytes + at, n);
		filer_say(f, FILER_DATA, n);
	}
	return f->is_gone ? -1 : (la_ssize_t)len;
}

static int pack_failed(struct packing *p, struct err *e)
{
	return err_set(e, ERR_SYS, "%.100s: %s", p->path, archive_error_string(p->archive));
}

static int pack_bytes(struct packing *p, int fd, uint64_t left, struct err *e)
{
	while (left > 0) {
		ssize_t n = read(fd, p->chunk, left < FILER_CHUNK ? left : FILER_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "%.100s", p->path);
		if (n == 0)
			return err_set(e, ERR_GONE, "%.100s: became shorter", p->path);
		if (archive_write_data(p->archive, p->chunk, (size_t)n) != n)
			return pack_failed(p, e);
		left -= (uint64_t)n;
	}
	return 0;
}

static int pack_head(struct packing *p, const struct stat *st, const char *target, struct err *e)
{
	struct archive_entry *entry = archive_entry_clear(p->entry);

	archive_entry_set_pathname(entry, p->path);
	archive_entry_set_filetype(entry, st->st_mode & S_IFMT);
	archive_entry_set_perm(entry, st->st_mode & 0777);
	archive_entry_set_mtime(entry, st->st_mtim.tv_sec, 0);
	archive_entry_set_size(entry, S_ISREG(st->st_mode) ? st->st_size : 0);
	if (target)
		archive_entry_set_symlink(entry, target);
	return archive_write_header(p->archive, entry) < ARCHIVE_WARN ? pack_failed(p, e) : 0;
}

static int pack_file(struct packing *p, int dir, const char *name, struct err *e)
{
	auto_close int fd =
		workspace_open_beneath(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO))
		return 0; /* it is something else by now */
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%.100s", p->path);
	if (!S_ISREG(st.st_mode))
		return 0;
	return pack_head(p, &st, NULL, e) < 0 ? -1 : pack_bytes(p, fd, (uint64_t)st.st_size, e);
}

static int pack_dir(struct packing *p, int dir_fd, size_t used, int depth, struct err *e);

static int pack_entry(struct packing *p, int dir, const char *name, size_t used, int depth,
		      struct err *e)
{
	int n = snprintf(p->path + used, sizeof(p->path) - used, "%s%s", used ? "/" : "", name);
	char target[PATH_MAX];
	struct stat st;

	if (n < 0 || (size_t)n >= sizeof(p->path) - used || depth > WORKSPACE_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "%.100s...: too deep to be packed", p->path);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%.100s", p->path);
	if (S_ISREG(st.st_mode))
		return pack_file(p, dir, name, e);
	if (S_ISLNK(st.st_mode)) {
		ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);
		target[len < 0 ? 0 : len] = '\0';
		return len > 0 ? pack_head(p, &st, target, e) : 0;
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	int sub = workspace_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (sub < 0)
		return err_sys(e, "%.100s", p->path);
	if (pack_head(p, &st, NULL, e) < 0) {
		(void)close(sub);
		return -1;
	}
	return pack_dir(p, sub, used + (size_t)n, depth + 1, e);
}

/* Takes dir_fd. */
static int pack_dir(struct packing *p, int dir_fd, size_t used, int depth, struct err *e)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *d;
	int failed = 0;

	if (!dir) {
		(void)close(dir_fd);
		return err_sys(e, "%.100s", p->path);
	}
	while (failed == 0 && !p->filer->is_gone && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		failed = ++p->entries > WORKSPACE_VISITS_MAX
				 ? err_set(e, ERR_LIMIT, "too many files to be packed")
				 : pack_entry(p, dirfd(dir), d->d_name, used, depth, e);
		p->path[used] = '\0';
	}
	(void)closedir(dir);
	return failed;
}

static bool add_size(const struct workspace_entry *entry, void *arg)
{
	uint64_t *total = arg;

	*total += entry->size < UINT64_MAX - *total ? entry->size : UINT64_MAX - *total;
	return true;
}

/* Files with holes read as more than they take: such a tree is not for somebody else's disk. */
static int check_size(const struct filer *f, int dir, struct err *e)
{
	const struct workspace below = { .fd = dir };
	uint64_t total = 0;

	if (!workspace_walk(&below, NULL, add_size, &total))
		return err_set(e, ERR_LIMIT, "some of it is too deep, too much, or locked");
	if (total > f->request.max)
		return err_set(e, ERR_LIMIT, "its files read as more than the workspace holds");
	return 0;
}

static int set_format(struct archive *a, uint32_t format)
{
	if (format == FILER_ZIP)
		return archive_write_set_format_zip(a);
	if (format == FILER_TAR_GZ &&
	    (archive_write_add_filter_gzip(a) != ARCHIVE_OK ||
	     archive_write_set_filter_option(a, "gzip", "compression-level", "3") != ARCHIVE_OK))
		return ARCHIVE_FATAL;
	return archive_write_set_format_gnutar(a); /* any name, whatever its alphabet */
}

static int pack(struct packing *p, int dir, struct err *e)
{
	struct filer *f = p->filer;

	if (set_format(p->archive, f->request.format) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(p->archive, FILER_CHUNK) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(p->archive, 1) != ARCHIVE_OK ||
	    archive_write_open(p->archive, f, NULL, on_packed, NULL) != ARCHIVE_OK) {
		(void)close(dir);
		return pack_failed(p, e);
	}
	if (pack_dir(p, dir, 0, 0, e) < 0)
		return -1;
	return archive_write_close(p->archive) != ARCHIVE_OK ? pack_failed(p, e) : 0;
}

int filer_pack(struct filer *f, struct err *e)
{
	static struct packing p;
	int dir = filer_open_dir(f, e);

	if (dir < 0)
		return -1;
	auto_close int again = workspace_open_beneath(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	if (again < 0 || check_size(f, again, e) < 0) {
		(void)close(dir);
		return again < 0 ? err_sys(e, "%.100s", f->request.name) : -1;
	}
	p = (struct packing){ .filer = f,
			      .archive = archive_write_new(),
			      .entry = archive_entry_new() };
	int failed = p.archive && p.entry ? pack(&p, dir, e) : err_set(e, ERR_SYS, "no memory");
	if (failed < 0 && p.archive)
		(void)archive_write_fail(p.archive); /* nothing more is said */
	archive_write_free(p.archive);
	archive_entry_free(p.entry);
	if (failed == 0)
		filer_say(f, FILER_END, 0);
	return failed;
}

/* ---- unpacking ------------------------------------------------------------------------- */

struct unpacking {
	struct filer *filer;
	struct archive *archive;
	struct err broken; /* what was wrong with the pieces */
	bool is_over;
	uint64_t bytes, made;
	char path[2 * PATH_MAX];
};

static la_ssize_t on_wanted(struct archive *a, void *arg, const void **ret)
{
	struct unpacking *u = arg;
	ssize_t n = u->is_over ? 0 : filer_receive(u->filer, &u->broken);

	u->is_over = n <= 0;
	if (n < 0)
		archive_set_error(a, EIO, "%s", u->broken.msg);
	*ret = u->filer->piece.bytes;
	return n;
}

static int unpack_failed(struct unpacking *u, struct err *e)
{
	const char *why = archive_error_string(u->archive);

	return err_set(e, ERR_INVALID, "the archive cannot be read: %s", why ? why : "it is none");
}

static int check_growth(struct unpacking *u, struct err *e)
{
	uint64_t read = (uint64_t)archive_filter_bytes(u->archive, 0), max = u->filer->request.max;

	if (u->bytes <= max && read / 2 <= max / 2 + max / 8 + SLACK)
		return 0;
	errno = ENOSPC;
	return err_sys(e, "the archive");
}

/* Where an entry goes: below the directory of the request. */
static int name_entry(struct unpacking *u, const char *name, struct err *e)
{
	const char *base = u->filer->request.name;

	while (name && strncmp(name, "./", 2) == 0)
		name += 2 + strspn(name + 2, "/");
	if (!name || strlen(name) >= PATH_MAX)
		return err_set(e, ERR_INVALID, "the archive has a name that cannot be read");
	(void)snprintf(u->path, sizeof(u->path), "%s%s%s", base, base[0] && name[0] ? "/" : "",
		       name);
	size_t len = strlen(u->path);
	while (len > 0 && name[0] && name[0] != '/' && u->path[len - 1] == '/')
		u->path[--len] = '\0';
	if (strcmp(name, ".") == 0 || name[0] == '\0')
		return 0; /* the directory itself, which is there */
	if (name[0] == '/')
		return err_set(e, ERR_INVALID, "the archive has '%.100s', which is not relative",
			       name);
	return workspace_check_name(u->path, e) < 0 ? -1 : 1;
}

static int make_dir(struct unpacking *u, struct err *e)
{
	const char *leaf = NULL;
	auto_close int dir = workspace_open_parent(u->filer->workspace.fd, u->path, &leaf, e);
	struct stat st;

	if (dir < 0)
		return -1;
	if (mkdirat(dir, leaf, 0755) == 0)
		return 0;
	(void)err_sys(e, "%.100s", u->path);
	return e->sys == EEXIST && fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			       S_ISDIR(st.st_mode)
		       ? 0
		       : -1;
}

static int write_blocks(struct unpacking *u, struct upload *to, struct err *e)
{
	const void *bytes;
	size_t len;
	la_int64_t at;
	int result;

	while ((result = archive_read_data_block(u->archive, &bytes, &len, &at)) == ARCHIVE_OK) {
		u->bytes += len;
		if (at < 0 || check_growth(u, e) < 0)
			return at < 0 ? unpack_failed(u, e) : -1;
		if (lseek(to->fd, at, SEEK_SET) < 0)
			return err_sys(e, "%.100s", u->path);
		if (upload_write(to, bytes, len, e) < 0)
			return -1;
	}
	return result == ARCHIVE_EOF ? 0 : unpack_failed(u, e);
}

static int make_file(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
	AUTO(upload_done) struct upload to = UPLOAD_INIT;
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = archive_entry_mtime(entry) } };
	la_int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;

	if (size < 0 || (uint64_t)size > u->filer->request.max) {
		errno = ENOSPC;
		return err_sys(e, "%.100s", u->path);
	}
	if (upload_begin(&to, u->filer, u->path, e) < 0 || write_blocks(u, &to, e) < 0)
		return -1;
	if (archive_entry_size_is_set(entry) && ftruncate(to.fd, size) < 0)
		return err_sys(e, "%.100s", u->path);
	if (archive_entry_mtime_is_set(entry))
		(void)futimens(to.fd, times);
	return upload_end(&to, archive_entry_perm(entry) | 0600, e);
}

/* Whether a link at `path` leads to something below the workspace, as far as names can tell. */
static bool stays_inside(const char *path, const char *target)
{
	int depth = 0;

	if (!target || !target[0] || target[0] == '/')
		return false;
	for (; *path; path++)
		depth += *path == '/';
	while (*target && depth >= 0) {
		size_t len = strcspn(target, "/");
		if (len == 2 && target[0] == '.' && target[1] == '.')
			depth--;
		else if (len > 0 && !(len == 1 && target[0] == '.'))
			depth++;
		target += len + (target[len] == '/');
	}
	return depth >= 0;
}

static int make_symlink(struct unpacking *u, const char *target, struct err *e)
{
	const char *leaf = NULL;

	if (!stays_inside(u->path, target))
		return err_set(e, ERR_INVALID, "the archive has the link %.100s, which leads out",
			       u->path);
	auto_close int dir = workspace_open_parent(u->filer->workspace.fd, u->path, &leaf, e);
	if (dir < 0)
		return -1;
	(void)unlinkat(dir, leaf, 0);
	return symlinkat(target, dir, leaf) < 0 ? err_sys(e, "%.100s", u->path) : 0;
}

/* Another name for what the archive has brought before, or was there: a file, or it fails. */
static int make_link(struct unpacking *u, const char *target, struct err *e)
{
	static char path[2 * PATH_MAX];
	const char *leaf = NULL, *from_leaf = NULL;
	struct stat st;

	memcpy(path, u->path, sizeof(path));
	int named = name_entry(u, target, e);
	if (named <= 0)
		return named < 0 ? -1 : err_set(e, ERR_INVALID, "%.100s: a link to nothing", path);
	auto_close int from = filer_open_holder(u->filer, u->path, &from_leaf, e);
	auto_close int dir =
		from < 0 ? -1 : workspace_open_parent(u->filer->workspace.fd, path, &leaf, e);
	if (dir < 0)
		return -1;
	if (fstatat(from, from_leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "%.100s", path);
	/* A link that leads to something inside may lead out from another place. */
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s: a link to what is no file", path);
	if (strcmp(path, u->path) != 0 && ((unlinkat(dir, leaf, 0) < 0 && errno != ENOENT) ||
					   linkat(from, from_leaf, dir, leaf, 0) < 0))
		return err_sys(e, "%.100s", path);
	return 0;
}

static int make_entry(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
	int named = name_entry(u, archive_entry_pathname(entry), e);

	if (named <= 0)
		return named;
	u->made++;
	if (archive_entry_hardlink(entry))
		return make_link(u, archive_entry_hardlink(entry), e);
	switch (archive_entry_filetype(entry)) {
	case AE_IFDIR:
		return make_dir(u, e);
	case AE_IFREG:
		return make_file(u, entry, e);
	case AE_IFLNK:
		return make_symlink(u, archive_entry_symlink(entry), e);
	default:
		return err_set(e, ERR_INVALID,
			       "the archive has %.100s, which is no file, directory or link",
			       u->path);
	}
}

static int unpack(struct unpacking *u, struct err *e)
{
	struct archive *a = u->archive;
	struct archive_entry *entry;
	int result;

	if (archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
	    archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_support_format_zip_streamable(a) != ARCHIVE_OK ||
	    archive_read_open(a, u, NULL, on_wanted, NULL) != ARCHIVE_OK)
		return unpack_failed(u, e);
	while ((result = archive_read_next_header(a, &entry)) >= ARCHIVE_WARN &&
	       result != ARCHIVE_EOF) {
		const char *why = result == ARCHIVE_WARN ? archive_error_string(a) : NULL;
		if (why && (strstr(why, "Pathname") || strstr(why, "Linkname")))
			return unpack_failed(u, e); /* a name is not what it was */
		if (make_entry(u, entry, e) < 0 || check_growth(u, e) < 0)
			return -1;
	}
	if (result != ARCHIVE_EOF)
		return unpack_failed(u, e);
	while (!u->is_over) { /* what may follow an archive is not looked at */
		const void *ignored;
		(void)on_wanted(a, u, &ignored);
	}
	return 0;
}

int filer_unpack(struct filer *f, struct err *e)
{
	static struct unpacking u;

	u = (struct unpacking){ .filer = f, .archive = archive_read_new() };
	if (f->request.name[0]) {
		(void)snprintf(u.path, sizeof(u.path), "%s", f->request.name);
		if (workspace_check_name(u.path, e) < 0 || make_dir(&u, e) < 0)
			return -1;
	}
	int failed = u.archive ? unpack(&u, e) : err_set(e, ERR_SYS, "no memory");
	archive_read_free(u.archive);
	if (u.broken.code != ERR_NONE) {
		*e = u.broken;
		return -1;
	}
	if (failed < 0)
		return -1;
	f->answer.size = u.made;
	filer_say(f, FILER_END, 0);
	return 0;
}
