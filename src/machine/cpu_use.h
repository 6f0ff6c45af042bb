/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how busy other programs keep the CPUs that this process may use, over a short window. The load
 * average is not used, because it counts our own last run for minutes after its end. */
#ifndef MACHINE_CPU_USE_H
#define MACHINE_CPU_USE_H
#include <jansson.h>
#include <sched.h>
#include <stdbool.h>

/* Sums the ticks of the CPUs `usable` (indexed by CPU number, `count` entries) in the text of /proc/stat:
 * ticks of work, and all ticks. Time that a hypervisor gave to other machines is not work of this machine.
 * Returns false if none of these CPUs is listed. */
bool cpu_use_ticks(const char *stat, const bool *usable, unsigned count, double *busy, double *total);
/* Has the signature of sched_getaffinity. */
typedef int cpu_use_affinity(pid_t pid, size_t size, cpu_set_t *set);
/* Sets *usable to a table of the CPUs that this process may use, indexed by CPU number, for machines of any
 * size. Returns its length; 0: unknown, and *usable is NULL. The caller frees it. */
unsigned cpu_use_usable(bool **usable, cpu_use_affinity *affinity);
/* Reads utime + stime and the parent's pid from the text of /proc/PID/stat. Returns false if the text is
 * malformed. */
bool cpu_use_process(const char *stat, double *ticks, long *parent);
/* Measures for 0.3 s and returns {"window_s", "busy_share", "own_share"}: shares of the CPUs that this
 * process may use. `own` is this process, and processes of the same program with the same parent, because
 * launchers start ranks that way. {}: the ticks could not be read. The caller decrefs it. NULL: out of
 * memory. */
json_t *cpu_use_watch(void);
#endif
