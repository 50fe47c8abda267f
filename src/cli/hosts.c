#include "cli/hosts.h"

#include <string.h>

int hosts_keep(void *target, const struct option *opt, const char *value, struct err *e)
{
	(void)target;
	(void)opt;
	(void)value;
	(void)e;
	return 0;
}

void hosts_write(struct json *j, const struct options *o)
{
	bool is_open = false;

	for (size_t i = 0; i < o->use_count; i++) {
		if (strcmp(o->uses[i].opt->name, "allow-host") != 0)
			continue;
		if (!is_open)
			json_open(j, "allow_hosts", '[');
		is_open = true;
		json_string(j, NULL, o->uses[i].value);
	}
	if (is_open)
		json_close(j);
}
