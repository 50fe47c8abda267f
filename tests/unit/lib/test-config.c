#include "lib/config.h"

#include "base/own.h"
#include "test.h"

DEFINE_CLEANUP(struct config *, config_free)

static int parse(struct config **ret, const char *text, struct err *e)
{
	return config_parse(ret, text, strlen(text), e);
}

TEST(an_empty_configuration_is_all_defaults)
{
	AUTO(config_freep) struct config *c = NULL;
	struct limits lim, def;
	struct err e;

	CHECK_OK(parse(&c, "\n \n", &e));
	CHECK(!c->network.allow_host && !c->cgroup);
	limits_default(&def);
	CHECK_OK(config_limits(&lim, c, &e));
	CHECK(memcmp(&lim, &def, sizeof(lim)) == 0);
}

TEST(everything_an_operator_may_say_is_read)
{
	AUTO(config_freep) struct config *c = NULL;
	struct limits lim;
	struct err e;

	CHECK_OK(parse(&c,
		       "network:\n  allow_host: true\n"
		       "limits:\n  memory: 1g\n  timeout: 5\n"
		       "languages:\n  - name: python\n    command: /opt/py/bin/python3\n"
		       "    mounts: [/opt/data]\n"
		       "cgroup: /sys/fs/cgroup/x\ncache: /var/tmp/c\nuid_base: 500000\n", &e));
	CHECK(c->network.allow_host && c->uid_base == 500000);
	CHECK_STR(c->cgroup, "/sys/fs/cgroup/x");
	CHECK_STR(config_language(c, "python")->command, "/opt/py/bin/python3");
	CHECK_STR(config_language(c, "python")->mounts[0], "/opt/data");
	CHECK(!config_language(c, "ruby"));
	CHECK_OK(config_limits(&lim, c, &e));
	CHECK(lim.memory_bytes == 1u << 30 && lim.wall_ms == 5000);
}

TEST(mistakes_in_a_configuration_are_told_with_their_place)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "netwrok:\n  allow_host: true\n", "netwrok" },
		{ "network:\n  allow_hosts: true\n", "line: 2" },
		{ "limits:\n  memory: lots\n", "'lots' is not a size" },
		{ "limits: [1, 2]\n", "line" },
		{ "languages:\n  - name: python\n    command: bin/python\n", "absolute path" },
		{ "network: {", "" },
		{ "- a\n- b\n", "" },
		{ "a: &x b\nc: *x\n", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(config_freep) struct config *c = NULL;
		struct err e;
		CHECK(parse(&c, cases[i].text, &e) == -1);
		CHECK(e.code == ERR_INVALID && e.msg[0]);
		if (!strstr(e.msg, cases[i].says))
			CHECK_STR(e.msg, cases[i].says);
	}
}
