#include "engine/spec.h"

#include "test.h"

TEST(layers_are_named_by_comma_and_unknown_ones_refused)
{
	struct err e;
	unsigned set = 0;

	CHECK_OK(layers_parse(&set, "cgroup,uid", &e));
	CHECK(set == (1u << LAYER_CGROUP | 1u << LAYER_UID));
	CHECK(layers_parse(&set, "cgroup,", &e) == -1);
	CHECK(layers_parse(&set, "colour", &e) == -1);
	CHECK(strncmp(e.msg, "unknown layer 'colour'; there are: namespaces", 45) == 0);
}

TEST(no_sandbox_goes_with_capabilities)
{
	struct err e;
	unsigned set;

	CHECK(layers_parse(&set, "creds", &e) == -1);
	CHECK_STR(e.msg, "there is no sandbox without the creds layer");
}
