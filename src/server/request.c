#include "server/request_json.h"

#include "base/base64.h"
#include "base/nearest.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct reader {
	const struct kind *kind;
	struct vial *host;
	const struct environments *environments;
	struct json_object *all;
	struct vial_job *job;
	struct failure *f;
};

/* ---- failures -------------------------------------------------------------------------- */

/* A setter of the public API said no: its words, our field. */
static int refused(struct failure *f, const char *field, const struct vial_error *error)
{
	f->err = (struct err){ .code = (enum err_code)error->code, .sys = error->sys };
	(void)snprintf(f->err.msg, sizeof(f->err.msg), "%s", error->message);
	(void)snprintf(f->field, sizeof(f->field), "%s", field);
	return -1;
}

/* ---- values ---------------------------------------------------------------------------- */

struct bytes {
	const char *data;
	size_t len;
};

static const char *type_name(struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		return "null";
	case json_type_boolean:
		return "a boolean";
	case json_type_double:
	case json_type_int:
		return "a number";
	case json_type_object:
		return "an object";
	case json_type_array:
		return "an array";
	case json_type_string:
		return "a string";
	}
	return "unknown";
}

static int read_bytes(struct bytes *ret, struct json_object *value, const char *field,
		      struct failure *f)
{
	if (!json_object_is_type(value, json_type_string))
		return failure_at(f, field, "must be a string, not %s", type_name(value));
	*ret = (struct bytes){ json_object_get_string(value),
			       (size_t)json_object_get_string_len(value) };
	return 0;
}

/* Text for C: a NUL inside would cut it short. */
static int read_text(const char **ret, struct json_object *value, const char *field,
		     struct failure *f)
{
	struct bytes bytes = { "", 0 };

	if (read_bytes(&bytes, value, field, f) < 0)
		return -1;
	if (strlen(bytes.data) != bytes.len)
		return failure_at(f, field, "holds a NUL character");
	*ret = bytes.data;
	return 0;
}

/* Bytes as text, or as base64 in a member of that name with "_base64"; only one of them. */
static int read_content(struct bytes *ret, struct buf *room, struct json_object *plain,
			struct json_object *coded, const char *field, struct failure *f)
{
	char coded_field[sizeof(f->field)];
	struct err e;

	(void)snprintf(coded_field, sizeof(coded_field), "%s_base64", field);
	if (plain && coded)
		return failure_at(f, coded_field, "give %s or %s, not both", field, coded_field);
	if (plain)
		return read_bytes(ret, plain, field, f);
	if (read_bytes(ret, coded, coded_field, f) < 0)
		return -1;
	if (base64_decode(room, ret->data, ret->len, &e) < 0)
		return failure_at(f, coded_field, "%s", e.msg);
	*ret = (struct bytes){ buf_str(room), room->len };
	return room->dropped ? failure_at(f, coded_field, "is too large") : 0;
}

/* ---- members --------------------------------------------------------------------------- */

/* NULL for one that is not there, or null: clients in many languages write the latter. */
static struct json_object *get(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	(void)json_object_object_get_ex(object, name, &value);
	return value;
}

static int set_code(struct reader *r, struct json_object *value)
{
	struct json_object *named = get(r->all, "name");
	const char *name = NULL;
	struct vial_error error;
	struct bytes code = { "", 0 };

	if (read_bytes(&code, value, "code", r->f) < 0)
		return -1;
	if (named && read_text(&name, named, "name", r->f) < 0)
		return -1;
	/* The name alone first: a refusal of it is not one of the code. */
	if (name && vial_job_program(r->job, name, &error) < 0)
		return refused(r->f, "name", &error);
	if (vial_job_code(r->job, NULL, code.data, code.len, &error) < 0)
		return refused(r->f, "code", &error);
	return 0;
}

static int set_stdin(struct reader *r, struct json_object *value)
{
	auto_buf struct buf room = BUF_INIT(REQUEST_BODY_MAX);
	struct vial_error error;
	struct bytes bytes = { "", 0 };

	(void)value;
	if (read_content(&bytes, &room, get(r->all, "stdin"), get(r->all, "stdin_base64"), "stdin",
			 r->f) < 0)
		return -1;
	if (vial_job_stdin(r->job, bytes.data, bytes.len, &error) < 0)
		return refused(r->f, "stdin", &error);
	return 0;
}

static int set_workdir(struct reader *r, struct json_object *value)
{
	struct vial_error error;
	const char *path = NULL;

	if (read_text(&path, value, "workdir", r->f) < 0)
		return -1;
	return vial_job_workdir(r->job, path, &error) < 0 ? refused(r->f, "workdir", &error) : 0;
}

