#include "lib/result.h"

#include "base/utf8.h"

#include <fnmatch.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

const char *vial_outcome_name(enum vial_outcome outcome)
{
	static const char *const names[] = {
		[VIAL_EXITED] = "exited",
		[VIAL_SIGNALED] = "signaled",
		[VIAL_TIMED_OUT] = "timed_out",
		[VIAL_OUT_OF_MEMORY] = "out_of_memory",
		[VIAL_OUT_OF_DISK] = "out_of_disk",
		[VIAL_CANCELLED] = "cancelled",
	};

	return outcome <= VIAL_CANCELLED ? names[outcome] : "unknown";
}

int result_create(struct result **ret, const struct limits *lim, struct err *e)
{
	struct result *r = calloc(1, sizeof(*r));

	if (!r)
		return err_sys(e, "result");
	r->out.max = r->err.max = lim->output_bytes;
	r->pub.exit_code = -1;
	r->pub.limit = "";
	r->pub.exception.type = r->pub.exception.message = r->pub.exception.traceback = "";
	*ret = r;
	return 0;
}

static void list_done(struct file_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free((char *)l->files[i].path);
		free((char *)l->files[i].error);
	}
	free(l->files);
}

void result_free(struct result *r)
{
	if (!r)
		return;
	list_done(&r->changed);
	for (size_t i = 0; r->contents && i < r->exports.count; i++)
		buf_done(&r->contents[i]);
	list_done(&r->exports);
	free(r->put);
	free(r->contents);
	free(r->traceback);
	free((struct vial_network *)r->pub.network);
	buf_done(&r->out);
	buf_done(&r->err);
	free(r);
}

void vial_result_free(const struct vial_result *result)
{
	result_free((struct result *)result);
}

static struct vial_bytes bytes_of(const struct buf *b)
{
	return (struct vial_bytes){ buf_str(b), b->len, b->dropped };
}

void result_set_end(struct result *r, const struct run_end *end, const char *stage)
{
	static const enum vial_outcome outcomes[] = {
		[RUN_EXITED] = VIAL_EXITED,
		[RUN_SIGNALED] = VIAL_SIGNALED,
		[RUN_TIMED_OUT] = VIAL_TIMED_OUT,
		[RUN_OUT_OF_MEMORY] = VIAL_OUT_OF_MEMORY,
		[RUN_OUT_OF_DISK] = VIAL_OUT_OF_DISK,
		[RUN_CANCELLED] = VIAL_CANCELLED,
	};
	struct vial_result *pub = &r->pub;

	pub->outcome = outcomes[end->how];
	pub->stage = stage;
	pub->exit_code = end->exit_code;
	pub->signal = end->signal;
	pub->timed_out = end->how == RUN_TIMED_OUT;
	pub->oom = end->oom || end->how == RUN_OUT_OF_MEMORY;
	pub->limit = end->limit;
	pub->wall_ms = end->wall_ms;
	pub->cpu_ms = end->cpu_ms;
	pub->peak_memory = end->peak_bytes;
	pub->processes = end->processes;
	pub->out = bytes_of(&r->out);
	pub->err = bytes_of(&r->err);
}

/* Only a failure is read: a program that ends well may print what it likes. */
void result_read_error(struct result *r, const struct runtime *rt)
{
	struct vial_result *pub = &r->pub;

	if ((pub->outcome == VIAL_EXITED && pub->exit_code == 0) || r->err.dropped)
		return; /* what was dropped may hold the failure, what was kept another */
	if (!rt->read_error || !rt->read_error(&r->exception, buf_str(&r->err), r->err.len))
		return;
	pub->exception.type = r->exception.type;
	pub->exception.message = r->exception.message;
	pub->exception.line = r->exception.line;
	if (r->exception.trace_len) {
		auto_buf struct buf text = BUF_INIT(64u << 10);
		utf8_repair(&text, r->err.data + r->exception.trace_start, r->exception.trace_len);
		r->traceback = take_ptr(&text.data);
		pub->exception.traceback = r->traceback ? r->traceback : "";
	}
	/* The language noticed before the kernel had to: the same end, told by itself. */
	if ((pub->outcome == VIAL_EXITED || pub->outcome == VIAL_SIGNALED) &&
	    exception_is_memory(&r->exception)) {
		pub->outcome = VIAL_OUT_OF_MEMORY;
		pub->limit = "memory";
		pub->oom = 1;
	}
}

/* ---- files ----------------------------------------------------------------------------- */

static void add_file(struct file_list *l, const char *path, uint64_t size, size_t max)
{
	if (l->count >= max) {
		l->cut = true;
		return;
	}
	struct vial_file *files = reallocarray(l->files, l->count + 1, sizeof(*files));
	char *copy = strdup(path);
	if (files)
		l->files = files;
	if (!files || !copy) {
		free(copy);
		l->failed = true;
		return;
	}
	l->files[l->count++] = (struct vial_file){ .path = copy, .size = size };
}

