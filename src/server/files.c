/*
 * files - one file or directory of a session: put, fetched, listed, made, removed.
 */
#include "server/transfer.h"
#include "server/uri.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	LIST_USUAL = 10000, /* entries */
	LIST_MAX = 1000000,
	LIST_PIECE = 16 << 10,
	YOUNG_S = 1, /* what was changed so lately may be changed again, and look the same */
};

static void write_path(struct json *j, const struct transfer *t)
{
	transfer_write_name(j, "path", t->request.name);
}

/* ---- putting --------------------------------------------------------------------------- */

static void write_put(struct json *j, const struct transfer *t, const void *arg)
{
	(void)arg;
	write_path(j, t);
	json_int(j, "size", (int64_t)t->bytes);
}

static void on_put(struct transfer *t, const struct filing_end *end)
{
	transfer_reply(t, end->flag ? 200 : 201, write_put, NULL);
}

static int read_mode(unsigned *ret, const struct exchange *x, struct failure *f)
{
	const char *text = exchange_query(x, "mode");
	unsigned mode = 0;

	*ret = 0644;
	if (!text)
		return 0;
	for (const char *at = text; *at; at++) {
		if (*at < '0' || *at > '7' || mode > 0777)
			return failure_at(f, "mode", "'%.20s' is no mode such as 0644", text);
		mode = mode * 8 + (unsigned)(*at - '0');
	}
	if (!text[0] || mode > 0777)
		return failure_at(f, "mode", "'%.20s' is no mode such as 0644", text);
	*ret = mode;
	return 0;
}

/* What we do not heed may be all that keeps a client from overwriting what it has not seen, or from
 * leaving a piece where there was a whole: so it is refused, not overlooked. */
static int check_conditions(const struct exchange *x, struct failure *f)
{
	static const char *const names[] = { "If-Match", "If-None-Match", "If-Unmodified-Since",
					     "Content-Range" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (exchange_header(x, names[i]))
			return failure_at(f, names[i], "is not heeded where files are changed");
	return 0;
}

void session_file_put(struct exchange *x, void *arg)
{
	static const struct transfer_kind kind = { .takes = true,
						   .changes = true,
						   .on_end = on_put };
	int64_t announced = exchange_announced(x);
	struct filing_request request = { .kind = FILING_PUT,
					  .name = exchange_rest(x),
					  .max = announced > 0 ? (uint64_t)announced : 0 };
	struct failure f = { .status = 0 };

	if (read_mode(&request.mode, x, &f) < 0 || check_conditions(x, &f) < 0)
		exchange_fail(x, &f);
	else
		transfer_begin(x, arg, &kind, &request, false);
}

/* ---- fetching -------------------------------------------------------------------------- */

/* Weak while another change could leave size and times as they are. */
static void make_tag(char out[64], const struct filing_entry *entry)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	bool is_young = now.tv_sec - entry->changed.tv_sec <= YOUNG_S;
	(void)snprintf(out, 64, "%s\"%llx-%llx-%llx\"", is_young ? "W/" : "",
		       (unsigned long long)entry->inode, (unsigned long long)entry->size,
		       (unsigned long long)entry->changed.tv_sec * 1000000000ull +
			       (unsigned long long)entry->changed.tv_nsec);
}

