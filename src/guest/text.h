#pragma once
/*
 * text - an interpreter's own code, in huge pages.
 *
 * Code is mapped from its file, page by page, and a fork does not take that along: each guest
 * faults it in again, a few pages at a time, and lets go of a thousand of them at its end.  And
 * whoever wakes after a pause finds no translation of an address in the processor any more, so
 * that each page it comes through costs a walk.  A copy in huge pages goes along with the fork,
 * and is a handful of translations.
 */

/* In the zygote, when it has loaded all that it will.  What cannot be had so stays as it is. */
void text_gather(void);
