#include "lib/environment.h"

#include "lib/host.h"
#include "test.h"

DEFINE_CLEANUP(struct vial *, vial_close)

TEST(installed_languages_are_environments)
{
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(environments_done) struct environments list = { 0 };
	struct err e;

	CHECK_OK(vial_open(&host, NULL, (struct vial_error *)&e));
	CHECK_OK(environments_load(&list, host, &e));
	CHECK(list.count > 0);

	const struct environment *sh = environments_find(&list, "sh");

	CHECK(sh && sh->tool.tool && !sh->path && !sh->preload);
	CHECK_STR(sh->name, "sh");
	CHECK(environments_find(&list, " Python3 ") == environments_find(&list, "python"));
	CHECK(!environments_find(&list, "cobol"));
}
