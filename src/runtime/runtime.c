#include "runtime/runtime.h"

#include "base/nearest.h"
#include "base/odd.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

extern const struct runtime runtime_bash, runtime_c, runtime_cpp, runtime_go, runtime_javascript,
	runtime_python, runtime_ruby, runtime_sh;

const struct runtime *const runtimes[] = {
	&runtime_bash,   &runtime_c,    &runtime_cpp, &runtime_go, &runtime_javascript,
	&runtime_python, &runtime_ruby, &runtime_sh,  NULL,
};

/* ---- by name --------------------------------------------------------------------------- */

static bool has_name(const struct runtime *rt, const char *name, size_t len)
{
	if (strlen(rt->name) == len && strncasecmp(rt->name, name, len) == 0)
		return true;
	for (const char *const *alias = rt->aliases; *alias; alias++)
		if (strlen(*alias) == len && strncasecmp(*alias, name, len) == 0)
			return true;
	return false;
}

static const struct runtime *find(const char *name, size_t len)
{
	for (size_t i = 0; runtimes[i]; i++)
		if (has_name(runtimes[i], name, len))
			return runtimes[i];
	return NULL;
}

const struct runtime *runtime_find(const char *name)
{
	static const char blanks[] = " \t\r\n\v\f";

	name += strspn(name, blanks);
	size_t len = strlen(name);
	while (len && strchr(blanks, name[len - 1]))
		len--;
	return find(name, len);
}

enum { NAMES_MAX = 64 };

static const char *listed(const void *list, size_t i)
{
	return ((const char *const *)list)[i];
}

const char *runtime_nearest(const char *name)
{
	const char *names[NAMES_MAX];
	size_t count = 0;

	for (size_t i = 0; runtimes[i] && count < NAMES_MAX; i++) {
		names[count++] = runtimes[i]->name;
		for (const char *const *alias = runtimes[i]->aliases; *alias && count < NAMES_MAX;
		     alias++)
			names[count++] = *alias;
	}
	return nearest_name(name, listed, names, count);
}

int runtime_unknown(const char *name, struct err *e)
{
	char hint[NEAREST_ROOM];

	return err_set(e, ERR_INVALID, "unknown language '%.40s'%s", name,
		       nearest_hint(hint, runtime_nearest(name), " (see 'vial languages')"));
}

/* ---- by file --------------------------------------------------------------------------- */

static bool has_extension(const struct runtime *rt, const char *extension)
{
	if (strcasecmp(rt->extension, extension) == 0)
		return true;
	for (const char *const *more = rt->more_extensions; more && *more; more++)
		if (strcasecmp(*more, extension) == 0)
			return true;
	return false;
}

/* The last one of "archive.tar.gz"; a name like ".profile" has none. */
static const char *extension_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	return dot && dot != name ? dot : "";
}

/* The next word of a #! line; words end at blanks, the line at its newline. */
static size_t next_word(const char **word)
{
	*word += strspn(*word, " \t");
	return strcspn(*word, " \t\r\n");
}

/* "/usr/bin/python3.11" is Python, and so is "env -S VAR=x python3 -u". */
static const struct runtime *by_interpreter(const char *line)
{
	size_t len = next_word(&line);
	bool is_env = len >= 4 && strncmp(line + len - 4, "/env", 4) == 0;

	while (is_env) {
		line += len;
		len = next_word(&line);
		if (len > 2 && strncmp(line, "-S", 2) == 0) { /* "-Spython3" */
			line += 2;
			len -= 2;
		}
		is_env = len && (line[0] == '-' || memchr(line, '=', len));
	}
	for (size_t i = len; i > 0; i--) {
		if (line[i - 1] != '/')
			continue;
		line += i;
		len -= i;
		break;
	}
	const struct runtime *rt = find(line, len);
	while (!rt && len && (isdigit((unsigned char)line[len - 1]) || line[len - 1] == '.'))
		rt = find(line, --len);
	return rt;
}

