/* SPDX-License-Identifier: Apache-2.0 */
/* Wait for GPU memory after a worker was ended: docs/explanation/methods/measuring.md, "Sharing the machine
 * with other users". */
#ifndef RUN_SUPERVISOR_MEMORY_RELEASE_WAIT_H
#define RUN_SUPERVISOR_MEMORY_RELEASE_WAIT_H
#include "run/supervisor/supervisor.h"

/* After a worker on this GPU was ended by force: waits up to 5 s until as much memory is free as before the
 * run. The next case then does not find the memory in use. A helper process reads the free memory. Returns at
 * once if nothing can be read. */
void memory_release_wait(const struct run *r, unsigned gpu);
#endif
