/* SPDX-License-Identifier: Apache-2.0 */
/* How a run behaves on a machine that others use too: METHODS, "Manners". */
#ifndef RUN_MANNERS_H
#define RUN_MANNERS_H
#include "run/supervisor/supervisor.h"

/* After a worker of ours was ended by force on this GPU: waits until its memory is back (as free as before
 * the run, up to 5 s), so that the next case does not meet its remains. Asks through a facts helper; at once
 * where nothing can be read. */
void manners_memory_back(const struct run *r, unsigned gpu);
#endif
