/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention backward on Hopper. A producer warpgroup, in which one thread issues tensor copies, feeds two
 * consumer warpgroups. kernel/attention/backward/args.h defines the computation and the order of launches.
 * The portable file has the begin and end kernels.
 *
 *   backward_sm90_keys_TYPE_dD     dK and dV of 128 keys
 *   backward_sm90_once_TYPE_dD     as keys, and adds the keys' part of dQ from registers
 *   backward_sm90_late_TYPE_dD     as once, with a tile's dQ computed with the next tile's scores
 *   backward_sm90_split_TYPE_dD    as late, with a cluster of two blocks per unit
 *   backward_sm90_ahead_TYPE_dD    as late, with the next tile's scores issued before this tile's GEMMs are
 *                                  done
 *   backward_sm90_bulk_TYPE_dD     as ahead, added by bulk copies from shared memory
 *   backward_sm90_queries_TYPE_dD  dQ of 128 queries
 *
 * Launch: 384 threads, one block per unit (split: two), units in the order of unit_find. Reference:
 * tests/gpu/ref_attention_backward.c.
 */
#include "kernel/attention/backward/sm90_keys.cuh"
#include "kernel/attention/backward/sm90_queries.cuh"

#define ENTRY(CLUSTER, NAME, SHAPE, RUN, SHARED)                                                                                \
	static_assert(SHAPE::SHARED_BYTES == (SHARED), "the host asks for it");                                        \
	extern "C" __global__ void CLUSTER __launch_bounds__(THREADS, 1)                                               \
		backward_sm90_##NAME(const __grid_constant__ attention_backward_sm90_args x)                           \
	{                                                                                                              \
		RUN<SHAPE>(x);                                                                                         \
	}
#define SHARED(D, PASSED) ATTENTION_BACKWARD_SM90_SHARED(D, ATTENTION_BACKWARD_QUERIES(D), PASSED)
#define KEYS_ENTRY(CLUSTER, KIND, NAME, T, D, HOW, PASSED)                                                                      \
	typedef keys_shape<T, D, HOW> KIND##_##NAME##_d##D;                                                            \
	ENTRY(CLUSTER, KIND##_##NAME##_d##D, KIND##_##NAME##_d##D, keys_run, SHARED(D, PASSED))
#define ENTRIES(NAME, T, D)                                                                                            \
	KEYS_ENTRY(, keys, NAME, T, D, 0, 0)                                                                             \
	KEYS_ENTRY(, once, NAME, T, D, HOW_ADD, ATTENTION_BACKWARD_PASSED(D))                                            \
	KEYS_ENTRY(, late, NAME, T, D, HOW_ADD | HOW_LATE, ATTENTION_BACKWARD_PASSED(D))                                 \
	KEYS_ENTRY(__cluster_dims__(2, 1, 1), split, NAME, T, D, HOW_ADD | HOW_LATE | HOW_SPLIT, ATTENTION_BACKWARD_PASSED(D))        \
	KEYS_ENTRY(, ahead, NAME, T, D, HOW_ADD | HOW_LATE | HOW_AHEAD, ATTENTION_BACKWARD_PASSED(D))                    \
	KEYS_ENTRY(, bulk, NAME, T, D, HOW_ADD | HOW_LATE | HOW_AHEAD | HOW_BULK, ATTENTION_BACKWARD_PASSED_BULK(D))                 \
	typedef queries_shape<T, D> queries_##NAME##_d##D;                                                             \
	ENTRY(, queries_##NAME##_d##D, queries_##NAME##_d##D, queries_run, ATTENTION_BACKWARD_SM90_SHARED_QUERIES(D))
ENTRIES(fp16, __half, 64)
ENTRIES(fp16, __half, 128)
ENTRIES(bf16, __nv_bfloat16, 64)
ENTRIES(bf16, __nv_bfloat16, 128)
