/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a case's operands. Iterations rotate over them, so that no iteration finds its operands in a
 * GPU's cache. */
#ifndef PROBE_SHARED_OPERAND_SETS_H
#define PROBE_SHARED_OPERAND_SETS_H
#include "run/probe.h"

enum { OPERAND_SETS_MAX = 32 }; /* one bit per set in a 32-bit word */
/* Number of sets: three, or as many as exceed the L2 cache, limited to the memory that is usable now, at
 * least 1. */
uint64_t operand_sets_on_device(const struct gpu_device *d, uint64_t set_bytes);
/* Bytes of all sets on the target, by its facts, into *out: for a probe's `need`. On a CPU: three sets, or
 * fewer if cpu_memory_bytes is smaller. */
void operand_sets_need(const struct machine *m, const struct target *t, double set_bytes, struct need *out);
#endif
