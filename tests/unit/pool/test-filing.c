/*
 * The files of sandboxes that live on: what filers say is believed as far as it makes sense.
 */
#include "bench.h"

#include "lib/job.h"
#include "pool/filing.h"

#include <sys/stat.h>

#define DRIVER "echo ready >&3; while read -r line <&3; do eval \"$line\"; echo done >&3; done\n"

struct desk {
	struct live *live;
	struct filing *filing;
	unsigned lines, entries, ends;
	bool has_live_ended, fetches;
	struct filing_end end;
	struct err why; /* ERR_NONE: it went well */
	char names[8][32];
	uint64_t size;
	struct buf data;
	const char *sends; /* what is left to be put */
	size_t left;
};

static void on_line(char *line, size_t len, void *arg)
{
	struct desk *d = arg;

	(void)line;
	(void)len;
	d->lines++;
}

static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	(void)stream;
	(void)bytes;
	(void)len;
	(void)arg;
}

static void on_live_end(const struct live_end *end, const struct err *e, void *arg)
{
	struct desk *d = arg;

	(void)end;
	(void)e;
	d->has_live_ended = true;
}

static void on_entry(const struct filing_entry *entry, void *arg)
{
	struct desk *d = arg;

	if (d->entries < 8)
		(void)snprintf(d->names[d->entries], sizeof(d->names[0]), "%s", entry->path);
	d->entries++;
	d->size = entry->size;
	if (d->fetches)
		filing_fetch(d->filing, 1, entry->size - 1);
}

static void on_data(const char *bytes, size_t len, void *arg)
{
	struct desk *d = arg;

	buf_add(&d->data, bytes, len);
}

static void send_more(void *arg)
{
	struct desk *d = arg;
	size_t sent = d->left ? filing_send(d->filing, d->sends, d->left) : 0;

	if (!d->sends)
		return;
	d->sends += sent;
	d->left -= sent;
	if (d->left == 0) {
		d->sends = NULL;
		filing_send_end(d->filing);
	}
}

static void on_end(const struct filing_end *end, const struct err *e, void *arg)
{
	struct desk *d = arg;

	d->ends++;
	d->filing = NULL;
	if (end)
		d->end = *end;
	if (e)
		d->why = *e;
}

static int begin(struct desk *d, struct bench *b)
{
	const struct live_events events = { on_line, on_output, on_live_end, d };
	struct vial_error *e = (struct vial_error *)&b->e;
	struct vial_job *job = NULL;

	d->data = (struct buf)BUF_INIT(1u << 20);
	if (vial_job_create(&job, b->host, "python", e) < 0)
		return -1;
	if (vial_job_file(job, "driver.sh", DRIVER, strlen(DRIVER), e) < 0) {
		vial_job_free(job);
		return -1;
	}
	return pool_live(&d->live, b->pool, NULL, job, &events, &b->e);
}

static int ask(struct desk *d, struct bench *b, const struct filing_request *request)
{
	const struct filing_events events = { on_entry, on_data, send_more, on_end, d };

	d->entries = d->ends = 0;
	d->why = (struct err){ 0 };
	buf_reset(&d->data);
	return live_filing(&d->filing, d->live, request, &events, &b->e);
}

#define DESK                                                                                       \
	auto_bench struct bench b;                                                                 \
	AUTO(desk_done) struct desk d = { 0 };                                                     \
	OPEN(&b, &on_demand);                                                                      \
	CHECK_RUN(begin(&d, &b));                                                                  \
	UNTIL(d.lines == 1)

static void desk_done(struct desk *d)
{
	buf_done(&d->data);
}

#define DO(...)                                                                                    \
	do {                                                                                       \
		const struct filing_request request_ = { __VA_ARGS__ };                            \
		CHECK_RUN(ask(&d, &b, &request_));                                                 \
		if (d.sends)                                                                       \
			send_more(&d);                                                             \
		UNTIL(d.ends == 1);                                                                \
	} while (0)

