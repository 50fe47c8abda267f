#include "server/session_request.h"

#include "base/json.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIFETIME_MAX_MS (30ull * 86400000)
#define TIMEOUT_MAX_MS  86400000u
#define EPISODES_MAX    1000000000

enum { MESSAGE_MAX = 16 << 20, NAME_MAX_ = 256, CALLBACKS_MAX = 1000, MEMBERS_MAX = 16 };

/* ---- members --------------------------------------------------------------------------- */

/* All of an object, by the place of each name in a list; what is null is not there. */
static int read_object(struct slice ret[MEMBERS_MAX], const char *const *names, const char *hint,
		       char *body, size_t len, struct failure *f)
{
	struct slice_item item;
	struct slice all;

	memset(ret, 0, MEMBERS_MAX * sizeof(*ret));
	if (slice_check(&all, body, len, &f->err) < 0)
		return err_context(&f->err, "the body");
	if (slice_kind(all) != '{')
		return err_set(&f->err, ERR_INVALID, "the body must be a JSON object");
	for (size_t at = 0; slice_next(&item, &at, all);) {
		size_t i = 0;
		while (names[i] && !slice_is(item.key, names[i]))
			i++;
		if (names[i]) {
			ret[i] = item.value;
			continue;
		}
		auto_buf struct buf name = BUF_INIT(60);
		slice_text(&name, item.key);
		f->hint = hint;
		return failure_at(f, buf_str(&name), "there is no such member");
	}
	return 0;
}

static bool is_there(struct slice value)
{
	return value.at && slice_kind(value) != 'n';
}

/* Seconds, or text such as "10m"; what is not there leaves *ret as it is. */
static int read_duration(uint64_t *ret_ms, struct slice value, uint64_t max_ms, const char *field,
			 struct failure *f)
{
	auto_buf struct buf text = BUF_INIT(64);
	struct err e;
	uint64_t ms;

	if (!is_there(value))
		return 0;
	if (slice_kind(value) == '"')
		slice_text(&text, value);
	else if (slice_kind(value) == '0')
		buf_add(&text, value.at, value.len);
	else
		return failure_at(f, field, "must be a number of seconds");
	if (text.dropped || strlen(buf_str(&text)) != text.len)
		return failure_at(f, field, "must be a number of seconds");
	if (units_duration(&ms, buf_str(&text), &e) < 0)
		return failure_at(f, field, "%s", e.msg);
	if (ms == 0 || ms > max_ms)
		return failure_at(f, field, "must be more than 0, and at most %" PRIu64 " seconds",
				  max_ms / 1000);
	*ret_ms = ms;
	return 0;
}

static int read_count(uint64_t *ret, struct slice value, int64_t min, int64_t max,
		      const char *field, struct failure *f)
{
	int64_t number;

	if (!is_there(value))
		return 0;
	if (slice_int(&number, value) < 0 || number < min || number > max)
		return failure_at(f, field, "must be a whole number from %" PRId64 " to %" PRId64,
				  min, max);
	*ret = (uint64_t)number;
	return 0;
}

static int require_kind(struct slice value, char kind, const char *what, const char *field,
			struct failure *f)
{
	if (is_there(value) && slice_kind(value) != kind)
		return failure_at(f, field, "must be %s", what);
	return 0;
}

static int check_policy(struct slice policy, struct failure *f)
{
	if (is_there(policy) && slice_kind(policy) != '{' && slice_kind(policy) != '"')
		return failure_at(f, "policy", "must be an object, a name or null");
	return 0;
}

/* ---- a session ------------------------------------------------------------------------- */

/* true, or an object that says more. */
static int read_rewind(struct session_options *o, struct slice value, struct failure *f)
{
	struct slice_item item;

	o->undo_max = UNDO_DEFAULT;
	if (!is_there(value))
		return 0;
	if (slice_kind(value) != '{' && slice_kind(value) != 't')
		return failure_at(f, "rewind", "must be true, false or an object");
	o->rewind = slice_kind(value) == '{' || value.at[0] == 't';
	for (size_t at = 0; slice_kind(value) == '{' && slice_next(&item, &at, value);) {
		if (!slice_is(item.key, "undo"))
			return failure_at(f, "rewind", "has undo, and nothing else");
		if (read_count(&o->undo_max, item.value, 1, UNDO_MAX, "rewind.undo", f) < 0)
			return -1;
	}
	return 0;
}

