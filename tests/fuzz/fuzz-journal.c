/*
 * A journal as it lies on disk after who knows what: entries, or none; and a diagnosis of each.
 */
#include "base/json.h"
#include "server/diagnose.h"
#include "server/journal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const struct buf *bytes)
{
	auto_buf struct buf out = BUF_INIT(1 << 20), again = BUF_INIT(ENTRY_MAX);
	struct json j = { .out = &out };
	struct entry entry;
	struct err e;

	if (entry_read(&entry, buf_str(bytes), bytes->len, &e) < 0)
		return;
	entry_write(&again, &entry);
	if (again.len != bytes->len || memcmp(buf_str(&again), buf_str(bytes), again.len) != 0)
		abort();
	json_open(&j, NULL, '{');
	diagnose_json(&j, "diagnosis", &entry);
	json_close(&j);
}

/* The first half of its inputs are an entry each, the others a whole journal. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf bytes = BUF_INIT(ENTRY_MAX);
	struct journal j = { .fd = -1 };
	uint64_t at = journal_start(), seq;
	struct err e;

	if (size == 0)
		return 0;
	if (data[0] & 1) {
		buf_add(&bytes, data + 1, size - 1);
		look_at(&bytes);
		return 0;
	}
	auto_close int fd = memfd_create("journal", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
		return 0;
	j.fd = fd;
	if (journal_load(&j, &e) == 0)
		while (journal_next(&bytes, &seq, &j, &at))
			look_at(&bytes);
	if (at > size && at != journal_start())
		abort();
	return 0;
}
