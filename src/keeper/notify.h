#pragma once
/*
 * notify - what systemd is told: ready, reloading, stopping, alive.
 *
 * Its protocol is a datagram of lines to a socket named in the environment.  Without that
 * variable nobody is told anything, and all of it does nothing.
 */
#include <stdint.h>

/* Remember whom to tell, and take it out of the environment of our children. */
void notify_init(void);
void notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t notify_watchdog_us(void); /* how often it wants to hear of us; 0: never */
