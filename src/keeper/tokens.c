#include "keeper/tokens.h"

#include "base/buf.h"
#include "lib/config.h"
#include "lib/schema.h"

#include <fcntl.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#define FILE_MAX (16u << 20)
#define PREFIX   "vial_"

enum { TOKENS_MAX = 20000 };

_Static_assert(TOKEN_HASH_LEN == SHA256_DIGEST_SIZE, "one hash");

/* ---- the file -------------------------------------------------------------------------- */

#define TEXT(key, type, field, flags, max)                                                         \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | (flags), type, field, 1, max)

static const cyaml_schema_field_t token_fields[] = {
	TEXT("id", struct token, id, 0, TOKEN_ID_LEN),
	TEXT("tenant", struct token, tenant, 0, TENANT_NAME_MAX),
	TEXT("hash", struct token, hash, 0, 2 * TOKEN_HASH_LEN),
	TEXT("scopes", struct token, scopes, 0, SCOPES_TEXT_MAX),
	TEXT("created", struct token, created, CYAML_FLAG_OPTIONAL, 32),
	TEXT("expires", struct token, expires, CYAML_FLAG_OPTIONAL, 32),
	TEXT("note", struct token, note, CYAML_FLAG_OPTIONAL, 200),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t token_entry = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct token, token_fields),
};

static const cyaml_schema_field_t tenant_fields[] = {
	TEXT("name", struct token_tenant, name, 0, TENANT_NAME_MAX),
	CYAML_FIELD_MAPPING("quotas", CYAML_FLAG_OPTIONAL, struct token_tenant, quotas,
			    quotas_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t tenant_entry = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct token_tenant, tenant_fields),
};

static const cyaml_schema_field_t file_fields[] = {
	CYAML_FIELD_UINT("revision", CYAML_FLAG_OPTIONAL, struct tokens, revision),
	CYAML_FIELD_SEQUENCE("tenants", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct tokens,
			     tenants, &tenant_entry, 0, TOKENS_MAX),
	CYAML_FIELD_SEQUENCE("tokens", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct tokens,
			     items, &token_entry, 0, TOKENS_MAX),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t file_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct tokens, file_fields),
};

void tokens_free(struct tokens *tokens)
{
	schema_free(&file_schema, tokens);
}

/* ---- words and numbers ------------------------------------------------------------------ */

static bool is_hex(const char *text, size_t len)
{
	return strlen(text) == len && strspn(text, "0123456789abcdef") == len;
}

static void to_hex(char *ret, const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static unsigned digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void hash(unsigned char ret[TOKEN_HASH_LEN], const char *text, size_t len)
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, len, (const uint8_t *)text);
	sha256_digest(&ctx, TOKEN_HASH_LEN, ret);
}

/* A day, or a moment of it; in UTC. */
static bool parse_date(time_t *ret, const char *text)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, forms[i], &tm);
		if (end && !*end) {
			int day = tm.tm_mday;
			*ret = timegm(&tm);
			return *ret > 0 && tm.tm_mday == day; /* not February 30 */
		}
	}
	return false;
}

