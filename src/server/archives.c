/*
 * archives - whole trees of a session, as tar or zip, up and down.
 */
#include "server/transfer.h"

#include <string.h>

static const struct {
	const char *name, *type, *disposition;
	enum filing_format format;
} formats[] = {
	{ "tar", "application/x-tar", "attachment; filename=\"files.tar\"", FILING_TAR },
	{ "tar.gz", "application/gzip", "attachment; filename=\"files.tar.gz\"", FILING_TAR_GZ },
	{ "zip", "application/zip", "attachment; filename=\"files.zip\"", FILING_ZIP },
};

/* ---- down ------------------------------------------------------------------------------ */

static void begin_archive(struct transfer *t)
{
	size_t which = 0;

	while (formats[which].format != t->request.format)
		which++;
	exchange_add_header(t->x, "Content-Disposition", formats[which].disposition);
	transfer_download(t, 200, formats[which].type, DOWNLOAD_UNKNOWN, false);
}

static void on_packed(struct transfer *t, const char *bytes, size_t len)
{
	if (!t->has_begun)
		begin_archive(t);
	if (exchange_is_head(t->x)) {
		exchange_on_gone(take_ptr(&t->x), NULL, NULL);
		transfer_free(t);
		return;
	}
	(void)!transfer_send(t, bytes, len);
}

static void on_packed_all(struct transfer *t, const struct filing_end *end)
{
	(void)end;
	transfer_finish(t);
	transfer_free(t);
}

static int read_format(enum filing_format *ret, const struct exchange *x, struct failure *f)
{
	const char *name = exchange_query(x, "format");

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (name && strcmp(name, formats[i].name) != 0)
			continue;
		*ret = formats[i].format;
		return 0;
	}
	return failure_at(f, "format", "'%.20s' is none of tar, tar.gz and zip", name);
}

void session_archive_get(struct exchange *x, void *arg)
{
	static const struct transfer_kind kind = { .on_data = on_packed, .on_end = on_packed_all };
	struct filing_request request = { .kind = FILING_PACK,
					  .name = exchange_query(x, "path"),
					  .max = UINT64_MAX };
	struct failure f = { .status = 0 };

	if (read_format(&request.format, x, &f) < 0)
		exchange_fail(x, &f);
	else
		transfer_begin(x, arg, &kind, &request, true);
}

/* ---- up -------------------------------------------------------------------------------- */

static void write_unpacked(struct json *j, const struct transfer *t, const void *arg)
{
	const struct filing_end *end = arg;

	transfer_write_name(j, "path", t->request.name);
	json_int(j, "entries", (int64_t)end->count);
}

static void on_unpacked(struct transfer *t, const struct filing_end *end)
{
	transfer_reply(t, 200, write_unpacked, end);
}

void session_archive_post(struct exchange *x, void *arg)
{
	static const struct transfer_kind kind = { .takes = true,
						   .changes = true,
						   .on_end = on_unpacked };
	const struct filing_request request = { .kind = FILING_UNPACK,
						.name = exchange_query(x, "path"),
						.max = UINT64_MAX };

	transfer_begin(x, arg, &kind, &request, true);
}
