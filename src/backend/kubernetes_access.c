#include "backend/kubernetes_access.h"

#include "base/base64.h"
#include "base/loop.h"
#include "base/own.h"
#include "lib/schema.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	FILE_MAX = 1 << 20,
	TOKEN_MAX = 16 << 10,
	NAME_MAX_ = 253,
};

#define TOKEN_FRESH_US 60000000u /* the kubelet renews a token with a fifth of its time left */

/* ---- a kubeconfig ------------------------------------------------------------------------ */

struct cluster {
	char *server, *authority, *authority_data, *server_name;
	bool is_unchecked;
};

struct plugin {
	char *command;
};

struct user {
	char *token, *token_file, *certificate, *certificate_data, *key, *key_data, *username;
	struct plugin *exec, *provider;
};

struct context {
	char *cluster, *user, *namespace;
};

struct named_cluster {
	char *name;
	struct cluster cluster;
};

struct named_user {
	char *name;
	struct user user;
};

struct named_context {
	char *name;
	struct context context;
};

struct kubeconfig {
	char *current;
	struct named_cluster *clusters;
	struct named_user *users;
	struct named_context *contexts;
	unsigned clusters_count, users_count, contexts_count;
};

#define TEXT(key, type, field)                                                                     \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER_NULL_STR | CYAML_FLAG_OPTIONAL, type,       \
			       field, 0, CYAML_UNLIMITED)