enum session_member {
	SESSION_IDLE_TIMEOUT,
	SESSION_LIFETIME,
	SESSION_MAX_EPISODES,
	SESSION_POLICY,
	SESSION_REWIND,
	SESSION_MEMBERS
};

int session_options_read(struct session_options *ret, char *body, size_t len, struct failure *f)
{
	static const char *const names[] = {
		[SESSION_IDLE_TIMEOUT] = "idle_timeout",
		[SESSION_LIFETIME] = "lifetime",
		[SESSION_MAX_EPISODES] = "max_episodes",
		[SESSION_POLICY] = "policy",
		[SESSION_REWIND] = "rewind",
		/* The rest has been judged by request_parse(). */
		[SESSION_MEMBERS] = "language", "environment", "files", "env", "limits",
		"allow_hosts", NULL
	};
	struct session_options o = { .idle_ms = ret->idle_ms,
				     .lifetime_ms = ret->lifetime_ms,
				     .policy = BUF_INIT(len) };
	struct slice all[MEMBERS_MAX];

	if (read_object(all, names, NULL, body, len, f) < 0 ||
	    read_duration(&o.idle_ms, all[SESSION_IDLE_TIMEOUT], LIFETIME_MAX_MS,
			  names[SESSION_IDLE_TIMEOUT], f) < 0 ||
	    read_duration(&o.lifetime_ms, all[SESSION_LIFETIME], LIFETIME_MAX_MS,
			  names[SESSION_LIFETIME], f) < 0 ||
	    read_count(&o.episodes_max, all[SESSION_MAX_EPISODES], 0, EPISODES_MAX,
		       names[SESSION_MAX_EPISODES], f) < 0 ||
	    check_policy(all[SESSION_POLICY], f) < 0 ||
	    read_rewind(&o, all[SESSION_REWIND], f) < 0)
		return -1;
	if (is_there(all[SESSION_POLICY]))
		buf_add(&o.policy, all[SESSION_POLICY].at, all[SESSION_POLICY].len);
	*ret = o;
	return 0;
}

void session_options_done(struct session_options *o)
{
	buf_done(&o->policy);
}

/* ---- a step ---------------------------------------------------------------------------- */

enum step_member {
	STEP_CODE,
	STEP_MODE,
	STEP_NAME,
	STEP_GLOBALS,
	STEP_CALLBACKS,
	STEP_CALLS_MAX,
	STEP_POLICY,
	STEP_FIGURES,
	STEP_VALUE_MAX,
	STEP_CHECK_ONLY,
	STEP_SENT_, /* those before are for the driver */
	STEP_TIMEOUT = STEP_SENT_,
	STEP_COUNT_,
};

static const char *const step_names[] = {
	[STEP_CODE] = "code",           [STEP_MODE] = "mode",
	[STEP_NAME] = "name",           [STEP_GLOBALS] = "globals",
	[STEP_CALLBACKS] = "callbacks", [STEP_CALLS_MAX] = "calls_max",
	[STEP_POLICY] = "policy",       [STEP_FIGURES] = "figures",
	[STEP_VALUE_MAX] = "value_max", [STEP_CHECK_ONLY] = "check_only",
	[STEP_TIMEOUT] = "timeout",     [STEP_COUNT_] = NULL,
};

_Static_assert((int)STEP_COUNT_ <= (int)MEMBERS_MAX, "read_object() has room for all");

static const char step_hint[] =
	"there are code, mode, name, globals, callbacks, calls_max, policy, "
	"figures, value_max, check_only, timeout";

