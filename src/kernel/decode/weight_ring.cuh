/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weight loader of decoding: how a matrix's rows are distributed, and the ring in shared memory through
 * which each warp reads its part.
 *
 * Each block of the grid has an equal contiguous run of rows. A block's run is a sequence of units of chunks
 * (a chunk is 512 bytes of a row). Its warps take units in turn, so no warp is idle for any shape. Each lane
 * requests its own 16 bytes of a chunk by asynchronous copies and reads no others, so no barrier is needed between a
 * copy and its use. From Hopper on, the kernel of E4M3 fills a slot by one bulk copy instead, which one lane requests
 * and which reports to a barrier of its slot.
 * Weights do not depend on computed values. When a warp has requested the last unit of its part, it requests
 * the first unit of its part of the next step. So the memory stays busy while the grid synchronizes and
 * computes norms and attention.
 *
 * The code is C except for nvcc's keywords, so tests/gpu/emulate.h can run it on a CPU.
 */
#ifndef KERNEL_DECODE_WEIGHT_RING_CUH
#define KERNEL_DECODE_WEIGHT_RING_CUH
#include <stddef.h>
#include "kernel/decode/decode.h"

#ifndef EMULATED
#define ENTRY extern "C" __global__
#endif
#if !defined(EMULATED) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define DECODE_BULK
#include "kernel/hopper.cuh"
#endif