static void add_headers(struct exchange *x, const struct filing_entry *entry, const char *tag)
{
	char date[64];
	struct tm tm;

	exchange_add_header(x, "ETag", tag);
	exchange_add_header(x, "Accept-Ranges", "bytes");
	/* What a guest wrote is shown by no browser as a page of ours. */
	exchange_add_header(x, "Content-Disposition", "attachment");
	exchange_add_header(x, "Content-Security-Policy", "sandbox; default-src 'none'");
	if (gmtime_r(&entry->modified.tv_sec, &tm) &&
	    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		exchange_add_header(x, "Last-Modified", date);
}

/* The part that is asked for; one of something else by now is answered with all of it. */
static enum range_kind find_range(uint64_t *ret_first, uint64_t *ret_count,
				  const struct exchange *x, const char *tag, uint64_t size)
{
	const char *unless = exchange_header(x, "If-Range");

	*ret_first = 0;
	*ret_count = size;
	if (unless && (tag[0] != '"' || strcmp(unless, tag) != 0))
		return RANGE_NONE;
	return uri_range(ret_first, ret_count, exchange_header(x, "Range"), size);
}

static void refuse_range(struct transfer *t, uint64_t size)
{
	struct failure f = { .status = 416 };
	char range[64];

	(void)snprintf(range, sizeof(range), "bytes */%llu", (unsigned long long)size);
	exchange_add_header(t->x, "Content-Range", range);
	(void)err_set(&f.err, ERR_INVALID, "the file has %llu bytes, and none of that range",
		      (unsigned long long)size);
	transfer_fail(t, &f);
}

static void on_found(struct transfer *t, const struct filing_entry *entry)
{
	static const char type[] = "application/octet-stream";
	uint64_t first, count;
	char tag[64], range[96];

	make_tag(tag, entry);
	add_headers(t->x, entry, tag);
	bool is_known = uri_has_tag(exchange_header(t->x, "If-None-Match"), tag);
	enum range_kind kind = find_range(&first, &count, t->x, tag, entry->size);
	if (!is_known && kind == RANGE_OUTSIDE) {
		refuse_range(t, entry->size);
		return;
	}
	if (kind == RANGE_PART) {
		(void)snprintf(range, sizeof(range), "bytes %llu-%llu/%llu",
			       (unsigned long long)first, (unsigned long long)(first + count - 1),
			       (unsigned long long)entry->size);
		if (!is_known)
			exchange_add_header(t->x, "Content-Range", range);
	}
	t->left = count;
	unsigned status = is_known ? 304 : kind == RANGE_PART ? 206 : 200;
	transfer_download(t, status, type, is_known ? 0 : count, true);
	if (is_known || count == 0 || exchange_is_head(t->x)) {
		exchange_on_gone(take_ptr(&t->x), NULL, NULL);
		transfer_free(t);
		return;
	}
	filing_pause(t->filing);
	filing_fetch(t->filing, first, count);
}

static void on_bytes(struct transfer *t, const char *bytes, size_t len)
{
	struct failure f = { .status = 0 };

	if (!t->x || len > t->left) {
		transfer_fail(t, &f);
		return;
	}
	t->left -= len;
	if (!transfer_send(t, bytes, len) || t->left > 0)
		return;
	transfer_finish(t);
	filing_go_on(t->filing); /* to its end */
}

/* Before the client has what it was told of: the file has become shorter. */
static void on_short(struct transfer *t, const struct filing_end *end)
{
	struct failure f = { .status = 0 };

	(void)end;
	transfer_fail(t, &f);
}

void session_file_get(struct exchange *x, void *arg)
{
	static const struct transfer_kind kind = { .on_entry = on_found,
						   .on_data = on_bytes,
						   .on_end = on_short };
	const struct filing_request request = { .kind = FILING_LOOK, .name = exchange_rest(x) };

	transfer_begin(x, arg, &kind, &request, false);
}

/* ---- listing --------------------------------------------------------------------------- */

static const char *type_name(mode_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	return S_ISLNK(mode) ? "link" : "other";
}

static void begin_list(struct transfer *t)
{
	t->text = (struct buf)BUF_INIT(1 << 20);
	t->json = (struct json){ .out = &t->text };
	json_open(&t->json, NULL, '{');
	write_path(&t->json, t);
	json_open(&t->json, "entries", '[');
	transfer_download(t, 200, "application/json", DOWNLOAD_UNKNOWN, false);
}

static void write_entry_names(struct json *j, const struct transfer *t, const char *path)
{
	auto_buf struct buf whole = BUF_INIT(2 * PATH_MAX);
	const char *slash = strrchr(path, '/');

	transfer_write_name(j, "name", slash ? slash + 1 : path);
	if (t->name.len)
		buf_printf(&whole, "%s/", buf_str(&t->name));
	buf_add_str(&whole, path);
	transfer_write_name(j, "path", buf_str(&whole));
}

static void on_listed(struct transfer *t, const struct filing_entry *entry)
{
	struct json *j = &t->json;
	char mode[8];

	if (!t->has_begun)
		begin_list(t);
	(void)snprintf(mode, sizeof(mode), "%04o", entry->mode & 07777u);
	json_open(j, NULL, '{');
	write_entry_names(j, t, entry->path);
	json_string(j, "type", type_name(entry->mode));
	json_int(j, "size", entry->size > INT64_MAX ? INT64_MAX : (int64_t)entry->size);
	json_double(j, "mtime",
		    (double)entry->modified.tv_sec + (double)entry->modified.tv_nsec / 1e9);
	json_string(j, "mode", mode);
	if (entry->target)
		transfer_write_name(j, "target", entry->target);
	json_close(j);
	if (t->text.len < LIST_PIECE)
		return;
	if (transfer_send(t, buf_str(&t->text), t->text.len))
		buf_reset(&t->text);
}

static void on_list_end(struct transfer *t, const struct filing_end *end)
{
	if (!t->has_begun)
		begin_list(t);
	json_close(&t->json);
	json_bool(&t->json, "truncated", end->flag);
	json_close(&t->json);
	buf_add_char(&t->text, '\n');
	exchange_finish(take_ptr(&t->x), buf_str(&t->text), t->text.len);
	transfer_free(t);
}

static int read_limit(uint64_t *ret, const struct exchange *x, struct failure *f)
{
	const char *text = exchange_query(x, "limit");
	char *end;

	*ret = LIST_USUAL;
	if (!text)
		return 0;
	*ret = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || *ret == 0 || *ret > LIST_MAX)
		return failure_at(f, "limit", "it is a number up to %d", LIST_MAX);
	return 0;
}

