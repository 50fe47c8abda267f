/*
 * The file of tokens: whatever is in it, what is taken from it is in order.
 */
#include "keeper/tokens.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct tokens *tokens)
{
	for (unsigned i = 0; i < tokens->items_count; i++) {
		const struct token *t = &tokens->items[i];
		char scopes[SCOPES_TEXT_MAX];
		unsigned again;
		struct err e;

		if (strlen(t->id) != TOKEN_ID_LEN || !tenant_name_is_valid(t->tenant) ||
		    !t->rights || t->rights & ~(unsigned)SCOPE_ALL)
			abort();
		if (i && strcmp(tokens->items[i - 1].id, t->id) >= 0)
			abort();
		if (scopes_parse(&again, scopes_show(scopes, t->rights), &e) < 0 ||
		    again != t->rights)
			abort();
		if (tokens_find(tokens, t->hash)) /* what the file has is no token */
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	char *text = strndup((const char *)data, size);
	struct err e;

	if (text && tokens_parse(&tokens, text, strlen(text), &e) == 0)
		check(tokens);
	free(text);
	return 0;
}
