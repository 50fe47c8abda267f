#include "image/furnish.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

enum { LIBC_MAX = 8 << 20 };

/* As all other sandboxes have them (lib/plan.c), whoever the image thought would be there. */
static const char *const texts[][2] = {
	{ "etc/passwd", "root:x:0:0:root:/:/usr/sbin/nologin\n"
			"sandbox:x:1000:1000:sandbox:/tmp:/bin/sh\n"
			"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost vial\n::1 localhost\n" },
	{ "etc/hostname", "vial\n" },
	{ "etc/resolv.conf", "" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			       "services: files\nprotocols: files\n" },
};

static const char *const gone[] = { "etc/shadow",   "etc/shadow-", "etc/gshadow",
				    "etc/gshadow-", "etc/passwd-", "etc/group-" };

int furnish(struct root *root, struct err *e)
{
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		if (root_erase(root, gone[i], false, e) < 0)
			return err_context(e, "%s", gone[i]);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (root_text(root, texts[i][0], texts[i][1], e) < 0)
			return err_context(e, "%s", texts[i][0]);
	if (root_link(root, "etc/mtab", "../proc/self/mounts", e) < 0 ||
	    root_dir(root, "var/cache/vial", e) < 0 || root_link(root, "var/tmp", "/tmp", e) < 0)
		return err_context(e, "places of a sandbox");
	return 0;
}

/* It says of itself "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36." */
bool furnish_libc(char *ret, size_t size, const struct root *root)
{
	static const char *const paths[] = {
		"lib/x86_64-linux-gnu/libc.so.6",
		"lib/aarch64-linux-gnu/libc.so.6",
		"lib64/libc.so.6",
		"usr/lib/libc.so.6",
		"lib/libc.so.6",
	};
	static const char mark[] = " release version ";
	auto_free char *bytes = malloc(LIBC_MAX);

	for (size_t i = 0; bytes && i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct err ignored;
		auto_close int fd = root_open(root, paths[i], &ignored);
		ssize_t n = fd < 0 ? 0 : pread(fd, bytes, LIBC_MAX, 0);
		const char *at = n > 0 ? memmem(bytes, (size_t)n, mark, strlen(mark)) : NULL;
		size_t left = at ? (size_t)(bytes + n - at) - strlen(mark) : 0, len = 0;

		at += at ? strlen(mark) : 0;
		while (len < left && len + 1 < size && strchr("0123456789.", at[len]) && at[len])
			len++;
		while (len > 0 && at[len - 1] == '.')
			len--;
		if (len > 0) {
			(void)snprintf(ret, size, "%.*s", (int)len, at);
			return true;
		}
	}
	return false;
}
