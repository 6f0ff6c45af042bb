/* SPDX-License-Identifier: Apache-2.0 */
/* How busy others keep the CPUs that we may use, over a short window: the load average still counts our own
 * last run minutes after it ended. */
#ifndef MACHINE_CPU_USE_H
#define MACHINE_CPU_USE_H
#include <jansson.h>
#include <sched.h>
#include <stdbool.h>

/* Ticks of the CPUs `usable` (by number, `count` of them) in the text of /proc/stat: of work, and in all.
 * Time that a hypervisor gave to other machines is no work of this one. False: no such CPU stands there. */
bool cpu_use_ticks(const char *stat, const bool *usable, unsigned count, double *busy, double *total);
/* As sched_getaffinity. */
typedef int cpu_use_affinity(pid_t pid, size_t size, cpu_set_t *set);
/* The CPUs that we may use, by number, however many the machine has. Returns the length of the table; 0: not
 * known, and *usable is NULL. Owner: caller, free. */
unsigned cpu_use_usable(bool **usable, cpu_use_affinity *affinity);
/* utime + stime in the text of /proc/PID/stat, and its parent; false: it is none. */
bool cpu_use_process(const char *stat, double *ticks, long *parent);
/* Watches for 0.3 s: {"window_s", "busy_share", "own_share"}, shares of the CPUs we may use; own: this
 * process and those of the same program with the same parent, as a launcher starts ranks. {}: we
 * watched, and they could not be read. NULL: no memory. Owner: caller. */
json_t *cpu_use_watch(void);
#endif