static int set_writable(struct reader *r, struct json_object *value)
{
	struct vial_error error;

	if (!json_object_is_type(value, json_type_boolean))
		return failure_at(r->f, "writable", "must be true or false, not %s",
				  type_name(value));
	if (vial_job_writable(r->job, json_object_get_boolean(value), &error) < 0)
		return refused(r->f, "writable", &error);
	return 0;
}

/* ---- lists ----------------------------------------------------------------------------- */

static int set_strings(struct reader *r, struct json_object *list, const char *name,
		       int (*set)(struct vial_job *job, const char *text, struct vial_error *error))
{
	char field[sizeof(r->f->field)];
	struct vial_error error;
	const char *text = NULL;

	if (!json_object_is_type(list, json_type_array))
		return failure_at(r->f, name, "must be an array of strings, not %s",
				  type_name(list));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		(void)snprintf(field, sizeof(field), "%s[%zu]", name, i);
		if (read_text(&text, json_object_array_get_idx(list, i), field, r->f) < 0)
			return -1;
		if (set(r->job, text, &error) < 0)
			return refused(r->f, field, &error);
	}
	return 0;
}

static int set_args(struct reader *r, struct json_object *value)
{
	return set_strings(r, value, "args", vial_job_arg);
}

static int set_exports(struct reader *r, struct json_object *value)
{
	return set_strings(r, value, "exports", vial_job_export);
}

/* An empty list is an answer, too: none, whatever is usual here. */
static int set_allow_hosts(struct reader *r, struct json_object *value)
{
	struct vial_error error;

	if (vial_job_allow_host(r->job, NULL, &error) < 0)
		return refused(r->f, "allow_hosts", &error);
	if (set_strings(r, value, "allow_hosts", vial_job_allow_host) == 0)
		return 0;
	if (r->f->err.code == ERR_DENIED)
		r->f->hint = "egress.allow in vial.yaml is what may be asked for at most; private "
			     "addresses only if they are named there";
	return -1;
}

static int set_file(struct reader *r, struct json_object *file, const char *field)
{
	auto_buf struct buf room = BUF_INIT(REQUEST_BODY_MAX);
	char part[sizeof(r->f->field)];
	struct vial_error error;
	struct bytes bytes = { "", 0 };
	const char *path = NULL;

	if (!json_object_is_type(file, json_type_object))
		return failure_at(r->f, field, "must be an object, not %s", type_name(file));
	json_object_object_foreach(file, key, value)
	{
		(void)value;
		if (strcmp(key, "path") != 0 && strcmp(key, "content") != 0 &&
		    strcmp(key, "content_base64") != 0) {
			(void)snprintf(part, sizeof(part), "%.32s.%.40s", field, key);
			r->f->hint = "a file has path, and content or content_base64";
			return failure_at(r->f, part, "there is no such member");
		}
	}
	(void)snprintf(part, sizeof(part), "%.32s.path", field);
	if (read_text(&path, get(file, "path"), part, r->f) < 0)
		return -1;
	(void)snprintf(part, sizeof(part), "%.32s.content", field);
	struct json_object *plain = get(file, "content"), *coded = get(file, "content_base64");
	if (!plain && !coded)
		return failure_at(r->f, part, "must be given, or content_base64");
	if (read_content(&bytes, &room, plain, coded, part, r->f) < 0)
		return -1;
	(void)snprintf(part, sizeof(part), "%.32s.path", field);
	if (vial_job_file(r->job, path, bytes.data, bytes.len, &error) < 0)
		return refused(r->f, part, &error);
	return 0;
}

static int set_files(struct reader *r, struct json_object *list)
{
	char field[32];

	if (!json_object_is_type(list, json_type_array))
		return failure_at(r->f, "files", "must be an array of objects, not %s",
				  type_name(list));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		(void)snprintf(field, sizeof(field), "files[%zu]", i);
		if (set_file(r, json_object_array_get_idx(list, i), field) < 0)
			return -1;
	}
	return 0;
}

/* ---- maps ------------------------------------------------------------------------------ */

static int set_env(struct reader *r, struct json_object *map)
{
	char field[sizeof(r->f->field)];
	struct vial_error error;
	const char *text = NULL;

	if (!json_object_is_type(map, json_type_object))
		return failure_at(r->f, "env", "must be an object, not %s", type_name(map));
	json_object_object_foreach(map, key, value)
	{
		(void)snprintf(field, sizeof(field), "env.%.80s", key);
		if (read_text(&text, value, field, r->f) < 0)
			return -1;
		if (vial_job_env(r->job, key, text, &error) < 0)
			return refused(r->f, field, &error);
	}
	return 0;
}