/* A block's rows: `count` from `first` on. If rows are assigned in pairs, also `count` from `second` on. */
struct rows {
	const uint16_t *w;
	uint64_t ld;
	uint32_t in, chunks, first, second, count, all;
	uint32_t segment, units; /* chunks that are contiguous in memory, and units in a segment */
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

/* Copies 16 bytes, bypassing the L1 and the registers. */
static __device__ __forceinline__ void copy_async(uint32_t to, const uint16_t *from)
{
#ifndef EMULATED
	asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
#else
	emulate_copy((char *)shared + to, from, 16, 0);
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

/* Waits until at most `later` of this thread's copy groups are in flight. */
static __device__ __forceinline__ void copy_wait(uint32_t later)
{
#ifndef EMULATED
	if (later == 3) { /* the usual case: a ring of four */
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
	/* decode_refuses_rows guarantees that no 64-bit division is needed */
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

/* The ring counts words of two bytes: one element of BF16, two of E4M3. */
static __device__ __forceinline__ struct rows rows_of_map(const struct decode_map *m, int down, int pairs)
{
	const uint32_t halve = m->w_scale != NULL;

	return down ? rows_of(m->a, m->adapters * m->rank, m->in, m->in, 0)
		    : rows_of(m->w, m->out, m->in >> halve, m->ld >> halve, pairs);
}

/* A warp's part of a linear layer: every DECODE_WARPSth unit of its block. A unit is up to DECODE_UNIT chunks
 * that are contiguous in memory, so a block reads contiguous data at about the same time. */
struct part {
	const struct rows *rows;
	const uint16_t *p;		  /* the next unit's address */
	uint32_t unit, end;		  /* the next unit's number; units of the block */
	uint32_t at, n;			  /* its first chunk within the block; its chunks, 0: none left */
	uint32_t column, limit;		  /* column of its first chunk; elements at or past `limit` do not exist */
};

static __device__ __forceinline__ void part_place(struct part *p)
{
	const struct rows *r = p->rows;
	uint32_t segment, off, row;

	p->n = 0;
	if (p->unit >= p->end)
		return;
	if (r->segment > r->chunks) { /* one or two segments of whole rows */
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

/* Position of a linear layer in the sequence of a launch. In a layer, part 2 * l is the A of linear layer l,
 * and part 2 * l + 1 is its W. The head is part 1 after the layers. */
struct order {
	uint32_t layer, part;
};

/* The ring of a warp. feed_next determines the part after this one. */
struct feed {
	struct part part;
	struct rows *rows; /* the rows of the open part; in shared memory, because they are seldom read */
	uint32_t slots;	   /* shared-memory address of the warp's slots */
	uint32_t depth;	   /* number of slots */
	uint32_t put, got; /* the next slot to fill, the next slot to read */
	uint32_t held;
#ifdef DECODE_BULK
	int bulk;		   /* slots are filled by bulk copies; a constant of the kernel */
	uint32_t barriers, parity; /* shared-memory address of the slots' barriers; what the next one to read waits for */
#endif
	const struct board *board; /* for a sequence of steps; NULL: only one part */
	struct order order;	   /* the part that is open */
};
static __device__ __forceinline__ int feed_next(struct feed *f);

#ifdef DECODE_BULK
static __device__ __forceinline__ void ask_bulk(struct feed *f)
{
	uint32_t bytes = f->part.n * 2 * DECODE_CHUNK;

	if (f->part.limit != 0xffffffffu && (f->part.limit - f->part.column) * 2 < bytes)
		bytes = (f->part.limit - f->part.column) * 2;
	__syncwarp(); /* all lanes have read the slot */
	if (threadIdx.x % 32 == 0) {
		barrier_expect(f->barriers + 8 * f->put, bytes);
		bulk_load(f->slots + f->put * DECODE_SLOT_BYTES, f->part.p, bytes, f->barriers + 8 * f->put);
	}
}
#endif

static __device__ __forceinline__ void ask_lanes(struct feed *f)
{
	const uint32_t n = f->part.n, lane = threadIdx.x % 32, to = f->slots + f->put * DECODE_SLOT_BYTES + lane * 16;
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
}

/* Requests the next unit. There must be a free slot. */
static __device__ __forceinline__ void feed_ask(struct feed *f)
{
#ifdef DECODE_BULK
	if (f->bulk)
		ask_bulk(f);
	else
#endif
		ask_lanes(f);
	f->held++;
	f->put = f->put + 1 == f->depth ? 0 : f->put + 1;
	part_on(&f->part);
}

/* Waits for the unit of the next slot to read. */
static __device__ __forceinline__ void feed_wait(const struct feed *f)
{
#ifdef DECODE_BULK
	if (f->bulk)
		barrier_wait(f->barriers + 8 * f->got, f->parity);
	else
#endif
		copy_wait(f->held - 1);
}

/* The warp has read this slot. */
static __device__ __forceinline__ void feed_took(struct feed *f)
{
	f->held--;
	f->got = f->got + 1 == f->depth ? 0 : f->got + 1;
#ifdef DECODE_BULK
	f->parity ^= f->got == 0;
#endif
}

/* Requests units while there are free slots. */
static __device__ __forceinline__ void feed_fill(struct feed *f)
{
	while (f->held < f->depth) {
		if (f->part.n)
			feed_ask(f);
		else if (!feed_next(f))
			return;
	}
}

/* One lane writes the new rows after all lanes have read the old ones. */
static __device__ __forceinline__ void feed_part(struct feed *f, const struct rows *r)
{
	__syncwarp();
	if (threadIdx.x % 32 == 0)
		*f->rows = *r;
	__syncwarp();
	part_open(&f->part, f->rows, threadIdx.x / 32);
}

/* `rows`: room for DECODE_WARPS entries, and behind them for DECODE_WARPS * DECODE_DEPTH barriers. `bulk`: slots are
 * filled by bulk copies where the device has them. With them an H200 takes 3.27 ms for a token of the 7B shape in
 * E4M3, but in BF16 4.63 ms instead of 4.32. */
static __device__ __forceinline__ void feed_open(struct feed *f, struct rows *rows, void *ring, uint32_t depth, int bulk)
{
	(void)bulk;
#ifdef DECODE_BULK
	f->bulk = bulk;
	f->barriers = shared_address(rows + DECODE_WARPS) + threadIdx.x / 32 * DECODE_DEPTH * 8;
	f->parity = 0;
	if (threadIdx.x % 32 < depth)
		barrier_init(f->barriers + 8 * (threadIdx.x % 32), 1);
	barrier_init_fence();
	__syncwarp();
#endif
	f->rows = rows + threadIdx.x / 32;
	f->slots = shared_address(ring) + threadIdx.x / 32 * depth * DECODE_SLOT_BYTES;
	f->depth = depth;
	f->put = f->got = f->held = 0;
	f->board = NULL;
	f->part.n = 0;
}
#endif
