#include "runtime/samples.h"

bool sample_read(struct exception *ret, const char *language, const char *err)
{
	size_t len = strlen(err);
	auto_free char *copy = malloc(len ? len : 1); /* a sanitizer sees a read past its end */

	if (!copy)
		abort();
	memcpy(copy, err, len);
	return runtime_find(language)->read_error(ret, copy, len);
}

static bool is_as_wanted(const struct sample *s, const struct exception *ex, bool found)
{
	if (!s->type || !found)
		return !s->type && !found;
	return strcmp(ex->type, s->type) == 0 &&
	       strcmp(ex->message, s->message ? s->message : "") == 0 && ex->line == s->line &&
	       ex->trace_start + ex->trace_len <= strlen(s->err) &&
	       ex->trace_len >= strlen(s->trace) &&
	       strncmp(s->err + ex->trace_start, s->trace, strlen(s->trace)) == 0;
}

bool samples_read(const char *language, const struct sample *samples, size_t count)
{
	bool ok = true;

	for (size_t i = 0; i < count; i++) {
		struct exception ex = { 0 };
		bool found = sample_read(&ex, language, samples[i].err);

		if (is_as_wanted(&samples[i], &ex, found))
			continue;
		printf("# %s: %s: '%s' '%s' line %ld, traceback at %zu\n", language,
		       samples[i].what, ex.type, ex.message, ex.line, ex.trace_start);
		ok = false;
	}
	return ok;
}
