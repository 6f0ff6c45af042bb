/* SPDX-License-Identifier: Apache-2.0 */
/* How long a thread waited for a CPU. */
#ifndef CORE_PROCESS_CPU_WAIT_H
#define CORE_PROCESS_CPU_WAIT_H
#include <stdint.h>
#include <sys/types.h>

/* Time in which this thread of the process could run and no CPU was free, since it began, in ns. tid 0: the
 * calling thread. 0 if the kernel does not tell. */
uint64_t cpu_wait_ns(pid_t tid);
/* The longest wait of one thread, in ns. `before`, `now`: cpu_wait_ns of each thread at two times. The sum
 * over the threads cannot be compared with the time on a clock, because threads wait at the same time. */
uint64_t cpu_wait_longest_ns(const uint64_t *before, const uint64_t *now, unsigned threads);
#endif
