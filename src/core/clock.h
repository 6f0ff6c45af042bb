/* SPDX-License-Identifier: Apache-2.0 */
/* A clock as a parameter, so that a test can replace it. All times of a run are CLOCK_MONOTONIC
 * nanoseconds. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H
#include <stdint.h>

struct clock {
	uint64_t (*now_ns)(void *arg);
	void (*sleep_ns)(void *arg, uint64_t ns);
	void *arg;
};

/* The system's clock. Static, never freed. */
const struct clock *clock_monotonic(void);
static inline uint64_t clock_now_ns(const struct clock *c)
{
	return c->now_ns(c->arg);
}
/* Seconds of the system's clock. */
static inline double clock_now_s(void)
{
	return (double)clock_now_ns(clock_monotonic()) * 1e-9;
}
static inline void clock_sleep_ns(const struct clock *c, uint64_t ns)
{
	c->sleep_ns(c->arg, ns);
}
/* Writes the wall time for display, as "2026-11-21T12:00:00Z". `size` is at least 21 bytes. */
void clock_wall_text(char *out, unsigned size);
#endif
