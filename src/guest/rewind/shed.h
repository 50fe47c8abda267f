#pragma once
/*
 * shed - memory of the interpreter's, let go of by a process that will never run it again.
 */

/* From then on nothing may be allocated or freed. */
void shed_memory(void);
