#pragma once
/*
 * schema - our YAML files: read by a schema, unknown keys are errors, and what is wrong
 * is told with its line.
 */
#include "base/buf.h"
#include "base/err.h"

#include <cyaml/cyaml.h>

/* Called for each key and each entry of a list, by path: "limits.memory", "languages.0.name". */
typedef void schema_seen(const char *path, unsigned line, void *arg);

/* Refuse unknown keys and such that are given twice; `seen` may be NULL. */
int schema_walk(const cyaml_schema_value_t *schema, const char *text, size_t len, schema_seen *seen,
		void *arg, struct err *e) MUST_USE;

/* `schema` is a pointer to a mapping; `*ret` is freed by schema_free(). */
int schema_load(void **ret, const cyaml_schema_value_t *schema, const char *text, size_t len,
		struct err *e) MUST_USE;
/* The same for a file of another program's, which may have more keys than we know. */
int schema_load_known(void **ret, const cyaml_schema_value_t *schema, const char *text, size_t len,
		      struct err *e) MUST_USE;
int schema_save(struct buf *out, const cyaml_schema_value_t *schema, const void *data,
		struct err *e) MUST_USE;
void schema_free(const cyaml_schema_value_t *schema, void *data); /* NULL is fine */

extern const cyaml_schema_field_t quotas_fields[]; /* of struct quotas_text: lib/quotas.h */
