/*
 * schema_walk - a YAML text along its schema, before libcyaml loads it.
 *
 * libcyaml says of an unknown key only that there is one.  Here every key is met with its line:
 * unknown ones are refused with the one that was probably meant, so are keys that are given twice,
 * and whoever asks is told where each of the others stands.
 */
#include "base/nearest.h"
#include "lib/schema.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { PATH_MAX_BYTES = 256, FIELDS_MAX = 128 };

struct walk {
	yaml_parser_t parser;
	char path[PATH_MAX_BYTES]; /* "server.listen", "languages.0.name" */
	schema_seen *seen;
	void *arg;
	struct err *e;
};

static int next(struct walk *w, yaml_event_t *event)
{
	if (!yaml_parser_parse(&w->parser, event))
		return err_set(w->e, ERR_INVALID, "line %zu: %.120s",
			       w->parser.problem_mark.line + 1,
			       w->parser.problem ? w->parser.problem : "no YAML");
	if (event->type == YAML_ALIAS_EVENT) {
		size_t line = event->start_mark.line + 1;
		yaml_event_delete(event);
		return err_set(w->e, ERR_INVALID, "line %zu: aliases are not taken here", line);
	}
	return 0;
}

/* The rest of a value that began with `type`: whatever it is. */
static int skip(struct walk *w, yaml_event_type_t type)
{
	yaml_event_t event;
	size_t depth = 0;

	for (;;) {
		if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
			depth++;
		else if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
			depth--;
		if (depth == 0)
			return 0;
		if (next(w, &event) < 0)
			return -1;
		type = event.type;
		yaml_event_delete(&event);
	}
}

static const char *field_name(const void *list, size_t i)
{
	return ((const cyaml_schema_field_t *)list)[i].key;
}

static int unknown(struct walk *w, const cyaml_schema_field_t *fields, size_t count,
		   const char *key, size_t line)
{
	const char *guess = nearest_name(key, field_name, fields, count);
	char hint[NEAREST_ROOM];

	return err_set(w->e, ERR_INVALID, "line %zu: %s has no key '%.40s'%s", line,
		       w->path[0] ? w->path : "the file", key, nearest_hint(hint, guess, ""));
}

static int walk_value(struct walk *w, const cyaml_schema_value_t *schema, yaml_event_type_t type);

/* One key and its value; `had` has a flag for each field of the mapping. */
static int walk_key(struct walk *w, const cyaml_schema_field_t *fields, const yaml_event_t *key,
		    bool had[FIELDS_MAX])
{
	const char *name = (const char *)key->data.scalar.value;
	size_t line = key->start_mark.line + 1, len = strlen(w->path), count = 0, at = FIELDS_MAX;
	yaml_event_t value;

	for (; fields[count].key && count < FIELDS_MAX; count++)
		if (strcmp(fields[count].key, name) == 0)
			at = count;
	if (at == FIELDS_MAX)
		return unknown(w, fields, count, name, line);
	if (had[at])
		return err_set(w->e, ERR_INVALID, "line %zu: '%.40s' is given twice", line, name);
	had[at] = true;
	(void)snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "." : "", name);
	if (w->seen)
		w->seen(w->path, (unsigned)line, w->arg);
	if (next(w, &value) < 0)
		return -1;
	yaml_event_type_t type = value.type;
	yaml_event_delete(&value);
	if (walk_value(w, &fields[at].value, type) < 0)
		return -1;
	w->path[len] = '\0';
	return 0;
}

static int walk_mapping(struct walk *w, const cyaml_schema_field_t *fields)
{
	bool had[FIELDS_MAX] = { 0 };

	for (;;) {
		yaml_event_t key;

		if (next(w, &key) < 0)
			return -1;
		bool is_end = key.type == YAML_MAPPING_END_EVENT;
		size_t line = key.start_mark.line + 1;
		int walked = 0;

		if (!is_end && key.type == YAML_SCALAR_EVENT)
			walked = walk_key(w, fields, &key, had);
		else if (!is_end)
			walked = err_set(w->e, ERR_INVALID, "line %zu: a key is a word", line);
		yaml_event_delete(&key);
		if (is_end || walked < 0)
			return walked;
	}
}

static int walk_sequence(struct walk *w, const cyaml_schema_value_t *entry)
{
	size_t len = strlen(w->path);

	for (size_t i = 0;; i++) {
		yaml_event_t event;

		if (next(w, &event) < 0)
			return -1;
		yaml_event_type_t type = event.type;
		size_t line = event.start_mark.line + 1;
		yaml_event_delete(&event);
		if (type == YAML_SEQUENCE_END_EVENT)
			return 0;
		(void)snprintf(w->path + len, sizeof(w->path) - len, ".%zu", i);
		if (w->seen)
			w->seen(w->path, (unsigned)line, w->arg);
		if (walk_value(w, entry, type) < 0)
			return -1;
		w->path[len] = '\0';
	}
}

/* What is of another kind than it should be is libcyaml's to refuse. */
static int walk_value(struct walk *w, const cyaml_schema_value_t *schema, yaml_event_type_t type)
{
	if (schema->type == CYAML_MAPPING && type == YAML_MAPPING_START_EVENT)
		return walk_mapping(w, schema->mapping.fields);
	if (schema->type == CYAML_SEQUENCE && type == YAML_SEQUENCE_START_EVENT)
		return walk_sequence(w, schema->sequence.entry);
	return skip(w, type);
}

static int walk_document(struct walk *w, const cyaml_schema_value_t *schema)
{
	yaml_event_type_t type;

	do {
		yaml_event_t event;
		if (next(w, &event) < 0)
			return -1;
		type = event.type;
		yaml_event_delete(&event);
	} while (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT);
	return type == YAML_STREAM_END_EVENT ? 0 : walk_value(w, schema, type);
}

int schema_walk(const cyaml_schema_value_t *schema, const char *text, size_t len, schema_seen *seen,
		void *arg, struct err *e)
{
	struct walk w = { .seen = seen, .arg = arg, .e = e };

	if (!yaml_parser_initialize(&w.parser))
		return err_set(e, ERR_SYS, "no memory to read YAML");
	yaml_parser_set_input_string(&w.parser, (const unsigned char *)text, len);
	int walked = walk_document(&w, schema);
	yaml_parser_delete(&w.parser);
	return walked;
}
