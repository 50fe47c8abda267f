/*
 * token - vial token: who may use the daemon over the network.
 *
 * The file of tokens is changed here, and the daemon notices; the command waits for that, so that a
 * token is good for something when it is printed, and for nothing when it has been revoked.
 */
#include "base/json.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/member.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/verbs.h"
#include "keeper/tokens.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NOTICE_MS = 5000, LOOK_MS = 10 };

static int create_main(int argc, char **argv);
static int list_main(int argc, char **argv);
static int revoke_main(int argc, char **argv);

static const struct verb verbs[] = {
	{ "create", "--tenant NAME", create_main, "make one; it is printed this once" },
	{ "list", "", list_main, "the tokens there are, without their secrets" },
	{ "revoke", "ID...", revoke_main, "from now on they are good for nothing" },
};

int token_main(int argc, char **argv)
{
	return verbs_main("token",
			  "A token lets whoever has it use the daemon over the network, on "
			  "behalf of a tenant: runs, sessions, files and history of one tenant "
			  "do not exist for another.",
			  verbs, ARRAY_LEN(verbs), argc, argv);
}

/* ---- the daemon ------------------------------------------------------------------------ */

/* 1: it has this revision, or is none of ours; 0: not yet. */
static int daemon_knows(const char *path, uint64_t revision, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	const char *file;
	uint64_t known;

	if (daemon_call(&answer, "GET", "/v1/tokens", e) < 0)
		return 1;
	if (member_text(&file, answer, "file", e) < 0 ||
	    member_number(&known, answer, "revision", INT64_MAX, e) < 0)
		return -1;
	return strcmp(file, path) != 0 || known >= revision;
}

static void wait_for_daemon(const char *path, uint64_t revision)
{
	const struct timespec moment = { .tv_nsec = LOOK_MS * 1000000 };
	struct err e;

	for (int waited = 0; waited < NOTICE_MS; waited += LOOK_MS) {
		if (daemon_knows(path, revision, &e) != 0)
			return;
		(void)nanosleep(&moment, NULL);
	}
	(void)fprintf(stderr, "vial: the daemon has not read %s yet: see its log\n", path);
}

/* ---- create ---------------------------------------------------------------------------- */

struct creation {
	const char *config, *tenant, *scopes, *expires, *note;
	bool json;
	struct quotas_text quotas;
};

static char **quota_text(struct quotas_text *quotas, const char *key, size_t len)
{
	for (size_t i = 0; i < quota_count; i++)
		if (strlen(quota_rows[i].key) == len && strncmp(quota_rows[i].key, key, len) == 0)
			return (char **)((char *)quotas + quota_rows[i].text_offset);
	return NULL;
}

/* "runs=4", or several with commas between them. */
static int add_quotas(void *target, const struct option *opt, const char *value, struct err *e)
{
	struct creation *req = target;
	struct quotas scratch;

	(void)opt;
	quotas_default(&scratch);
	for (const char *at = value; *at;) {
		size_t len = strcspn(at, ",");
		auto_free char *word = strndup(at, len);
		char *equals = word ? strchr(word, '=') : NULL;

		if (!equals)
			return err_set(e, ERR_INVALID, "'%.60s' is not KEY=VALUE", at);
		*equals = '\0';
		if (quotas_set(&scratch, word, equals + 1, e) < 0)
			return -1;
		char **text = quota_text(&req->quotas, word, strlen(word));
		char *copy = strdup(equals + 1);
		if (!text || !copy) {
			free(copy);
			return err_sys(e, "--quota");
		}
		free(*text);
		*text = copy;
		at += len;
		at += *at == ',';
	}
	return 0;
}

static void creation_done(struct creation *req)
{
	for (size_t i = 0; i < quota_count; i++)
		free(*(char **)((char *)&req->quotas + quota_rows[i].text_offset));
}

#define AT(type, field) offsetof(struct type, field), NULL

