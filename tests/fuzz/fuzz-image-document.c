/*
 * The JSON of images: each document is read whole or refused with a reason, and what is read keeps
 * its bounds.
 */
#include "image/document.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int failed, const struct err *e)
{
	if (failed < 0 && (e->code == ERR_NONE || !e->msg[0]))
		abort();
}

static void check_digest(const struct digest *digest)
{
	if (strlen(digest->hex) != DIGEST_HEX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct descriptors index = { 0 }, layers = { 0 };
	struct descriptor about = { 0 };
	struct saved_list saved = { 0 };
	struct image_config config = { 0 };
	struct err e = { 0 };

	check(document_index(&index, text, size, &e), &e);
	for (size_t i = 0; i < index.count; i++)
		check_digest(&index.items[i].digest);
	int failed = document_manifest(&about, &layers, text, size, &e);
	check(failed, &e);
	if (failed == 0)
		check_digest(&about.digest);
	if (index.count > DOCUMENT_ITEMS_MAX || layers.count > DOCUMENT_ITEMS_MAX)
		abort();
	check(document_saved(&saved, text, size, &e), &e);
	check(document_config(&config, text, size, &e), &e);
	for (size_t i = 0; i < config.diff_count; i++)
		check_digest(&config.diffs[i]);
	descriptors_done(&index);
	descriptors_done(&layers);
	saved_list_done(&saved);
	image_config_done(&config);
	return 0;
}
