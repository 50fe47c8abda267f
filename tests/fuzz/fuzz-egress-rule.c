/*
 * Rules as clients write them, one a line; the last line is what a guest asks for.
 */
#include "egress/rule.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rules(const struct rules *rules)
{
	struct rules again = { 0 };
	char text[RULE_TEXT_MAX];
	struct err e;

	for (size_t i = 0; i < rules->count; i++) {
		rule_text(text, &rules->items[i]);
		if (rules_add(&again, text, &e) < 0)
			abort();
	}
	if (rules_check_within(rules, rules, &e) < 0 || rules_check_within(&again, rules, &e) < 0 ||
	    rules_check_within(rules, &again, &e) < 0)
		abort();
}

/* Nothing that is not public without a rule that names it. */
static void check_target(const struct rules *rules, const struct target *t)
{
	static const char *const places[] = { "127.0.0.1",      "169.254.169.254", "10.1.2.3",
					      "fd00::1",        "8.8.8.8",         "2606:4700::1",
					      "64:ff9b::7f00:1" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct in6_addr at;
		if (!ip_parse(&at, places[i]))
			abort();
		if (t->is_address)
			at = t->address;
		bool is_allowed = rules_connect(rules, t, &at) == RULING_ALLOWED;
		if (is_allowed && rules_ask(rules, t) != RULING_ALLOWED)
			abort();
		if (is_allowed && !ip_is_public(&at) && !rules_name_address(rules, &at))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *line;
	struct rules rules = { 0 };
	struct target t;
	struct err e;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	while ((line = strsep(&rest, "\n")) && rest)
		(void)!rules_add(&rules, line, &e);
	check_rules(&rules);
	if (target_parse(&t, line, strlen(line), 80))
		check_target(&rules, &t);
	free(text);
	return 0;
}