static char *show_date(time_t at)
{
	char text[32];
	struct tm tm;

	if (!gmtime_r(&at, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return NULL;
	return strdup(text);
}

/* So long from now, or a date; what is past is a mistake. */
static int parse_end(time_t *ret, const char *text, struct err *e)
{
	static const struct {
		char unit;
		time_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
	time_t now = time(NULL);
	size_t digits = strspn(text, "0123456789");

	if (parse_date(ret, text)) {
		if (*ret > now)
			return 0;
		return err_set(e, ERR_INVALID, "expires: %.40s is past", text);
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (digits >= 1 && digits <= 8 && text[digits] == units[i].unit &&
		    !text[digits + 1] && text[0] != '0') {
			*ret = now + (time_t)strtoull(text, NULL, 10) * units[i].seconds;
			return 0;
		}
	return err_set(e, ERR_INVALID,
		       "expires: '%.40s' is neither a time such as 30d or 12h nor a date such as "
		       "2027-01-31 or 2027-01-31T12:00:00Z",
		       text);
}

static const char name_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				 "0123456789._-";

void tenant_name_of(char ret[TENANT_NAME_MAX + 1], const char *id)
{
	bool is_dots = strspn(id, ".") == strlen(id);
	size_t len = 0;

	for (; *id && len < TENANT_NAME_MAX; id++) {
		if (((unsigned char)*id & 0xc0) == 0x80)
			continue; /* the rest of a character of several bytes */
		bool stays = strchr(name_bytes, *id) && !(*id == '.' && is_dots) &&
			     !(*id == '-' && len == 0);
		ret[len++] = stays ? *id : '_';
	}
	ret[len] = '\0';
}

bool tenant_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= TENANT_NAME_MAX && strspn(name, name_bytes) == len &&
	       strspn(name, ".") < len && name[0] != '-';
}

static int check_name(const char *name, struct err *e)
{
	char proposed[TENANT_NAME_MAX + 1];

	if (tenant_name_is_valid(name))
		return 0;
	tenant_name_of(proposed, name);
	return err_set(e, ERR_INVALID,
		       "tenant '%.64s': a name is 1 to %d letters, digits, '_', '-', '.'%s%s%s",
		       name, TENANT_NAME_MAX, *proposed ? "; '" : "", proposed,
		       *proposed ? "' is one" : "");
}

/* ---- reading --------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct token *)a)->id, ((const struct token *)b)->id);
}

static int read_token(struct token *t, struct err *e)
{
	if (!is_hex(t->id, TOKEN_ID_LEN))
		return err_set(e, ERR_INVALID, "id '%.20s' is not %d hexadecimal digits", t->id,
			       TOKEN_ID_LEN);
	if (!is_hex(t->hash, (size_t)2 * TOKEN_HASH_LEN))
		return err_set(e, ERR_INVALID, "token %s: its hash is not a SHA-256", t->id);
	for (size_t i = 0; i < TOKEN_HASH_LEN; i++)
		t->digest[i] =
			(unsigned char)(digit(t->hash[2 * i]) << 4 | digit(t->hash[2 * i + 1]));
	if (check_name(t->tenant, e) < 0 || scopes_parse(&t->rights, t->scopes, e) < 0)
		return err_context(e, "token %s", t->id);
	if (t->expires && !parse_date(&t->expires_at, t->expires))
		return err_set(e, ERR_INVALID, "token %s: expires: '%.40s' is no date", t->id,
			       t->expires);
	return 0;
}

static int check(struct tokens *tokens, struct err *e)
{
	struct quotas quotas;

	quotas_default(&quotas);
	for (unsigned i = 0; i < tokens->tenants_count; i++)
		if (check_name(tokens->tenants[i].name, e) < 0 ||
		    quotas_apply(&quotas, &tokens->tenants[i].quotas, e) < 0)
			return err_context(e, "tenants");
	for (unsigned i = 0; i < tokens->items_count; i++)
		if (read_token(&tokens->items[i], e) < 0)
			return -1;
	if (tokens->items_count)
		qsort(tokens->items, tokens->items_count, sizeof(*tokens->items), by_id);
	for (unsigned i = 1; i < tokens->items_count; i++)
		if (strcmp(tokens->items[i - 1].id, tokens->items[i].id) == 0)
			return err_set(e, ERR_INVALID, "token %s is there twice",
				       tokens->items[i].id);
	return 0;
}

int tokens_parse(struct tokens **ret, const char *text, size_t len, struct err *e)
{
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	void *data;

	if (strspn(text, " \t\r\n") >= len) { /* the parser would call it an error */
		tokens = calloc(1, sizeof(*tokens));
		if (!tokens)
			return err_sys(e, "tokens");
	} else if (schema_load(&data, &file_schema, text, len, e) < 0) {
		return -1;
	} else {
		tokens = data;
	}
	if (check(tokens, e) < 0)
		return -1;
	*ret = take_ptr(&tokens);
	return 0;
}

int tokens_read(struct tokens **ret, int fd, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);

	if (fd >= 0 && buf_add_fd(&text, fd, e) < 0)
		return -1;
	return tokens_parse(ret, buf_str(&text), text.len, e);
}

