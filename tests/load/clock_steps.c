/* SPDX-License-Identifier: Apache-2.0 */
/* A library to be loaded before others (LD_PRELOAD): the wall clock jumps by hours, back and forth, each time
 * it is read. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { JUMP_S = 7200 };

static long jump(void)
{
	static _Thread_local unsigned calls;

	return ++calls % 2 ? JUMP_S : -JUMP_S;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	const long failed = syscall(SYS_clock_gettime, clock, t);

	if (!failed && clock == CLOCK_REALTIME)
		t->tv_sec += jump();
	return (int)failed;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
