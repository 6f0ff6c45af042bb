/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of many rows of a sequence to its pages, on Hopper (kernel/paged/tiles.h). One persistent block runs on
 * each SM. Reference: tests/gpu/ref_paged.c.
 */
#include "kernel/attention/forward/sm90_run.cuh"
#include "kernel/paged/sm90_load.cuh"

template <typename C> static __device__ __forceinline__ void tiles_run(const paged_view &a)
{
	extern __shared__ __align__(1024) unsigned char attention_shared[];
	const attention_room<C> room = {(shared_at(attention_shared) + 1023) / 1024 * 1024};
	const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;

	if (threadIdx.x == 0) {
		barrier_init(room.barrier(C::PAGE_V), 1);
		barriers_begin(room);
	}
	if (threadIdx.x == 32) {
		tensor_prefetch_map(&a.k_map);
		tensor_prefetch_map(&a.q_map);
		tensor_prefetch_map(&a.v_map);
		tensor_prefetch_map(&a.o_map);
	}
	/* if this grid was launched before the one ahead of it had ended: waits for that end */
	asm volatile("griddepcontrol.wait;" ::: "memory");
	__syncthreads();
	if (warp < 4) {
		registers_shrink<C::LOAD_REGISTERS>();
		if (warp == 0)
			load_pages<C>(a, room);
		else if (warp == 1 && lane == 0)
			load_rows<C>(a, room);
	} else {
		registers_grow<C::REGISTERS>();
		unsigned char *aligned = attention_shared + (room.base - shared_at(attention_shared));
		attention_consumer<C> consumer = {a, room, (attention_unit *)(aligned + room.units()), warp / 4 - 1, warp % 4, lane};

		consumer.run();
	}
}

#define TILES_ENTRY(D, HOW)                                                                                            \
	static_assert(paged_shape<D, HOW>::ROOM == PAGED_TILES_SHARED(D), "the host asks for it");                   \
	extern "C" __global__ void __launch_bounds__(PAGED_TILES_THREADS(D), 1)                                       \
		tiles_bf16_d##D(const __grid_constant__ paged_view a)                                                 \
	{                                                                                                              \
		tiles_run<paged_shape<D, HOW>>(a);                                                                     \
	}

TILES_ENTRY(64, HOW_Q_REGISTERS | HOW_STALE)
TILES_ENTRY(128, HOW_STALE)
