/*
 * target - what a request is for, written anew: for whoever hands it on.
 *
 * It is put together of what was understood, not copied: a worker reads the very path, ids and
 * query that were looked at here.
 */
#include "server/http_impl.h"

#include <string.h>

/* Escaped, but for what means itself everywhere, and `also`. */
static void add_escaped(struct buf *to, const char *text, const char *also)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9') || strchr("-._~", c) || strchr(also, c);
		if (is_plain)
			buf_add_char(to, (char)c);
		else
			buf_printf(to, "%%%02X", c);
	}
}

static enum MHD_Result add_argument(void *arg, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct buf *to = arg;

	(void)kind;
	buf_add_char(to, memchr(buf_str(to), '?', to->len) ? '&' : '?');
	add_escaped(to, name, "");
	if (value) {
		buf_add_char(to, '=');
		add_escaped(to, value, "");
	}
	return MHD_YES;
}

static void write_query(const struct exchange *x, struct buf *to)
{
	if (x->mhd)
		(void)MHD_get_connection_values(x->mhd, MHD_GET_ARGUMENT_KIND, add_argument, to);
}

void exchange_write_target(const struct exchange *x, struct buf *to)
{
	const char *at = x->match.route->path;

	for (size_t id = 0; *at;) {
		if (*at != '{') {
			buf_add_char(to, *at++);
			continue;
		}
		size_t len = strcspn(at, "}");
		if (len > 3 && strncmp(at + len - 3, "...", 3) == 0)
			add_escaped(to, x->match.rest, "/");
		else
			add_escaped(to, x->match.ids[id++], "");
		at += len + 1;
	}
	write_query(x, to);
}
