/*
 * What workers and Docker's engine answer, as a dispatcher reads it: the first byte says which.
 */
#include "backend/docker_read.h"
#include "backend/node_answer.h"
#include "dispatch/merge.h"
#include "dispatch/upgrade_answer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_container(const struct docker_container *c, void *arg)
{
	(void)arg;
	if (!c->name[0] || strpbrk(c->name, "/?#% ") || (c->is_running && c->is_coming) ||
	    !c->id[0] || strspn(c->id, "0123456789abcdef") != strlen(c->id))
		abort();
}

static void check_node(const char *text, size_t len)
{
	struct node_answer answer;
	struct err e;

	(void)node_run_printed(text, len, "health_check\n");
	if (node_answer_parse(&answer, text, len, &e) == 0 && strpbrk(answer.name, "/?#% "))
		abort();
}

static void check_upgrade(const char *text, size_t len)
{
	struct upgrade_answer answer;
	enum upgrade_state state = upgrade_answer_read(&answer, text, len);

	if (state == UPGRADE_AGREED && (answer.head_len > len || !answer.accept[0]))
		abort();
	if (state == UPGRADE_REFUSED && answer.length > len - answer.head_len)
		abort();
}

/* One answer twice: sums, lists and pages. */
static void check_merge(const char *text, size_t len)
{
	struct merge_page pages[2] = { { .node = "00000001" }, { .node = "00000002" } };
	auto_buf struct buf out = BUF_INIT(1 << 20);
	char mark[64];

	for (size_t i = 0; i < 2; i++)
		pages[i].answer = merge_parse(text, len);
	merge_pages(&out, pages, 2, 3, len % 2);
	(void)merge_mark_of(mark, sizeof(mark), buf_str(&out), pages[1].node);
	if (pages[0].answer && pages[1].answer)
		merge_into(pages[0].answer, pages[1].answer);
	for (size_t i = 0; i < 2; i++)
		merge_free(pages[i].answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = size > 1 ? strndup((const char *)data + 1, size - 1) : NULL;
	char why[160];
	struct err e;

	if (!text)
		return 0;
	size_t len = strlen(text);
	switch (data[0] % 4) {
	case 0:
		check_node(text, len);
		break;
	case 1:
		(void)!docker_read_list(text, len, check_container, NULL, &e);
		docker_read_message(why, sizeof(why), text, len);
		break;
	case 2:
		check_upgrade(text, len);
		break;
	default:
		check_merge(text, len);
	}
	free(text);
	return 0;
}
