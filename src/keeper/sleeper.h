#pragma once
/*
 * sleeper - a guest without a warm interpreter: waits for its code, then becomes it.
 */
#include "keeper/stem.h"

/* In the sandbox, everything given up, records of guest/go.h on BOX_CONTROL_FD. */
_Noreturn void sleeper_main(const struct stem_plan *plan, const struct limits *lim);

/* An interpreter that waits by itself: become it at once; why that failed goes to `status`. */
_Noreturn void sleeper_park(const struct stem_plan *plan, const struct limits *lim, int status);