/* clang-format off */
static const struct option create_rows[] = {
	{ "tenant", 0, "NAME",
	  "on whose behalf: letters, digits, '_', '-', '.'", AT(creation, tenant) },
	{ "scopes", 0, "LIST",
	  "what it is good for, of run, sessions, files, history, metrics, admin (default: the "
	  "first four)", AT(creation, scopes) },
	{ "expires", 0, "TIME",
	  "when it ends: after 30d or 12h, or at 2027-01-31 (default: never)",
	  AT(creation, expires) },
	{ "quota", 0, "KEY=VALUE",
	  "how much its tenant may have from now on, of runs, queue, sessions, storage, cpu, "
	  "window, rate, burst, weight; several with commas", 0, add_quotas },
	{ "note", 0, "TEXT",
	  "what vial token list shows beside it", AT(creation, note) },
	{ "json", 0, NULL,
	  "print JSON", AT(creation, json) },
	{ "config", 0, "FILE",
	  "the operator's configuration (default: /etc/vial/vial.yaml)", AT(creation, config) },
};
/* clang-format on */

static void print_created(const struct creation *req, const char *token)
{
	auto_buf struct buf text = BUF_INIT(1024);
	struct json j = { .out = &text };
	char id[TOKEN_ID_LEN + 1];

	(void)snprintf(id, sizeof(id), "%s", strchr(token, '_') + 1);
	if (!req->json) {
		(void)puts(token);
		if (isatty(STDERR_FILENO))
			(void)fprintf(stderr,
				      "Its id is %s. It is shown this once; whoever has it is "
				      "'%s'.\n",
				      id, req->tenant);
		return;
	}
	json_open(&j, NULL, '{');
	json_string(&j, "id", id);
	json_string(&j, "tenant", req->tenant);
	json_string(&j, "token", token);
	json_close(&j);
	(void)puts(buf_str(&text));
}

static int create(struct creation *req, struct err *e)
{
	const struct token_wish wish = { req->tenant, req->scopes, req->expires, req->note,
					 &req->quotas };
	char path[TOKENS_PATH_MAX], token[TOKEN_TEXT_LEN + 1];
	uint64_t revision;

	if (!req->tenant)
		return err_set(e, ERR_INVALID, "whose? name a tenant with --tenant");
	if (tokens_locate(path, req->config, e) < 0 ||
	    tokens_create(token, &revision, path, &wish, e) < 0)
		return -1;
	wait_for_daemon(path, revision);
	print_created(req, token);
	return 0;
}

static int create_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "--tenant NAME [OPTION...]", NULL };
	AUTO(creation_done) struct creation req = { 0 };
	AUTO(options_done)
	struct options o = {
		"token create",
		synopsis,
		"Make a token and print it, this once: only its hash is kept. From the "
		"first one on, whoever comes over TCP needs one.",
		create_rows,
		ARRAY_LEN(create_rows),
		&req,
		0
	};
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 || options_apply(&o, &e) < 0 ||
	    create(&req, &e) < 0)
		return cli_report(o.verb, &e);
	return cli_flush(0);
}

/* ---- list ------------------------------------------------------------------------------ */

struct selection {
	const char *config, *tenant;
	bool json;
};

/* clang-format off */
static const struct option list_rows[] = {
	{ "tenant", 0, "NAME", "those of one tenant", AT(selection, tenant) },
	{ "json", 0, NULL, "print a JSON array, one object per token", AT(selection, json) },
	{ "config", 0, "FILE",
	  "the operator's configuration (default: /etc/vial/vial.yaml)", AT(selection, config) },
};
/* clang-format on */

static void add_cell(struct table *t, enum term_style style, const char *text)
{
	auto_buf struct buf shown = BUF_INIT(1024);

	term_escape(&shown, text ? text : "-", strlen(text ? text : "-"));
	table_add(t, style, buf_str(&shown));
}

static bool is_wanted(const struct selection *req, const struct token *t)
{
	return !req->tenant || strcmp(req->tenant, t->tenant) == 0;
}

