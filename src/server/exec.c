/*
 * exec - POST /exec: a program in, its output out, or one line about what went wrong.
 *
 * The contract is another system's, as in execute.c; docs/API.md has it.
 */
#include "base/utf8.h"
#include "server/manner.h"
#include "server/slice.h"
#include "server/snippet.h"

#include <string.h>

enum {
	TIMEOUT_MS = 10000,
	MEMORY_BYTES = 1 << 30,
	OUTPUT_CHARACTERS = 16384, /* of either, silently cut */
	DETAIL_CHARACTERS = 8192,
};

/*
 * To these clients an exit is an exception like any other, which an interpreter that exits does not
 * show; and of an exception they compare the text, to which an interpreter adds what it would
 * suggest, and notes.  So it is told in a file: stderr may be closed by then, or full, and other
 * exceptions may follow there.  For the history it is in both.
 */
static const char wrapper[] =
	"def _run():\n"
	"    import os\n"
	"    from os import _exit, open as open_file, write\n"
	"    names = globals()\n"
	"    told = os.path.join(os.getcwd(), '" SNIPPET_TOLD "')\n"
	"    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC\n"
	"    del names['_run']\n"
	"    with open('" SNIPPET_NAME "', encoding='utf-8', newline='') as file:\n"
	"        text = file.read()\n"
	"    os.remove('" SNIPPET_NAME "')\n"
	"    try:\n"
	"        exec(compile(text, '<user>', 'exec'), names)\n"
	"    except MemoryError:\n"
	"        raise\n"
	"    except BaseException as end:\n"
	"        line = ('%s: %s\\n' % (type(end).__name__, end)).encode(errors='replace')\n"
	"        for into, head in ((2, b'Traceback (most recent call last):\\n'), (told, b'')):\n"
	"            try:\n"
	"                write(into if into == 2 else open_file(into, flags), head + line)\n"
	"            except OSError:\n"
	"                pass\n"
	"        _exit(1)\n"
	"_run()\n";

/* ---- answers --------------------------------------------------------------------------- */

static void write_failure(struct json *j, const struct failure *f)
{
	json_string(j, "detail", f->err.msg);
}

const struct manner exec_manner = { manner_headers, true, write_failure };

static void write_text(struct buf *text, const char *key, const char *bytes, size_t len,
		       uint64_t characters)
{
	auto_buf struct buf repaired = BUF_INIT(SIZE_MAX / 2);
	struct json j = { .out = text };

	utf8_repair(&repaired, bytes, len);
	json_open(&j, NULL, '{');
	json_bytes(&j, key, buf_str(&repaired),
		   snippet_cut(buf_str(&repaired), repaired.len, characters));
	json_close(&j);
	buf_add_char(text, '\n');
	text->dropped += repaired.dropped;
}

/* As its validation words it: a list of what is wrong, and where. */
static void refuse(struct exchange *x, const char *member, const char *message, const char *type)
{
	auto_buf struct buf text = BUF_INIT(4096);
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	json_open(&j, "detail", '[');
	json_open(&j, NULL, '{');
	json_string(&j, "type", type);
	json_open(&j, "loc", '[');
	json_string(&j, NULL, "body");
	if (member)
		json_string(&j, NULL, member);
	json_close(&j);
	json_string(&j, "msg", message);
	json_close(&j);
	json_close(&j);
	json_close(&j);
	buf_add_char(&text, '\n');
	exchange_reply(x, 422, &text);
}

/* ---- one line -------------------------------------------------------------------------- */

/* By the wrapper; NULL: nothing, or there was no room. */
static const struct vial_bytes *find_told(const struct vial_result *result)
{
	for (size_t i = 0; i < result->export_count; i++)
		if (!result->exports[i].error && result->exports[i].content.len)
			return &result->exports[i].content;
	return NULL;
}

static void add_detail(struct buf *out, const struct vial_result *result)
{
	const struct vial_bytes *told = find_told(result);

	if (result->oom)
		buf_add_str(out, "Memory limit exceeded\n");
	else if (told)
		buf_add(out, told->data, told->len);
	else if (result->exception.type[0])
		buf_printf(out, "%s: %s\n", result->exception.type, result->exception.message);
	else if (result->outcome == VIAL_CANCELLED)
		buf_add_str(out, "Cancelled\n");
	else if (result->signal)
		buf_printf(out, "Killed by signal %d\n", result->signal);
	else
		buf_printf(out, "SystemExit: %d\n", result->exit_code);
}

static unsigned render(struct buf *text, const struct snippet *s, const struct vial_result *result,
		       const struct buf *note)
{
	static const char late[] = "Execution timed out";
	auto_buf struct buf detail = BUF_INIT(SIZE_MAX / 2);

	(void)s;
	(void)note;
	if (result->timed_out) {
		write_text(text, "detail", late, strlen(late), DETAIL_CHARACTERS);
		return 408;
	}
	if (result->outcome == VIAL_EXITED && result->exit_code == 0) {
		write_text(text, "output", result->out.data, result->out.len, OUTPUT_CHARACTERS);
		return 200;
	}
	add_detail(&detail, result);
	write_text(text, "detail", buf_str(&detail), detail.len, DETAIL_CHARACTERS);
	return 400;
}

/* ---- the request ----------------------------------------------------------------------- */

/* False: it has been answered. */
static bool read_request(struct snippet *s)
{
	struct slice all, code = { NULL, 0 };
	struct slice_item item;
	const char *type = exchange_type(s->x);
	bool is_json = !type || snippet_is_json(type);
	struct err e;

	if (is_json && slice_check(&all, s->body, s->body_len, &e) < 0) {
		refuse(s->x, NULL, "JSON decode error", "json_invalid");
		return false;
	}
	if (!is_json || slice_kind(all) != '{') {
		refuse(s->x, NULL,
		       "Input should be a valid dictionary or object to extract fields from",
		       "model_attributes_type");
		return false;
	}
	for (size_t at = 0; slice_next(&item, &at, all);)
		if (slice_is(item.key, "code"))
			code = item.value;
	if (!code.at) {
		refuse(s->x, "code", "Field required", "missing");
		return false;
	}
	if (slice_kind(code) != '"') {
		refuse(s->x, "code", "Input should be a valid string", "string_type");
		return false;
	}
	s->source.code = (struct buf)BUF_INIT(s->body_len);
	slice_text(&s->source.code, code);
	return true;
}

void exec_post(struct exchange *x, void *arg)
{
	struct snippet *s = snippet_create("exec", arg, x);

	if (!s)
		return;
	if (!read_request(s)) {
		snippet_free(s);
		return;
	}
	s->timeout_ms = TIMEOUT_MS;
	s->memory_bytes = MEMORY_BYTES;
	s->wrapper = wrapper;
	s->render = render;
	snippet_start(s);
}
