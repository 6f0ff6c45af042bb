/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's kernels that earlier runs of this user found to be faster, in the cache (core/file/user_cache.h).
 */
#ifndef CMD_SHARED_SAVED_KERNELS_H
#define CMD_SHARED_SAVED_KERNELS_H
#include "core/log.h"
#include "core/file/user_cache.h"
#include "model/cpu/openblas_kernels.h"

/* As cpu_kernels_settle, with the cache for a memory unless `cache` is false: by CPU, usable CPUs, the
 * library's file, its choice, and the build of this program. What cannot be believed in it is warned of. id:
 * the key's, where a choice came from there; else "". */
void saved_kernels_settle(struct cpu_kernels *out, char id[USER_CACHE_ID], const char *kept, bool cache,
			  const struct log *log, const volatile sig_atomic_t *stop);
#endif
