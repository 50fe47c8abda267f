#include "server/access.h"

#include <nettle/memops.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static int unauthorized(struct failure *f, bool was_said, const char *text)
{
	f->status = 401;
	f->code = "unauthorized";
	f->challenge = was_said ? "Bearer realm=\"vial\", error=\"invalid_token\""
				: "Bearer realm=\"vial\"";
	f->hint = "send the header 'Authorization: Bearer TOKEN'; 'vial token create' makes one";
	return err_set(&f->err, ERR_DENIED, "%s", text);
}

/* The token within "Bearer TOKEN", copied; false: it is something else. */
static bool read_bearer(char ret[TOKEN_TEXT_LEN + 1], const char *authorization)
{
	static const char scheme[] = "Bearer";
	size_t len = strlen(scheme);

	if (strncasecmp(authorization, scheme, len) != 0 || authorization[len] != ' ')
		return false;
	authorization += len + strspn(authorization + len, " ");
	if (strlen(authorization) != TOKEN_TEXT_LEN)
		return false;
	memcpy(ret, authorization, TOKEN_TEXT_LEN + 1);
	return true;
}

static const struct token *find_token(const struct tenants *t, const struct access_request *r)
{
	char text[TOKEN_TEXT_LEN + 1];

	if (r->said != 1) /* of two, which one counts? */
		return NULL;
	if (r->api_key)
		return tokens_find(t->tokens, r->api_key);
	return read_bearer(text, r->authorization) ? tokens_find(t->tokens, text) : NULL;
}

static int check_token(struct access *ret, const struct tenants *t, const struct access_request *r,
		       struct failure *f)
{
	const struct token *token = find_token(t, r);

	if (!token)
		return unauthorized(f, true, "this token is not known here");
	if (token_is_expired(token, time(NULL)))
		return unauthorized(f, true, "this token has expired");
	ret->tenant = t->owners[token - t->tokens->items];
	ret->rights = token->rights;
	return 0;
}

/* A dispatcher has done the rest: whether that tenant may, and how often. */
static int check_relay(struct access *ret, struct tenants *t, const struct access_request *r,
		       struct failure *f)
{
	size_t len = strlen(r->relay);

	if (!t->relay_key || len != strlen(t->relay_key) ||
	    !memeql_sec(r->relay, t->relay_key, len))
		return unauthorized(f, true, "this server is no worker of whoever asks");
	if (scopes_parse(&ret->rights, r->granted ? r->granted : "", &f->err) < 0)
		return -1;
	ret->tenant = tenants_enter(t, r->tenant ? r->tenant : "", &f->err);
	return ret->tenant ? tenant_relay_quotas(ret->tenant, t, r->quotas, &f->err) : -1;
}

static int check_nobody(struct access *ret, const struct tenants *t, const struct access_request *r,
			struct failure *f)
{
	bool is_free = r->is_loopback && (!t->needs_token || t->is_anonymous_fine);

	if (!r->is_unix && !is_free)
		return unauthorized(f, false, "a token is needed here");
	ret->tenant = t->local;
	ret->rights = r->is_unix || !t->needs_token ? SCOPE_ALL : SCOPE_ALL & ~SCOPE_ADMIN;
	return 0;
}

static int check_scope(const struct access *a, const struct access_request *r, struct failure *f)
{
	char names[SCOPES_TEXT_MAX];

	if (scopes_allow(a->rights, r->scopes))
		return 0;
	f->status = 403;
	f->code = "forbidden";
	f->challenge = "Bearer realm=\"vial\", error=\"insufficient_scope\"";
	return err_set(&f->err, ERR_DENIED, "this token has none of the scopes %s",
		       scopes_show(names, r->scopes));
}

int access_check(struct access *ret, struct tenants *t, const struct access_request *r,
		 struct failure *f)
{
	struct access a = { .tenant = t->local };

	if (r->scopes == SCOPE_PUBLIC) {
		*ret = a;
		return 0;
	}
	if (r->relay) {
		if (check_relay(&a, t, r, f) < 0 || check_scope(&a, r, f) < 0)
			return -1;
		*ret = a;
		return 0;
	}
	/* Clients of other systems send a key to whatever they talk to: with no tokens, none is
	 * asked for and none is looked at. */
	int checked =
		r->said && t->needs_token ? check_token(&a, t, r, f) : check_nobody(&a, t, r, f);
	if (checked < 0 || check_scope(&a, r, f) < 0 || tenant_admit_request(a.tenant, f) < 0)
		return -1;
	*ret = a;
	return 0;
}