static void print_table(const struct selection *req, const struct tokens *tokens)
{
	static const char *const titles[] = {
		"ID", "TENANT", "SCOPES", "CREATED", "EXPIRES", "NOTE"
	};
	auto_table struct table t = TABLE_INIT(ARRAY_LEN(titles));

	if (isatty(STDOUT_FILENO))
		for (size_t i = 0; i < ARRAY_LEN(titles); i++)
			table_add(&t, TERM_DIM, titles[i]);
	for (unsigned i = 0; i < tokens->items_count; i++) {
		const struct token *token = &tokens->items[i];
		bool is_over = token_is_expired(token, time(NULL));

		if (!is_wanted(req, token))
			continue;
		add_cell(&t, TERM_BOLD, token->id);
		add_cell(&t, TERM_PLAIN, token->tenant);
		add_cell(&t, TERM_PLAIN, token->scopes);
		add_cell(&t, TERM_DIM, token->created);
		add_cell(&t, is_over ? TERM_RED : TERM_PLAIN,
			 token->expires ? token->expires : "never");
		add_cell(&t, TERM_PLAIN, token->note);
	}
	table_print(&t, stdout);
}

static void print_json(const struct selection *req, const struct tokens *tokens)
{
	auto_buf struct buf text = BUF_INIT(32u << 20);
	struct json j = { .out = &text };

	json_open(&j, NULL, '[');
	for (unsigned i = 0; i < tokens->items_count; i++) {
		const struct token *token = &tokens->items[i];

		if (!is_wanted(req, token))
			continue;
		json_open(&j, NULL, '{');
		json_string(&j, "id", token->id);
		json_string(&j, "tenant", token->tenant);
		json_string(&j, "scopes", token->scopes);
		json_string(&j, "created", token->created);
		json_string(&j, "expires", token->expires);
		json_bool(&j, "expired", token_is_expired(token, time(NULL)));
		json_string(&j, "note", token->note);
		json_close(&j);
	}
	json_close(&j);
	(void)puts(buf_str(&text));
}

static int list_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--tenant NAME] [--json]", NULL };
	struct selection req = { 0 };
	struct options o = { "token list",
			     synopsis,
			     "List the tokens there are. Their secrets are nowhere.",
			     list_rows,
			     ARRAY_LEN(list_rows),
			     &req,
			     0 };
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	char path[TOKENS_PATH_MAX];
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 ||
	    tokens_locate(path, req.config, &e) < 0 || tokens_load(&tokens, path, &e) < 0)
		return cli_report(o.verb, &e);
	if (req.json)
		print_json(&req, tokens);
	else
		print_table(&req, tokens);
	return cli_flush(0);
}

/* ---- revoke ---------------------------------------------------------------------------- */

/* clang-format off */
static const struct option revoke_rows[] = {
	{ "tenant", 0, "NAME", "all of this tenant's", AT(selection, tenant) },
	{ "config", 0, "FILE",
	  "the operator's configuration (default: /etc/vial/vial.yaml)", AT(selection, config) },
};
/* clang-format on */

static int revoke_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "ID...", "--tenant NAME", NULL };
	struct selection req = { 0 };
	struct options o = { "token revoke",
			     synopsis,
			     "Revoke tokens: all of those named, or none if one is not there. Runs "
			     "and sessions that were begun with them go on to their end.",
			     revoke_rows,
			     ARRAY_LEN(revoke_rows),
			     &req,
			     0 };
	char path[TOKENS_PATH_MAX];
	uint64_t revision;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if ((first == argc) == !req.tenant) {
		(void)err_set(&e, ERR_INVALID, "which? name ids, or a tenant with --tenant");
		return cli_report(o.verb, &e);
	}
	if (tokens_locate(path, req.config, &e) < 0 ||
	    tokens_revoke(&revision, path, (const char *const *)argv + first,
			  (size_t)(argc - first), req.tenant, &e) < 0)
		return cli_report(o.verb, &e);
	wait_for_daemon(path, revision);
	return 0;
}
