#include "server/shelf.h"
#include "test.h"

enum { ROWS_MAX = 8 };

struct fixture {
	struct vial host;
	struct shelf shelf;
	struct buf note;
};

/* What a run did: files it has at its end (NULL: one it was given is gone). */
struct left {
	const char *path, *text;
};

static void fixture_done(struct fixture *f)
{
	shelf_done(&f->shelf);
	buf_done(&f->note);
}

static struct vial_job *make_job(struct fixture *f)
{
	struct vial_job *job = NULL;
	struct vial_error error;

	limits_default(&f->host.limits);
	if (vial_job_create(&job, &f->host, "python", &error) < 0)
		return NULL;
	return job;
}

static void give_back(struct fixture *f, const struct loan *loan, const struct left *rows)
{
	struct vial_file exports[ROWS_MAX];
	struct vial_result result = { .exports = exports, .changed = exports };

	for (; rows->path; rows++)
		exports[result.export_count++] = (struct vial_file){
			.path = rows->path,
			.content = { rows->text ? rows->text : "",
				     rows->text ? strlen(rows->text) : 0, 0 },
			.error = rows->text ? NULL : "no such file",
		};
	result.changed_count = result.export_count;
	shelf_return(&f->shelf, loan, &result, &f->note);
}

/* A run that is given all there is, and leaves `rows`. */
static bool run(struct fixture *f, const struct left *rows)
{
	AUTO(vial_job_freep) struct vial_job *job = make_job(f);
	AUTO(loan_freep) struct loan *loan = NULL;
	struct err e;

	if (!job || shelf_lend(&loan, &f->shelf, job, &e) < 0)
		return false;
	give_back(f, loan, rows);
	return true;
}

/* "name=text " of all that a run would find, by name. */
static const char *show(struct fixture *f, struct buf *out)
{
	AUTO(vial_job_freep) struct vial_job *job = make_job(f);
	AUTO(loan_freep) struct loan *loan = NULL;
	struct err e;

	buf_reset(out);
	if (!job || shelf_lend(&loan, &f->shelf, job, &e) < 0)
		return "failed";
	for (char first = 'a'; first <= 'z'; first++)
		for (size_t i = 0; i < job->file_count; i++)
			if (job->files[i].name[0] == first)
				buf_printf(out, "%s=%.*s ", job->files[i].name,
					   (int)job->files[i].len, job->files[i].bytes);
	return buf_str(out);
}

#define LEFT(...) ((const struct left[]){ __VA_ARGS__, { NULL, NULL } })

TEST(shelf_keeps_what_is_new_changed_and_gone)
{
	AUTO(fixture_done) struct fixture f = { .note = BUF_INIT(4096) };
	auto_buf struct buf out = BUF_INIT(4096);

	CHECK(run(&f, LEFT({ "a", "1" }, { "b/c", "2" })));
	CHECK_STR(show(&f, &out), "a=1 b/c=2 ");
	CHECK(run(&f, LEFT({ "a", "1" }, { "b/c", "3" }, { "d", "" })));
	CHECK_STR(show(&f, &out), "a=1 b/c=3 d= ");
	CHECK(run(&f, LEFT({ "a", NULL }, { "b/c", "3" }, { "d", "" })));
	CHECK_STR(show(&f, &out), "b/c=3 d= ");
	CHECK_INT(f.shelf.bytes, 1);
}

TEST(shelf_does_not_undo_what_others_did_meanwhile)
{
	AUTO(fixture_done) struct fixture f = { .note = BUF_INIT(4096) };
	auto_buf struct buf out = BUF_INIT(4096);
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(loan_freep) struct loan *loan = NULL;
	struct err e;

	CHECK(run(&f, LEFT({ "a", "1" }, { "b", "1" })));
	job = make_job(&f);
	CHECK(job);
	CHECK_OK(shelf_lend(&loan, &f.shelf, job, &e));
	CHECK(run(&f, LEFT({ "a", "2" }, { "b", "2" })));
	give_back(&f, loan, LEFT({ "a", "1" }, { "b", NULL }, { "c", "1" }));
	CHECK_STR(show(&f, &out), "a=2 b=2 c=1 ");
}

TEST(shelf_is_a_tree_that_can_be_made)
{
	AUTO(fixture_done) struct fixture f = { .note = BUF_INIT(4096) };
	auto_buf struct buf out = BUF_INIT(4096);

	CHECK(run(&f, LEFT({ "a", "1" }, { "ab", "2" })));
	CHECK(run(&f, LEFT({ "a/x", "3" }, { "a/y", "4" })));
	CHECK_STR(show(&f, &out), "ab=2 a/x=3 a/y=4 ");
	CHECK(run(&f, LEFT({ "a", "5" })));
	CHECK_STR(show(&f, &out), "ab=2 a=5 ");
}

TEST(shelf_keeps_what_is_written_over_the_program)
{
	AUTO(fixture_done) struct fixture f = { .note = BUF_INIT(4096) };
	auto_buf struct buf out = BUF_INIT(4096);

	CHECK(!shelf_has(&f.shelf, "main.py"));
	CHECK(run(&f, LEFT({ "main.py", "x" })));
	CHECK_STR(show(&f, &out), "main.py=x ");
	CHECK(shelf_has(&f.shelf, "main.py"));
}

TEST(shelf_lends_no_more_than_a_run_can_have)
{
	AUTO(fixture_done) struct fixture f = { .note = BUF_INIT(4096) };
	auto_buf struct buf out = BUF_INIT(4096);
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(loan_freep) struct loan *loan = NULL;
	struct err e;

	CHECK(run(&f, LEFT({ "a", "1" }, { "b/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15", "2" })));
	job = make_job(&f);
	CHECK(job);
	job->limits.files = 16;
	CHECK_OK(shelf_lend(&loan, &f.shelf, job, &e));
	CHECK_INT(job->file_count, 1);
	CHECK_STR(job->files[0].name, "a");
	give_back(&f, loan, LEFT({ "a", NULL }));
	CHECK_STR(show(&f, &out), "b/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15=2 ");
}

TEST(shelf_says_what_it_does_not_keep)
{
	AUTO(fixture_done) struct fixture f = { .note = BUF_INIT(4096) };
	auto_buf struct buf out = BUF_INIT(4096);

	CHECK(run(&f, LEFT({ "__pycache__/m.pyc", "x" })));
	CHECK_STR(buf_str(&f.note), "");
	CHECK(run(&f, LEFT({ "b", NULL })));
	CHECK_STR(buf_str(&f.note), "b was not kept: no such file\n");
	CHECK_STR(show(&f, &out), "");
	for (int i = 0; i < SHELF_FILES_MAX + 3; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "f%d", i);
		CHECK(run(&f, LEFT({ name, "x" })));
	}
	CHECK_INT(f.shelf.count, SHELF_FILES_MAX);
	CHECK(strstr(buf_str(&f.note), "too many"));
}
