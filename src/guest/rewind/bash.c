/*
 * bash - a builtin for the driver in Bash: `enable -f rewind.so __vial_rewind`.
 *
 *   __vial_rewind start FD UNDO FILES
 *   __vial_rewind restart                in a branch
 *   __vial_rewind begin ID               false: it has run, and is no more
 *   __vial_rewind done NAME              that variable is why not, or empty
 *   __vial_rewind trim
 *   __vial_rewind order OP ID [NAME|N]   false: this is another process now
 */
#include "guest/rewind/rewind.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As Bash declares them. */
struct word {
	char *text;
	int flags;
};
struct words {
	struct words *next;
	struct word *word;
};
struct builtin {
	const char *name;
	int (*function)(struct words *list);
	int flags;
	const char *const *about;
	const char *usage;
	char *handle;
};

enum { IS_ENABLED = 1, WORDS_MAX = 4 };

static void set_variable(const char *name, const char *text)
{
	void *(*bind)(const char *name, const char *text, int flags);
	void *found = dlsym(RTLD_DEFAULT, "bind_variable");

	memcpy(&bind, &found, sizeof(found));
	if (bind)
		(void)bind(name, text, 0);
}

/* What $$ is: whoever sends a signal there means the process that runs the step. */
static void be_oneself(void)
{
	pid_t *pid = dlsym(RTLD_DEFAULT, "dollar_dollar_pid");

	if (pid)
		*pid = getpid();
}

static unsigned long long number(const char *text)
{
	return strtoull(text, NULL, 10);
}

static int order(const char *op, unsigned long long id, const char *what)
{
	unsigned count = strcmp(op, "undo") == 0 ? (unsigned)number(what) : 1;

	return vial_rewind_order(op, id, what, count, NULL);
}

static int obey(const char *const word[WORDS_MAX])
{
	if (strcmp(word[0], "start") == 0)
		vial_rewind_start((int)number(word[1]), (unsigned)number(word[2]), number(word[3]));
	else if (strcmp(word[0], "restart") == 0)
		vial_rewind_restart();
	else if (strcmp(word[0], "begin") == 0)
		return vial_rewind_begin(number(word[1]), NULL);
	else if (strcmp(word[0], "trim") == 0)
		vial_rewind_trim();
	else if (strcmp(word[0], "order") == 0)
		return order(word[1], number(word[2]), word[3]);
	else if (strcmp(word[0], "done") == 0) {
		const char *why = vial_rewind_done();
		set_variable(word[1], why ? why : "");
	}
	return 0;
}

static int run(struct words *list)
{
	const char *word[WORDS_MAX] = { "", "", "", "" };

	for (size_t i = 0; list && i < WORDS_MAX; i++, list = list->next)
		word[i] = list->word->text;
	int answer = obey(word); /* it may come back from there in a copy */
	be_oneself();
	return answer;
}

static const char *const about[] = { "Takes steps of a session back.", NULL };

extern struct builtin __vial_rewind_struct;
__attribute__((visibility("default"))) struct builtin __vial_rewind_struct = {
	"__vial_rewind", run, IS_ENABLED, about, "__vial_rewind WORD...", NULL
};
