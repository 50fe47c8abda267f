#include "base/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int program_find(char ret[PATH_MAX], const char *name, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

	if (n > 0) {
		ret[n] = '\0';
		char *last = strrchr(ret, '/') + 1;
		size_t room = (size_t)(ret + PATH_MAX - last);
		if ((size_t)snprintf(last, room, "%s", name) < room && access(ret, X_OK) == 0)
			return 0;
	}
	(void)snprintf(ret, PATH_MAX, "%s/%s", VIAL_LIBEXECDIR, name);
	if (access(ret, X_OK) < 0)
		return err_sys(e, "%s", ret);
	return 0;
}
