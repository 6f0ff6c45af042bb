/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_yield for ranks on fewer cores than ranks: it sleeps for 200 us. Open MPI's ranks yield in a loop
 * while they wait. With other work on the machine, the kernel takes such a rank for a busy one: it gets less
 * of the cores for its own work, and tests of ranks took three times as long. With pauses of 50 us, this call
 * took an eighth of the CPU time of such a test.
 */
#include <sched.h>
#include <time.h>

int sched_yield(void)
{
	const struct timespec pause = {.tv_nsec = 200000};

	nanosleep(&pause, NULL);
	return 0;
}
