#include "server/access.h"
#include "test.h"

#define SECRET "0000000000000000000000000000000000000000000000000000000000000000"
#define RUNNER "vial_aaaaaaaaaaaa_" SECRET
#define ADMIN  "vial_bbbbbbbbbbbb_" SECRET
#define OLD    "vial_cccccccccccc_" SECRET

/* Their hashes. */
#define HASH_RUNNER "c6e82c4f96d9921cf8551cfa67f3eaf8afd9674f426c9ac598d2d7543a11f77e"
#define HASH_ADMIN  "13ee17624d5ad4e018ca24aa484d61dc7c22efbf09a6d59e438a9e6fe8cb6742"
#define HASH_OLD    "ec67e3c4df34e0a2f224a8636c75c0f7991d398cc4bd515973dc5102887abd11"

static const char file[] =
	"tenants:\n"
	"- {name: slow, quotas: {rate: 1, burst: 2}}\n"
	"tokens:\n"
	"- {id: aaaaaaaaaaaa, tenant: acme, scopes: run, hash: " HASH_RUNNER "}\n"
	"- {id: bbbbbbbbbbbb, tenant: slow, scopes: admin, hash: " HASH_ADMIN "}\n"
	"- {id: cccccccccccc, tenant: acme, scopes: run, expires: 2001-01-01, hash: " HASH_OLD
	"}\n";

struct fixture {
	struct config *config;
	struct tenants tenants;
};

static void fixture_close(struct fixture *f)
{
	tenants_done(&f->tenants);
	config_free(f->config);
}

static int fixture_open(struct fixture *f, const char *config, const char *tokens, struct err *e)
{
	struct tokens *read = NULL;

	if (config_parse(&f->config, config, strlen(config), e) < 0 ||
	    tokens_parse(&read, tokens, strlen(tokens), e) < 0)
		return -1;
	return tenants_open(&f->tenants, f->config, NULL, read, e);
}

#define OPEN(f, config, tokens)                                                                    \
	AUTO(fixture_close) struct fixture f = { 0 };                                              \
	struct err e;                                                                              \
	if (fixture_open(&(f), config, tokens, &e) < 0)                                            \
	STOP(TEST_FAIL, "%s", e.msg)

/* The status, and 200 when it may. */
static unsigned ask(struct fixture *f, struct access *a, const struct access_request *r)
{
	struct failure failure = { .status = 0 };

	*a = (struct access){ 0 };
	if (access_check(a, &f->tenants, r, &failure) == 0)
		return 200;
	if ((failure.status == 401) !=
		    (failure.code && strcmp(failure.code, "unauthorized") == 0) ||
	    (failure.status == 401 && !failure.challenge) ||
	    (failure.status == 429 && (!failure.quota || !failure.retry_after)))
		return 500;
	return failure.status;
}

#define FROM_LOOPBACK .is_loopback = true, .scopes = SCOPE_RUN
#define FROM_AFAR     .scopes = SCOPE_RUN

TEST(without_tokens_loopback_is_local)
{
	OPEN(f, "", "");
	const struct access_request near = { FROM_LOOPBACK }, far = { FROM_AFAR };
	const struct access_request odd = { .authorization = "Bearer x", .said = 1, FROM_LOOPBACK };
	struct access a;

	CHECK_INT(ask(&f, &a, &near), 200);
	CHECK(a.tenant == f.tenants.local && a.rights == SCOPE_ALL);
	CHECK_INT(ask(&f, &a, &odd), 200); /* nobody gave it out, and nobody looks at it */
	CHECK_INT(ask(&f, &a, &far), 401);
}

TEST(with_tokens_tcp_needs_one)
{
	OPEN(f, "", file);
	const struct access_request none = { FROM_LOOPBACK };
	const struct access_request good = { .authorization = "Bearer " RUNNER,
					     .said = 1,
					     FROM_AFAR };
	const struct access_request key = { .api_key = RUNNER, .said = 1, FROM_LOOPBACK };
	struct access a;

	CHECK_INT(ask(&f, &a, &none), 401);
	CHECK_INT(ask(&f, &a, &good), 200);
	CHECK_STR(a.tenant->name, "acme");
	CHECK_INT(a.rights, SCOPE_RUN);
	CHECK_INT(ask(&f, &a, &key), 200);
	CHECK_STR(a.tenant->name, "acme");
}

TEST(a_token_counts_wherever_it_comes_from)
{
	OPEN(f, "", file);
	const struct access_request owner = { .is_unix = true, .scopes = SCOPE_ADMIN };
	const struct access_request guest = {
		.authorization = "bearer  " RUNNER, .said = 1, .is_unix = true, .scopes = SCOPE_RUN
	};
	const struct access_request wrong = {
		.authorization = "Bearer x", .said = 1, .is_unix = true, .scopes = SCOPE_RUN
	};
	struct access a;

	CHECK_INT(ask(&f, &a, &owner), 200);
	CHECK(a.tenant == f.tenants.local && a.rights == SCOPE_ALL);
	CHECK_INT(ask(&f, &a, &guest), 200);
	CHECK_STR(a.tenant->name, "acme");
	CHECK_INT(ask(&f, &a, &wrong), 401); /* never taken for none */
}

