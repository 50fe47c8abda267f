#include "server/shelf.h"

#include "engine/workspace.h"
#include "server/shelver.h"

#include <string.h>

enum { SHELVED_DEPTH = 4 };

struct shelf_file {
	unsigned holders;
	char *name;
	size_t len;
	char bytes[];
};

struct loan {
	char *program; /* the run's own text, which is nobody's file until it is written over */
	size_t count;
	struct shelf_file *files[SHELF_FILES_MAX];
};

/* ---- files ----------------------------------------------------------------------------- */

static struct shelf_file *file_create(const char *name, const struct vial_bytes *content)
{
	struct shelf_file *f = malloc(sizeof(*f) + content->len);

	if (!f)
		return NULL;
	*f = (struct shelf_file){ .holders = 1, .name = strdup(name), .len = content->len };
	if (!f->name) {
		free(f);
		return NULL;
	}
	if (content->len)
		memcpy(f->bytes, content->data, content->len);
	return f;
}

static void file_release(struct shelf_file *f)
{
	if (--f->holders)
		return;
	free(f->name);
	free(f);
}

static struct shelf_file *find(struct shelf_file *const *files, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(files[i]->name, name) == 0)
			return files[i];
	return NULL;
}

/* Itself and the directories that it is in. */
static size_t depth_of(const char *path)
{
	size_t depth = 1;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		depth++;
	return depth;
}

/* ---- the directory --------------------------------------------------------------------- */

/* What an interpreter makes for itself. */
static bool is_cache(const char *path)
{
	return strstr(path, "__pycache__/");
}

/*
 * The directory may be somebody's home, or a source tree: what is hidden there, or far down, is
 * neither read nor written.  Files of programs that have such names are here alone.
 */
static bool is_ordinary(const char *path)
{
	return depth_of(path) <= SHELVED_DEPTH && path[0] != '.' && !strstr(path, "/.") &&
	       !is_cache(path);
}

static void write_out(const struct shelf *shelf, const struct shelf_file *f)
{
	if (is_ordinary(f->name))
		shelver_put(shelf->shelver, f->name, f->bytes, f->len);
}

static void unlink_out(const struct shelf *shelf, const char *name)
{
	if (is_ordinary(name))
		shelver_remove(shelf->shelver, name);
}

/* ---- what is there --------------------------------------------------------------------- */

static void remove_at(struct shelf *shelf, size_t i)
{
	shelf->bytes -= shelf->files[i]->len;
	file_release(shelf->files[i]);
	shelf->files[i] = shelf->files[--shelf->count];
}

static bool is_below(const char *name, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(name, dir, len) == 0 && name[len] == '/';
}

/* Of the same name; or a file where this one needs a directory; or the other way round. */
static bool is_in_the_way(const char *other, const char *name)
{
	return strcmp(other, name) == 0 || is_below(other, name) || is_below(name, other);
}

static void make_way(struct shelf *shelf, const char *name)
{
	for (size_t i = shelf->count; i-- > 0;) {
		const char *other = shelf->files[i]->name;
		if (!is_in_the_way(other, name))
			continue;
		if (strcmp(other, name) != 0) /* that one is about to be written anew, or removed */
			unlink_out(shelf, other);
		remove_at(shelf, i);
	}
}

/* What cannot be kept leaves what is there as it is. */
static const char *put(struct shelf *shelf, const char *name, const struct vial_bytes *content)
{
	size_t count = 0, bytes = 0; /* of those that stay */

	for (size_t i = 0; i < shelf->count; i++)
		if (!is_in_the_way(shelf->files[i]->name, name)) {
			count++;
			bytes += shelf->files[i]->len;
		}
	if (count == SHELF_FILES_MAX)
		return "there are too many files";
	if (content->len > SHELF_BYTES_MAX - bytes)
		return "there is no room for it";
	struct shelf_file *f = file_create(name, content);
	if (!f)
		return "out of memory";
	make_way(shelf, name);
	shelf->files[shelf->count++] = f;
	shelf->bytes += f->len;
	write_out(shelf, f);
	return NULL;
}

void shelf_done(struct shelf *shelf)
{
	while (shelf->count)
		remove_at(shelf, 0);
}

bool shelf_has(const struct shelf *shelf, const char *name)
{
	for (size_t i = 0; i < shelf->count; i++) {
		const char *other = shelf->files[i]->name;
		if (strcmp(other, name) == 0 || is_below(other, name))
			return true;
	}
	return false;
}

/* ---- lending --------------------------------------------------------------------------- */

void loan_free(struct loan *loan)
{
	if (!loan)
		return;
	for (size_t i = 0; i < loan->count; i++)
		file_release(loan->files[i]);
	free(loan->program);
	free(loan);
}

