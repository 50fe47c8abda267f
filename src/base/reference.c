#include "base/reference.h"

#include <stdio.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define DIGITS  "0123456789"

/* "localhost/x", "host.example/x", "host:5000/x" name a registry; "team/x" does not. */
static size_t registry_len(const char *text)
{
	size_t len = strcspn(text, "/");
	bool is_host = len == strlen("localhost") && strncmp(text, "localhost", len) == 0;

	if (!text[len])
		return 0;
	return is_host || memchr(text, '.', len) || memchr(text, ':', len) ? len : 0;
}

int reference_full(char ret[REFERENCE_MAX + 1], const char *text, struct err *e)
{
	static const char scheme[] = "docker://";
	const char *name =
		strncmp(text, scheme, strlen(scheme)) == 0 ? text + strlen(scheme) : text;
	size_t registry = registry_len(name);
	bool is_hub = !registry || (registry == strlen("docker.io") &&
				    strncmp(name, "docker.io", registry) == 0);
	const char *rest = name + (registry ? registry + 1 : 0);
	const char *last = strrchr(rest, '/');
	bool has_tag = strpbrk(last ? last : rest, ":@") != NULL;
	bool is_official = is_hub && !last;

	if (!strchr(LETTERS DIGITS, rest[0]) || !rest[0] ||
	    name[strspn(name, LETTERS DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZ._:/@-")])
		return err_set(e, ERR_INVALID, "'%.100s' is not the name of an image", text);
	int len = snprintf(ret, REFERENCE_MAX + 1, "%.*s/%s%s%s",
			   is_hub ? (int)strlen("docker.io") : (int)registry,
			   is_hub ? "docker.io" : name, is_official ? "library/" : "", rest,
			   has_tag ? "" : ":latest");
	if (len > REFERENCE_MAX)
		return err_set(e, ERR_INVALID, "'%.60s...' is too long a name", text);
	return 0;
}

bool reference_same(const char *a, const char *b)
{
	char full_a[REFERENCE_MAX + 1], full_b[REFERENCE_MAX + 1];
	struct err ignored;

	return reference_full(full_a, a, &ignored) == 0 &&
	       reference_full(full_b, b, &ignored) == 0 && strcmp(full_a, full_b) == 0;
}