TEST(what_is_no_token_is_none)
{
	OPEN(f, "", file);
	static const char *const wrong[] = { "",
					     "Bearer",
					     "Bearer ",
					     "Bearer" RUNNER,
					     "Basic " RUNNER,
					     "Bearer " RUNNER " ",
					     "Bearer " RUNNER "0",
					     "Bearer " RUNNER ", Bearer " ADMIN,
					     "Bearer " OLD,
					     "Bearer vial_aaaaaaaaaaaa_",
					     RUNNER };
	struct access a;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct access_request r = { .authorization = wrong[i], .said = 1, FROM_AFAR };
		if (ask(&f, &a, &r) != 401 || a.tenant)
			STOP(TEST_FAIL, "'%s'", wrong[i]);
	}
	const struct access_request both = {
		.authorization = "Bearer " RUNNER, .api_key = RUNNER, .said = 2, FROM_AFAR
	};
	CHECK_INT(ask(&f, &a, &both), 401);
}

TEST(scopes_are_asked_for)
{
	OPEN(f, "", file);
	struct access_request r = { .api_key = RUNNER, .said = 1, .scopes = SCOPE_SESSIONS };
	struct access a;

	CHECK_INT(ask(&f, &a, &r), 403);
	r.scopes = SCOPE_RUN | SCOPE_SESSIONS; /* any of them will do */
	CHECK_INT(ask(&f, &a, &r), 200);
	r.scopes = SCOPE_ADMIN;
	CHECK_INT(ask(&f, &a, &r), 403);
	r.scopes = SCOPE_ANY;
	CHECK_INT(ask(&f, &a, &r), 200);
	r.api_key = ADMIN;
	r.scopes = SCOPE_HISTORY;
	CHECK_INT(ask(&f, &a, &r), 200);
	const struct access_request open = { .scopes = SCOPE_PUBLIC };
	CHECK_INT(ask(&f, &a, &open), 200);
	CHECK_INT(a.rights, 0);
}

TEST(a_tenant_has_its_rate)
{
	OPEN(f, "", file);
	const struct access_request r = { .api_key = ADMIN, .said = 1, .scopes = SCOPE_RUN };
	struct access a;

	CHECK_INT(ask(&f, &a, &r), 200);
	CHECK_INT(ask(&f, &a, &r), 200);
	CHECK_INT(ask(&f, &a, &r), 429);
	const struct access_request other = { .api_key = RUNNER, .said = 1, .scopes = SCOPE_RUN };
	CHECK_INT(ask(&f, &a, &other), 200);
}

TEST(the_last_token_revoked_does_not_open_the_door)
{
	OPEN(f, "", file);
	const struct access_request none = { FROM_LOOPBACK };
	const struct access_request was = { .api_key = RUNNER, .said = 1, FROM_LOOPBACK };
	struct tokens *empty;
	struct access a;

	const struct tenant *acme = tenants_find(&f.tenants, "acme");
	CHECK_INT(tokens_parse(&empty, "", 0, &e), 0);
	CHECK_INT(tenants_renew(&f.tenants, empty, &e), 0);
	CHECK_INT(ask(&f, &a, &none), 401);
	CHECK_INT(ask(&f, &a, &was), 401);
	CHECK(tenants_find(&f.tenants, "acme") == acme); /* what is its own may still point to it */
}

TEST(the_operator_decides_about_loopback)
{
	const struct access_request none = { FROM_LOOPBACK };
	const struct access_request far = { FROM_AFAR };
	struct access a;
	{
		OPEN(f, "server: {anonymous: never}", "");
		CHECK_INT(ask(&f, &a, &none), 401);
	}
	{
		OPEN(f, "server: {anonymous: always}", file);
		CHECK_INT(ask(&f, &a, &none), 200);
		CHECK(a.tenant == f.tenants.local && !(a.rights & SCOPE_ADMIN));
		CHECK_INT(ask(&f, &a, &far), 401);
	}
}

TEST(the_most_particular_quota_counts)
{
	OPEN(f,
	     "server:\n"
	     "  quotas: {runs: 5, sessions: 6, rate: 7}\n"
	     "  tenants:\n"
	     "  - {name: slow, quotas: {runs: 8, burst: 9, weight: 3}}\n",
	     file);
	const struct tenant *slow = tenants_find(&f.tenants, "slow");
	const struct tenant *acme = tenants_find(&f.tenants, "acme");

	CHECK(slow && acme);
	CHECK_INT(acme->quotas.runs, 5);
	CHECK_INT(slow->quotas.runs, 8);
	CHECK_INT(slow->quotas.sessions, 6);
	CHECK_INT(slow->quotas.rate, 1); /* said along with its tokens */
	CHECK_INT(slow->quotas.burst, 2);
	CHECK_INT(slow->share.weight, 3);
	CHECK(f.tenants.local->quotas.runs == QUOTA_NONE);
}