/* What a workspace has left for files. */
struct space {
	uint64_t bytes, inodes;
};

static bool space_take(struct space *s, const struct shelf_file *f)
{
	enum { PAGE = 4096 };
	uint64_t bytes = ((uint64_t)f->len + PAGE - 1) / PAGE * PAGE;
	uint64_t inodes = depth_of(f->name); /* at the most: directories may be others' too */

	if (bytes > s->bytes || inodes > s->inodes)
		return false;
	s->bytes -= bytes;
	s->inodes -= inodes;
	return true;
}

/* Less a part for the program and what it makes. */
static struct space space_of(const struct limits *limits)
{
	return (struct space){ limits->workspace_bytes / 16 * 15, limits->files / 16 * 15 };
}

int shelf_lend(struct loan **ret, const struct shelf *shelf, struct vial_job *job, struct err *e)
{
	AUTO(loan_freep) struct loan *loan = calloc(1, sizeof(*loan));
	struct vial_error *error = (struct vial_error *)e;

	if (!loan)
		return err_sys(e, "files");
	loan->program = strdup(job->code.name);
	if (!loan->program)
		return err_sys(e, "files");
	struct space space = space_of(&job->limits);
	for (size_t i = 0; i < shelf->count; i++) {
		struct shelf_file *f = shelf->files[i];
		/* Runs that overlap may have left more than one can have: it is not a run's end. */
		if (f->len > job->limits.file_bytes || !space_take(&space, f))
			continue;
		if (job_lend_file(job, f->name, f->bytes, f->len, e) < 0 ||
		    vial_job_export(job, f->name, error) < 0)
			return -1;
		f->holders++;
		loan->files[loan->count++] = f;
	}
	job->keep_bytes = SHELF_BYTES_MAX;
	*ret = take_ptr(&loan);
	return 0;
}

static void say(struct buf *note, const char *path, const char *why)
{
	buf_printf(note, "%s was not kept: %s\n", path, why);
}

/* ---- from a directory ------------------------------------------------------------------ */

struct loading {
	struct shelf *shelf;
	struct workspace dir;
	struct buf *note;
};

static bool load_file(const struct workspace_entry *entry, void *arg)
{
	struct loading *l = arg;
	auto_buf struct buf bytes = BUF_INIT(SHELF_BYTES_MAX);
	struct err e;
	const char *why = NULL;

	if (!is_ordinary(entry->path))
		return true;
	if (workspace_read(&bytes, &l->dir, entry->path, &e) < 0)
		why = e.msg;
	else
		why = put(l->shelf, entry->path,
			  &(struct vial_bytes){ buf_str(&bytes), bytes.len, 0 });
	if (why)
		say(l->note, entry->path, why);
	return l->shelf->count < SHELF_FILES_MAX;
}

void shelf_load(struct shelf *shelf, int dir, struct buf *note)
{
	struct loading l = { shelf, { .fd = dir }, note };
	struct timespec mark;

	workspace_mark(&mark);
	(void)workspace_walk(&l.dir, &mark, load_file, &l);
}

/* ---- and back -------------------------------------------------------------------------- */

static bool is_changed(const struct vial_result *result, const char *path)
{
	for (size_t i = 0; i < result->changed_count; i++)
		if (strcmp(result->changed[i].path, path) == 0)
			return true;
	return false;
}

static void take_back(struct shelf *shelf, const struct loan *loan,
		      const struct vial_result *result, const struct vial_file *now,
		      struct buf *note)
{
	struct shelf_file *given = find(loan->files, loan->count, now->path);
	const struct shelf_file *current = find(shelf->files, shelf->count, now->path);
	bool is_gone = now->error || now->content.dropped;
	const char *why = NULL;

	if (is_cache(now->path) ||
	    (strcmp(now->path, loan->program) == 0 && !is_changed(result, now->path)))
		return;
	/* It is there and as it was, with no room left to read it in. */
	if (is_gone && now->size && !is_changed(result, now->path))
		return;
	if (is_gone) {
		if (given && given == current) { /* nobody has changed it since */
			make_way(shelf, now->path);
			unlink_out(shelf, now->path);
		}
		if (is_changed(result, now->path))
			why = now->error ? now->error : "it is too large";
	} else if (!given || given->len != now->content.len ||
		   memcmp(given->bytes, now->content.data, given->len) != 0) {
		why = put(shelf, now->path, &now->content);
	}
	if (why)
		say(note, now->path, why);
}

void shelf_return(struct shelf *shelf, const struct loan *loan, const struct vial_result *result,
		  struct buf *note)
{
	for (size_t i = 0; i < result->export_count; i++)
		take_back(shelf, loan, result, &result->exports[i], note);
	if (result->changed_cut)
		buf_add_str(note, "There were more files, or such that could not be looked at.\n");
}