int tokens_load(struct tokens **ret, const char *path, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
		return err_sys(e, "%s", path);
	if (tokens_read(ret, fd, e) < 0)
		return err_context(e, "%.100s", path);
	return 0;
}

const struct token *tokens_find(const struct tokens *tokens, const char *text)
{
	char id[TOKEN_ID_LEN + 1];
	unsigned char digest[TOKEN_HASH_LEN];
	size_t prefix = strlen(PREFIX);

	if (strlen(text) != TOKEN_TEXT_LEN || strncmp(text, PREFIX, prefix) != 0 ||
	    text[prefix + TOKEN_ID_LEN] != '_' || tokens->items_count == 0)
		return NULL;
	memcpy(id, text + prefix, TOKEN_ID_LEN);
	id[TOKEN_ID_LEN] = '\0';
	const struct token key = { .id = id };
	const struct token *found =
		bsearch(&key, tokens->items, tokens->items_count, sizeof(*tokens->items), by_id);
	if (!found)
		return NULL;
	hash(digest, text, TOKEN_TEXT_LEN);
	return memeql_sec(digest, found->digest, TOKEN_HASH_LEN) ? found : NULL;
}

bool token_is_expired(const struct token *token, time_t now)
{
	return token->expires_at && token->expires_at <= now;
}

const struct token_tenant *tokens_tenant(const struct tokens *tokens, const char *name)
{
	for (unsigned i = 0; i < tokens->tenants_count; i++)
		if (strcmp(tokens->tenants[i].name, name) == 0)
			return &tokens->tenants[i];
	return NULL;
}

/* ---- changing it ------------------------------------------------------------------------ */

int tokens_make_directories(const char *path, struct err *e)
{
	auto_free char *dir = strdup(path);

	if (!dir)
		return err_sys(e, "tokens");
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "%s", dir);
		*slash = '/';
	}
	return 0;
}

