#include "server/batch_request.h"

#include "base/base64.h"
#include "server/request_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PARALLEL_USUAL = 4 };

#define TOLERANCE_USUAL 1e-6
#define BYTES_AT_ONCE   (64u << 20) /* of programs and inputs, in the jobs of one batch */

static const char members_hint[] =
	"there are runs, parallel, stop_on_failure, detail, compare, tolerance, and what a run has";
static const char run_hint[] =
	"there are label, expected, expected_base64, compare, tolerance, and what a run has";

static const char *const own_members[] = { "runs",   "parallel", "stop_on_failure",
					   "detail", "compare",  "tolerance",
					   NULL };
static const char *const run_members[] = { "label",   "expected",  "expected_base64",
					   "compare", "tolerance", NULL };

/* Of two that mean the same thing, a run's own stands for both. */
static const char *const pairs[][2] = { { "language", "environment" },
					{ "stdin", "stdin_base64" } };

/* What the runs share of these is looked at once: a thousand copies of it would take a while. */
static const char *const heavy[] = { "code",  "files",        "args",    "env",
				     "stdin", "stdin_base64", "exports", NULL };

/* ---- values ---------------------------------------------------------------------------- */

/* NULL: not there, or null. */
static struct json_object *get(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	(void)json_object_object_get_ex(object, name, &value);
	return value;
}

