#include "base/reference.h"
#include "test.h"

TEST(references_are_completed)
{
	static const struct {
		const char *text, *full;
	} cases[] = {
		{ "python", "docker.io/library/python:latest" },
		{ "python:3.11-slim", "docker.io/library/python:3.11-slim" },
		{ "docker.io/python:3", "docker.io/library/python:3" },
		{ "docker://team/tool", "docker.io/team/tool:latest" },
		{ "docker.io/team/tool:1", "docker.io/team/tool:1" },
		{ "localhost/tool", "localhost/tool:latest" },
		{ "host:5000/a/b", "host:5000/a/b:latest" },
		{ "host.example/a@sha256:00", "host.example/a@sha256:00" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char full[REFERENCE_MAX + 1];
		struct err e;

		CHECK(reference_full(full, cases[i].text, &e) == 0);
		CHECK_STR(full, cases[i].full);
	}
}

TEST(what_is_no_reference_is_refused)
{
	static const char *const texts[] = { "",   "-x", "a b",           "a\nb",  "a;b",
					     "/a", ":1", "host.example/", "a$(x)", "Python" };
	char full[REFERENCE_MAX + 1], longest[400];
	struct err e;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (reference_full(full, texts[i], &e) == 0)
			printf("# '%s' became '%s'\n", texts[i], full);
		CHECK(reference_full(full, texts[i], &e) < 0 && e.code == ERR_INVALID);
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK(reference_full(full, longest, &e) < 0);
}

TEST(two_names_of_one_image)
{
	CHECK(reference_same("python", "docker.io/library/python:latest"));
	CHECK(!reference_same("python", "python:3"));
	CHECK(!reference_same("", ""));
}
