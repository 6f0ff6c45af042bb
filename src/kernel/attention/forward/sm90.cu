/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward kernels for Hopper. Each entry is one type, head dim and method. The table below gives
 * its warpgroups, keys per block, slots and options. docs/explanation/design/attention_kernels.md describes
 * the gain of each.
 *
 *   TYPE_dD       any range of keys (kernel/attention/forward/sm90_any_range.cuh)
 *   TYPE_dD_pair  two alternating tiles (kernel/attention/forward/sm90_pair.cuh)
 *   TYPE_dD_flow  tiles follow each other without a break (kernel/attention/forward/sm90_flow.cuh)
 *   TYPE_dD_lean  as flow, with tile ends known to the compiler, streaming
 *                 (kernel/attention/forward/sm90_lean.cuh)
 *   TYPE_dD_head, .._head_causal  a head exactly fills the slots (kernel/attention/forward/sm90_head.cuh)
 *   TYPE_dD_stream  as head, with keys that stream through the slots in whole rounds
 *   TYPE_dD_down  causal heads that fill the slots, longest tiles first
 *                 (kernel/attention/forward/sm90_down.cuh)
 *
 * FP8 entries are e4m3_OUT. Launch: one block per SM, with 128 threads more than its consumer warpgroups
 * have. Reference: tests/gpu/ref_attention.c.
 */
#include "kernel/attention/forward/sm90_down.cuh"
#include "kernel/attention/forward/sm90_flow.cuh"
#include "kernel/attention/forward/sm90_head.cuh"
#include "kernel/attention/forward/sm90_lean.cuh"
#include "kernel/attention/forward/sm90_pair.cuh"
#include "kernel/attention/forward/sm90_run.cuh"
#include "kernel/attention/forward/sm90_any_range.cuh"

#define ENTRY(NAME, T, OUT, D, GROUPS, KEYS, SLOTS, HOW, CONSUMER)                                             \
	static_assert(attention_shape<T, D, GROUPS, KEYS, SLOTS, HOW, OUT>::SHARED_BYTES ==                    \
			      ATTENTION_SM90_ROOM(sizeof(T), D, GROUPS, (HOW) & HOW_PAIR ? 128 : 64, KEYS, SLOTS,     \
						   (HOW) & (HOW_Q_REGISTERS | HOW_O_IN_Q) && !((HOW) & HOW_DOWN) ? 1 : 2,              \
						  !((HOW) & HOW_O_IN_Q)) -                                     \
				      !!((HOW) & HOW_WHOLE) * ATTENTION_SM90_UNITS(GROUPS),                    \
		      "the host asks for it");                                                                 \
	extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1)                                    \
		sm90_##NAME(const __grid_constant__ attention_sm90_args a)                                     \
	{                                                                                                      \
		typedef attention_shape<T, D, GROUPS, KEYS, SLOTS, HOW, OUT> shape;                            \
		attention_run<shape, CONSUMER<shape>>(a);                                                      \
	}
#define RANGES(NAME, T, D, GROUPS, KEYS, SLOTS, HOW) ENTRY(NAME, T, T, D, GROUPS, KEYS, SLOTS, HOW, attention_consumer)
#define PAIR(NAME, T, D, GROUPS, KEYS, SLOTS)                                                                  \
	ENTRY(NAME, T, T, D, GROUPS, KEYS, SLOTS, HOW_Q_REGISTERS | HOW_STALE | HOW_PAIR, attention_pair)
#define FLOW(NAME, T, OUT, D, KEYS, SLOTS) ENTRY(NAME, T, OUT, D, 2, KEYS, SLOTS, HOW_STALE, attention_flow)
#define LEAN(NAME, T, D, SLOTS) ENTRY(NAME, T, T, D, 2, 128, SLOTS, HOW_STALE, attention_lean)
#define HEAD(NAME, T, OUT, D, GROUPS, KEYS, HOW, CONSUMER)                                                     \
	ENTRY(NAME, T, OUT, D, GROUPS, KEYS, 512 / (KEYS), HOW_STALE | HOW_WHOLE | (HOW), CONSUMER)
#define STREAM(NAME, T, D, GROUPS)                                                                             \
	ENTRY(NAME, T, T, D, GROUPS, 64, 4, HOW_STALE | HOW_WHOLE | HOW_STREAM | HOW_Q_REGISTERS | HOW_FIXED, attention_head)
