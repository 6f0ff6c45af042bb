/* SPDX-License-Identifier: Apache-2.0 */
/* Serializes runs of `assay health`, and finds helpers that hang in the kernel.
 * docs/explanation/design/health.md, "Locks and stuck helpers". */
#ifndef CMD_HEALTH_LOCK_H
#define CMD_HEALTH_LOCK_H
#include <signal.h>
#include <sys/types.h>
#include "core/clock.h"
#include "core/error.h"

enum { HEALTH_LOCK_MS = 5000, HEALTH_STUCK_MS = 1000 };

/* Locks a folder, and waits for another run at most HEALTH_LOCK_MS. Close *fd to unlock. UNAVAILABLE with
 * cause BUSY: another run has the lock. Other errors: the folder cannot be opened or locked. */
enum status health_lock(int *fd, const char *folder, const volatile sig_atomic_t *stop, struct error *err);
/* Returns the process id of a facts helper that stays in state D for HEALTH_STUCK_MS; 0: none. `proc`:
 * "/proc", or a folder of the same form. */
pid_t health_stuck_helper(const char *proc, const struct clock *clock);
#endif
