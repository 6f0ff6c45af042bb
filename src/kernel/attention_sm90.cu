/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hopper's attention kernels (kernel/attention_sm90.cuh), one entry a type and head dim:
 *
 *   TYPE_dD  entries as listed below: warpgroups, keys a block, slots, how
 *
 * Launch: one block an SM, 128 threads more than its warpgroups have. Reference: tests/gpu/ref_attention.c.
 */
#include "kernel/attention_sm90.cuh"

#define ENTRY(NAME, T, D, GROUPS, KEYS, SLOTS, HOW)                                                             \
	static_assert(attention_shape<T, D, GROUPS, KEYS, SLOTS, HOW>::SHARED_BYTES ==                          \
			      ATTENTION_SM90_SHARED(D, GROUPS, KEYS, SLOTS, (HOW) & HOW_Q_REGISTERS ? 1 : 2),     \
		      "the host asks for it");                                                                  \
	extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1)                                     \
		sm90_##NAME(const __grid_constant__ attention_sm90_args a)                                      \
	{                                                                                                       \
		attention_run<attention_shape<T, D, GROUPS, KEYS, SLOTS, HOW>>(a);                              \
	}

ENTRY(fp16_d64, __half, 64, 3, 64, 8, HOW_Q_REGISTERS | HOW_STALE)
ENTRY(bf16_d64, __nv_bfloat16, 64, 3, 64, 8, HOW_Q_REGISTERS | HOW_STALE)
ENTRY(fp16_d128, __half, 128, 2, 128, 2, HOW_STALE)
ENTRY(bf16_d128, __nv_bfloat16, 128, 2, 128, 2, HOW_STALE)