static const struct runtime *by_first_line(const char *path)
{
	/* Not to wait for a fifo, nor to become the terminal's own. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char head[129];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	ssize_t n = read(fd, head, sizeof(head) - 1);
	if (n < 2 || strncmp(head, "#!", 2) != 0)
		return NULL;
	head[n] = '\0';
	return by_interpreter(head + 2);
}

const struct runtime *runtime_by_file(const char *path)
{
	const char *extension = extension_of(path);
	const struct runtime *first = NULL, *second = NULL;

	for (size_t i = 0; runtimes[i]; i++) {
		if (!has_extension(runtimes[i], extension))
			continue;
		if (!first)
			first = runtimes[i];
		else
			second = runtimes[i];
	}
	if (first && !second)
		return first;
	const struct runtime *named = by_first_line(path);
	return named && (!first || has_extension(named, extension)) ? named : first;
}

bool runtime_is_source(const struct runtime *rt, const char *name)
{
	size_t len = strlen(name);
	/* go build refuses to compile tests by name. */
	bool is_test = len >= 8 && strcmp(name + len - 8, "_test.go") == 0;

	return rt->compile && !strchr(name, '/') && name[0] != '.' && !is_test &&
	       has_extension(rt, extension_of(name));
}

/* ---- commands -------------------------------------------------------------------------- */

/* What interpreters need beside their heap: measured with node from 96 MiB to 1 GiB. */
static uint64_t heap_mb(uint64_t memory_mb)
{
	uint64_t rest = memory_mb / 4 > 64 ? memory_mb / 4 : 64;

	return memory_mb > rest + 16 ? memory_mb - rest : 16;
}

static const char *value_of(char variable, const struct template_vars *vars)
{
	switch (variable) {
	case 'i':
		return vars->tool;
	case 's':
		return vars->source;
	case 'o':
		return vars->output;
	case 'c':
		return vars->cache;
	case '%':
		return "%";
	default:
		return NULL;
	}
}

static int add_value(struct buf *out, char variable, const struct template_vars *vars,
		     struct err *e)
{
	const char *value = value_of(variable, vars);

	if (variable == 'm')
		buf_printf(out, "%" PRIu64, vars->memory_mb);
	else if (variable == 'h')
		buf_printf(out, "%" PRIu64, heap_mb(vars->memory_mb));
	else if (value)
		buf_printf(out, "%s%s", variable == 's' && is_odd(value) ? "./" : "", value);
	else
		return err_set(e, ERR_BUG, "template: no value for %%%c", variable ?: '?');
	return 0;
}

static int add_word(struct buf *out, const char *word, const struct template_vars *vars,
		    struct err *e)
{
	for (; *word; word++) {
		if (*word != '%') {
			buf_add_char(out, *word);
			continue;
		}
		if (add_value(out, *++word, vars, e) < 0) /* refuses the NUL as well */
			return -1;
	}
	buf_add(out, "", 1); /* its NUL */
	return 0;
}

static bool needs_memory(const char *word)
{
	return strstr(word, "%m") || strstr(word, "%h");
}

/* All words one behind the other, each with its NUL. */
static int add_words(struct buf *out, const char *const *words, const struct template_vars *vars,
		     struct err *e)
{
	for (; *words; words++) {
		bool is_files = strcmp(*words, "%f") == 0;

		if (needs_memory(*words) && !vars->memory_mb)
			continue;
		if (add_word(out, is_files ? "%s" : *words, vars, e) < 0)
			return -1;
		const char *const *more = is_files ? vars->more_sources : NULL;
		for (; more && *more; more++)
			if (add_word(out, "%s", &(struct template_vars){ .source = *more }, e) < 0)
				return -1;
	}
	return out->dropped ? err_set(e, ERR_LIMIT, "command is too long") : 0;
}

int runtime_expand(char ***ret, const char *const *words, const struct template_vars *vars,
		   struct err *e)
{
	auto_buf struct buf text = BUF_INIT(1u << 20);
	size_t count = 0;

	if (add_words(&text, words, vars, e) < 0)
		return -1;
	for (size_t i = 0; i < text.len; i++)
		count += text.data[i] == '\0';

	char **argv = malloc((count + 1) * sizeof(*argv) + text.len);
	if (!argv)
		return err_sys(e, "command");
	char *to = (char *)(argv + count + 1);
	if (text.len)
		memcpy(to, text.data, text.len);
	for (size_t i = 0; i < count; i++) {
		argv[i] = to;
		to += strlen(to) + 1;
	}
	argv[count] = NULL;
	*ret = argv;
	return 0;
}
