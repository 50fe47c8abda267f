#include "lib/scope.h"

#include <stdio.h>
#include <string.h>

const struct scope_row scope_rows[SCOPE_COUNT_] = {
#define SCOPE(id, name, usual, doc) { name, doc, usual },
#include "lib/scopes.def"
#undef SCOPE
};

unsigned scopes_usual(void)
{
	unsigned all = 0;

	for (unsigned i = 0; i < SCOPE_COUNT_; i++)
		all |= (unsigned)scope_rows[i].is_usual << i;
	return all;
}

int scopes_parse(unsigned *ret, const char *text, struct err *e)
{
	unsigned all = 0;

	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		unsigned i = 0;

		while (i < SCOPE_COUNT_ && (strlen(scope_rows[i].name) != len ||
					    strncmp(scope_rows[i].name, at, len) != 0))
			i++;
		if (i == SCOPE_COUNT_)
			return err_set(e, ERR_INVALID,
				       "unknown scope '%.*s': there are run, sessions, files, "
				       "history, metrics and admin",
				       (int)(len < 40 ? len : 40), at);
		all |= 1u << i;
		at += len;
		if (!*at)
			break;
	}
	*ret = all;
	return 0;
}

const char *scopes_show(char out[SCOPES_TEXT_MAX], unsigned scopes)
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < SCOPE_COUNT_; i++)
		if (scopes & 1u << i)
			len += (size_t)snprintf(out + len, SCOPES_TEXT_MAX - len, "%s%s",
						len ? "," : "", scope_rows[i].name);
	return out;
}

bool scopes_allow(unsigned have, unsigned wanted)
{
	return wanted == SCOPE_PUBLIC || (have & SCOPE_ADMIN) || (have & wanted);
}