static bool is_one_of(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

/* Among the heavy ones, as a bit; 0: it is none. */
static unsigned weight_of(const char *name)
{
	for (unsigned i = 0; heavy[i]; i++)
		if (strcmp(heavy[i], name) == 0)
			return 1u << i;
	return 0;
}

static struct json_object *run_at(const struct batch_plan *plan, size_t i)
{
	return json_object_array_get_idx(plan->runs, i);
}

static int read_choice(int *ret, struct json_object *all, const char *name, const char *field,
		       const char *const *choices, int count, struct failure *f)
{
	struct json_object *value = get(all, name);

	if (!value)
		return 0;
	const char *text =
		json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
	for (int i = 0; i < count; i++) {
		if (strcmp(choices[i], text) != 0)
			continue;
		*ret = i;
		return 0;
	}
	auto_buf struct buf list = BUF_INIT(128);
	for (int i = 0; i < count; i++)
		buf_printf(&list, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", choices[i]);
	return failure_at(f, field, "must be %s", buf_str(&list));
}

/* "compare" and "tolerance", of all or of one run; what is not there stays as it is. */
static int read_rule(struct judge_rule *rule, struct json_object *all, const char *prefix,
		     struct failure *f)
{
	struct json_object *tolerance = get(all, "tolerance");
	char field[64];
	int mode = (int)rule->mode;

	(void)snprintf(field, sizeof(field), "%scompare", prefix);
	if (read_choice(&mode, all, "compare", field, judge_modes, JUDGE_COUNT_, f) < 0)
		return -1;
	rule->mode = (enum judge_mode)mode;
	if (!tolerance)
		return 0;
	bool is_number = json_object_is_type(tolerance, json_type_double) ||
			 json_object_is_type(tolerance, json_type_int);
	double value = is_number ? json_object_get_double(tolerance) : -1;
	(void)snprintf(field, sizeof(field), "%stolerance", prefix);
	if (!isfinite(value) || value < 0)
		return failure_at(f, field, "must be a number, 0 or more");
	rule->tolerance = value;
	return 0;
}

/* ---- one run --------------------------------------------------------------------------- */

static bool is_map(struct json_object *value)
{
	return json_object_is_type(value, json_type_object);
}

static int add(struct json_object *to, const char *key, struct json_object *value)
{
	if (value && json_object_object_add(to, key, value) == 0)
		return 0;
	json_object_put(value);
	return -1;
}

/* An object of both: the second's members stand before the first's.  NULL: no memory. */
static struct json_object *both(struct json_object *first, struct json_object *second)
{
	struct json_object *made = json_object_new_object();
	int failed = made ? 0 : -1;

	for (int turn = 0; turn < 2; turn++) {
		struct json_object *from = turn ? second : first;
		json_object_object_foreach(from, key, value)
		{
			if (failed == 0 && value)
				failed = add(made, key, json_object_get(value));
		}
	}
	if (failed < 0) {
		json_object_put(made);
		return NULL;
	}
	return made;
}

/* Whether the run has this member itself, or the one that means the same. */
static bool has_own(struct json_object *run, const char *key)
{
	if (get(run, key))
		return true;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (int side = 0; side < 2; side++)
			if (strcmp(pairs[i][side], key) == 0 && get(run, pairs[i][1 - side]))
				return true;
	return false;
}

static bool is_joined(const struct batch_plan *plan, struct json_object *run, const char *name)
{
	struct json_object *own = get(run, name), *shared = get(plan->all, name);

	return (strcmp(name, "limits") == 0 || strcmp(name, "env") == 0) && own && is_map(own) &&
	       shared && is_map(shared);
}

/* What this run asks for: its own members, and those of all that it has none of, without those
 * that were `seen`.  `limits` and `env` are put together from both.  NULL: no memory. */
static struct json_object *merge(const struct batch_plan *plan, size_t i, unsigned seen)
{
	struct json_object *run = run_at(plan, i), *made = json_object_new_object();
	int failed = made ? 0 : -1;

	json_object_object_foreach(plan->all, key, value)
	{
		bool is_seen = weight_of(key) & seen, is_code = strcmp(key, "code") == 0;
		if (failed < 0 || !value || is_one_of(own_members, key) || has_own(run, key) ||
		    (is_seen && !is_code))
			continue;
		failed = add(made, key,
			     is_seen ? json_object_new_string("") : json_object_get(value));
	}
	json_object_object_foreach(run, name, own)
	{
		if (failed < 0 || !own || is_one_of(run_members, name))
			continue;
		bool is_both = is_joined(plan, run, name) && !(weight_of(name) & seen);
		failed = add(made, name,
			     is_both ? both(get(plan->all, name), own) : json_object_get(own));
	}
	if (failed < 0) {
		json_object_put(made);
		return NULL;
	}
	return made;
}

/* What it has of the heavy ones that are everybody's. */
static unsigned shared_by(const struct batch_plan *plan, struct json_object *run)
{
	unsigned shared = 0;

	for (unsigned i = 0; heavy[i]; i++)
		if (!has_own(run, heavy[i]) || is_joined(plan, run, heavy[i]))
			shared |= 1u << i;
	return shared;
}

/* A failure in a member that the run has itself is one of runs[i]. */
static int blame(const struct batch_plan *plan, size_t i, struct failure *f)
{
	char field[sizeof(f->field)], name[64];

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(f->field, ".["), f->field);
	(void)snprintf(field, sizeof(field), "%.100s", f->field);
	if (!field[0])
		(void)snprintf(f->field, sizeof(f->field), "runs[%zu]", i);
	else if (get(run_at(plan, i), name) || !get(plan->all, name))
		(void)snprintf(f->field, sizeof(f->field), "runs[%zu].%.100s", i, field);
	return -1;
}

static int make_job(struct vial_job **ret, const struct batch_plan *plan, size_t i, unsigned seen,
		    struct failure *f)
{
	struct json_object *all = merge(plan, i, seen);
	struct vial_job *job = NULL;

	if (!all)
		return err_set(&f->err, ERR_SYS, "no memory for run %zu", i);
	int failed =
		request_read(&job, REQUEST_RUN, plan->place.host, plan->place.environments, all, f);
	json_object_put(all);
	if (failed < 0 || !job)
		return blame(plan, i, f);
	const char *refused = plan->place.refuses(job);
	if (refused) {
		vial_job_free(job);
		(void)snprintf(f->field, sizeof(f->field), "runs[%zu]", i);
		return err_set(&f->err, ERR_INVALID, "not over HTTP: %s", refused);
	}
	*ret = job;
	return 0;
}

int batch_plan_job(struct vial_job **ret, const struct batch_plan *plan, size_t i,
		   struct failure *f)
{
	return make_job(ret, plan, i, 0, f);
}

const char *batch_plan_label(const struct batch_plan *plan, size_t i)
{
	struct json_object *label = get(run_at(plan, i), "label");

	return label ? json_object_get_string(label) : NULL;
}

bool batch_plan_shares(const struct batch_plan *plan, size_t i)
{
	static const char *const inputs[] = { "label",   "expected",  "expected_base64",
					      "compare", "tolerance", "stdin",
					      "args",    "exports",   "stdin_base64",
					      NULL };

	json_object_object_foreach(run_at(plan, i), key, value)
	{
		if (value && !is_one_of(inputs, key))
			return false;
	}
	return get(plan->all, "code") != NULL;
}

struct judge_rule batch_plan_expected(struct judge_text *ret, struct buf *room,
				      const struct batch_plan *plan, size_t i)
{
	struct json_object *run = run_at(plan, i), *plain = get(run, "expected"),
			   *coded = get(run, "expected_base64");
	struct judge_rule rule = plan->rule;
	struct failure ignored; /* all of it was checked at the start */
	struct err e;

	*ret = (struct judge_text){ NULL, 0 };
	(void)!read_rule(&rule, run, "", &ignored);
	if (plain) {
		*ret = (struct judge_text){ json_object_get_string(plain),
					    (size_t)json_object_get_string_len(plain) };
	} else if (coded) {
		(void)!base64_decode(room, json_object_get_string(coded),
				     (size_t)json_object_get_string_len(coded), &e);
		*ret = (struct judge_text){ buf_str(room), room->len };
	}
	return rule;
}

/* ---- the whole ------------------------------------------------------------------------- */

static int check_names(struct json_object *object, const char *const *own, const char *prefix,
		       const char *hint, struct failure *f)
{
	char field[128];

	json_object_object_foreach(object, key, value)
	{
		(void)value;
		if (is_one_of(own, key) || request_knows(REQUEST_RUN, key))
			continue;
		f->hint = hint;
		(void)snprintf(field, sizeof(field), "%s%.60s", prefix, key);
		return failure_at(f, field, "there is no such member");
	}
	return 0;
}

static int check_label(struct json_object *run, const char *prefix, struct failure *f)
{
	struct json_object *label = get(run, "label");
	char field[64];

	(void)snprintf(field, sizeof(field), "%slabel", prefix);
	if (label && (!json_object_is_type(label, json_type_string) ||
		      json_object_get_string_len(label) > BATCH_LABEL_MAX))
		return failure_at(f, field, "must be a string of at most %d bytes",
				  BATCH_LABEL_MAX);
	return 0;
}

static int check_expected(struct json_object *run, const char *prefix, struct failure *f)
{
	struct json_object *plain = get(run, "expected"), *coded = get(run, "expected_base64");
	auto_buf struct buf room = BUF_INIT(REQUEST_BODY_MAX);
	char field[64];
	struct err e;

	(void)snprintf(field, sizeof(field), "%sexpected%s", prefix, coded ? "_base64" : "");
	if (plain && coded)
		return failure_at(f, field, "give expected or expected_base64, not both");
	struct json_object *value = plain ? plain : coded;
	if (value && !json_object_is_type(value, json_type_string))
		return failure_at(f, field, "must be a string");
	if (coded && base64_decode(&room, json_object_get_string(coded),
				   (size_t)json_object_get_string_len(coded), &e) < 0)
		return failure_at(f, field, "%s", e.msg);
	return 0;
}

static int check_run(const struct batch_plan *plan, size_t i, unsigned *seen, struct failure *f)
{
	struct json_object *run = run_at(plan, i);
	struct judge_rule rule = plan->rule;
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	char prefix[32];

	(void)snprintf(prefix, sizeof(prefix), "runs[%zu]", i);
	if (!is_map(run))
		return failure_at(f, prefix, "must be an object");
	(void)snprintf(prefix, sizeof(prefix), "runs[%zu].", i);
	if (check_names(run, run_members, prefix, run_hint, f) < 0 ||
	    check_label(run, prefix, f) < 0 || check_expected(run, prefix, f) < 0 ||
	    read_rule(&rule, run, prefix, f) < 0)
		return -1;
	if (make_job(&job, plan, i, *seen, f) < 0)
		return -1;
	*seen |= shared_by(plan, run);
	return 0;
}

static int read_parallel(struct batch_plan *plan, size_t len, struct failure *f)
{
	struct json_object *value = get(plan->all, "parallel");
	int64_t wanted = PARALLEL_USUAL;
	size_t room = len ? BYTES_AT_ONCE / len : BATCH_PARALLEL_MAX;

	if (value) {
		wanted = json_object_is_type(value, json_type_int) ? json_object_get_int64(value)
								   : 0;
		if (wanted < 1 || wanted > BATCH_PARALLEL_MAX)
			return failure_at(f, "parallel", "must be a number from 1 to %d",
					  BATCH_PARALLEL_MAX);
	}
	/* Each job under way has a copy of the program, its files and its input. */
	plan->parallel = (unsigned)wanted < room ? (unsigned)wanted : (unsigned)room;
	return 0;
}

static int read_options(struct batch_plan *plan, size_t len, struct failure *f)
{
	static const char *const details[] = { "full", "failures", "verdicts" };
	struct json_object *stop = get(plan->all, "stop_on_failure");
	int detail = BATCH_FULL;

	if (check_names(plan->all, own_members, "", members_hint, f) < 0 ||
	    read_parallel(plan, len, f) < 0 || read_rule(&plan->rule, plan->all, "", f) < 0 ||
	    read_choice(&detail, plan->all, "detail", "detail", details, BATCH_DETAIL_COUNT_, f) <
		    0)
		return -1;
	plan->detail = (enum batch_detail)detail;
	if (stop && !json_object_is_type(stop, json_type_boolean))
		return failure_at(f, "stop_on_failure", "must be true or false");
	plan->stop_on_failure = stop && json_object_get_boolean(stop);
	return 0;
}

static int read_plan(struct batch_plan *plan, size_t len, struct failure *f)
{
	unsigned seen = 0;

	if (read_options(plan, len, f) < 0)
		return -1;
	plan->runs = get(plan->all, "runs");
	if (!plan->runs || !json_object_is_type(plan->runs, json_type_array))
		return failure_at(f, "runs", "must be an array of objects");
	plan->count = json_object_array_length(plan->runs);
	if (plan->count == 0 || plan->count > BATCH_RUNS_MAX)
		return failure_at(f, "runs", "must have from 1 to %d elements", BATCH_RUNS_MAX);
	for (size_t i = 0; i < plan->count; i++)
		if (check_run(plan, i, &seen, f) < 0)
			return -1;
	return 0;
}

int batch_plan_read(struct batch_plan *ret, const struct batch_place *place, const char *body,
		    size_t len, struct failure *f)
{
	struct batch_plan plan = { .place = *place, .rule = { JUDGE_TRIMMED, TOLERANCE_USUAL } };

	if (request_parse_object(&plan.all, body, len, f) < 0)
		return -1;
	if (read_plan(&plan, len, f) < 0) {
		batch_plan_done(&plan);
		return -1;
	}
	*ret = plan;
	return 0;
}

void batch_plan_done(struct batch_plan *plan)
{
	json_object_put(plan->all);
	plan->all = NULL;
}
