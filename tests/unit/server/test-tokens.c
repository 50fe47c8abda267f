#include "keeper/tokens.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- a file of its own ------------------------------------------------------------------ */

struct fixture {
	char dir[32], path[80];
};

static int fixture_open(struct fixture *f)
{
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/vial-tokens-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	(void)snprintf(f->path, sizeof(f->path), "%s/below/tokens", f->dir);
	return 0;
}

static void fixture_close(struct fixture *f)
{
	char below[48];

	(void)snprintf(below, sizeof(below), "%s/below", f->dir);
	(void)unlink(f->path);
	(void)rmdir(below);
	(void)rmdir(f->dir);
}

#define FIXTURE(f)                                                                                 \
	AUTO(fixture_close) struct fixture f = { 0 };                                              \
	if (fixture_open(&(f)) < 0)                                                                \
	STOP(TEST_FAIL, "no directory")

#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			STOP(TEST_FAIL, "%s: %s", #call, e.msg);                                   \
	} while (0)

static int parse(struct tokens **ret, const char *text, struct err *e)
{
	return tokens_parse(ret, text, strlen(text), e);
}

TEST(a_token_is_found_by_its_text_alone)
{
	FIXTURE(f);
	const struct token_wish wish = { .tenant = "acme", .note = "a note" };
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	char one[TOKEN_TEXT_LEN + 1], two[TOKEN_TEXT_LEN + 1];
	uint64_t revision;
	struct stat st;
	struct err e;

	OK(tokens_create(one, &revision, f.path, &wish, &e));
	CHECK_INT(revision, 1);
	OK(tokens_create(two, &revision, f.path, &wish, &e));
	CHECK_INT(revision, 2);
	CHECK_INT(strlen(one), TOKEN_TEXT_LEN);
	CHECK(strcmp(one, two) != 0);
	CHECK(stat(f.path, &st) == 0 && (st.st_mode & 0777) == 0600);

	OK(tokens_load(&tokens, f.path, &e));
	CHECK_INT(tokens->items_count, 2);
	const struct token *found = tokens_find(tokens, two);
	CHECK(found && strcmp(found->tenant, "acme") == 0 && strcmp(found->note, "a note") == 0);
	CHECK_INT(found->rights, SCOPE_RUN | SCOPE_SESSIONS | SCOPE_FILES | SCOPE_HISTORY);
	CHECK(!token_is_expired(found, time(NULL)));
	CHECK(tokens_find(tokens, one) && tokens_find(tokens, one) != found);

	one[TOKEN_TEXT_LEN - 1] ^= 1; /* any bit of it counts */
	CHECK(!tokens_find(tokens, one));
	two[5] ^= 1;
	CHECK(!tokens_find(tokens, two));
	CHECK(!tokens_find(tokens, "") && !tokens_find(tokens, "vial_"));
}

TEST(what_is_in_the_file_does_not_make_a_token)
{
	FIXTURE(f);
	const struct token_wish wish = { .tenant = "acme" };
	auto_close int fd = -1;
	char text[TOKEN_TEXT_LEN + 1], file[4096] = "";
	uint64_t revision;
	struct err e;

	OK(tokens_create(text, &revision, f.path, &wish, &e));
	fd = open(f.path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, file, sizeof(file) - 1) > 0);
	CHECK(!strstr(file, text));
	CHECK(!strstr(file, strrchr(text, '_') + 1));
	CHECK(strstr(file, "hash: "));
}

TEST(tokens_are_revoked_by_id_or_by_tenant)
{
	FIXTURE(f);
	const struct token_wish acme = { .tenant = "acme" }, other = { .tenant = "other" };
	char text[3][TOKEN_TEXT_LEN + 1], id[TOKEN_ID_LEN + 1] = "";
	const char *ids[] = { id, "000000000000" };
	uint64_t revision;
	struct err e;

	OK(tokens_create(text[0], &revision, f.path, &acme, &e));
	OK(tokens_create(text[1], &revision, f.path, &acme, &e));
	OK(tokens_create(text[2], &revision, f.path, &other, &e));
	memcpy(id, text[0] + 5, TOKEN_ID_LEN);
	CHECK(tokens_revoke(&revision, f.path, ids, 2, NULL, &e) == -1 && e.code == ERR_GONE);
	OK(tokens_revoke(&revision, f.path, ids, 1, NULL, &e));
	CHECK_INT(revision, 4);
	{
		AUTO(tokens_freep) struct tokens *tokens = NULL;
		OK(tokens_load(&tokens, f.path, &e));
		CHECK_INT(tokens->items_count, 2);
		CHECK(!tokens_find(tokens, text[0]) && tokens_find(tokens, text[1]));
	}
	OK(tokens_revoke(&revision, f.path, NULL, 0, "acme", &e));
	CHECK(tokens_revoke(&revision, f.path, NULL, 0, "acme", &e) == -1 && e.code == ERR_GONE);
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	OK(tokens_load(&tokens, f.path, &e));
	CHECK(tokens->items_count == 1 && tokens_find(tokens, text[2]));
}