static int check_mode(struct slice mode, struct failure *f)
{
	if (is_there(mode) && !slice_is(mode, "cell") && !slice_is(mode, "script") &&
	    !slice_is(mode, "function"))
		return failure_at(f, "mode", "must be \"cell\", \"script\" or \"function\"");
	return 0;
}

static int check_name(struct slice name, struct failure *f)
{
	auto_buf struct buf text = BUF_INIT(NAME_MAX_);

	if (require_kind(name, '"', "a string", "name", f) < 0)
		return -1;
	if (is_there(name))
		slice_text(&text, name);
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] < 0x20)
			return failure_at(f, "name", "holds control characters");
	if (text.dropped)
		return failure_at(f, "name", "must be at most %d bytes", NAME_MAX_);
	return 0;
}

/* Of one of them: the name itself, or an object's. */
static struct slice callback_name(struct slice callback)
{
	struct slice name = callback;
	struct slice_item member;

	for (size_t at = 0; slice_kind(callback) == '{' && slice_next(&member, &at, callback);)
		if (slice_is(member.key, "name"))
			name = member.value;
	return name;
}

/* A list of names, or of objects with a name. */
static int check_callbacks(struct slice list, struct failure *f)
{
	struct slice_item item;
	size_t count = 0;
	char field[40];

	if (require_kind(list, '[', "an array of names", "callbacks", f) < 0)
		return -1;
	for (size_t at = 0; is_there(list) && slice_next(&item, &at, list); count++) {
		struct slice name = callback_name(item.value);
		(void)snprintf(field, sizeof(field), "callbacks[%zu]", count);
		if (slice_kind(name) != '"')
			return failure_at(f, field, "must be a name, or an object with one");
		if (name.len > NAME_MAX_ + 2) /* its quotes */
			return failure_at(f, field, "must be at most %d bytes", NAME_MAX_);
		if (count >= CALLBACKS_MAX)
			return failure_at(f, field, "there may be at most %d", CALLBACKS_MAX);
	}
	return 0;
}

static int check_step(struct step_request *r, const struct slice all[MEMBERS_MAX],
		      struct failure *f)
{
	uint64_t value_max = 0;

	if (!is_there(all[STEP_CODE]))
		return failure_at(f, "code", "must be given");
	if (require_kind(all[STEP_CODE], '"', "a string", "code", f) < 0 ||
	    check_mode(all[STEP_MODE], f) < 0 || check_name(all[STEP_NAME], f) < 0 ||
	    require_kind(all[STEP_GLOBALS], '{', "an object", "globals", f) < 0 ||
	    check_callbacks(all[STEP_CALLBACKS], f) < 0 ||
	    read_count(&r->calls_max, all[STEP_CALLS_MAX], 0, CALLS_MAX, "calls_max", f) < 0 ||
	    check_policy(all[STEP_POLICY], f) < 0 ||
	    require_kind(all[STEP_FIGURES], 't', "true or false", "figures", f) < 0 ||
	    require_kind(all[STEP_CHECK_ONLY], 't', "true or false", "check_only", f) < 0 ||
	    read_count(&value_max, all[STEP_VALUE_MAX], 1, VALUE_MAX, "value_max", f) < 0)
		return -1;
	return read_duration(&r->timeout_ms, all[STEP_TIMEOUT], TIMEOUT_MAX_MS, "timeout", f);
}

/* What can only be said to a driver that reads JSON. */
static int check_words(struct step_request *r, const struct slice all[MEMBERS_MAX],
		       struct failure *f)
{
	static const enum step_member lacking[] = { STEP_GLOBALS, STEP_CALLBACKS, STEP_POLICY,
						    STEP_CHECK_ONLY };

	for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++)
		if (is_there(all[lacking[i]]))
			return failure_at(f, step_names[lacking[i]],
					  "sessions of this language have none");
	if (is_there(all[STEP_MODE]) && slice_is(all[STEP_MODE], "function"))
		return failure_at(f, "mode", "sessions of this language have no functions");
	r->code = (struct buf)BUF_INIT(STEP_BODY_MAX);
	slice_text(&r->code, all[STEP_CODE]);
	if (strlen(buf_str(&r->code)) != r->code.len)
		return failure_at(f, "code", "holds a NUL character");
	return 0;
}

