/*
 * target - what a request is for: taken apart, and written anew for whoever hands it on.
 *
 * It is put together of what was understood, not copied: a worker reads the very path, ids and
 * query that were looked at here.
 */
#include "server/http_impl.h"

#include "server/uri.h"

#include <string.h>
#include <strings.h>

/* ---- taken apart ----------------------------------------------------------------------- */

/* The beginning of it. */
static void note_text(char *ret, size_t size, const char *text)
{
	*(char *)mempcpy(ret, text, strnlen(text, size - 1)) = '\0';
}

/* A part of the head in our copy of it; what stands behind it there is no part of anything. */
static char *text_of(const struct exchange *x, const char *bytes, struct span s)
{
	char *text = x->text + (s.at - bytes);

	text[s.len] = '\0';
	return text;
}

/* "http://HOST/PATH" is as good as "/PATH" from somebody who asks for HOST. */
static char *skip_authority(struct exchange *x, char *target)
{
	size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
			: strncasecmp(target, "https://", 8) == 0 ? 8
								  : 0;
	if (scheme == 0)
		return target;
	size_t len = strcspn(target + scheme, "/?");
	x->authority = memmove(target, target + scheme, len);
	target[len] = '\0';
	target += scheme + len;
	if (*target != '/')
		*--target = '/'; /* where the end of the host was */
	return target;
}

static void take_arguments(struct exchange *x, char *query)
{
	char *rest = query, *one;

	while (x->argument_count <= ARGUMENTS_MAX && (one = strsep(&rest, "&"))) {
		if (!*one)
			continue;
		for (char *plus = one; (plus = strchr(plus, '+'));)
			*plus = ' ';
		char *value = strchr(one, '=');
		if (value)
			*value++ = '\0';
		x->is_garbled |= !uri_unescape(one) || (value && !uri_unescape(value));
		x->arguments[x->argument_count++] = (struct pair){ one, value };
	}
}

static void take_target(struct exchange *x, char *target)
{
	char *path = skip_authority(x, target), *query = strchr(path, '?');

	if (query)
		*query++ = '\0';
	x->is_garbled = !uri_unescape(path);
	x->url = path;
	note_text(x->path, sizeof(x->path), path);
	take_arguments(x, query);
}

bool target_take(struct exchange *x, const char *bytes, size_t len, const struct http1_head *head)
{
	x->text = malloc(len);
	if (!x->text)
		return false;
	memcpy(x->text, bytes, len);
	x->is_old = head->is_old;
	for (; x->header_count < head->count; x->header_count++) {
		const struct http1_field *f = &head->fields[x->header_count];
		x->headers[x->header_count] =
			(struct pair){ text_of(x, bytes, f->name), text_of(x, bytes, f->value) };
	}
	if (head->method.len == 0)
		return true;
	note_text(x->method, sizeof(x->method), text_of(x, bytes, head->method));
	x->is_head = strcmp(x->method, "HEAD") == 0;
	take_target(x, text_of(x, bytes, head->target));
	return true;
}

/* ---- written anew ---------------------------------------------------------------------- */

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

static void write_query(const struct exchange *x, struct buf *to)
{
	for (size_t i = 0; i < x->argument_count; i++) {
		const struct pair *p = &x->arguments[i];
		buf_add_char(to, i ? '&' : '?');
		add_escaped(to, p->name, "");
		if (!p->value)
			continue;
		buf_add_char(to, '=');
		add_escaped(to, p->value, "");
	}
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