#define DOWN(NAME, T) HEAD(NAME, T, T, 64, 3, 64, HOW_Q_REGISTERS | HOW_DOWN | HOW_FIXED, attention_down)
#define FP8(NAME, OUT, D, GROUPS, SLOTS, HOW, CONSUMER)                                                        \
	ENTRY(e4m3_##NAME, __nv_fp8_e4m3, OUT, D, GROUPS, D, SLOTS, HOW_Q_REGISTERS | HOW_STALE | HOW, CONSUMER)

RANGES(fp16_d64, __half, 64, 3, 64, 8, HOW_Q_REGISTERS | HOW_STALE)
RANGES(bf16_d64, __nv_bfloat16, 64, 3, 64, 8, HOW_Q_REGISTERS | HOW_STALE)
RANGES(fp16_d128, __half, 128, 2, 128, 2, HOW_STALE)
RANGES(bf16_d128, __nv_bfloat16, 128, 2, 128, 2, HOW_STALE)
RANGES(fp16_d256, __half, 256, 2, 64, 2, HOW_STALE | HOW_O_IN_Q)
RANGES(bf16_d256, __nv_bfloat16, 256, 2, 64, 2, HOW_STALE | HOW_O_IN_Q)
PAIR(fp16_d64_pair, __half, 64, 2, 64, 10)
PAIR(bf16_d64_pair, __nv_bfloat16, 64, 2, 64, 10)
LEAN(fp16_d64_lean, __half, 64, 5)
LEAN(bf16_d64_lean, __nv_bfloat16, 64, 5)
STREAM(fp16_d64_stream, __half, 64, 3)
STREAM(bf16_d64_stream, __nv_bfloat16, 64, 3)
STREAM(fp16_d128_stream, __half, 128, 2)
STREAM(bf16_d128_stream, __nv_bfloat16, 128, 2)
FLOW(e4m3_fp16_d64_flow, __nv_fp8_e4m3, __half, 64, 128, 8)
FLOW(e4m3_bf16_d64_flow, __nv_fp8_e4m3, __nv_bfloat16, 64, 128, 8)
FLOW(e4m3_fp16_d128_flow, __nv_fp8_e4m3, __half, 128, 128, 5)
FLOW(e4m3_bf16_d128_flow, __nv_fp8_e4m3, __nv_bfloat16, 128, 128, 5)
FP8(fp16_d64, __half, 64, 3, 16, 0, attention_consumer)
FP8(bf16_d64, __nv_bfloat16, 64, 3, 16, 0, attention_consumer)
FP8(fp16_d128, __half, 128, 2, 5, 0, attention_consumer)
FP8(bf16_d128, __nv_bfloat16, 128, 2, 5, 0, attention_consumer)
FP8(fp16_d64_pair, __half, 64, 2, 16, HOW_PAIR, attention_pair)
FP8(bf16_d64_pair, __nv_bfloat16, 64, 2, 16, HOW_PAIR, attention_pair)
HEAD(fp16_d64_head, __half, __half, 64, 3, 64, HOW_Q_REGISTERS, attention_head)
HEAD(bf16_d64_head, __nv_bfloat16, __nv_bfloat16, 64, 3, 64, HOW_Q_REGISTERS, attention_head)
HEAD(e4m3_fp16_d64_head, __nv_fp8_e4m3, __half, 64, 3, 64, HOW_Q_REGISTERS | HOW_PREFETCH, attention_head)
HEAD(e4m3_bf16_d64_head, __nv_fp8_e4m3, __nv_bfloat16, 64, 3, 64, HOW_Q_REGISTERS | HOW_PREFETCH, attention_head)
HEAD(e4m3_fp16_d128_head, __nv_fp8_e4m3, __half, 128, 2, 128, HOW_PREFETCH, attention_head)
HEAD(e4m3_bf16_d128_head, __nv_fp8_e4m3, __nv_bfloat16, 128, 2, 128, HOW_PREFETCH, attention_head)
HEAD(fp16_d64_head_causal, __half, __half, 64, 3, 64, HOW_Q_REGISTERS, attention_head_causal)
HEAD(bf16_d64_head_causal, __nv_bfloat16, __nv_bfloat16, 64, 3, 64, HOW_Q_REGISTERS, attention_head_causal)
HEAD(e4m3_fp16_d64_head_causal, __nv_fp8_e4m3, __half, 64, 3, 64, HOW_Q_REGISTERS, attention_head_causal)
HEAD(e4m3_bf16_d64_head_causal, __nv_fp8_e4m3, __nv_bfloat16, 64, 3, 64, HOW_Q_REGISTERS, attention_head_causal)
DOWN(fp16_d64_down, __half)
DOWN(bf16_d64_down, __nv_bfloat16)
