#pragma once
/*
 * result_json - the object of docs/RESULT.md, the same wherever it is shown.
 */
#include "base/json.h"
#include "vial/vial.h"

/* `saved` as in vial_result_json(): NULL writes what the exports hold. */
void result_json(struct json *j, const char *key, const struct vial_result *result,
		 const struct vial_saved *saved);
