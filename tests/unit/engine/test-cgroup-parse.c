/*
 * The kernel's texts about control groups, as other hosts have them.
 */
#include "engine/cgroup_impl.h"
#include "test.h"

TEST(cgroup_mounts_are_told_from_others)
{
	char text[] =
		"24 30 0:22 / /proc rw,nosuid shared:12 - proc proc rw\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:17 - cgroup cgroup rw,memory\n"
		"36 31 0:33 /docker/4f0c /sys/fs/cgroup/cpu,cpuacct ro master:3 propagate_from:2"
		" - cgroup cgroup rw,cpu,cpuacct\n"
		"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
		"41 31 0:38 /a\\040b /mnt/with\\040blank\\134 rw - cgroup2 - rw,nsdelegate\n"
		"42 31 0:39 / /mnt/cgroup rw - tmpfs cgroup rw,memory\n";
	struct cgroup_mount m[8];

	CHECK(cgroup_parse_mounts(m, 8, text) == 4);
	CHECK(!m[0].is_v2 && m[0].controllers == CGROUP_MEMORY);
	CHECK_STR(m[0].root, "/");
	CHECK_STR(m[0].point, "/sys/fs/cgroup/memory");
	CHECK(m[1].controllers == (CGROUP_CPU | CGROUP_CPUACCT));
	CHECK_STR(m[1].root, "/docker/4f0c");
	CHECK(!m[2].is_v2 && m[2].controllers == 0);
	CHECK(m[3].is_v2 && m[3].controllers == 0);
	CHECK_STR(m[3].root, "/a b");
	CHECK_STR(m[3].point, "/mnt/with blank\\");
}

TEST(malformed_lines_are_no_cgroup_mounts)
{
	static const char *const lines[] = {
		"",
		"\n\n",
		"cgroup",
		"1 2 3 4 5",
		"1 2 3 / /p",
		"1 2 3 / /p -",
		"1 2 3 / /p rw - ",
		"1 2 3 / /p rw - cgroup",
		"1 2 3 / /p rw - cgroup x",
		"1 2 3 / /p rw cgroup cgroup rw,memory",
		"1 2 3 / /p rw - cgroup3 x rw,memory",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct cgroup_mount m[2];
		char text[64];

		(void)snprintf(text, sizeof(text), "%s", lines[i]);
		CHECK(cgroup_parse_mounts(m, 2, text) == 0);
	}
}

TEST(no_more_cgroup_mounts_are_read_than_there_is_room_for)
{
	char text[] = "1 2 3 / /a rw - cgroup2 x rw\n"
		      "1 2 3 / /b rw - cgroup2 x rw\n"
		      "1 2 3 / /c rw - cgroup2 x rw\n";
	struct cgroup_mount m[3] = { 0 };

	CHECK(cgroup_parse_mounts(m, 2, text) == 2);
	CHECK_STR(m[1].point, "/b");
	CHECK(!m[2].point);
}

TEST(our_own_cgroup_is_found_per_hierarchy)
{
	static const char text[] = "9:name=systemd:/init.scope\n"
				   "5:cpu,cpuacct:/user.slice\n"
				   "4:memory:/odd:name/with colon\n"
				   "3:pids:/gone (deleted)\n"
				   "0::/user.slice/session-1.scope\n";
	char path[64];

	CHECK(cgroup_parse_own(path, sizeof(path), text, CGROUP_MEMORY));
	CHECK_STR(path, "/odd:name/with colon");
	CHECK(cgroup_parse_own(path, sizeof(path), text, CGROUP_CPUACCT));
	CHECK_STR(path, "/user.slice");
	CHECK(cgroup_parse_own(path, sizeof(path), text, CGROUP_CPU | CGROUP_CPUACCT));
	CHECK(cgroup_parse_own(path, sizeof(path), text, 0));
	CHECK_STR(path, "/user.slice/session-1.scope");
	CHECK(!cgroup_parse_own(path, sizeof(path), text, CGROUP_PIDS));
	CHECK(!cgroup_parse_own(path, 12, text, 0));
}

TEST(a_cgroup_out_of_sight_is_not_ours_to_use)
{
	static const char *const texts[] = {
		"",
		"0",
		"0:",
		"0::",
		"0::relative\n",
		"0::/../outside\n",
		"0::/..\n",
		"1:memory:/x\n",
		":::",
	};
	char path[64];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) - 1; i++)
		CHECK(!cgroup_parse_own(path, sizeof(path), texts[i], 0));
}

TEST(a_cgroup_is_located_through_its_mount)
{
	static const struct {
		const char *root, *point, *path, *want;
	} cases[] = {
		{ "/", "/sys/fs/cgroup", "/", "/sys/fs/cgroup" },
		{ "/", "/sys/fs/cgroup", "/a/b", "/sys/fs/cgroup/a/b" },
		{ "/docker/1", "/sys/fs/cgroup/memory", "/docker/1", "/sys/fs/cgroup/memory" },
		{ "/docker/1", "/sys/fs/cgroup/memory", "/docker/1/x", "/sys/fs/cgroup/memory/x" },
		{ "/docker/1", "/sys/fs/cgroup/memory", "/docker/12", NULL },
		{ "/docker/1", "/sys/fs/cgroup/memory", "/", NULL },
	};
	char path[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cgroup_mount m = { .root = cases[i].root, .point = cases[i].point };
		bool found = cgroup_locate(path, sizeof(path), &m, cases[i].path);

		CHECK(found == (cases[i].want != NULL));
		if (found)
			CHECK_STR(path, cases[i].want);
	}
	CHECK(!cgroup_locate(path, 8, &(struct cgroup_mount){ .root = "/", .point = "/sys" },
			     "/long"));
}

TEST(a_cgroup_name_tells_its_lease)
{
	unsigned lease = 7;

	CHECK(cgroup_parse_name(&lease, "vial-0") && lease == 0);
	CHECK(cgroup_parse_name(&lease, "vial-4095-compile") && lease == 4095);
	CHECK(cgroup_parse_name(&lease, "vial-12c") && lease == 12);
	CHECK(!cgroup_parse_name(&lease, "vial-"));
	CHECK(!cgroup_parse_name(&lease, "vial--1"));
	CHECK(!cgroup_parse_name(&lease, "vial- 1"));
	CHECK(!cgroup_parse_name(&lease, "vial-007"));
	CHECK(!cgroup_parse_name(&lease, "vial-x"));
	CHECK(!cgroup_parse_name(&lease, "vialx-1"));
	CHECK(!cgroup_parse_name(&lease, "vial-4294967296"));
	CHECK(!cgroup_parse_name(&lease, "vial-99999999999999999999999"));
	CHECK(lease == 12);
}

TEST(cgroup_words_and_keys_are_whole_ones)
{
	static const char events[] = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill x\n";
	uint64_t n = 0;

	CHECK(cgroup_has_word("cpuset cpu io memory\n", "cpu"));
	CHECK(cgroup_has_word("cpuset cpu io memory\n", "memory"));
	CHECK(!cgroup_has_word("cpuset io memory\n", "cpu"));
	CHECK(!cgroup_has_word("", "cpu"));
	CHECK(cgroup_parse_key(&n, events, "oom_kill") && n == 1);
	CHECK(cgroup_parse_key(&n, events, "max") && n == 12);
	CHECK(!cgroup_parse_key(&n, events, "oom_group_kill"));
	CHECK(!cgroup_parse_key(&n, events, "kill"));
	CHECK(!cgroup_parse_key(&n, "max", "max"));
}
