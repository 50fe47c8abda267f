/*
 * openapi - the interface as a document: docs/openapi.json, which tools/openapi makes.
 */
#include "server/server.h"

extern const char openapi_json[];
extern const size_t openapi_json_len;

void openapi_get(struct exchange *x, void *arg)
{
	auto_buf struct buf text = BUF_INIT(openapi_json_len);
	struct failure f = { .status = 0 };

	(void)arg;
	buf_add(&text, openapi_json, openapi_json_len);
	if (text.dropped) {
		(void)err_set(&f.err, ERR_SYS, "no memory for the answer");
		exchange_fail(x, &f);
		return;
	}
	exchange_reply(x, 200, &text);
}
