#pragma once
/*
 * reference - what people call an image: "python", "python:3.11-slim",
 * "registry.example.org:5000/team/tool@sha256:...".
 */
#include "base/err.h"

#include <stdbool.h>

enum { REFERENCE_MAX = 255 };

/* In full, "docker.io/library/python:latest", so that two can be compared. */
int reference_full(char ret[REFERENCE_MAX + 1], const char *text, struct err *e) MUST_USE;

/* Whether both are one image's; what is no reference is nobody's. */
bool reference_same(const char *a, const char *b);
