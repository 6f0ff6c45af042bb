/* SPDX-License-Identifier: Apache-2.0 */
/* How a run behaves on a machine that others use too: METHODS, "Manners". */
#ifndef RUN_SUPERVISOR_MEMORY_RELEASE_WAIT_H
#define RUN_SUPERVISOR_MEMORY_RELEASE_WAIT_H
#include "run/supervisor/supervisor.h"

/* After a worker of ours was ended by force on this GPU: waits until its memory is back (as free as before
 * the run, up to 5 s), so that the next case does not meet its remains. Asks through a facts helper; at once
 * where nothing can be read. */
void memory_release_wait(const struct run *r, unsigned gpu);
#endif