TEST(files_are_put_seen_fetched_and_removed)
{
	char content[200000];
	DESK;

	memset(content, 'x', sizeof(content));
	d.sends = content;
	d.left = sizeof(content);
	DO(FILING_PUT, "a/b", .mode = 0600);
	CHECK_INT(d.why.code, ERR_NONE);
	CHECK(!d.end.flag);
	DO(FILING_DIR, "a", .max = 10);
	CHECK_INT(d.entries, 1);
	CHECK_STR(d.names[0], "b");
	CHECK_INT(d.size, sizeof(content));
	d.fetches = true;
	DO(FILING_LOOK, "a/b");
	CHECK_INT(d.why.code, ERR_NONE);
	CHECK_INT(d.data.len, sizeof(content) - 1);
	d.fetches = false;
	DO(FILING_REMOVE, "a/b");
	DO(FILING_LOOK, "a/b");
	CHECK_INT(d.why.sys, ENOENT);
	DO(FILING_DIR, "", .recursive = true, .max = 1);
	CHECK(d.end.flag); /* there is more */
	CHECK_INT(d.entries, 1);
	CHECK(b.keeper.filers <= 3); /* one serves several in a row */
}

TEST(what_is_forgotten_leaves_nothing)
{
	DESK;

	const struct filing_request put = { .kind = FILING_PUT, .name = "f", .mode = 0644 };
	CHECK_RUN(ask(&d, &b, &put));
	UNTIL(filing_send(d.filing, "half", 4) == 4); /* its filer is there */
	pass_time(&b, 50);
	filing_forget(take_ptr(&d.filing));
	for (int i = 0; i < 100; i++) { /* its temporary name goes when its filer has noticed */
		DO(FILING_DIR, "", .max = 10);
		if (d.entries == 1)
			break;
		pass_time(&b, 20);
	}
	CHECK_INT(d.entries, 1);
	CHECK_STR(d.names[0], "driver.sh");
}

TEST(a_filer_that_raves_is_not_believed)
{
	DESK;

	b.keeper.is_mad = true;
	DO(FILING_REMOVE, "f");
	CHECK_INT(d.why.code, ERR_SYS);
	CHECK_INT(d.entries, 0);
	DO(FILING_PUT, "f", .mode = 0644);
	CHECK_INT(d.why.code, ERR_SYS);
	b.keeper.is_mad = false;
	DO(FILING_MAKE_DIR, "d");
	CHECK_INT(d.why.code, ERR_NONE);
	CHECK(!d.has_live_ended);
}

TEST(a_filer_that_is_refused_is_not_the_end_of_the_session)
{
	DESK;

	b.keeper.fail_filers = 1;
	DO(FILING_MAKE_DIR, "d");
	CHECK_INT(d.why.code, ERR_BUSY);
	DO(FILING_MAKE_DIR, "d");
	CHECK_INT(d.why.code, ERR_NONE);
	CHECK(!d.has_live_ended);
	CHECK_INT(standin_alive(&b.keeper), 1);
}

TEST(nor_is_one_that_nobody_waits_for_any_more)
{
	const struct filing_request look = { .kind = FILING_LOOK, .name = "driver.sh" };
	DESK;

	b.keeper.fail_filers = 1;
	CHECK_RUN(ask(&d, &b, &look));
	filing_forget(take_ptr(&d.filing));
	UNTIL(b.keeper.fail_filers == 0);
	pass_time(&b, 20);
	CHECK(!d.has_live_ended);
	DO(FILING_MAKE_DIR, "d");
	CHECK_INT(d.why.code, ERR_NONE);
	live_end(d.live, false);
	UNTIL(d.has_live_ended);
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(too_many_at_once_are_refused)
{
	const struct filing_request look = { .kind = FILING_LOOK, .name = "driver.sh" };
	struct desk others[20] = { 0 };
	unsigned begun = 0;
	DESK;

	for (size_t i = 0; i < 20; i++) {
		others[i].live = d.live;
		begun += ask(&others[i], &b, &look) == 0;
	}
	CHECK_INT(begun, 16);
	CHECK_INT(b.e.code, ERR_BUSY);
	for (size_t i = 0; i < begun; i++)
		UNTIL(others[i].entries == 1);
	for (size_t i = 0; i < begun; i++)
		filing_forget(others[i].filing);
	DO(FILING_MAKE_DIR, "d");
	CHECK_INT(d.why.code, ERR_NONE);
}

TEST(what_is_under_way_ends_with_the_sandbox)
{
	const struct filing_request put = { .kind = FILING_PUT, .name = "f", .mode = 0644 };
	DESK;

	CHECK_RUN(ask(&d, &b, &put));
	live_end(d.live, false);
	UNTIL(d.has_live_ended);
	CHECK_INT(d.ends, 1);
	CHECK_INT(d.why.code, ERR_GONE);
}
