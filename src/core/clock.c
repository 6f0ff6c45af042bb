/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"

#include <errno.h>
#include <time.h>

static uint64_t monotonic_now(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Sleeps until an absolute deadline, so that signals do not prolong the sleep. */
static void monotonic_sleep(void *arg, uint64_t ns)
{
	uint64_t end = monotonic_now(arg) + ns;
	struct timespec ts = {.tv_sec = (time_t)(end / 1000000000u), .tv_nsec = (long)(end % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

const struct clock *clock_monotonic(void)
{
	static const struct clock monotonic = {.now_ns = monotonic_now, .sleep_ns = monotonic_sleep};

	return &monotonic;
}

void clock_wall_text(char *out, unsigned size)
{
	time_t now = time(NULL);
	struct tm tm;

	if (!size)
		return;
	out[0] = '\0';
	if (gmtime_r(&now, &tm))
		strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
