#pragma once
/*
 * base64 - bytes as JSON can carry them (RFC 4648, with padding).
 */
#include "base/buf.h"

void base64_encode(struct buf *out, const void *bytes, size_t len);

/* Append the bytes; ERR_INVALID for anything but whole, canonical, padded groups of four. */
int base64_decode(struct buf *out, const char *text, size_t len, struct err *e) MUST_USE;
