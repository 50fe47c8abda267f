#include "server/route.h"
#include "test.h"

static const struct route table[] = {
	{ "GET", "/a", NULL, 0, "" },
	{ "POST", "/a", NULL, 1, "" },
	{ "DELETE", "/a/{id}", NULL, 0, "" },
	{ "POST", "/a/{id}/b", NULL, 0, "" },
	{ "PUT", "/a/{id}/b/{part}", NULL, 0, "" },
	{ "PUT", "/a/{id}/rest/{path...}", NULL, 0, "" },
	{ 0 },
};

static const struct route *find(struct route_match *m, const char *method, const char *path)
{
	route_find(m, table, method, path);
	return m->route;
}

TEST(a_route_is_found_by_method_and_path)
{
	struct route_match m;

	CHECK(find(&m, "GET", "/a") == &table[0]);
	CHECK(find(&m, "HEAD", "/a") == &table[0]);
	CHECK(find(&m, "POST", "/a") == &table[1]);
	CHECK(find(&m, "DELETE", "/a/17") == &table[2]);
	CHECK_STR(m.ids[0], "17");
}

TEST(what_was_meant_is_guessed)
{
	static const struct route ours[] = {
		{ "POST", "/v1/runs", NULL, 0, "" },
		{ "GET", "/v1/sessions/{id}", NULL, 0, "" },
		{ "POST", "/v1/sessions/{id}/runs", NULL, 0, "" },
		{ "PUT", "/v1/sessions/{id}/files/{path...}", NULL, 0, "" },
		{ "POST", "/execute", NULL, 0, "" },
		{ 0 },
	};
	static const struct {
		const char *path, *meant;
	} cases[] = {
		{ "/v1/run", "/v1/runs" },
		{ "/runs", "/v1/runs" },
		{ "/v1/runs/", "/v1/runs" },
		{ "/v1/session/17", "/v1/sessions/{id}" },
		{ "/v1/sessions/17/run", "/v1/sessions/{id}/runs" },
		{ "/v1/execute", "/execute" },
		{ "/excute", "/execute" },
		{ "/v1/session/17/run", NULL },
		{ "/v1/sessions//run", NULL },
		{ "/favicon.ico", NULL },
		{ "/", NULL },
		{ "", NULL },
		{ "*", NULL },
	};
	char path[300] = "/v1/";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *guess = route_nearest(ours, cases[i].path);
		CHECK_STR(guess ? guess : "", cases[i].meant ? cases[i].meant : "");
	}
	memset(path + 4, 'r', sizeof(path) - 5);
	CHECK(!route_nearest(ours, path));
}

TEST(a_segment_is_one_segment)
{
	struct route_match m;
	char path[200] = "/a/";

	CHECK(!find(&m, "DELETE", "/a/"));
	CHECK(!find(&m, "DELETE", "/a/1/2"));
	CHECK(!find(&m, "DELETE", "/a"));
	memset(path + 3, '1', ROUTE_ID_MAX);
	CHECK(!find(&m, "DELETE", path));
	path[3 + ROUTE_ID_MAX - 1] = '\0';
	CHECK(find(&m, "DELETE", path));
}

TEST(a_path_may_have_two_of_them)
{
	struct route_match m;

	CHECK(find(&m, "POST", "/a/x/b") == &table[3]);
	CHECK_STR(m.ids[0], "x");
	CHECK(find(&m, "PUT", "/a/x1/b/y22") == &table[4]);
	CHECK_STR(m.ids[0], "x1");
	CHECK_STR(m.ids[1], "y22");
	CHECK(!find(&m, "PUT", "/a/x/b/"));
	CHECK(!find(&m, "PUT", "/a//b/y"));
	CHECK(!find(&m, "PUT", "/a/x/b/y/"));
	CHECK(!find(&m, "PUT", "/a/x/c/y"));
	CHECK(!find(&m, "POST", "/a/x/bb"));
	CHECK(!find(&m, "GET", "/a/x/b"));
	CHECK_STR(m.allow, "POST");
}

TEST(a_path_without_that_method_says_which_it_has)
{
	struct route_match m;

	CHECK(!find(&m, "PUT", "/a"));
	CHECK_STR(m.allow, "GET, POST");
	CHECK(!find(&m, "GET", "/b"));
	CHECK_STR(m.allow, "");
	CHECK(!find(&m, "", ""));
}

TEST(the_rest_of_a_path_may_have_slashes)
{
	struct route_match m;

	CHECK(find(&m, "PUT", "/a/x/rest/one") == &table[5]);
	CHECK_STR(m.ids[0], "x");
	CHECK_STR(m.rest, "one");
	CHECK(find(&m, "PUT", "/a/x/rest/one/two//three/") == &table[5]);
	CHECK_STR(m.rest, "one/two//three/");
	CHECK(!find(&m, "PUT", "/a/x/rest/"));
	CHECK(!find(&m, "PUT", "/a/x/rest"));
	CHECK(!find(&m, "GET", "/a/x/rest/one"));
	CHECK_STR(m.allow, "PUT");
}