/* The names alone: each call that the guest makes is looked up among them, and others wait. */
static void write_callbacks(struct step_request *r, struct slice list)
{
	struct slice_item item;

	r->callbacks = (struct buf)BUF_INIT(STEP_BODY_MAX);
	buf_add_char(&r->callbacks, '[');
	for (size_t at = 0; slice_next(&item, &at, list);) {
		struct slice name = callback_name(item.value);
		if (r->callbacks.len > 1)
			buf_add_char(&r->callbacks, ',');
		buf_add(&r->callbacks, name.at, name.len);
	}
	buf_add_char(&r->callbacks, ']');
}

static void write_message(struct step_request *r, const struct slice all[MEMBERS_MAX])
{
	r->message = (struct buf)BUF_INIT(MESSAGE_MAX);
	for (int i = 0; i < STEP_SENT_; i++) {
		/* Only of a policy does null mean something. */
		if (!all[i].at || (i != STEP_POLICY && !is_there(all[i])))
			continue;
		buf_printf(&r->message, ",\"%s\":", step_names[i]);
		buf_add(&r->message, all[i].at, all[i].len);
	}
	buf_add_str(&r->message, "}\n");
	if (is_there(all[STEP_CALLBACKS]))
		write_callbacks(r, all[STEP_CALLBACKS]);
	r->has_policy = all[STEP_POLICY].at != NULL;
	r->policy = (struct buf)BUF_INIT(STEP_BODY_MAX);
	if (is_there(all[STEP_POLICY]))
		buf_add(&r->policy, all[STEP_POLICY].at, all[STEP_POLICY].len);
}

int step_request_read(struct step_request *ret, bool takes_words, char *body, size_t len,
		      struct failure *f)
{
	AUTO(step_request_done) struct step_request r = { .calls_max = CALLS_DEFAULT };
	struct slice all[MEMBERS_MAX];

	if (read_object(all, step_names, step_hint, body, len, f) < 0 || check_step(&r, all, f) < 0)
		return -1;
	if (takes_words && check_words(&r, all, f) < 0)
		return -1;
	if (!takes_words)
		write_message(&r, all);
	r.source = (struct buf)BUF_INIT(SOURCE_MAX);
	slice_text(&r.source, all[STEP_CODE]);
	if (r.message.dropped || r.callbacks.dropped || r.policy.dropped || r.code.dropped)
		return err_set(&f->err, ERR_LIMIT, "no memory for the step");
	*ret = r;
	r = (struct step_request){ .calls_max = 0 };
	return 0;
}

void step_request_done(struct step_request *r)
{
	buf_done(&r->message);
	buf_done(&r->code);
	buf_done(&r->source);
	buf_done(&r->callbacks);
	buf_done(&r->policy);
}

/* ---- the rest -------------------------------------------------------------------------- */

enum { ERROR_TYPE, ERROR_MESSAGE, ERROR_BASE, ERROR_MEMBERS };

static const char *const error_names[] = { "type", "message", "base" };

static int read_error(struct slice ret[ERROR_MEMBERS], struct slice error, struct failure *f)
{
	struct slice_item item;
	char field[32];

	for (size_t at = 0; slice_next(&item, &at, error);) {
		int i = 0;
		while (i < ERROR_MEMBERS && !slice_is(item.key, error_names[i]))
			i++;
		if (i == ERROR_MEMBERS)
			return failure_at(f, "error",
					  "has type, message and base, and nothing else");
		(void)snprintf(field, sizeof(field), "error.%s", error_names[i]);
		if (slice_kind(item.value) != '"')
			return failure_at(f, field, "must be a string");
		ret[i] = item.value;
	}
	if (!ret[ERROR_TYPE].at)
		return failure_at(f, "error.type", "must be given");
	return 0;
}

