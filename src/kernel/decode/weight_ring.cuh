/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights on their way: how a matrix's rows are dealt, and the ring in shared memory that each warp reads its part through.
 *
 * The rows are dealt to the grid's blocks in equal runs; a block's run is a sequence of units of chunks (512 bytes of a row), which
 * its warps take in turns, so that no warp is idle whatever the shape. Each lane asks for its own 16 bytes of a chunk
 * by its own asynchronous copies and reads no others, so no barrier is between a copy and its use. Weights depend on nothing that is
 * computed: when a warp has asked for the last of its part, it asks for the first of its part of the next step, so that the memory
 * works on while the grid meets, norms and attends.
 *
 * It is C but for what nvcc adds, so that tests/gpu/emulate.h runs it on a CPU.
 */
#ifndef KERNEL_DECODE_WEIGHT_RING_CUH
#define KERNEL_DECODE_WEIGHT_RING_CUH
#include <stddef.h>
#include "kernel/decode/decode.h"

#ifndef EMULATED
#define ENTRY extern "C" __global__
#endif

/* A block's rows: `count` from `first`, then as many from `second` where rows are dealt in pairs. */
struct rows {
	const uint16_t *w;
	uint64_t ld;
	uint32_t in, chunks, first, second, count, all;
	uint32_t segment, units; /* chunks that follow each other in memory, and units of them */
};

/* A 32-bit address in shared memory. */
static __device__ __forceinline__ uint32_t shared_address(void *p)
{
#ifndef EMULATED
	return (uint32_t)__cvta_generic_to_shared(p);
#else
	return (uint32_t)((char *)p - (char *)shared);
#endif
}

static __device__ __forceinline__ uint4 load_shared(uint32_t from)
{
#ifndef EMULATED
	uint4 v;

	asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
		     : "r"(from)
		     : "memory");
	return v;
#else
	return *(const uint4 *)((const char *)shared + from);
#endif
}

/* 16 bytes past the L1 and the registers. */
static __device__ __forceinline__ void copy_async(uint32_t to, const uint16_t *from)
{
#ifndef EMULATED
	asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
#else
	emulate_copy((char *)shared + to, from, 16);
#endif
}

static __device__ __forceinline__ void copy_commit(void)
{
#ifndef EMULATED
	asm volatile("cp.async.commit_group;" : : : "memory");
#else
	emulate_commit();
#endif
}

/* Until at most `later` of this thread's groups are under way. */
static __device__ __forceinline__ void copy_wait(uint32_t later)
{
#ifndef EMULATED
	if (later == 3) { /* of a ring of four, as it is most of the time */
		asm volatile("cp.async.wait_group 3;" : : : "memory");
		return;
	}
	switch (later) {
	case 0:
		asm volatile("cp.async.wait_group 0;" : : : "memory");
		break;
	case 1:
		asm volatile("cp.async.wait_group 1;" : : : "memory");
		break;
	case 2:
		asm volatile("cp.async.wait_group 2;" : : : "memory");
		break;
	case 4:
		asm volatile("cp.async.wait_group 4;" : : : "memory");
		break;
	case 5:
		asm volatile("cp.async.wait_group 5;" : : : "memory");
		break;
	case 6:
		asm volatile("cp.async.wait_group 6;" : : : "memory");
		break;
	default:
		asm volatile("cp.async.wait_group 7;" : : : "memory");
	}
#else
	emulate_wait(later);
#endif
}

static __device__ __forceinline__ struct rows rows_of(const uint16_t *w, uint32_t out, uint32_t in, uint64_t ld, int pairs)
{
	uint32_t dealt = pairs ? out / 2 : out;
	/* No 64-bit division is in the way: decode_refuses_rows. */
	uint32_t first = dealt * blockIdx.x / gridDim.x, end = dealt * (blockIdx.x + 1) / gridDim.x;
	struct rows r = {w, ld, in, (in + DECODE_CHUNK - 1) / DECODE_CHUNK, first, dealt + first, end - first, 0, 0, 0};

	r.all = pairs ? 2 * r.count : r.count;
	r.segment = in % DECODE_CHUNK == 0 && ld == in ? r.count * r.chunks : r.chunks;
	r.units = (r.segment + DECODE_UNIT - 1) / DECODE_UNIT;
	return r;
}

static __device__ __forceinline__ const uint16_t *row_at(const struct rows *r, uint32_t i)
{
	return r->w + (uint64_t)(i < r->count ? r->first + i : r->second + (i - r->count)) * r->ld;
}

static __device__ __forceinline__ struct rows rows_of_map(const struct decode_map *m, int down, int pairs)
{
	return down ? rows_of(m->a, m->adapters * m->rank, m->in, m->in, 0) : rows_of(m->w, m->out, m->in, m->ld, pairs);
}

