#pragma once
/*
 * root - a root directory that the kernel takes for one.
 */
#include "base/err.h"

/*
 * In a chroot nobody is given a user namespace, not even root.  Root can have the same directory as
 * the root of a mount namespace of its own, and the program starts again there; elsewhere this does
 * nothing.  After a failure paths may lead anywhere: go no further.
 */
int root_settle(char **argv, struct err *e) MUST_USE;