/* Only one at a time: the directory is the lock, for the file itself is replaced. */
static int open_directory(const char *path, struct err *e)
{
	auto_free char *dir = strdup(path);
	char *last = dir ? strrchr(dir, '/') : NULL;

	if (!last)
		return err_set(e, ERR_INVALID, "%.100s: not an absolute path", path);
	*last = '\0';
	if (tokens_make_directories(path, e) < 0)
		return -1;
	auto_close int fd = open(last == dir ? "/" : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_sys(e, "%s", dir);
	return take_fd(&fd);
}

static int write_all(int fd, const struct buf *text, struct err *e)
{
	for (size_t at = 0; at < text->len;) {
		ssize_t n = write(fd, text->data + at, text->len - at);
		if (n < 0)
			return err_sys(e, "write");
		at += (size_t)n;
	}
	return fsync(fd) < 0 ? err_sys(e, "fsync") : 0;
}

/* Whole or not at all: beside it, then in its place. */
static int save(const struct tokens *tokens, int dir, const char *path, struct err *e)
{
	static const char head[] = "# Who may use vial over the network: written by 'vial token'.\n"
				   "# Of each token its SHA-256 is here, and not the token.\n";
	auto_buf struct buf text = BUF_INIT(FILE_MAX);
	const char *name = strrchr(path, '/') + 1;
	char beside[80];

	buf_add_str(&text, head);
	if (schema_save(&text, &file_schema, tokens, e) < 0)
		return -1;
	if (text.dropped)
		return err_set(e, ERR_LIMIT, "too many tokens");
	(void)snprintf(beside, sizeof(beside), ".%.60s.new", name);
	(void)unlinkat(dir, beside, 0);
	auto_close int fd = openat(dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "%s", path);
	if (write_all(fd, &text, e) < 0 || renameat(dir, beside, dir, name) < 0) {
		(void)err_sys(e, "%s", path);
		(void)unlinkat(dir, beside, 0);
		return -1;
	}
	(void)fsync(dir);
	return 0;
}

/* One more of an array of the parser's. */
static void *grow(void **items, unsigned *count, size_t size, struct err *e)
{
	char *grown = realloc(*items, (*count + 1) * size);

	if (!grown) {
		(void)err_sys(e, "tokens");
		return NULL;
	}
	*items = grown;
	memset(grown + *count * size, 0, size);
	return grown + (*count)++ * size;
}

static int copy(char **ret, const char *text, struct err *e)
{
	char *made = text ? strdup(text) : NULL;

	if (text && !made)
		return err_sys(e, "tokens");
	free(*ret);
	*ret = made;
	return 0;
}

static int set_quotas(struct tokens *tokens, const char *name, const struct quotas_text *said,
		      struct err *e)
{
	struct token_tenant *tenant = (struct token_tenant *)tokens_tenant(tokens, name);
	bool is_said = false;

	for (size_t i = 0; i < quota_count; i++)
		is_said |= *(char *const *)((const char *)said + quota_rows[i].text_offset) != NULL;
	if (!is_said)
		return 0;
	if (!tenant) {
		tenant =
			grow((void **)&tokens->tenants, &tokens->tenants_count, sizeof(*tenant), e);
		if (!tenant || copy(&tenant->name, name, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < quota_count; i++) {
		size_t at = quota_rows[i].text_offset;
		const char *text = *(char *const *)((const char *)said + at);
		if (text && copy((char **)((char *)&tenant->quotas + at), text, e) < 0)
			return -1;
	}
	return 0;
}

static int make_text(char text[TOKEN_TEXT_LEN + 1], char id[TOKEN_ID_LEN + 1], struct err *e)
{
	unsigned char random[(TOKEN_ID_LEN + TOKEN_SECRET_LEN) / 2];
	char secret[TOKEN_SECRET_LEN + 1];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_sys(e, "random numbers");
	to_hex(id, random, TOKEN_ID_LEN / 2);
	to_hex(secret, random + TOKEN_ID_LEN / 2, TOKEN_SECRET_LEN / 2);
	(void)snprintf(text, TOKEN_TEXT_LEN + 1, PREFIX "%s_%s", id, secret);
	return 0;
}

static int fill(struct token *t, char text[TOKEN_TEXT_LEN + 1], const struct token_wish *wish,
		struct err *e)
{
	char id[TOKEN_ID_LEN + 1], hex[2 * TOKEN_HASH_LEN + 1], scopes[SCOPES_TEXT_MAX];
	unsigned char digest[TOKEN_HASH_LEN];
	unsigned rights = scopes_usual();
	time_t end;

	if (make_text(text, id, e) < 0 ||
	    (wish->scopes && scopes_parse(&rights, wish->scopes, e) < 0))
		return -1;
	hash(digest, text, TOKEN_TEXT_LEN);
	to_hex(hex, digest, TOKEN_HASH_LEN);
	if (wish->expires && parse_end(&end, wish->expires, e) < 0)
		return -1;
	t->created = show_date(time(NULL));
	t->expires = wish->expires ? show_date(end) : NULL;
	if (!t->created || (wish->expires && !t->expires))
		return err_sys(e, "tokens");
	if (copy(&t->id, id, e) < 0 || copy(&t->tenant, wish->tenant, e) < 0 ||
	    copy(&t->hash, hex, e) < 0 || copy(&t->scopes, scopes_show(scopes, rights), e) < 0 ||
	    copy(&t->note, wish->note, e) < 0)
		return -1;
	return read_token(t, e);
}

int tokens_create(char text[TOKEN_TEXT_LEN + 1], uint64_t *ret_revision, const char *path,
		  const struct token_wish *wish, struct err *e)
{
	AUTO(tokens_freep) struct tokens *tokens = NULL;

	if (wish->note && strlen(wish->note) > 200)
		return err_set(e, ERR_INVALID, "a note has at most 200 bytes");
	if (check_name(wish->tenant, e) < 0)
		return -1;
	auto_close int dir = open_directory(path, e);
	if (dir < 0 || tokens_load(&tokens, path, e) < 0 || !tokens)
		return -1;
	struct token *t =
		grow((void **)&tokens->items, &tokens->items_count, sizeof(*tokens->items), e);
	if (!t || fill(t, text, wish, e) < 0 ||
	    (wish->quotas && set_quotas(tokens, wish->tenant, wish->quotas, e) < 0) ||
	    check(tokens, e) < 0)
		return -1;
	*ret_revision = ++tokens->revision;
	return save(tokens, dir, path, e);
}

static bool is_named(const struct token *t, const char *const *ids, size_t count,
		     const char *tenant)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(ids[i], t->id) == 0)
			return true;
	return tenant && strcmp(tenant, t->tenant) == 0;
}

static void token_done(struct token *t)
{
	char *texts[] = { t->id, t->tenant, t->hash, t->scopes, t->created, t->expires, t->note };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
}

int tokens_revoke(uint64_t *ret_revision, const char *path, const char *const *ids, size_t count,
		  const char *tenant, struct err *e)
{
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	auto_close int dir = open_directory(path, e);
	unsigned kept = 0;

	if (dir < 0 || tokens_load(&tokens, path, e) < 0 || !tokens)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct token key = { .id = (char *)ids[i] };
		if (!tokens->items_count || !bsearch(&key, tokens->items, tokens->items_count,
						     sizeof(*tokens->items), by_id))
			return err_set(e, ERR_GONE, "there is no token '%.64s'", ids[i]);
	}
	for (unsigned i = 0; i < tokens->items_count; i++) {
		if (is_named(&tokens->items[i], ids, count, tenant))
			token_done(&tokens->items[i]);
		else
			tokens->items[kept++] = tokens->items[i];
	}
	if (kept == tokens->items_count)
		return err_set(e, ERR_GONE, "tenant '%.64s' has no tokens", tenant ? tenant : "");
	tokens->items_count = kept;
	*ret_revision = ++tokens->revision;
	return save(tokens, dir, path, e);
}

