#include "server/server.h"

enum { OBJECT_MAX = 64 << 20 };

void reply_object(struct exchange *x, void (*write)(struct json *j, void *arg), void *arg)
{
	auto_buf struct buf text = BUF_INIT(OBJECT_MAX);
	struct json j = { .out = &text };
	struct failure f = { .status = 0 };

	json_open(&j, NULL, '{');
	write(&j, arg);
	json_close(&j);
	buf_add_char(&text, '\n');
	if (text.dropped) {
		(void)err_set(&f.err, ERR_SYS, "no memory for the answer");
		exchange_fail(x, &f);
		return;
	}
	exchange_reply(x, 200, &text);
}
