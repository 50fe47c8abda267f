#pragma once
/*
 * quotas - how much of the server one tenant may have.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define QUOTA_NONE UINT64_MAX /* no bound */

struct quotas {
#define QUOTA(field, key, kind, def, min, max, doc) uint64_t field;
#include "lib/quotas.def"
#undef QUOTA
};

/* As text, as a file has them; NULL: not said. */
struct quotas_text {
#define QUOTA(field, key, kind, def, min, max, doc) char *field;
#include "lib/quotas.def"
#undef QUOTA
};

struct quota_row {
	const char *key, *doc;
	size_t text_offset; /* in struct quotas_text */
};

extern const struct quota_row quota_rows[];
extern const size_t quota_count;

void quotas_default(struct quotas *q);
int quotas_set(struct quotas *q, const char *key, const char *text, struct err *e) MUST_USE;
/* What the text says takes the place of what was there. */
int quotas_apply(struct quotas *q, const struct quotas_text *text, struct err *e) MUST_USE;
/* As one program tells another: "sessions=2,cpu=50ms", those that are not the usual ones. */
void quotas_write(struct buf *to, const struct quotas *q);
int quotas_read(struct quotas *q, const char *text, struct err *e) MUST_USE;
const char *quotas_show(char out[32], const struct quotas *q, const char *key);
