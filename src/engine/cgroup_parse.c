/*
 * cgroup_parse - the kernel's texts about control groups.
 *
 * Pure functions: text in, facts out.  The kernel wrote these texts, but paths
 * in them were chosen by whoever made the directories, so nothing is assumed
 * about their length or their characters.
 */
#include "engine/cgroup_impl.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned bit;
} controllers[] = {
	{ "memory", CGROUP_MEMORY },
	{ "pids", CGROUP_PIDS },
	{ "cpu", CGROUP_CPU },
	{ "cpuacct", CGROUP_CPUACCT },
};

enum { CONTROLLER_COUNT = sizeof(controllers) / sizeof(controllers[0]) };

/* `list` is "rw,cpu,cpuacct", of `len` bytes. */
static unsigned read_controllers(const char *list, size_t len)
{
	unsigned found = 0;

	while (len > 0) {
		const char *comma = memchr(list, ',', len);
		size_t word = comma ? (size_t)(comma - list) : len;

		for (size_t i = 0; i < CONTROLLER_COUNT; i++)
			if (strlen(controllers[i].name) == word &&
			    memcmp(list, controllers[i].name, word) == 0)
				found |= controllers[i].bit;
		list += word + (comma != NULL);
		len -= word + (comma != NULL);
	}
	return found;
}

/* mountinfo writes blank, tab, newline and backslash as \ooo. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* 35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory */
static bool parse_mount(struct cgroup_mount *ret, char *line)
{
	char *rest = line, *root = NULL, *point = NULL;

	for (int field = 0; field < 5; field++) {
		char *word = strsep(&rest, " ");
		if (!word || !rest)
			return false;
		if (field == 3)
			root = word;
		if (field == 4)
			point = word;
	}

	char *tail = strstr(rest, " - "); /* any number of optional fields ends with a dash */
	if (!tail)
		return false;
	tail += 3;

	const char *type = strsep(&tail, " ");
	(void)strsep(&tail, " "); /* the source: anything */
	if (!tail || (strcmp(type, "cgroup") != 0 && strcmp(type, "cgroup2") != 0))
		return false;

	unescape(root);
	unescape(point);
	*ret = (struct cgroup_mount){ .is_v2 = type[6] == '2', .root = root, .point = point };
	if (!ret->is_v2)
		ret->controllers = read_controllers(tail, strlen(tail));
	return true;
}

size_t cgroup_parse_mounts(struct cgroup_mount *ret, size_t max, char *text)
{
	size_t count = 0;

	for (char *line; count < max && (line = strsep(&text, "\n"));)
		count += parse_mount(&ret[count], line);
	return count;
}

static bool ends_with(const char *s, size_t len, const char *tail)
{
	size_t tail_len = strlen(tail);

	return len >= tail_len && memcmp(s + len - tail_len, tail, tail_len) == 0;
}

bool cgroup_parse_own(char *ret, size_t size, const char *text, unsigned controller)
{
	for (const char *line = text, *next; *line; line = next) {
		const char *end = strchrnul(line, '\n');
		next = *end ? end + 1 : end;

		const char *list = memchr(line, ':', (size_t)(end - line));
		if (!list)
			continue;
		list++;
		const char *path = memchr(list, ':', (size_t)(end - list));
		if (!path)
			continue;
		path++;

		size_t list_len = (size_t)(path - 1 - list), len = (size_t)(end - path);
		bool is_it = controller ? (read_controllers(list, list_len) & controller) != 0
					: list_len == 0;
		if (!is_it)
			continue;

		/* A group outside our cgroup namespace, or one that is gone, is no place to be. */
		if (len == 0 || path[0] != '/' || len >= size ||
		    ends_with(path, len, " (deleted)") || (len >= 3 && memcmp(path, "/..", 3) == 0))
			return false;
		memcpy(ret, path, len);
		ret[len] = '\0';
		return true;
	}
	return false;
}

bool cgroup_locate(char *ret, size_t size, const struct cgroup_mount *mount, const char *path)
{
	size_t root_len = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);

	if (strncmp(path, mount->root, root_len) != 0 ||
	    (path[root_len] != '/' && path[root_len] != '\0'))
		return false;

	const char *below = path + root_len;
	if (strcmp(below, "/") == 0)
		below = "";
	int len = snprintf(ret, size, "%s%s", mount->point, below);
	return len > 0 && (size_t)len < size;
}

bool cgroup_parse_name(unsigned *ret_lease, const char *name)
{
	static const char prefix[] = "vial-";

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;

	const char *digits = name + strlen(prefix);
	if (!isdigit((unsigned char)digits[0]))
		return false;

	char *end;
	errno = 0;
	unsigned long lease = strtoul(digits, &end, 10);
	if (errno != 0 || lease > UINT_MAX || (digits[0] == '0' && end != digits + 1))
		return false;
	*ret_lease = (unsigned)lease;
	return true;
}

bool cgroup_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	while (*text) {
		size_t n = strcspn(text, " \n");
		if (n == len && memcmp(text, word, n) == 0)
			return true;
		text += n;
		text += strspn(text, " \n");
	}
	return false;
}

bool cgroup_parse_key(uint64_t *ret, const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; *line;) {
		if (strncmp(line, key, len) == 0 && line[len] == ' ' &&
		    isdigit((unsigned char)line[len + 1])) {
			*ret = strtoull(line + len + 1, NULL, 10);
			return true;
		}
		line = strchrnul(line, '\n');
		line += *line == '\n';
	}
	return false;
}
