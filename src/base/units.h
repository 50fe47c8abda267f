#pragma once
/*
 * units - quantities as people write them.
 *
 *   sizes      512  "512b" 10k 512m 2g 1t (powers of 1024, as Docker reads them)
 *              128Ki 128Mi 2Gi, 100M 2G with or without a final B
 *   durations  seconds as a float, "1.5", or with a unit: 500ms 2s 3m 1h 30d
 *   cores      "2", "0.5", "500m" (Kubernetes), "50%", "50000/100000" (quota/period)
 *   counts     plain integers
 *
 * Anything else, a negative, a NaN or an overflow is ERR_INVALID.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

int units_size(uint64_t *ret_bytes, const char *text, struct err *e) MUST_USE;
int units_duration(uint64_t *ret_ms, const char *text, struct err *e) MUST_USE;
int units_cores(uint64_t *ret_millicores, const char *text, struct err *e) MUST_USE;
int units_count(uint64_t *ret, const char *text, struct err *e) MUST_USE;

/* As %u would, and without all that printf() brings along: it is on the way of every answer. */
enum { UNITS_DECIMAL_MAX = 21 };
size_t units_decimal(char out[UNITS_DECIMAL_MAX], uint64_t value);

/* "512 MiB", "1.5 s": for people; returns `out`. */
const char *units_show_size(char out[32], uint64_t bytes);
const char *units_show_duration(char out[32], uint64_t ms);

/* Now, as logs have it: 2026-01-31T12:00:00.000Z */
const char *units_show_now(char out[40]);
