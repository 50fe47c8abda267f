/*
 * What a request says of who sends it: two lines, Authorization and X-API-Key.  Only the very token
 * is one, and nobody comes in from elsewhere without.
 */
#include "server/access.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "vial_aaaaaaaaaaaa_0000000000000000000000000000000000000000000000000000000000000000"

static const char file[] = "tokens:\n- {id: aaaaaaaaaaaa, tenant: acme, scopes: run, hash: "
			   "c6e82c4f96d9921cf8551cfa67f3eaf8afd9674f426c9ac598d2d7543a11f77e}\n";

static struct tenants tenants;

static void open_tenants(void)
{
	struct config *config = NULL; /* for as long as we live */
	struct tokens *tokens = NULL;
	struct err e;

	if (tenants.local)
		return;
	if (config_parse(&config, "", 0, &e) < 0 ||
	    tokens_parse(&tokens, file, strlen(file), &e) < 0 ||
	    tenants_open(&tenants, config, NULL, tokens, &e) < 0)
		abort();
}

static bool is_bearer(const char *text)
{
	return strncasecmp(text, "Bearer ", 7) == 0 &&
	       strcmp(text + 7 + strspn(text + 7, " "), TOKEN) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	char *second = text ? strchr(text, '\n') : NULL;
	struct failure f = { .status = 0 };
	struct access a = { 0 };

	open_tenants();
	if (second)
		*second++ = '\0';
	const struct access_request r = { .authorization = text && text[0] ? text : NULL,
					  .api_key = second,
					  .said = (text && text[0]) + (second != NULL),
					  .scopes = SCOPE_RUN };
	if (access_check(&a, &tenants, &r, &f) == 0) {
		bool is_good = r.said == 1 &&
			       (second ? strcmp(second, TOKEN) == 0 : is_bearer(r.authorization));
		if (!is_good || strcmp(a.tenant->name, "acme") != 0 || a.rights != SCOPE_RUN)
			abort();
	} else if (f.status != 401 || a.tenant) {
		abort();
	}
	free(text);
	return 0;
}
