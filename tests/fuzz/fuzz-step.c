/*
 * The bodies of what is asked of sessions: what comes of them is one line of JSON for a driver,
 * or a refusal with a reason.
 */
#include "server/session_request.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const struct failure *f)
{
	if (!f->err.msg[0] || (f->err.code != ERR_INVALID && f->err.code != ERR_LIMIT))
		abort();
}

/* One object, whole, and a line end. */
static void check_message(const char *head, const struct buf *message)
{
	auto_buf struct buf line = BUF_INIT(SIZE_MAX / 2);
	struct slice all;
	struct err e;

	buf_add_str(&line, head);
	buf_add(&line, buf_str(message), message->len);
	char *end = memchr(line.data, '\n', line.len);
	if (!end || end != line.data + line.len - 1)
		abort();
	*end = '\0';
	if (slice_check(&all, line.data, line.len - 1, &e) < 0 || slice_kind(all) != '{')
		abort();
}

/* Bodies are changed where they lie: each reader gets its own. */
static char *copy(struct buf *room, const uint8_t *data, size_t size)
{
	buf_reset(room);
	buf_add(room, data, size);
	buf_add_char(room, '\0');
	return room->data;
}

static void check_step(struct buf *room, const uint8_t *data, size_t size, bool takes_words)
{
	AUTO(step_request_done) struct step_request step = { .calls_max = 0 };
	struct failure f = { .status = 0 };

	if (step_request_read(&step, takes_words, copy(room, data, size), size, &f) < 0) {
		check_refusal(&f);
		return;
	}
	if (step.calls_max > CALLS_MAX)
		abort();
	if (takes_words ? memchr(buf_str(&step.code), '\0', step.code.len) != NULL : step.code.len)
		abort();
	if (!takes_words)
		check_message("{\"op\":\"run\",\"id\":1", &step.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf room = BUF_INIT(SIZE_MAX / 2), message = BUF_INIT(SIZE_MAX / 2);
	AUTO(session_options_done) struct session_options options = { .idle_ms = 0 };
	struct failure f = { .status = 0 };
	uint64_t ms = 0;

	check_step(&room, data, size, false);
	check_step(&room, data, size, true);
	if (session_options_read(&options, copy(&room, data, size), size, &f) < 0)
		check_refusal(&f);
	f = (struct failure){ .status = 0 };
	if (call_answer_read(&message, 5, copy(&room, data, size), size, &f) < 0)
		check_refusal(&f);
	else
		check_message("", &message);
	f = (struct failure){ .status = 0 };
	if (extend_read(&ms, copy(&room, data, size), size, &f) < 0)
		check_refusal(&f);
	else if (ms == 0)
		abort();
	return 0;
}
