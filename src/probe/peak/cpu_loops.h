/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that issue only one kind of instruction. */
#ifndef PROBE_PEAK_CPU_LOOPS_H
#define PROBE_PEAK_CPU_LOOPS_H
#include <stdint.h>
#include "probe/peak/peak.h"

/* x = x a + b on every lane of every chain, PEAK_FMA_LOOPS times. With these constants x drifts slowly, does
 * not reach a fixed point and never becomes subnormal. SSE2 has no fused multiply-add, so its product and sum
 * are rounded separately. */
#define PEAK_FMA_A (1 - 0x1p-20)
#define PEAK_FMA_B 0x1p-21
#define PEAK_FMA_START(chain) (1 + (double)(chain) / 64)

/* INT8 and BF16: x += the sum of the products of a and b in the lane. All values are exact: no sum is rounded
 * and none overflows. */
#define PEAK_INT8_A 7
#define PEAK_INT8_B 5
#define PEAK_BF16_A 0x3f80 /* 1.0 */
#define PEAK_BF16_B 0x3a80 /* 2^-10 */
#define PEAK_BF16_STEP 0x1p-10

/* Runs the loop and stores every lane's final value: end[chains x lanes]. */
typedef void peak_fma_loop(void *end);

/* NULL: this build has no loop for the instruction set and type. */
peak_fma_loop *peak_fma_loop_for(enum peak_isa isa, enum peak_type type);
bool peak_is_fused(enum peak_isa isa);
#endif
