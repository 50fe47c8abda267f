#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

/* There is room already, for the NUL too. */
static inline bool has_room(const struct buf *b, size_t len)
{
	return len < b->cap - b->len;
}

/* Room for `len` more bytes and a NUL; less when the maximum or memory says so. */
static size_t reserve(struct buf *b, size_t len)
{
	size_t room = b->max - b->len;

	if (has_room(b, len))
		return len;
	if (len > room)
		len = room;
	if (!has_room(b, len)) {
		size_t cap = b->cap ? b->cap * 2 : 256;
		if (cap > b->max)
			cap = b->max + 1;
		if (cap < b->len + len + 1)
			cap = b->len + len + 1;

		char *data = realloc(b->data, cap);
		if (!data)
			return b->cap ? b->cap - b->len - 1 : 0;
		b->data = data;
		b->cap = cap;
	}
	return len;
}

void buf_add(struct buf *b, const void *bytes, size_t len)
{
	size_t fits = reserve(b, len);

	b->dropped += len - fits;
	if (fits)
		memcpy(b->data + b->len, bytes, fits);
	b->len += fits;
	if (b->data)
		b->data[b->len] = '\0';
}

void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
	if (!has_room(b, 1)) {
		buf_add(b, &c, 1);
		return;
	}
	b->data[b->len++] = c;
	b->data[b->len] = '\0';
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0) {
		text = NULL; /* vasprintf leaves it undefined */
		b->dropped++;
		return;
	}
	buf_add(b, text, (size_t)len);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->dropped = 0;
	if (b->data)
		b->data[0] = '\0';
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

int buf_add_fd(struct buf *b, int fd, struct err *e)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "read");
		if (n == 0)
			return 0;
		buf_add(b, chunk, (size_t)n);
		if (b->dropped)
			return err_set(e, ERR_LIMIT, "larger than %zu bytes", b->max);
	}
}

int buf_add_file(struct buf *b, int dir_fd, const char *path, struct err *e)
{
	auto_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "%s", path);
	return buf_add_fd(b, fd, e) < 0 ? err_context(e, "%s", path) : 0;
}
