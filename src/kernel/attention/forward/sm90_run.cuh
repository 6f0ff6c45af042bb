/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward on Hopper: the body of every entry. One persistent block runs on each SM. A producer
 * warpgroup loads keys, values and queries into slots by tensor copies (sm90_load.cuh). GROUPS consumer
 * warpgroups each process their own tiles of 64 query rows.
 */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_RUN_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_RUN_CUH
#include "kernel/attention/forward/sm90_load.cuh"

template <typename C> static __device__ __forceinline__ void barriers_begin(const attention_room<C> &room)
{
	for (int i = 0; i < C::SLOTS; i++) {
		const int readers = C::DOWN ? min((int)C::GROUPS, C::SLOTS - i) : C::GROUPS;

		barrier_init(room.barrier(C::FULL_K + i), 1);
		barrier_init(room.barrier(C::FULL_V + i), C::FP8 ? 2 : 1);
		if (C::FP8)
			barrier_init(room.barrier(C::RAW_V + i), 1);
		barrier_init(room.barrier(C::EMPTY_K + i), 4 * readers);
		barrier_init(room.barrier(C::EMPTY_V + i), 4 * readers);
	}
	for (int i = 0; i < C::GROUPS * C::Q_SLOTS; i++) {
		barrier_init(room.barrier(C::FULL_Q + i), 1);
		barrier_init(room.barrier(C::EMPTY_Q + i), 4);
	}
	barrier_init_fence();
}

/* CONSUMER: the code of the consumer warpgroups for shape C. */
template <typename C, typename CONSUMER>
static __device__ __forceinline__ void attention_run(const typename C::ARGS &a)
{
	extern __shared__ __align__(1024) unsigned char attention_shared[];
	const uint32_t aligned_at = (shared_at(attention_shared) + 1023) / 1024 * 1024;
	const attention_room<C> room = {C::FIXED ? 1024 : aligned_at};
	const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;

	if (C::FIXED && aligned_at != 1024)
		__trap();
	if (threadIdx.x == 0)
		barriers_begin(room);
	if (threadIdx.x == 32) {
		tensor_prefetch_map(&a.k_map);
		tensor_prefetch_map(&a.q_map);
		tensor_prefetch_map(&a.v_map);
		tensor_prefetch_map(&a.o_map);
	}
	if constexpr (C::EARLY) {
		grid_release();
		grid_wait();
	}
	__syncthreads();
	if (warp < 4) {
		registers_shrink<C::LOAD_REGISTERS>();
		if constexpr (C::DOWN) {
			if (warp == 0 && lane == 0)
				load_down<C>(a, room);
			if (warp == 1 && lane == 0)
				load_queries_down<C>(a, room);
		} else if (warp == 0 && lane == 0) {
			load_keys_values<C>(a, room);
		}
		if (!C::DOWN && warp == 1 && lane == 0)
			load_queries<C>(a, room);
		if constexpr (C::FP8)
			if (warp >= 2)
				turn_values(a, room, warp - 2);
	} else {
		registers_grow<C::REGISTERS>();
		unsigned char *aligned = attention_shared + (room.base - shared_at(attention_shared));
		CONSUMER consumer = {a, room, (attention_unit *)(aligned + room.units()), warp / 4 - 1,
				     C::DOWN ? (warp / 4 + warp) % 4 : warp % 4, lane};

		if (C::FP8)
			consumer.scale_log2 = a.scale_log2 * *a.descale_q * *a.descale_k;
		consumer.run();
	}
}
#endif
