/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PROCESS_CPU_CLEAR_H
#define CORE_PROCESS_CPU_CLEAR_H
#include <stddef.h>

/* Clears the memory, with all usable CPUs if it is large. So new pages are there before somebody pins them.
 * They lie on the NUMA node of the calling thread, unless the process has a memory policy or the node is
 * full. Without threads, the caller clears alone. */
void cpu_clear(void *memory, size_t size);
#endif
