#pragma once
/*
 * python - what a warm CPython needs from C.
 *
 * Taking a Python apart at its end writes to nearly every page of it, which in a fork
 * means copying them: milliseconds after the program's last word, for memory that the
 * kernel is about to drop.  A zygote's guests do what a program can notice of an
 * interpreter's end, and no more.  Where that cannot be said for certain (other threads, a
 * debugger), Python's own end is used.
 *
 * And the program may have another name than the zygote was started with.
 */
#include <stdbool.h>

/* In a zygote, before its boot script loads anything, and when all is loaded.  Nothing is done
 * where there is no CPython, or none that we know how to help. */
void python_loading(void);
int python_prepare(void); /* CALL_RENEWS, or 0 */

/* In a guest, before it has its program: numpy's random numbers are its own. */
void python_renew(void);

/* In a guest that is going to have a program: true if it is waited for later, see python_late.c. */
bool python_wait_late(void);

/* In a guest whose code has arrived: logging was loaded by that, if anybody asks. */
void python_set_loading_time(void);

const char *python_usual_name(void); /* of programs; NULL: not known */

/* In a guest that has its program, or its session's files: CALL_RENAMED when the program will run
 * under the name among the words, CALL_PLAIN when this interpreter is as good as a fresh one. */
int python_told(bool has_words, bool is_session, unsigned file_count);
