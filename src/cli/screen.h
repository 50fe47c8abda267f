#pragma once
/*
 * screen - a terminal that is drawn upon, and given back as it was, whatever happens.
 *
 * Without a terminal, or on one that cannot do it, frames simply follow one another.
 */
#include "base/buf.h"

enum screen_key { SCREEN_TIMEOUT, SCREEN_QUIT, SCREEN_REDRAW };

bool screen_open(void); /* false: frames follow one another */
void screen_close(void);
void screen_draw(const char *text); /* cut to what there is room for */

/* Wait for a key or so long; SCREEN_REDRAW: another size, or asked for. */
enum screen_key screen_wait(int ms);
