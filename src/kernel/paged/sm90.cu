/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of many rows of a sequence to a copy of its pages, on Hopper (kernel/paged/tiles.h): the dense
 * kernel's code, with units from a list. Reference: tests/gpu/ref_paged.c.
 */
#include "kernel/attention/forward/sm90_any_range.cuh"
#include "kernel/attention/forward/sm90_run.cuh"
#include "kernel/paged/tiles.h"

/* paged_tiles_args with the dense kernel's arguments as its base, because the dense kernel's code uses their names. */
struct paged_view : attention_sm90_args {
	const paged_tile *tile;
	uint32_t count, reserved_more[13];
};
static_assert(sizeof(paged_view) == sizeof(paged_tiles_args), "the host fills paged_tiles_args");

template <int D_, unsigned HOW_>
struct paged_shape : attention_shape<__nv_bfloat16, D_, PAGED_TILES_GROUPS(D_), PAGED_TILES_KEYS(D_), PAGED_TILES_SLOTS(D_), HOW_> {
	typedef paged_view ARGS;
	enum { EARLY = 1 };
};

static __device__ __forceinline__ int unit_rounds(const paged_view &a)
{
	return (int)((a.count + gridDim.x - 1) / gridDim.x);
}

static __device__ __forceinline__ int unit_of_round(const paged_view &a, int round)
{
	const unsigned place = round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x, number = round * gridDim.x + place;

	return number < a.count ? (int)number : -1;
}

template <typename C> static __device__ __forceinline__ bool unit_find(const paged_view &a, int number, attention_unit &u)
{
	const paged_tile t = a.tile[number];

	u.batch = 0;
	u.sequence = 0;
	u.head = t.head;
	u.kv_head = t.head / (a.heads / a.kv_heads);
	u.q_row = t.row;
	u.kv_row = (int)t.key;
	u.q_len = t.rows;
	u.kv_len = t.keys;
	u.tile = t.first;
	u.tiles = min((int)C::GROUPS, (t.rows + C::ROWS - 1) / C::ROWS - t.first);
	u.from = 0;
	u.to = t.blocks;
	return true;
}

#define TILES_ENTRY(D, HOW)                                                                                            \
	static_assert(paged_shape<D, HOW>::SHARED_BYTES == PAGED_TILES_SHARED(D), "the host asks for it");           \
	extern "C" __global__ void __launch_bounds__(PAGED_TILES_THREADS(D), 1)                                       \
		tiles_bf16_d##D(const __grid_constant__ paged_view a)                                                 \
	{                                                                                                              \
		typedef paged_shape<D, HOW> shape;                                                                    \
		attention_run<shape, attention_consumer<shape>>(a);                                                   \
	}

TILES_ENTRY(64, HOW_Q_REGISTERS | HOW_STALE)
TILES_ENTRY(128, HOW_STALE)