void session_files_get(struct exchange *x, void *arg)
{
	static const struct transfer_kind kind = { .on_entry = on_listed, .on_end = on_list_end };
	struct filing_request request = { .kind = FILING_DIR, .name = exchange_query(x, "path") };
	struct failure f = { .status = 0 };

	if (transfer_flag(&request.recursive, x, "recursive", &f) < 0 ||
	    read_limit(&request.max, x, &f) < 0)
		exchange_fail(x, &f);
	else
		transfer_begin(x, arg, &kind, &request, true);
}

/* ---- making, removing ------------------------------------------------------------------ */

static void write_made(struct json *j, const struct transfer *t, const void *arg)
{
	(void)arg;
	write_path(j, t);
}

static void on_made(struct transfer *t, const struct filing_end *end)
{
	transfer_reply(t, end->flag ? 200 : 201, write_made, NULL);
}

void session_directory_put(struct exchange *x, void *arg)
{
	static const struct transfer_kind kind = { .changes = true, .on_end = on_made };
	const struct filing_request request = { .kind = FILING_MAKE_DIR, .name = exchange_rest(x) };

	transfer_begin(x, arg, &kind, &request, false);
}

static void write_removed(struct json *j, const struct transfer *t, const void *arg)
{
	(void)arg;
	write_path(j, t);
	json_bool(j, "removed", true);
}

static void on_removed(struct transfer *t, const struct filing_end *end)
{
	(void)end;
	transfer_reply(t, 200, write_removed, NULL);
}

void session_file_delete(struct exchange *x, void *arg)
{
	static const struct transfer_kind kind = { .changes = true, .on_end = on_removed };
	struct filing_request request = { .kind = FILING_REMOVE, .name = exchange_rest(x) };
	struct failure f = { .status = 0 };

	if (transfer_flag(&request.recursive, x, "recursive", &f) < 0 ||
	    check_conditions(x, &f) < 0)
		exchange_fail(x, &f);
	else
		transfer_begin(x, arg, &kind, &request, false);
}