/* '?' stands for a character, not for a byte. */
static bool matches(const struct vial_job *job, const char *pattern, const char *path, int flags)
{
	locale_t ours = host_locale(job->host), before = ours ? uselocale(ours) : NULL;
	bool does = fnmatch(pattern, path, flags) == 0;

	if (ours)
		(void)uselocale(before);
	return does;
}

/* A pattern is a name first: "[Video] a.pptx" is a file. */
static bool is_named(const struct vial_job *job, const char *path)
{
	for (size_t i = 0; i < job->exports.count; i++)
		if (strcmp(job->exports.items[i], path) == 0)
			return true;
	return false;
}

static bool is_export(const struct vial_job *job, const struct workspace_entry *entry)
{
	if (!entry->changed)
		return false;
	for (size_t i = 0; i < job->exports.count; i++)
		if (matches(job, job->exports.items[i], entry->path, FNM_PATHNAME | FNM_PERIOD))
			return true;
	return job->keep_bytes;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether a file of this name was put there, so that one that looks like it is that one. */
static bool was_put(struct result *r, const struct vial_job *job, const char *path)
{
	if (!r->put) {
		r->put = calloc(job->file_count + 1, sizeof(*r->put));
		if (!r->put) {
			r->changed.failed = true;
			return true;
		}
		r->put[r->put_count++] = job->code.name;
		for (size_t i = 0; i < job->file_count; i++)
			r->put[r->put_count++] = job->files[i].name;
		qsort(r->put, r->put_count, sizeof(*r->put), by_name);
	}
	return bsearch(&path, r->put, r->put_count, sizeof(*r->put), by_name);
}

void result_visit(struct result *r, const struct vial_job *job, const struct workspace_entry *entry)
{
	struct workspace_entry seen = *entry;

	seen.changed |= seen.moved && !was_put(r, job, seen.path);
	if (seen.changed)
		add_file(&r->changed, seen.path, seen.size, CHANGED_MAX);
	if (is_named(job, seen.path)) /* of which there are only so many */
		add_file(&r->exports, seen.path, seen.size, SIZE_MAX);
	else if (is_export(job, &seen))
		add_file(&r->exports, seen.path, seen.size, CHANGED_MAX);
}

/* A name that found nothing is an entry too: with the reason instead of content. */
static void add_missing(struct file_list *l, const struct vial_job *job)
{
	for (size_t i = 0; i < job->exports.count; i++) {
		const char *pattern = job->exports.items[i];
		bool found = !job->keep_bytes && strpbrk(pattern, "*?");
		for (size_t k = 0; k < l->count && !found; k++)
			found = strcmp(pattern, l->files[k].path) == 0 ||
				(!job->keep_bytes &&
				 matches(job, pattern, l->files[k].path, FNM_PATHNAME));
		if (!found)
			add_file(l, pattern, 0, SIZE_MAX);
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct vial_file *)a)->path, ((const struct vial_file *)b)->path);
}

int result_visited(struct result *r, const struct vial_job *job, bool complete, struct err *e)
{
	add_missing(&r->exports, job);
	r->contents = calloc(r->exports.count + 1, sizeof(*r->contents));
	if (r->changed.failed || r->exports.failed || !r->contents)
		return err_sys(e, "files");
	if (r->changed.count)
		qsort(r->changed.files, r->changed.count, sizeof(*r->changed.files), by_path);
	r->pub.changed = r->changed.files;
	r->pub.changed_count = r->changed.count;
	r->pub.changed_cut = r->changed.cut || !complete;
	r->pub.exports = r->exports.files;
	r->pub.export_count = r->exports.count;
	return 0;
}

struct buf *result_export(struct result *r, const struct vial_job *job, size_t i)
{
	uint64_t most = job->keep_bytes ? job->keep_bytes : job->limits.workspace_bytes;
	uint64_t left = most > r->exported_bytes ? most - r->exported_bytes : 0;

	r->contents[i].max = job->limits.file_bytes < left ? job->limits.file_bytes : left;
	return &r->contents[i];
}

void result_exported(struct result *r, size_t i, const struct err *failed)
{
	struct vial_file *f = &r->exports.files[i];

	if (failed) {
		buf_done(&r->contents[i]);
		f->error = strdup(failed->msg);
		return;
	}
	r->exported_bytes += r->contents[i].len;
	f->size = r->contents[i].len;
	f->content = bytes_of(&r->contents[i]);
}

struct visit {
	struct result *result;
	const struct vial_job *job;
};

static bool visit(const struct workspace_entry *entry, void *arg)
{
	const struct visit *v = arg;

	result_visit(v->result, v->job, entry);
	return !v->result->changed.failed && !v->result->exports.failed;
}

int result_collect(struct result *r, const struct workspace *ws, const struct timespec *mark,
		   const struct vial_job *job, struct err *e)
{
	struct visit v = { r, job };
	bool complete = workspace_walk(ws, mark, visit, &v);

	if (result_visited(r, job, complete, e) < 0)
		return -1;
	for (size_t i = 0; i < r->exports.count; i++) {
		struct err failed;
		bool ok = workspace_read(result_export(r, job, i), ws, r->exports.files[i].path,
					 &failed) == 0;
		result_exported(r, i, ok ? NULL : &failed);
	}
	return 0;
}
