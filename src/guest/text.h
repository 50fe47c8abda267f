#pragma once
/*
 * text - an interpreter's own code, in as few pieces as can be.
 *
 * A library is mapped in five pieces, and an interpreter with pandas has a thousand of them: each
 * is copied at a fork and taken down at an end.  Three of five can be had for nothing.
 *
 * Code is mapped from its file, page by page, and a fork does not take that along: each guest
 * faults it in again, a few pages at a time, and lets go of a thousand of them at its end.  And
 * whoever wakes after a pause finds no translation of an address in the processor any more, so
 * that each page it comes through costs a walk.  A copy in huge pages goes along with the fork,
 * and is a handful of translations.
 */

/* In the zygote, when it has loaded all that it will.  What cannot be had so stays as it is. */
void text_gather(void);