static void write_error(struct json *j, const struct slice error[ERROR_MEMBERS])
{
	for (int i = 0; i < ERROR_MEMBERS; i++) {
		if (error[i].at)
			json_raw(j, error_names[i], error[i].at, error[i].len);
		else if (i == ERROR_MESSAGE)
			json_string(j, error_names[i], "");
	}
}

int call_answer_read(struct buf *message, uint64_t call, char *body, size_t len, struct failure *f)
{
	static const char *const names[] = { "value", "error", NULL };
	struct slice all[MEMBERS_MAX], error[ERROR_MEMBERS] = { { NULL, 0 } };
	struct json j = { .out = message };

	if (read_object(all, names, "there are value and error", body, len, f) < 0 ||
	    require_kind(all[1], '{', "an object with type and message", "error", f) < 0)
		return -1;
	if (is_there(all[1]) && is_there(all[0]))
		return failure_at(f, "error", "give value or error, not both");
	if (!all[0].at && !is_there(all[1]))
		return failure_at(f, "value", "must be given, or error");
	if (is_there(all[1]) && read_error(error, all[1], f) < 0)
		return -1;
	json_open(&j, NULL, '{');
	json_string(&j, "op", error[ERROR_TYPE].at ? "raise" : "return");
	json_int(&j, "call", (int64_t)call);
	if (error[ERROR_TYPE].at)
		write_error(&j, error);
	else
		json_raw(&j, "value", all[0].at, all[0].len);
	json_close(&j);
	buf_add_char(message, '\n');
	if (message->dropped)
		return err_set(&f->err, ERR_LIMIT, "the answer is too large");
	return 0;
}

int checkpoint_name_check(const char *name, struct failure *f)
{
	static const char usual[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = strspn(name, usual);

	while (len && name[len] && strchr("._-", name[len]))
		len += 1 + strspn(name + len + 1, usual);
	if (!len || name[len] || len >= CHECKPOINT_NAME)
		return failure_at(f, "name",
				  "must be at most %d letters, digits, and . _ - within",
				  CHECKPOINT_NAME - 1);
	return 0;
}

int checkpoint_read(char ret_name[CHECKPOINT_NAME], char *body, size_t len, struct failure *f)
{
	static const char *const names[] = { "name", NULL };
	auto_buf struct buf name = BUF_INIT(CHECKPOINT_NAME);
	struct slice all[MEMBERS_MAX];

	if (read_object(all, names, "there is name", body, len, f) < 0)
		return -1;
	if (!is_there(all[0]) || slice_kind(all[0]) != '"')
		return failure_at(f, "name", "must be given, and a string");
	slice_text(&name, all[0]);
	if (strlen(buf_str(&name)) != name.len)
		return failure_at(f, "name", "holds a NUL character");
	if (checkpoint_name_check(buf_str(&name), f) < 0)
		return -1;
	(void)snprintf(ret_name, CHECKPOINT_NAME, "%s", buf_str(&name));
	return 0;
}

int fork_read(struct step_request *ret, unsigned max, char *body, size_t len, struct failure *f)
{
	static const char *const names[] = { "count", "deterministic", NULL };
	struct slice all[MEMBERS_MAX];

	if (read_object(all, names, "there are count and deterministic", body, len, f) < 0 ||
	    read_count(&ret->fork_count, all[0], 1, max, names[0], f) < 0 ||
	    require_kind(all[1], 't', "true or false", names[1], f) < 0)
		return -1;
	ret->is_deterministic = is_there(all[1]) && all[1].at[0] == 't';
	return 0;
}

int extend_read(uint64_t *ret_ms, char *body, size_t len, struct failure *f)
{
	static const char *const names[] = { "lifetime", NULL };
	struct slice all[MEMBERS_MAX];

	if (read_object(all, names, "there is lifetime", body, len, f) < 0)
		return -1;
	if (!is_there(all[0]))
		return failure_at(f, "lifetime", "must be given");
	return read_duration(ret_ms, all[0], LIFETIME_MAX_MS, "lifetime", f);
}
