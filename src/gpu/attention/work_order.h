/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of units of work for sequences of different length. Without it a kernel numbers its units as if
 * every sequence were as long as the longest. Most units are then empty, and the long sequence's units run on
 * few multiprocessors. The list holds only units with work, the longest first. Pure, no device.
 */
#ifndef GPU_ATTENTION_WORK_ORDER_H
#define GPU_ATTENTION_WORK_ORDER_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

/* Number of units for sequences that begin at tokens starts[0 .. batch]. A unit is ATTENTION_ORDER_ROWS
 * tokens of a sequence, or fewer at its end. The number never exceeds the number of tokens. */
uint64_t attention_order_count(const uint32_t *starts, uint32_t batch);
/* Whether a word of the list can represent every unit: at most 65,536 sequences of 65,536 units. */
bool attention_order_holds(const uint32_t *starts, uint32_t batch);
/*
 * Writes attention_order_count words to `list`: sequence << 16 | unit (kernel/attention/forward/args.h,
 * ATTENTION_ORDER). If causal, unit i of a sequence does the work of i + 1 blocks of keys, so large i come
 * first. Otherwise every unit has all keys of its sequence, so the units of the longest sequence come first.
 * NO_RESOURCE: no memory.
 */
enum status attention_order_fill(uint32_t *list, const uint32_t *starts, uint32_t batch, bool causal,
				 struct error *err);
#endif
