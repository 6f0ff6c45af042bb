/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over a paged KV cache (docs/explanation/design/engine.md). A KV head's query heads and the rows
 * of a sequence are columns of one product. So each key is read once for PAGED_COLS columns. Column c of a
 * sequence and KV head is row c / group of query head kv_head * group + c % group. Here group is heads /
 * kv_heads.
 *
 * The host divides the work into units (model/gpu/paged/work.h). A unit is a range of columns and a range of
 * keys. Block b of the grid takes the units block[b] .. block[b + 1] - 1. If the keys of a range of columns
 * are divided among several units, each writes a partial result, and the one that ends last joins them in
 * order. So the grid depends on the device only, and a CUDA graph can be replayed with other lengths.
 */
#ifndef KERNEL_PAGED_ATTENTION_H
#define KERNEL_PAGED_ATTENTION_H
#include "kernel/paged/scale.h"

#ifdef __CUDACC__
#define PAGED_BOTH __host__ __device__
#else
#define PAGED_BOTH
#endif

enum {
	PAGED_TILE = 16, /* keys that a warp processes at once; it divides every page size */
	PAGED_COLS = 32, /* columns of a unit at most */
	PAGED_WARPS = 8,
	PAGED_THREADS = PAGED_WARPS * 32,
	PAGED_DEPTH = 12, /* slots of a warp's ring at most */
	/* Bytes of all rings of a block at most. On an H200, longer rings are slower, by up to 14 %. */
	PAGED_RINGS = 128 * 1024,
	PAGED_BLOCKS = 256,   /* blocks of a grid at most */
	PAGED_SPLIT = 1024,   /* keys of a split in batch-invariant mode; a multiple of all warps' tiles */
	PAGED_WHOLE = 1 << 30 /* split of a grid that is not batch-invariant */
};

#ifdef __cplusplus
#define PAGED_ALIGNED alignas(16)
#else
#define PAGED_ALIGNED _Alignas(16)
#endif

struct paged_unit {
	PAGED_ALIGNED int32_t row; /* number of the sequence's first row in the step */
	int32_t position;	   /* position of that row */
	uint32_t page;		   /* the sequence's page numbers begin at args.page[page] */
	uint32_t col;		   /* first column */
	int32_t begin, end;	   /* keys; begin is a multiple of PAGED_TILE, or of the split */
	uint16_t cols, kv_head;
	uint16_t part, parts; /* number of this unit, and of all units with the same columns */
	uint32_t place;	      /* parts > 1: partial result of part 0, and the counter of these units */
	uint32_t reserved[3];
};
static_assert(sizeof(struct paged_unit) == 48, "layout shared with nvcc");

/* Floats of a partial result: unnormalized sums of values, largest exponents and sums of exponentials. */
#define PAGED_PARTIAL(head_dim) (PAGED_COLS * ((head_dim) + 2))

/*
 * Entries paged_bf16_dD and paged_e4m3_dD with D = 64 or 128, by the type of the cache. Q and O are BF16.
 *
 * The same with _late at the end are for steps in which units have up to eight columns and the split is
 * PAGED_WHOLE. A unit's results are joined there when the warps have processed the next unit. O has the same
 * bits. These entries need paged_shared_late(..) bytes of shared memory.
 */
struct paged_attention_args {
	DEVICE_PTR(const uint16_t) q; /* [rows, heads * D] */
	DEVICE_PTR(uint16_t) o;
	DEVICE_PTR(const uint8_t)
	kv; /* [pages * page size, 2 * kv_heads * D] keys of all heads, then values */
	DEVICE_PTR(const float) scale;	/* paged_scale_at; E4M3 only */
	DEVICE_PTR(const int32_t) page; /* numbers of pages */
	DEVICE_PTR(const struct paged_unit) unit;
	DEVICE_PTR(const uint32_t) block; /* [blocks + 1] */
	/* [blocks] a copy of each block's first unit; that of a block without units has no keys */
	DEVICE_PTR(const struct paged_unit) first;
	DEVICE_PTR(float) partial; /* [places + blocks, PAGED_PARTIAL(D)]; the last ones belong to blocks */
	DEVICE_PTR(uint32_t) arrived;	      /* [places], zero between launches */
	uint64_t ld_q, ld_o, ld_kv, ld_scale; /* elements; those of q, o and kv are multiples of 16 bytes */
	uint32_t group, kv_heads;
	uint32_t page_bits; /* a page has 1 << page_bits positions */
	uint32_t depth;	    /* slots of a warp's ring */
	uint32_t places;
	int32_t split;	  /* keys after which the warps' results are joined: PAGED_SPLIT or PAGED_WHOLE */
	float scale_log2; /* scale * log2(e) */
	uint32_t reserved;
};
static_assert(sizeof(struct paged_attention_args) == 144, "layout shared with nvcc");

/* Bytes of a slot: keys and values of a tile, and their scales. */
static PAGED_BOTH inline uint32_t paged_slot_bytes(uint32_t head_dim, uint32_t element_bytes)
{
	return 2 * PAGED_TILE * head_dim * element_bytes +
	       (element_bytes == 1 ? 2 * PAGED_TILE * (uint32_t)sizeof(float) : 0);
}

/* Bytes of shared memory behind the rings: the results of all warps for eight columns, or all queries. */
static PAGED_BOTH inline uint32_t paged_join_bytes(uint32_t head_dim)
{
	return PAGED_WARPS * (8 * (head_dim + 4) + 16) * (uint32_t)sizeof(float) + 16;
}

/* Slots of a warp's ring with this much shared memory per block; 0: too little. */
static PAGED_BOTH inline uint32_t paged_depth(uint32_t head_dim, uint32_t element_bytes, uint32_t shared_most)
{
	const uint32_t slots = PAGED_WARPS * paged_slot_bytes(head_dim, element_bytes);
	const uint32_t join = paged_join_bytes(head_dim);
	const uint32_t room = shared_most > join ? shared_most - join : 0;
	const uint32_t depth = (room < PAGED_RINGS ? room : PAGED_RINGS) / slots;

	return depth < PAGED_DEPTH ? depth : PAGED_DEPTH;
}

static PAGED_BOTH inline uint32_t paged_shared(uint32_t head_dim, uint32_t element_bytes, uint32_t depth)
{
	return PAGED_WARPS * depth * paged_slot_bytes(head_dim, element_bytes) + paged_join_bytes(head_dim);
}

/* The same for the entries with _late: results of two units, and two barriers for each. */
static PAGED_BOTH inline uint32_t paged_shared_late(uint32_t head_dim, uint32_t element_bytes, uint32_t depth)
{
	return paged_shared(head_dim, element_bytes, depth) + paged_join_bytes(head_dim) + 4 * 8;
}
#endif