/* A number as the text that the limit's own reader takes: seconds, bytes, cores, a count. */
static int number_text(char ret[64], double number, const char *field, struct failure *f)
{
	if (!isfinite(number) || fabs(number) > 1e18)
		return failure_at(f, field, "is out of range");
	int len = snprintf(ret, 64, "%.6f", number);
	while (ret[len - 1] == '0')
		ret[--len] = '\0';
	if (ret[len - 1] == '.')
		ret[len - 1] = '\0';
	return 0;
}

static int set_limit(struct reader *r, const char *name, struct json_object *value,
		     const char *field)
{
	struct vial_error error;
	const char *text = NULL;
	char number[64];

	switch (json_object_get_type(value)) {
	case json_type_int:
		(void)snprintf(number, sizeof(number), "%" PRId64, json_object_get_int64(value));
		break;
	case json_type_double:
		if (number_text(number, json_object_get_double(value), field, r->f) < 0)
			return -1;
		break;
	case json_type_string:
		if (read_text(&text, value, field, r->f) < 0)
			return -1;
		break;
	default:
		return failure_at(r->f, field, "must be a number or a string, not %s",
				  type_name(value));
	}
	if (vial_job_limit(r->job, name, text ? text : number, &error) < 0)
		return refused(r->f, field, &error);
	return 0;
}