TEST(what_is_said_of_a_tenant_stays_until_something_else_is_said)
{
	FIXTURE(f);
	char four[] = "4", eight[] = "8", ten[] = "10";
	struct quotas_text first = { .runs = four, .rate = ten }, second = { .runs = eight };
	const struct token_wish one = { .tenant = "acme", .quotas = &first };
	const struct token_wish two = { .tenant = "acme", .quotas = &second };
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	char text[TOKEN_TEXT_LEN + 1];
	struct quotas q;
	uint64_t revision;
	struct err e;

	OK(tokens_create(text, &revision, f.path, &one, &e));
	OK(tokens_create(text, &revision, f.path, &two, &e));
	OK(tokens_load(&tokens, f.path, &e));
	const struct token_tenant *said = tokens_tenant(tokens, "acme");
	CHECK(said && !tokens_tenant(tokens, "other"));
	quotas_default(&q);
	OK(quotas_apply(&q, &said->quotas, &e));
	CHECK_INT(q.runs, 8);
	CHECK_INT(q.rate, 10);
	CHECK(q.sessions == QUOTA_NONE);
}

TEST(wishes_that_make_no_sense_change_nothing)
{
	FIXTURE(f);
	char many[] = "many";
	struct quotas_text bad = { .runs = many };
	const struct token_wish wishes[] = {
		{ .tenant = "" },
		{ .tenant = ".." },
		{ .tenant = "a/b" },
		{ .tenant = "a", .scopes = "run,fly" },
		{ .tenant = "a", .scopes = "" },
		{ .tenant = "a", .expires = "yesterday" },
		{ .tenant = "a", .expires = "2001-01-01" },
		{ .tenant = "a", .expires = "0d" },
		{ .tenant = "a", .expires = "5" },
		{ .tenant = "a", .quotas = &bad },
	};
	char text[TOKEN_TEXT_LEN + 1];
	uint64_t revision;
	struct err e;

	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++)
		if (tokens_create(text, &revision, f.path, &wishes[i], &e) == 0 ||
		    e.code != ERR_INVALID)
			STOP(TEST_FAIL, "wish %zu", i);
	CHECK(access(f.path, F_OK) < 0);
}

TEST(an_id_becomes_a_name_that_leads_nowhere)
{
	static const struct {
		const char *id, *name;
	} cases[] = {
		{ "user/../admin", "user_.._admin" },
		{ "user\\admin", "user_admin" },
		{ "..", "__" },
		{ ".", "_" },
		{ "a.b-c_D9", "a.b-c_D9" },
		{ "-x", "_x" },
		{ "j\xc3\xbcrgen@x", "j_rgen_x" },
		{ "\n\t ", "___" },
	};
	char name[TENANT_NAME_MAX + 1], longest[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		tenant_name_of(name, cases[i].id);
		CHECK_STR(name, cases[i].name);
		CHECK(tenant_name_is_valid(name));
	}
	memset(longest, '/', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	tenant_name_of(name, longest);
	CHECK_INT(strlen(name), TENANT_NAME_MAX);
}

TEST(a_token_may_have_an_end)
{
	FIXTURE(f);
	static const char *const ends[] = { "1s", "30d",        "12h",
					    "2w", "2199-01-31", "2199-01-31T12:00:00Z" };
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	char text[TOKEN_TEXT_LEN + 1];
	uint64_t revision;
	struct err e;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const struct token_wish wish = { .tenant = "a", .expires = ends[i] };
		OK(tokens_create(text, &revision, f.path, &wish, &e));
	}
	OK(tokens_load(&tokens, f.path, &e));
	for (unsigned i = 0; i < tokens->items_count; i++) {
		const struct token *t = &tokens->items[i];
		CHECK(!token_is_expired(t, t->expires_at - 1));
		CHECK(token_is_expired(t, t->expires_at));
	}
}

#define HASH "60dc5d4df9796799d688af712b5a3fd373efd625aeb5c81311022e9cbda84c32"

TEST(a_file_with_a_mistake_is_no_file_of_tokens)
{
	static const char *const bad[] = {
		"tokens:\n- id: x\n",
		"tokens:\n- {id: 0123456789ab, tenant: a, scopes: run, hash: abc}\n",
		"tokens:\n- {id: 0123456789aB, tenant: a, scopes: run, hash: " HASH "}\n",
		"tokens:\n- {id: 0123456789ab, tenant: .., scopes: run, hash: " HASH "}\n",
		"tokens:\n- {id: 0123456789ab, tenant: a, scopes: all, hash: " HASH "}\n",
		"tokens:\n- {id: 0123456789ab, tenant: a, scopes: run, hash: " HASH ", x: 1}\n",
		"tokens:\n- {id: 0123456789ab, tenant: a, scopes: run, hash: " HASH
		", expires: never}\n",
		"tokens:\n- {id: 0123456789ab, tenant: a, scopes: run, hash: " HASH "}\n"
		"- {id: 0123456789ab, tenant: b, scopes: run, hash: " HASH "}\n",
		"tenants:\n- {name: a, quotas: {runs: -1}}\n",
		"tenants:\n- {name: a/b}\n",
		"nonsense\n",
	};
	struct tokens *tokens;
	struct err e;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(&tokens, bad[i], &e) == 0)
			STOP(TEST_FAIL, "taken: %s", bad[i]);
	OK(parse(&tokens, "", &e));
	CHECK_INT(tokens->items_count, 0);
	tokens_free(tokens);
	OK(parse(&tokens,
		 "tokens:\n- {id: 0123456789ab, tenant: a, scopes: admin, hash: " HASH "}\n", &e));
	CHECK_INT(tokens->items_count, 1);
	tokens_free(tokens);
}