/* What a warp has of a map: every DECODE_WARPSth unit of its block's, a unit being up to DECODE_UNIT chunks that follow each other in
 * memory, so that a block reads what stands together together. */
struct part {
	const struct rows *rows;
	const uint16_t *p;		  /* the next unit */
	uint32_t unit, end;		  /* its number; the block's units */
	uint32_t at, n;			  /* its first chunk, of the block's; its chunks, 0: there is none */
	uint32_t column, limit;		  /* of its first chunk; elements from `limit` on are none */
};

static __device__ __forceinline__ void part_place(struct part *p)
{
	const struct rows *r = p->rows;
	uint32_t segment, off, row;

	p->n = 0;
	if (p->unit >= p->end)
		return;
	if (r->segment > r->chunks) { /* one segment or two, of whole rows */
		segment = p->unit >= r->units;
		row = segment * r->count;
	} else {
		segment = row = p->unit / r->units;
	}
	off = (p->unit - segment * r->units) * DECODE_UNIT;
	p->at = segment * r->segment + off;
	p->n = r->segment - off < DECODE_UNIT ? r->segment - off : DECODE_UNIT;
	p->p = row_at(r, row) + off * DECODE_CHUNK;
	p->column = off * DECODE_CHUNK;
}

static __device__ __forceinline__ void part_open(struct part *p, const struct rows *r, uint32_t warp)
{
	p->rows = r;
	p->unit = warp;
	p->end = r->count ? r->all * r->chunks / r->segment * r->units : 0;
	p->limit = r->in % DECODE_CHUNK ? r->in : 0xffffffffu;
	part_place(p);
}

static __device__ __forceinline__ void part_on(struct part *p)
{
	p->unit += DECODE_WARPS;
	part_place(p);
}

/* A map's place among all that a launch multiplies by. A turn is a token of it; a layer's parts are 2 * map (its A) and 2 * map + 1;
 * behind the layers comes the head, part 1. */
struct order {
	uint32_t turn, layer, part;
};

/* The ring of a warp. Which part comes behind this one, its owner says (feed_next). */
struct feed {
	struct part part;
	struct rows *rows; /* what it has a part of: in shared memory, as it is seldom read */
	uint32_t slots;	   /* of the warp: an address in shared memory */
	uint32_t depth;	   /* slots */
	uint32_t put, got; /* of the slot to be filled next, and to be read next */
	uint32_t held;
	const struct board *board; /* of steps that come one after the other; NULL: one part is all */
	struct order order;	   /* which of its parts is open */
};
static __device__ __forceinline__ int feed_next(struct feed *f);

/* Asks for the next unit, which there is room for. */
static __device__ __forceinline__ void feed_ask(struct feed *f)
{
	const uint32_t n = f->part.n;
	const uint32_t lane = threadIdx.x % 32, to = f->slots + f->put * DECODE_SLOT_BYTES + lane * 16;
	const uint16_t *from = f->part.p + lane * 8;

	if (n == DECODE_UNIT && f->part.limit == 0xffffffffu) {
#pragma unroll
		for (uint32_t j = 0; j < DECODE_UNIT; j++)
			copy_async(to + j * 2 * DECODE_CHUNK, from + j * DECODE_CHUNK);
	} else {
#pragma unroll 1
		for (uint32_t j = 0; j < n; j++)
			if (f->part.column + j * DECODE_CHUNK + lane * 8 < f->part.limit)
				copy_async(to + j * 2 * DECODE_CHUNK, from + j * DECODE_CHUNK);
	}
	copy_commit();
	f->held++;
	f->put = f->put + 1 == f->depth ? 0 : f->put + 1;
	part_on(&f->part);
}

/* Asks for as much as there is room for. */
static __device__ __forceinline__ void feed_fill(struct feed *f)
{
	while (f->held < f->depth) {
		if (f->part.n)
			feed_ask(f);
		else if (!feed_next(f))
			return;
	}
}

/* By one lane, when all have read what was there. */
static __device__ __forceinline__ void feed_part(struct feed *f, const struct rows *r)
{
	__syncwarp();
	if (threadIdx.x % 32 == 0)
		*f->rows = *r;
	__syncwarp();
	part_open(&f->part, f->rows, threadIdx.x / 32);
}

/* `rows`: places for DECODE_WARPS. */
static __device__ __forceinline__ void feed_open(struct feed *f, struct rows *rows, void *ring, uint32_t depth)
{
	f->rows = rows + threadIdx.x / 32;
	f->slots = shared_address(ring) + threadIdx.x / 32 * depth * DECODE_SLOT_BYTES;
	f->depth = depth;
	f->put = f->got = f->held = 0;
	f->board = NULL;
	f->part.n = 0;
}
#endif