static const cyaml_schema_field_t cluster_fields[] = {
	TEXT("server", struct cluster, server),
	TEXT("certificate-authority", struct cluster, authority),
	TEXT("certificate-authority-data", struct cluster, authority_data),
	TEXT("tls-server-name", struct cluster, server_name),
	CYAML_FIELD_BOOL("insecure-skip-tls-verify", CYAML_FLAG_OPTIONAL, struct cluster,
			 is_unchecked),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t exec_fields[] = {
	TEXT("command", struct plugin, command),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t provider_fields[] = {
	TEXT("name", struct plugin, command),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t user_fields[] = {
	TEXT("token", struct user, token),
	TEXT("tokenFile", struct user, token_file),
	TEXT("client-certificate", struct user, certificate),
	TEXT("client-certificate-data", struct user, certificate_data),
	TEXT("client-key", struct user, key),
	TEXT("client-key-data", struct user, key_data),
	TEXT("username", struct user, username),
	CYAML_FIELD_MAPPING_PTR("exec", CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL, struct user,
				exec, exec_fields),
	CYAML_FIELD_MAPPING_PTR("auth-provider", CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL,
				struct user, provider, provider_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t context_fields[] = {
	TEXT("cluster", struct context, cluster),
	TEXT("user", struct context, user),
	TEXT("namespace", struct context, namespace),
	CYAML_FIELD_END,
};

#define NAMED(what)                                                                                \
	static const cyaml_schema_field_t named_##what##_fields[] = {                              \
		CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct named_##what, name, 0,   \
				       CYAML_UNLIMITED),                                           \
		CYAML_FIELD_MAPPING(#what, CYAML_FLAG_OPTIONAL, struct named_##what, what,         \
				    what##_fields),                                                \
		CYAML_FIELD_END,                                                                   \
	};                                                                                         \
	static const cyaml_schema_value_t named_##what = {                                         \
		CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct named_##what,                       \
				    named_##what##_fields),                                        \
	}

NAMED(cluster);
NAMED(user);
NAMED(context);

#define LIST(what)                                                                                 \
	CYAML_FIELD_SEQUENCE(#what "s", CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL,             \
			     struct kubeconfig, what##s, &named_##what, 0, 1000)

static const cyaml_schema_field_t kubeconfig_fields[] = {
	TEXT("current-context", struct kubeconfig, current),
	LIST(cluster),
	LIST(user),
	LIST(context),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t kubeconfig_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct kubeconfig, kubeconfig_fields),
};

static void kubeconfig_free(struct kubeconfig *c)
{
	schema_free(&kubeconfig_schema, c);
}

DEFINE_CLEANUP(struct kubeconfig *, kubeconfig_free)

/* ---- values ----------------------------------------------------------------------------- */

static bool is_said(const char *text)
{
	return text && text[0];
}

static int keep(char **ret, const char *text, struct err *e)
{
	*ret = is_said(text) ? strdup(text) : NULL;
	return is_said(text) && !*ret ? err_sys(e, "memory") : 0;
}

/* It becomes a part of a header: one word, nothing that ends a line. */
static int check_token(const char *token, struct err *e)
{
	for (const char *c = token; *c; c++)
		if (!isgraph((unsigned char)*c))
			return err_set(e, ERR_INVALID, "the token is not one word");
	return 0;
}

/* It becomes a part of an address. */
static int check_namespace(const char *name, struct err *e)
{
	size_t len = strlen(name);

	if (len == 0 || len > NAME_MAX_ ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
		return err_set(e, ERR_INVALID, "'%.60s' is no namespace", name);
	return 0;
}

static int keep_server(struct kube_access *a, const char *server, struct err *e)
{
	size_t len = server ? strlen(server) : 0;

	if (len == 0)
		return err_set(e, ERR_INVALID, "the cluster has no server");
	for (const char *c = server; *c; c++)
		if (!isgraph((unsigned char)*c) || strchr("@?#\\", *c))
			return err_set(e, ERR_INVALID, "the server's address is none");
	if (strncmp(server, "https://", 8) != 0)
		return err_set(e, ERR_INVALID,
			       "'%.80s' is not https://: a token would be sent "
			       "to whoever answers",
			       server);
	while (len > 8 && server[len - 1] == '/')
		len--;
	a->server = strndup(server, len);
	return a->server ? 0 : err_sys(e, "memory");
}

/* A PEM text that is in the file itself, in base64. */
static int keep_data(char **ret, const char *data, const char *what, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);

	if (base64_decode(&text, data, strlen(data), e) < 0)
		return err_context(e, "%s", what);
	if (text.dropped || !text.len || memchr(text.data, '\0', text.len))
		return err_set(e, ERR_INVALID, "%s is no text", what);
	*ret = take_ptr(&text.data);
	return 0;
}

/* Files are looked for in the kubeconfig's directory, as other clients do; or not at all. */
enum { OPEN_NOTHING = AT_FDCWD - 1 };

static int keep_file(char **ret, int dir_fd, const char *path, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);

	if (dir_fd == OPEN_NOTHING)
		return 0;
	if (buf_add_file(&text, dir_fd, path, e) < 0)
		return -1;
	if (!text.len || memchr(text.data, '\0', text.len))
		return err_set(e, ERR_INVALID, "%.200s is no text", path);
	*ret = take_ptr(&text.data);
	return 0;
}

static int keep_pem(char **ret, int dir_fd, const char *data, const char *path, const char *what,
		    struct err *e)
{
	if (is_said(data)) /* which comes before the file, as it does for others */
		return keep_data(ret, data, what, e);
	if (is_said(path) && keep_file(ret, dir_fd, path, e) < 0)
		return err_context(e, "%s", what);
	return 0;
}

static int read_token(char **ret, int dir_fd, const char *path, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TOKEN_MAX);

	if (buf_add_file(&text, dir_fd, path, e) < 0)
		return -1;
	while (text.len && isspace((unsigned char)text.data[text.len - 1]))
		text.data[--text.len] = '\0';
	if (!text.len || strlen(text.data) != text.len)
		return err_set(e, ERR_INVALID, "%.200s has no token", path);
	if (check_token(text.data, e) < 0)
		return -1;
	*ret = take_ptr(&text.data);
	return 0;
}

/* ---- the parts of one --------------------------------------------------------------------- */

#define FIND(ret, config, what, wanted)                                                            \
	for (unsigned i_ = 0; i_ < (config)->what##s_count && !(ret); i_++)                        \
		if (strcmp((config)->what##s[i_].name, wanted) == 0)                               \
			(ret) = &(config)->what##s[i_].what;

static int read_cluster(struct kube_access *a, int dir_fd, const struct cluster *c, struct err *e)
{
	if (c->is_unchecked)
		return err_set(e, ERR_DENIED,
			       "insecure-skip-tls-verify: a token would be sent to "
			       "whoever answers; name its certificate-authority");
	if (is_said(c->server_name))
		return err_set(e, ERR_INVALID,
			       "tls-server-name: the certificate must have the "
			       "name that `server` has");
	if (keep_server(a, c->server, e) < 0)
		return -1;
	return keep_pem(&a->authority, dir_fd, c->authority_data, c->authority,
			"certificate-authority", e);
}

static int read_user(struct kube_access *a, int dir_fd, const struct user *u, struct err *e)
{
	if (u->exec || u->provider)
		return err_set(e, ERR_INVALID,
			       "gets its credentials from a program (%.40s), and vial starts none: "
			       "use a token or a client certificate, or a service account",
			       u->exec && u->exec->command           ? u->exec->command
			       : u->provider && u->provider->command ? u->provider->command
								     : "exec");
	if (is_said(u->username))
		return err_set(e, ERR_INVALID,
			       "has a name and a password, which API servers do "
			       "not take any more");
	if (keep_pem(&a->certificate, dir_fd, u->certificate_data, u->certificate,
		     "client-certificate", e) < 0 ||
	    keep_pem(&a->key, dir_fd, u->key_data, u->key, "client-key", e) < 0)
		return -1;
	if (dir_fd != OPEN_NOTHING && !a->certificate != !a->key)
		return err_set(e, ERR_INVALID, "client-certificate and client-key go together");
	if (is_said(u->token_file)) {
		if (u->token_file[0] != '/')
			return err_set(e, ERR_INVALID, "tokenFile must be an absolute path");
		if (keep(&a->token_path, u->token_file, e) < 0)
			return -1;
		return dir_fd == OPEN_NOTHING ? 0 : kube_access_refresh(a, loop_now(), e);
	}
	if (is_said(u->token) && check_token(u->token, e) < 0)
		return -1;
	return keep(&a->token, u->token, e);
}

static int read_context(struct kube_access *a, int dir_fd, const struct kubeconfig *config,
			struct err *e)
{
	const struct context *context = NULL;
	const struct cluster *cluster = NULL;
	const struct user *user = NULL;

	if (!is_said(config->current))
		return err_set(e, ERR_INVALID, "there is no current-context");
	FIND(context, config, context, config->current)
	if (!context)
		return err_set(e, ERR_INVALID, "there is no context '%.60s'", config->current);
	if (is_said(context->cluster))
		FIND(cluster, config, cluster, context->cluster)
	if (is_said(context->user))
		FIND(user, config, user, context->user)
	if (!cluster || !user)
		return err_set(e, ERR_INVALID, "context '%.60s' has no %s", config->current,
			       cluster ? "user" : "cluster");
	if (is_said(context->namespace) && check_namespace(context->namespace, e) < 0)
		return -1;
	if (keep(&a->namespace, context->namespace, e) < 0)
		return -1;
	if (read_cluster(a, dir_fd, cluster, e) < 0)
		return err_context(e, "cluster '%.60s'", context->cluster);
	if (read_user(a, dir_fd, user, e) < 0)
		return err_context(e, "user '%.60s'", context->user);
	return 0;
}

static int parse(struct kube_access *ret, int dir_fd, const char *text, size_t len, struct err *e)
{
	AUTO(kubeconfig_freep) struct kubeconfig *config = NULL;
	struct kube_access a = { 0 };
	void *data;

	if (schema_load_known(&data, &kubeconfig_schema, text, len, e) < 0)
		return -1;
	config = data;
	if (read_context(&a, dir_fd, config, e) < 0) {
		kube_access_done(&a);
		return -1;
	}
	*ret = a;
	return 0;
}

int kube_access_parse(struct kube_access *ret, const char *text, size_t len, struct err *e)
{
	return parse(ret, OPEN_NOTHING, text, len, e);
}

int kube_access_file(struct kube_access *ret, const char *path, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	if (!dir)
		return err_sys(e, "kubeconfig");
	auto_close int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(e, "kubeconfig %.150s", dir);
	if (buf_add_file(&text, AT_FDCWD, path, e) < 0)
		return err_context(e, "kubeconfig");
	if (parse(ret, dir_fd, buf_str(&text), text.len, e) < 0)
		return err_context(e, "kubeconfig %.60s", path);
	return 0;
}

/* ---- a service account -------------------------------------------------------------------- */

static int read_account(struct kube_access *a, int dir_fd, const char *dir, struct err *e)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	bool is_v6 = host && strchr(host, ':');
	char server[300];

	if (!is_said(host) || !is_said(port))
		return err_set(e, ERR_INVALID,
			       "KUBERNETES_SERVICE_HOST and _PORT are not set: "
			       "outside of a cluster name a kubeconfig");
	(void)snprintf(server, sizeof(server), "https://%s%s%s:%s", is_v6 ? "[" : "", host,
		       is_v6 ? "]" : "", port);
	if (keep_server(a, server, e) < 0 || keep_file(&a->authority, dir_fd, "ca.crt", e) < 0 ||
	    keep_file(&a->namespace, dir_fd, "namespace", e) < 0)
		return -1;
	if (a->namespace)
		a->namespace[strcspn(a->namespace, " \n")] = '\0';
	if (check_namespace(a->namespace ? a->namespace : "", e) < 0)
		return -1;
	if (asprintf(&a->token_path, "%s/token", dir) < 0) {
		a->token_path = NULL;
		return err_sys(e, "memory");
	}
	return kube_access_refresh(a, loop_now(), e);
}

int kube_access_account(struct kube_access *ret, const char *dir, struct err *e)
{
	struct kube_access a = { 0 };
	auto_close int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir_fd < 0)
		return err_sys(e, "service account %.150s", dir);
	if (read_account(&a, dir_fd, dir, e) < 0) {
		kube_access_done(&a);
		return err_context(e, "service account");
	}
	*ret = a;
	return 0;
}

int kube_access_refresh(struct kube_access *a, uint64_t now_us, struct err *e)
{
	char *token = NULL;

	if (!a->token_path || (a->token && now_us < a->read_us + TOKEN_FRESH_US))
		return 0;
	if (read_token(&token, AT_FDCWD, a->token_path, e) < 0)
		return err_context(e, "token");
	if (a->token)
		explicit_bzero(a->token, strlen(a->token));
	free(a->token);
	a->token = token;
	a->read_us = loop_now();
	return 0;
}

void kube_access_done(struct kube_access *a)
{
	char *const secrets[] = { a->token, a->key };

	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if (secrets[i])
			explicit_bzero(secrets[i], strlen(secrets[i]));
	free(a->server);
	free(a->authority);
	free(a->certificate);
	free(a->key);
	free(a->token);
	free(a->token_path);
	free(a->namespace);
	*a = (struct kube_access){ 0 };
}
