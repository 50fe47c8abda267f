#include "backend/kubernetes_access.h"
#include "base/own.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG(cluster, user)                                                                      \
	"apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: here\n"                   \
	"contexts:\n- name: there\n  context: {cluster: x, user: x}\n"                             \
	"- name: here\n  context: {cluster: c, user: u, namespace: work}\n"                        \
	"clusters:\n- name: c\n  cluster:\n" cluster "users:\n- name: u\n  user:\n" user
#define SERVER "    server: https://10.0.0.1:6443/\n"

static int parse(struct kube_access *ret, const char *text, struct err *e)
{
	return kube_access_parse(ret, text, strlen(text), e);
}

TEST(kube_access_reads_a_kubeconfig)
{
	struct kube_access a;
	struct err e;

	CHECK_OK(parse(&a,
		       CONFIG(SERVER "    certificate-authority-data: UEVNCg==\n",
			      "    client-certificate-data: Q0VSVAo=\n"
			      "    client-key-data: S0VZCg==\n    token: a.b-c\n"),
		       &e));
	CHECK_STR(a.server, "https://10.0.0.1:6443");
	CHECK_STR(a.authority, "PEM\n");
	CHECK_STR(a.certificate, "CERT\n");
	CHECK_STR(a.key, "KEY\n");
	CHECK_STR(a.token, "a.b-c");
	CHECK_STR(a.namespace, "work");
	kube_access_done(&a);
}

TEST(kube_access_refuses)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ CONFIG(SERVER, "    exec: {command: cloud-login, args: [token]}\n"),
		  "from a program (cloud-login)" },
		{ CONFIG(SERVER, "    auth-provider: {name: oidc}\n"), "from a program (oidc)" },
		{ CONFIG(SERVER, "    username: x\n    password: y\n"), "a password" },
		{ CONFIG(SERVER, "    token: \"a\\nHost: evil\"\n"), "not one word" },
		{ CONFIG(SERVER, "    tokenFile: token\n"), "absolute" },
		{ CONFIG(SERVER "    insecure-skip-tls-verify: true\n", "    token: t\n"),
		  "whoever answers" },
		{ CONFIG(SERVER "    tls-server-name: other\n", "    token: t\n"),
		  "tls-server-name" },
		{ CONFIG("    server: http://10.0.0.1\n", "    token: t\n"), "not https://" },
		{ CONFIG("    server: https://a@b\n", "    token: t\n"), "address" },
		{ CONFIG("    server: \"\"\n", "    token: t\n"), "no server" },
		{ CONFIG(SERVER "    certificate-authority-data: '*'\n", "    token: t\n"),
		  "certificate-authority" },
		{ "current-context: x\n", "no context 'x'" },
		{ "{}\n", "no current-context" },
		{ "current-context: x\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\n",
		  "has no cluster" },
		{ "current-context: [\n", "" },
		{ "", "" },
	};
	struct kube_access a;
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = (struct err){ 0 };
		CHECK_INT(parse(&a, cases[i].text, &e), -1);
		if (!strstr(e.msg, cases[i].says))
			CHECK_STR(e.msg, cases[i].says);
	}
}

static int put(const char *dir, const char *name, const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "we");
	if (!f)
		return -1;
	(void)fputs(text, f);
	return fclose(f);
}

static void remove_all(const char *dir)
{
	static const char *const names[] = { "token", "ca.crt", "namespace", "config" };
	char path[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
}

TEST(kube_access_follows_a_token_that_is_renewed)
{
	char dir[] = "/tmp/vial-kube-XXXXXX";
	struct kube_access a;
	struct err e;

	CHECK(mkdtemp(dir));
	CHECK_INT(put(dir, "token", "first\n") | put(dir, "ca.crt", "PEM\n") |
			  put(dir, "namespace", "work"),
		  0);
	(void)unsetenv("KUBERNETES_SERVICE_HOST");
	CHECK_INT(kube_access_account(&a, dir, &e), -1);
	(void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	(void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	CHECK_OK(kube_access_account(&a, dir, &e));
	CHECK_STR(a.server, "https://[fd00::1]:443");
	CHECK_STR(a.namespace, "work");
	CHECK_STR(a.token, "first");

	CHECK_INT(put(dir, "token", "second"), 0);
	CHECK_OK(kube_access_refresh(&a, a.read_us + 1000000, &e));
	CHECK_STR(a.token, "first"); /* it is fresh */
	CHECK_OK(kube_access_refresh(&a, a.read_us + 61000000, &e));
	CHECK_STR(a.token, "second");
	CHECK_INT(put(dir, "token", ""), 0);
	CHECK_INT(kube_access_refresh(&a, a.read_us + 61000000, &e), -1);
	CHECK_STR(a.token, "second");
	kube_access_done(&a);
	remove_all(dir);
}

TEST(kube_access_finds_files_beside_it)
{
	char dir[] = "/tmp/vial-kube-XXXXXX", path[64];
	struct kube_access a;
	struct err e;

	CHECK(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/config", dir);
	CHECK_INT(put(dir, "ca.crt", "PEM\n") |
			  put(dir, "config",
			      CONFIG(SERVER "    certificate-authority: ca.crt\n",
				     "    client-certificate: ca.crt\n    client-key: ca.crt\n")),
		  0);
	CHECK_OK(kube_access_file(&a, path, &e));
	CHECK_STR(a.authority, "PEM\n");
	CHECK_STR(a.key, "PEM\n");
	CHECK(!a.token);
	kube_access_done(&a);
	CHECK_INT(put(dir, "config", CONFIG(SERVER, "    client-certificate: ca.crt\n")), 0);
	CHECK_INT(kube_access_file(&a, path, &e), -1);
	CHECK(strstr(e.msg, "go together"));
	CHECK_INT(put(dir, "config", CONFIG(SERVER, "    client-key: nowhere\n")), 0);
	CHECK_INT(kube_access_file(&a, path, &e), -1);
	CHECK(strstr(e.msg, "client-key"));
	remove_all(dir);
}
