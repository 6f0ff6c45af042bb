/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a case's operands that iterations rotate over, so that none finds its own in a GPU's cache. */
#ifndef PROBE_SHARED_OPERAND_SETS_H
#define PROBE_SHARED_OPERAND_SETS_H
#include "run/probe.h"

enum { OPERAND_SETS_MAX = 32 }; /* a bit each in a word */
/* Three, or as many as outgrow the L2 (0: not known), within `usable` bytes (0: not known); 1 at least. */
uint64_t operand_sets_wanted(uint64_t set_bytes, uint64_t l2_bytes, uint64_t usable);
/* On the device as it is now. */
uint64_t operand_sets_on_device(const struct gpu_device *d, uint64_t set_bytes);
/* Bytes that the sets take on the target as its facts tell: for a probe's `need`. On a CPU three, as many as
 * fit half of the memory. */
void operand_sets_need(const struct machine *m, const struct target *t, double set_bytes, struct need *out);
#endif
