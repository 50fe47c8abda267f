#include "lib/result.h"

#include "base/utf8.h"

#include <fnmatch.h>
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

void result_free(struct result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->pub.changed_count; i++)
		free((char *)r->changed[i].path);
	for (size_t i = 0; i < r->pub.export_count; i++) {
		free((char *)r->exports[i].path);
		free((char *)r->exports[i].error);
		buf_done(&r->contents[i]);
	}
	free(r->changed);
	free(r->exports);
	free(r->contents);
	free(r->traceback);
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

struct listing {
	const char *const *patterns; /* NULL: whatever changed */
	size_t max;
	struct vial_file *files;
	size_t count;
	bool cut, failed;
};

static void add_file(struct listing *l, const char *path, uint64_t size)
{
	if (l->count >= l->max) {
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

static bool wanted(const struct listing *l, const struct workspace_entry *entry)
{
	if (!l->patterns)
		return entry->changed;
	for (size_t i = 0; l->patterns[i]; i++) {
		/* A pattern is a name first: "[Video] a.pptx" is a file. */
		if (strcmp(l->patterns[i], entry->path) == 0)
			return true;
		if (entry->changed &&
		    fnmatch(l->patterns[i], entry->path, FNM_PATHNAME | FNM_PERIOD) == 0)
			return true;
	}
	return false;
}

static bool visit(const struct workspace_entry *entry, void *arg)
{
	struct listing *l = arg;

	if (wanted(l, entry))
		add_file(l, entry->path, entry->size);
	return !l->failed;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct vial_file *)a)->path, ((const struct vial_file *)b)->path);
}

int result_list_changed(struct result *r, const struct workspace *ws, const struct timespec *mark,
			struct err *e)
{
	struct listing l = { .max = CHANGED_MAX };
	bool complete = workspace_walk(ws, mark, visit, &l);

	r->changed = l.files;
	r->pub.changed = l.files;
	r->pub.changed_count = l.count;
	r->pub.changed_cut = l.cut || !complete;
	if (l.count)
		qsort(l.files, l.count, sizeof(*l.files), by_path);
	return l.failed ? err_sys(e, "files") : 0;
}

static void read_export(struct result *r, size_t i, const struct workspace *ws, uint64_t max)
{
	struct vial_file *f = &r->exports[i];
	struct buf *content = &r->contents[i];
	struct err failed;

	content->max = max;
	if (workspace_read(content, ws, f->path, &failed) < 0) {
		buf_done(content);
		f->error = strdup(failed.msg);
		return;
	}
	f->size = content->len;
	f->content = bytes_of(content);
}

/* A name that found nothing is an entry too: with the reason instead of content. */
static void add_missing(struct listing *l)
{
	for (size_t i = 0; l->patterns[i]; i++) {
		bool found = strpbrk(l->patterns[i], "*?") != NULL;
		for (size_t k = 0; k < l->count && !found; k++)
			found = fnmatch(l->patterns[i], l->files[k].path, FNM_PATHNAME) == 0 ||
				strcmp(l->patterns[i], l->files[k].path) == 0;
		if (!found)
			add_file(l, l->patterns[i], 0);
	}
}

int result_export(struct result *r, const struct workspace *ws, const struct timespec *mark,
		  const struct vial_job *job, struct err *e)
{
	struct listing l = { .patterns = (const char *const *)job->exports.items,
			     .max = CHANGED_MAX };
	uint64_t left = job->limits.workspace_bytes;

	if (job->exports.count == 0)
		return 0;
	(void)workspace_walk(ws, mark, visit, &l);
	add_missing(&l);
	r->exports = l.files;
	r->pub.exports = l.files;
	r->contents = calloc(l.count + 1, sizeof(*r->contents));
	if (l.failed || !r->contents)
		return err_sys(e, "exports");
	r->pub.export_count = l.count;
	for (size_t i = 0; i < l.count; i++) {
		read_export(r, i, ws,
			    job->limits.file_bytes < left ? job->limits.file_bytes : left);
		left -= r->contents[i].len;
	}
	return 0;
}
