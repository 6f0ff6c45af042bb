/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of the CPU kernels that this user's earlier runs found to be fastest (core/file/user_cache.h). */
#ifndef CMD_SHARED_SAVED_KERNELS_H
#define CMD_SHARED_SAVED_KERNELS_H
#include "core/log.h"
#include "core/file/user_cache.h"
#include "model/cpu/openblas_kernels.h"

/* Like cpu_kernels_settle, but uses the cache if `cache` is true. The key consists of CPU, usable CPUs,
 * the library's file, its own choice, and this program's build. A damaged or untrusted entry is logged.
 * id: the key's id if the choice came from the cache, otherwise "". */
void saved_kernels_settle(struct cpu_kernels *out, char id[USER_CACHE_ID], const char *kept, bool cache,
			  const struct log *log, const volatile sig_atomic_t *stop);
#endif