static int set_limits(struct reader *r, struct json_object *map)
{
	char field[sizeof(r->f->field)];

	if (!json_object_is_type(map, json_type_object))
		return failure_at(r->f, "limits", "must be an object, not %s", type_name(map));
	json_object_object_foreach(map, key, value)
	{
		(void)snprintf(field, sizeof(field), "limits.%.40s", key);
		if (value && set_limit(r, key, value, field) < 0)
			return -1;
	}
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------- */

/* In the order they are applied.  Without a function: read together with another, or elsewhere. */
struct member {
	const char *name;
	int (*set)(struct reader *r, struct json_object *value);
};

static const struct member run_members[] = {
	{ "language", NULL },
	{ "environment", NULL },
	{ "code", set_code },
	{ "name", NULL },
	{ "files", set_files },
	{ "args", set_args },
	{ "env", set_env },
	{ "stdin", set_stdin },
	{ "stdin_base64", set_stdin },
	{ "limits", set_limits },
	{ "workdir", set_workdir },
	{ "writable", set_writable },
	{ "exports", set_exports },
	{ "allow_hosts", set_allow_hosts },
	{ 0 },
};

static const struct member session_members[] = {
	{ "language", NULL },     { "environment", NULL },
	{ "files", set_files },   { "env", set_env },
	{ "limits", set_limits }, { "idle_timeout", NULL },
	{ "lifetime", NULL },     { "max_episodes", NULL },
	{ "policy", NULL },       { "allow_hosts", set_allow_hosts },
	{ "rewind", NULL },
	{ 0 },
};

static const struct kind {
	const struct member *members; /* the last has no name */
	const char *hint;
	bool has_code;
} kinds[] = {
	[REQUEST_RUN] = { run_members,
			  "there are language, environment, code, name, files, args, env, "
			  "stdin, stdin_base64, limits, workdir, writable, exports, "
			  "allow_hosts",
			  true },
	[REQUEST_SESSION] = { session_members,
			      "there are language, environment, files, env, limits, "
			      "idle_timeout, lifetime, max_episodes, policy, allow_hosts, "
			      "rewind",
			      false },
};

static int check_members(const struct reader *r)
{
	json_object_object_foreach(r->all, key, value)
	{
		const struct member *m = r->kind->members;
		(void)value;
		while (m->name && strcmp(m->name, key) != 0)
			m++;
		if (m->name)
			continue;
		r->f->hint = r->kind->hint;
		char field[64];
		(void)snprintf(field, sizeof(field), "%.60s", key);
		return failure_at(r->f, field, "there is no such member");
	}
	return 0;
}

/* What code finds inside, by the name of an environment or of a language. */
static int create_job(struct reader *r)
{
	struct json_object *language = get(r->all, "language");
	struct json_object *named = get(r->all, "environment");
	const char *field = named ? "environment" : "language", *name = NULL;
	struct vial_error error;

	if (language && named)
		return failure_at(r->f, "environment", "give language or environment, not both");
	if (!language && !named)
		return failure_at(r->f, "language", "must be given, or environment");
	if (read_text(&name, named ? named : language, field, r->f) < 0)
		return -1;
	const struct environment *env = environments_find(r->environments, name);
	bool is_image = named && strpbrk(name, ":/");
	r->f->hint = is_image ? "make one (vial env build NAME --image IMAGE), restart the daemon"
			      : "GET /v1/environments lists what there is";
	if (!env && !named && !runtime_find(name)) {
		char hint[NEAREST_ROOM];

		return failure_at(r->f, field, "unknown language '%.40s'%s", name,
				  nearest_hint(hint, runtime_nearest(name), ""));
	}
	if (!env)
		return failure_at(r->f, field,
				  is_image ? "no environment is made of the image '%.80s'"
				  : named  ? "'%.40s' is not an environment here"
					   : "'%.40s' is not installed here",
				  name);
	if (vial_job_create(&r->job, r->host, env->tool.runtime->name, &error) < 0)
		return refused(r->f, field, &error);
	r->f->hint = NULL;
	r->job->environment = env;
	return 0;
}

static int read_members(struct reader *r)
{
	if (check_members(r) < 0 || create_job(r) < 0 || !r->job)
		return -1;
	for (const struct member *m = r->kind->members; m->name; m++) {
		struct json_object *value = get(r->all, m->name);
		if (value && m->set && m->set(r, value) < 0)
			return -1;
	}
	if (r->kind->has_code && !r->job->has_code)
		return failure_at(r->f, "code", "must be given");
	return 0;
}

/*
 * What the parser does not mind.  It makes an object of a hundred bytes for each value, be it as
 * short as "[]": a body full of those would take fifty times its size.  Names of members end for
 * it at a NUL, and it takes overlong UTF-8 and line feeds as they are.
 */
static int check_body(const char *body, size_t len, struct err *e)
{
	size_t tokens = 0;
	bool in_string = false, has_nul = false;

	for (size_t i = 0; i < len; i++) {
		char c = body[i];
		if (in_string && (unsigned char)c < ' ')
			return err_set(e, ERR_INVALID,
				       "the body is not JSON: a control character in a string at "
				       "byte %zu",
				       i);
		if (in_string && c == '\\') {
			has_nul = has_nul || (len - i > 6 && memcmp(body + i, "\\u0000", 6) == 0);
			i++;
		} else if (c == '"') {
			in_string = !in_string;
			has_nul = has_nul && !in_string;
		} else if (!in_string && c == ':' && has_nul) {
			return err_set(e, ERR_INVALID, "the name of a member has a NUL in it");
		} else if (!in_string && (c == ',' || c == ':' || c == '[' || c == '{')) {
			tokens++;
		}
	}
	if (len > REQUEST_BODY_MAX || tokens > REQUEST_TOKENS_MAX)
		return err_set(e, ERR_LIMIT, "the body holds too many values");
	if (!utf8_is_valid(body, len))
		return err_set(e, ERR_INVALID, "the body is not UTF-8");
	return 0;
}

/* A number is only known to have ended when something follows it. */
static bool is_something_else(const char *body, size_t len)
{
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", body[at]))
		at++;
	return at < len && body[at] != '{';
}

int request_parse_object(struct json_object **ret, const char *body, size_t len, struct failure *f)
{
	*f = (struct failure){ .status = 0 };
	if (check_body(body, len, &f->err) < 0)
		return -1;

	struct json_tokener *tok = json_tokener_new_ex(REQUEST_DEPTH_MAX);
	struct json_object *all;
	if (!tok)
		return err_sys(&f->err, "request");
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	all = json_tokener_parse_ex(tok, body, (int)len);
	enum json_tokener_error error = json_tokener_get_error(tok);
	size_t at = json_tokener_get_parse_end(tok);
	json_tokener_free(tok);
	if (error == json_tokener_success && json_object_is_type(all, json_type_object)) {
		*ret = all;
		return 0;
	}
	json_object_put(all);
	if (error == json_tokener_success ||
	    (error == json_tokener_continue && is_something_else(body, len)))
		return err_set(&f->err, ERR_INVALID, "the body must be a JSON object");
	return err_set(&f->err, ERR_INVALID, "the body is not JSON: %s at byte %zu",
		       error == json_tokener_continue ? "it ends too early"
						      : json_tokener_error_desc(error),
		       at);
}

int request_read(struct vial_job **ret, enum request_kind kind, struct vial *host,
		 const struct environments *environments, struct json_object *all,
		 struct failure *f)
{
	struct reader r = {
		.kind = &kinds[kind], .host = host, .environments = environments, .all = all, .f = f
	};

	*f = (struct failure){ .status = 0 };
	if (read_members(&r) < 0) {
		vial_job_free(r.job);
		return -1;
	}
	*ret = r.job;
	return 0;
}

bool request_knows(enum request_kind kind, const char *name)
{
	const struct member *m = kinds[kind].members;

	while (m->name && strcmp(m->name, name) != 0)
		m++;
	return m->name != NULL;
}

int request_parse(struct vial_job **ret, enum request_kind kind, struct vial *host,
		  const struct environments *environments, const char *body, size_t len,
		  struct failure *f)
{
	struct json_object *all = NULL;

	if (request_parse_object(&all, body, len, f) < 0)
		return -1;
	int failed = request_read(ret, kind, host, environments, all, f);
	json_object_put(all);
	return failed;
}
