/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over a paged KV cache for any GPU from sm_80 on. Reference: tests/gpu/ref_paged.c. */
#include "kernel/paged/attention.cuh"
#include "kernel/paged/copy.cuh"

#define PAGED_ENTRY(NAME, D, E4M3)                                                                           \
	ENTRY void __launch_bounds__(PAGED_THREADS, 1)                                                       \
		paged_##NAME##_d##D(const __grid_constant__ struct paged_attention_args a)                   \
	{                                                                                                    \
		attend(&a, D, E4M3);                                                                         \
	}

#define PAGED_LATE_ENTRY(NAME, D, E4M3)                                                                      \
	ENTRY void __launch_bounds__(PAGED_THREADS, 1)                                                       \
		paged_##NAME##_d##D##_late(const __grid_constant__ struct paged_attention_args a)            \
	{                                                                                                    \
		attend_late(&a, D, E4M3);                                                                    \
	}

PAGED_ENTRY(bf16, 64, false)
PAGED_ENTRY(bf16, 128, false)
PAGED_ENTRY(e4m3, 64, true)
PAGED_ENTRY(e4m3, 128, true)
PAGED_LATE_ENTRY(bf16, 64, false)
PAGED_LATE_ENTRY(bf16, 128, false)
PAGED_LATE_ENTRY(e4m3, 64, true)
PAGED_LATE_ENTRY(e4m3, 128, true)

#define COPY_ENTRY(NAME, E4M3)                                                                               \
	ENTRY void __launch_bounds__(PAGED_COPY_THREADS, PAGED_COPY_BLOCKS)                                  \
		paged_copy_##NAME(const __grid_constant__ struct paged_copy_args a)                          \
	{                                                                                                    \
		copy_pages(&a, E4M3);                                                                        \
	}

COPY_ENTRY(bf16, false)
COPY_ENTRY(e4m3, true)