/* ---- where it is ------------------------------------------------------------------------ */

int tokens_path(char ret[TOKENS_PATH_MAX], const struct config *config, struct err *e)
{
	const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	int len;

	if (config->server->tokens)
		len = snprintf(ret, TOKENS_PATH_MAX, "%s", config->server->tokens);
	else if (geteuid() == 0)
		len = snprintf(ret, TOKENS_PATH_MAX, "/var/lib/vial/tokens");
	else if (xdg && xdg[0] == '/')
		len = snprintf(ret, TOKENS_PATH_MAX, "%s/vial/tokens", xdg);
	else if (home && home[0] == '/')
		len = snprintf(ret, TOKENS_PATH_MAX, "%s/.local/share/vial/tokens", home);
	else
		return err_set(e, ERR_HOST, "no place for tokens: HOME is not set");
	return len < TOKENS_PATH_MAX ? 0 : err_set(e, ERR_INVALID, "server.tokens: too long");
}

DEFINE_CLEANUP(struct config *, config_free)

int tokens_locate(char ret[TOKENS_PATH_MAX], const char *config, struct err *e)
{
	AUTO(config_freep) struct config *c = NULL;

	if (config_load(&c, config, e) < 0 || config_environment(c, e) < 0)
		return -1;
	return tokens_path(ret, c, e);
}
