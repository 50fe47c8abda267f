#include "cli/tree.h"

#include "base/buf.h"
#include "cli/save.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

/* ---- packing ------------------------------------------------------------------------------- */

struct packing {
	struct archive *archive;
	struct archive_entry *entry;
	int (*write)(const char *bytes, size_t len, void *arg, struct err *e);
	void *arg;
	struct err *e;
	bool is_broken; /* *e says why */
};

static la_ssize_t on_packed(struct archive *a, void *arg, const void *bytes, size_t len)
{
	struct packing *p = arg;

	(void)a;
	p->is_broken = p->is_broken || p->write(bytes, len, p->arg, p->e) < 0;
	return p->is_broken ? -1 : (la_ssize_t)len;
}

static int pack_failed(const struct packing *p, const char *name, struct err *e)
{
	if (p->is_broken)
		return -1;
	return err_set(e, ERR_SYS, "%.150s: %s", name, archive_error_string(p->archive));
}

static int pack_content(struct packing *p, const FTSENT *f, struct err *e)
{
	char chunk[64 << 10];
	auto_close int fd = open(f->fts_accpath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	uint64_t left = (uint64_t)f->fts_statp->st_size;

	if (fd < 0)
		return err_sys(e, "%.150s", f->fts_path);
	while (left > 0) {
		ssize_t n = read(fd, chunk, left < sizeof(chunk) ? left : sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "%.150s", f->fts_path);
		if (n == 0)
			return err_set(e, ERR_INVALID, "%.150s became shorter while it was sent",
				       f->fts_path);
		if (archive_write_data(p->archive, chunk, (size_t)n) != n)
			return pack_failed(p, f->fts_path, e);
		left -= (uint64_t)n;
	}
	return 0;
}

static int pack_entry(struct packing *p, const FTSENT *f, const char *name, struct err *e)
{
	struct archive_entry *entry = archive_entry_clear(p->entry);
	const struct stat *st = f->fts_statp;
	char target[PATH_MAX];

	archive_entry_set_pathname(entry, name);
	archive_entry_set_filetype(entry, st->st_mode & S_IFMT);
	archive_entry_set_perm(entry, st->st_mode & 0777);
	archive_entry_set_mtime(entry, st->st_mtim.tv_sec, 0);
	archive_entry_set_size(entry, S_ISREG(st->st_mode) ? st->st_size : 0);
	if (S_ISLNK(st->st_mode)) {
		ssize_t len = readlink(f->fts_accpath, target, sizeof(target) - 1);
		if (len < 0)
			return err_sys(e, "%.150s", f->fts_path);
		target[len] = '\0';
		archive_entry_set_symlink(entry, target);
	}
	if (archive_write_header(p->archive, entry) < ARCHIVE_WARN)
		return pack_failed(p, f->fts_path, e);
	return S_ISREG(st->st_mode) ? pack_content(p, f, e) : 0;
}

static int pack_found(struct packing *p, const FTSENT *f, size_t root, struct err *e)
{
	const char *name = f->fts_path + root + strspn(f->fts_path + root, "/");

	switch (f->fts_info) {
	case FTS_D:
	case FTS_F:
	case FTS_SL:
	case FTS_SLNONE:
		return name[0] ? pack_entry(p, f, name, e) : 0;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		errno = f->fts_errno;
		return err_sys(e, "%.150s", f->fts_path);
	default: /* the end of a directory; fifos and their like stay here */
		return 0;
	}
}

static int pack_all(struct packing *p, const char *path, struct err *e)
{
	char *roots[] = { (char *)path, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	int failed = 0;
	FTSENT *f;

	if (!tree)
		return err_sys(e, "%.150s", path);
	while (failed == 0 && (errno = 0, f = fts_read(tree)))
		failed = pack_found(p, f, strlen(path), e);
	if (failed == 0 && errno)
		failed = err_sys(e, "%.150s", path);
	(void)fts_close(tree);
	if (failed == 0 && archive_write_close(p->archive) != ARCHIVE_OK)
		failed = pack_failed(p, path, e);
	return failed;
}

int tree_pack(const char *path,
	      int (*write)(const char *bytes, size_t len, void *arg, struct err *e), void *arg,
	      struct err *e)
{
	struct packing p = { .archive = archive_write_new(),
			     .entry = archive_entry_new(),
			     .write = write,
			     .arg = arg,
			     .e = e };
	int failed = -1;

	if (!p.archive || !p.entry)
		(void)err_sys(e, "%.150s", path);
	else if (archive_write_set_format_gnutar(p.archive) != ARCHIVE_OK ||
		 archive_write_set_bytes_per_block(p.archive, 64 << 10) != ARCHIVE_OK ||
		 archive_write_set_bytes_in_last_block(p.archive, 1) != ARCHIVE_OK ||
		 archive_write_open(p.archive, &p, NULL, on_packed, NULL) != ARCHIVE_OK)
		(void)pack_failed(&p, path, e);
	else
		failed = pack_all(&p, path, e);
	if (failed < 0 && p.archive)
		(void)archive_write_fail(p.archive);
	archive_write_free(p.archive);
	archive_entry_free(p.entry);
	return failed;
}

/* ---- unpacking ----------------------------------------------------------------------------- */

struct unpacking {
	struct archive *archive;
	int dir;
	ssize_t (*read)(const char **ret, void *arg, struct err *e);
	void *arg;
	struct err broken;
	uint64_t left_out;
	struct buf links; /* path, NUL, target, NUL */
};

static la_ssize_t on_wanted(struct archive *a, void *arg, const void **ret)
{
	struct unpacking *u = arg;
	const char *bytes = NULL;
	ssize_t n = u->read(&bytes, u->arg, &u->broken);

	if (n < 0)
		archive_set_error(a, EIO, "%s", u->broken.msg);
	*ret = bytes;
	return n;
}

static int unpack_failed(const struct unpacking *u, struct err *e)
{
	const char *why = archive_error_string(u->archive);

	if (u->broken.code != ERR_NONE) {
		*e = u->broken;
		return -1;
	}
	return err_set(e, ERR_HOST, "what came is no archive: %s", why ? why : "it is empty");
}

static int unpack_file(struct unpacking *u, struct archive_entry *entry, const char *path,
		       struct err *e)
{
	auto_saving struct saving s = SAVING_INIT;
	la_int64_t at, done = 0;
	const void *bytes;
	size_t len;
	int result;

	if (save_begin(&s, u->dir, path, e) < 0)
		return -1;
	while ((result = archive_read_data_block(u->archive, &bytes, &len, &at)) == ARCHIVE_OK) {
		if (at != done)
			return err_set(e, ERR_HOST, "what came has holes");
		if (save_write(&s, bytes, len, e) < 0)
			return -1;
		done += (la_int64_t)len;
	}
	if (result != ARCHIVE_EOF)
		return unpack_failed(u, e);
	if (archive_entry_perm(entry) & 0100)
		(void)fchmod(s.fd, 0755);
	return save_end(&s, true, e);
}

static int unpack_entry(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
	auto_buf struct buf path = BUF_INIT(64 << 10);
	const char *name = archive_entry_pathname(entry), *target = archive_entry_symlink(entry);
	int made = 0;

	while (name && strncmp(name, "./", 2) == 0)
		name += 2;
	buf_add_str(&path, name ? name : "");
	while (path.len > 1 && path.data[path.len - 1] == '/')
		path.data[--path.len] = '\0';
	if (path.len == 0 || strcmp(path.data, ".") == 0)
		return 0;
	if (archive_entry_filetype(entry) == AE_IFDIR) {
		made = save_dir(u->dir, path.data, e);
	} else if (archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry)) {
		made = unpack_file(u, entry, path.data, e);
	} else if (target) {
		buf_add(&u->links, path.data, path.len + 1);
		buf_add(&u->links, target, strlen(target) + 1);
	} else {
		u->left_out++;
	}
	return made < 0 ? err_context(e, "%.100s", path.data) : 0;
}

static int make_links(struct unpacking *u, struct err *e)
{
	if (u->links.dropped)
		return err_set(e, ERR_LIMIT, "too many links");
	for (size_t at = 0; at < u->links.len;) {
		const char *path = u->links.data + at, *target = path + strlen(path) + 1;

		at += strlen(path) + strlen(target) + 2;
		if (save_link(u->dir, path, target, e) < 0) {
			if (e->code != ERR_DENIED)
				return err_context(e, "%.100s", path);
			u->left_out++;
		}
	}
	return 0;
}

static int unpack(struct unpacking *u, struct err *e)
{
	struct archive_entry *entry;
	int result;

	if (archive_read_support_format_tar(u->archive) != ARCHIVE_OK ||
	    archive_read_open(u->archive, u, NULL, on_wanted, NULL) != ARCHIVE_OK)
		return unpack_failed(u, e);
	while ((result = archive_read_next_header(u->archive, &entry)) >= ARCHIVE_WARN &&
	       result != ARCHIVE_EOF)
		if (unpack_entry(u, entry, e) < 0)
			return -1;
	if (result != ARCHIVE_EOF)
		return unpack_failed(u, e);
	const void *rest;
	la_ssize_t n;
	while ((n = on_wanted(u->archive, u, &rest)) > 0) /* to its real end */
		;
	return n < 0 ? unpack_failed(u, e) : make_links(u, e);
}

int tree_unpack(uint64_t *ret_left_out, int dir_fd,
		ssize_t (*read)(const char **ret, void *arg, struct err *e), void *arg,
		struct err *e)
{
	struct unpacking u = { .archive = archive_read_new(),
			       .dir = dir_fd,
			       .read = read,
			       .arg = arg,
			       .links = BUF_INIT(64u << 20) };
	int failed = u.archive ? unpack(&u, e) : err_sys(e, "tar");

	archive_read_free(u.archive);
	buf_done(&u.links);
	*ret_left_out = u.left_out;
	return failed;
}
