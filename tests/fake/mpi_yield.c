/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_yield for ranks on fewer cores than ranks: it sleeps for 50 us. Open MPI's ranks yield in a loop while
 * they wait. With other work on the machine, the kernel takes such a rank for a busy one: it gets less of the
 * cores for its own work, and tests of ranks took three times as long.
 */
#include <sched.h>
#include <time.h>

int sched_yield(void)
{
	const struct timespec pause = {.tv_nsec = 50000};

	nanosleep(&pause, NULL);
	return 0;
}
