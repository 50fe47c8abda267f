/*
 * What a daemon answers to vial run, line by line: a result that can be told, or a reason.
 */
#include "cli/answer.h"
#include "cli/member.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(const struct vial_file *f)
{
	if (!f->path || (f->content.len && !f->content.data) || (f->error && f->content.len))
		abort();
}

static void check_result(const struct vial_result *r)
{
	auto_free char *text = NULL;
	struct vial_error error;
	size_t len;

	if (r->outcome > VIAL_CANCELLED || r->exit_code < -1 || r->exit_code > 255 ||
	    r->signal < 0 || !r->limit || !r->stage || r->wall_ms < 0)
		abort();
	for (size_t i = 0; i < r->changed_count; i++)
		check_file(&r->changed[i]);
	for (size_t i = 0; i < r->export_count; i++)
		check_file(&r->exports[i]);
	if (vial_result_json(&text, &len, r, NULL, &error) < 0)
		abort();
}

/* False: nothing more is read. */
static bool take_line(struct answer *a, const char *line, size_t len)
{
	auto_object struct json_object *event = NULL;
	enum vial_stream stream;
	struct vial_bytes bytes;
	const char *name;
	struct err e;

	if (member_parse(&event, line, len, &e) < 0 || member_text(&name, event, "event", &e) < 0)
		return false;
	if (strcmp(name, "output") == 0)
		return answer_add_output(&stream, &bytes, a, event, &e) == 0;
	if (strcmp(name, "result") != 0)
		return true;
	if (answer_read(a, event, &e) == 0)
		check_result(&a->result);
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_answer struct answer a = ANSWER_INIT;
	const char *line = (const char *)data, *all = line + size;

	while (line < all) {
		const char *end = memchr(line, '\n', (size_t)(all - line));

		if (!end)
			end = all;
		if (!take_line(&a, line, (size_t)(end - line)))
			break;
		line = end + 1;
	}
	return 0;
}
