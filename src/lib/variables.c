#include "lib/variables.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Every word that is a directory of the host is shown where the host has it. */
static int show_dirs(struct vial_job *job, const char *name, const char *words, struct err *e)
{
	auto_free char *copy = strdup(words);
	char *rest = NULL;
	struct stat st;

	if (!copy)
		return err_sys(e, "%s", name);
	for (char *word = strtok_r(copy, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest)) {
		const char *path = strncmp(word, "file://", 7) == 0 ? word + 7 : word;

		if (path[0] != '/' || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (vial_job_dir(job, path, path, 0, (struct vial_error *)e) < 0)
			return err_context(e, "%s", name);
	}
	return 0;
}

static int pass_variable(struct vial_job *job, const struct variable *var, const char *value,
			 struct err *e)
{
	struct vial_error *error = (struct vial_error *)e;
	auto_free char *name = NULL, *inside = NULL;

	switch (var->kind) {
	case VARIABLE_TEXT:
		return vial_job_env(job, var->name, value, error);
	case VARIABLE_DIRS:
		if (show_dirs(job, var->name, value, e) < 0)
			return -1;
		return vial_job_env(job, var->name, value, error);
	case VARIABLE_FILE:
		if (asprintf(&name, "variables/%s", var->name) < 0 ||
		    asprintf(&inside, "%s/%s", job->workdir, name) < 0)
			return err_sys(e, "%s", var->name);
		if (vial_job_file_from(job, name, value, error) < 0)
			return err_context(e, "%s", var->name);
		return vial_job_env(job, var->name, inside, error);
	}
	return 0;
}

int variables_pass(struct vial_job *job, const struct variable *rows, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = getenv(rows[i].name);

		if (value && *value && pass_variable(job, &rows[i], value, e) < 0)
			return -1;
	}
	return 0;
}
