#include "engine/limits.h"

#include "test.h"

TEST(limits_refuse_what_is_out_of_range)
{
	static const struct {
		const char *name, *value, *says;
	} cases[] = {
		{ "timeout", "0", "timeout must be between 1 ms and 86400 s" },
		{ "processes", "0", "processes must be between 1 and 32768" },
		{ "memory", "1k", "memory must be between 8 MiB and 1 TiB" },
		{ "memory", "lots", "memory: 'lots' is not a size (512m, 128Mi, 2g)" },
		{ "colour", "1", "unknown limit 'colour'" },
		{ "memry", "1", "unknown limit 'memry'; did you mean 'memory'?" },
	};
	struct limits lim;
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		limits_default(&lim);
		CHECK(limits_set(&lim, cases[i].name, cases[i].value, &e) == -1);
		CHECK(e.code == ERR_INVALID);
		CHECK_STR(e.msg, cases[i].says);
	}
}

TEST(limits_are_set_in_the_units_people_write)
{
	struct limits lim;
	struct err e;

	limits_default(&lim);
	CHECK_OK(limits_set(&lim, "memory", "128Mi", &e));
	CHECK(lim.memory_bytes == 128u << 20);
	CHECK_OK(limits_set(&lim, "cpus", "500m", &e));
	CHECK(lim.cpu_millicores == 500);
	CHECK_OK(limits_set(&lim, "timeout", "0.05", &e));
	CHECK(lim.wall_ms == 50);
}

TEST(every_default_is_within_its_own_range)
{
	for (size_t i = 0; i < limit_count; i++)
		CHECK(limit_rows[i].def >= limit_rows[i].min &&
		      limit_rows[i].def <= limit_rows[i].max);
}
