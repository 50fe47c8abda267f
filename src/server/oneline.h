#pragma once
/*
 * oneline - how a Python program failed, without where.
 */
#include "base/buf.h"

/*
 * From its stderr: "Type: message" of the last exception, all lines of its message, and a line's
 * end.  The type without its module, and with its colon even when there is no message.  False:
 * there is no traceback in it.
 */
bool oneline_exception(struct buf *out, const char *text, size_t len);
