#pragma once
/*
 * fault - make the nth system call of a process tree fail (test builds only).
 *
 * Calls written SYS(...) are counted across all processes, in a page they share.
 */
#include <stdbool.h>

/* Let call number `nth` fail with `error`, counting from 1; 0 only counts. */
void fault_arm(unsigned nth, int error);
unsigned fault_count(void);        /* calls seen since it was armed */
const char *fault_hit(void);       /* name of the call that failed; "" if none did */
