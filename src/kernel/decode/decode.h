/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token at a time at batch 1: what the decode kernels share. Weights and the cache are BF16, everything
 * else is F32; sums are F32. One block an SM, DECODE_THREADS each, decode_shared() bytes of shared memory.
 *
 * - decode_linear: one linear map with what is fused to it: the norm before it, bias, residual, SwiGLU,
 *   adapters.
 * - decode_attend: RoPE (and the head norm), the cache's new row, attention to the whole cache, split over
 *   blocks.
 * - decode_rows: attention of a prompt's rows to the cache.
 * - decode_tokens: whole tokens, one after the other, by a grid that stays: launched together (cooperative),
 *   it meets at a barrier in device memory between steps while the next steps' weights are on their way.
 */
#ifndef KERNEL_DECODE_DECODE_H
#define KERNEL_DECODE_DECODE_H
#include <stdint.h>
#include "kernel/args.h"

enum {
	DECODE_WARPS = 16,
	DECODE_THREADS = DECODE_WARPS * 32,
	DECODE_CHUNK = 256, /* elements of a row that a warp's lanes hold, eight each */
	DECODE_UNIT = 4,    /* chunks that are asked for, and multiplied, together */
	DECODE_SLOT_BYTES = DECODE_UNIT * 2 * DECODE_CHUNK,
	DECODE_DEPTH = 8,	/* slots of a warp's ring, at most */
	DECODE_ADAPTERS = 3,	/* of one map */
	DECODE_KEYS = 2,	/* keys that a thread has in flight */
	DECODE_SPLIT_KEYS = 64, /* a split of the cache has as many, at least */
	DECODE_SPLITS = 64,	/* of one KV head's cache, at most */
	DECODE_STOPS = 8,
	DECODE_BOARD = 3584, /* bytes of shared memory for what a block knows of its tokens */
	DECODE_STAMPS = 4,   /* of a step: begun, staged, computed, all blocks there */
	DECODE_NOTES = 96,   /* words of shared memory that a block keeps notes in */
	DECODE_MISC =
		(DECODE_NOTES + 12 * DECODE_WARPS + 3) / 4 * 4 /* with what each warp's ring is filled from */
};

/* y = W x + bias + scale * B (A x). Rows are 16-byte aligned: `in`, ld are multiples of 8. */
struct decode_map {
	DEVICE_PTR(const uint16_t) w;			       /* (out, in), ld */
	DEVICE_PTR(const uint16_t) bias;		       /* (out); 0: absent */
	DEVICE_PTR(const uint16_t) a;			       /* (adapters * rank, in), without gaps */
	DEVICE_PTR(const uint16_t) b[DECODE_ADAPTERS];	       /* (its rows of y, rank), without gaps */
	uint32_t begin[DECODE_ADAPTERS], end[DECODE_ADAPTERS]; /* its rows of y */
	uint32_t out, in, ld;
	uint32_t adapters, rank;
	float scale;
};
static_assert(sizeof(struct decode_map) == 96, "layout shared with nvcc");

struct decode_layer {
	struct decode_map qkv, o, gate_up, down;
	DEVICE_PTR(const uint16_t) norm1; /* (hidden) */
	DEVICE_PTR(const uint16_t) norm2;
	DEVICE_PTR(const uint16_t) q_norm; /* (head_dim); 0: absent */
	DEVICE_PTR(const uint16_t) k_norm;
	DEVICE_PTR(uint16_t) kv; /* (positions, 2 kv_heads head_dim): keys, then values */
};
static_assert(sizeof(struct decode_layer) == 424, "layout shared with nvcc");

enum decode_kind {
	DECODE_PLAIN,  /* out = y */
	DECODE_ADD,    /* out = residual + y */
	DECODE_SWIGLU, /* y is gate, then up: out = silu(gate) * up */
	DECODE_LOGITS, /* out = y, and best[block]: the largest of ids below `limit`, the lowest of equals */
	DECODE_DOWN    /* u = A x */
};

/* Of one block's rows of logits. */
struct decode_best {
	float value;
	int32_t id;	   /* -1: none of its rows is below the limit */
	uint32_t infinite; /* one is NaN or infinite */
	uint32_t reserved;
};
static_assert(sizeof(struct decode_best) == 16, "layout shared with nvcc");

/* Any grid. Adapters: one launch with DECODE_DOWN, then that of the kind wanted. */
struct decode_linear_args {
	struct decode_map map;
	DEVICE_PTR(const float) x;	     /* (in) */
	DEVICE_PTR(const uint16_t) norm;     /* (in): x is normed before; 0: it is not */
	DEVICE_PTR(const float) residual;    /* (out); may be `out` */
	DEVICE_PTR(float) out;		     /* (out); SWIGLU: (out / 2) */
	DEVICE_PTR(float) u;		     /* (adapters * rank) */
	DEVICE_PTR(struct decode_best) best; /* (grid); LOGITS alone */
	float eps;
	uint32_t kind;
	uint32_t limit;
	uint32_t depth, ring; /* of the rings, and where they begin in shared memory */
	uint32_t reserved;
};
static_assert(sizeof(struct decode_linear_args) == 168, "layout shared with nvcc");

struct decode_heads {
	uint32_t heads, kv_heads, head_dim; /* head_dim: 16, 32, 64, 128 or 256 */
	float eps, scale;
	uint32_t reserved;
};

/* Any grid; q heads' share of a split is (m, l) and a sum, which the split that ends last adds up in their
 * order. */
struct decode_attend_args {
	DEVICE_PTR(const float) qkv;	 /* ((heads + 2 kv_heads) head_dim) */
	DEVICE_PTR(const float) cos_sin; /* (positions, head_dim): head_dim / 2 cosines, as many sines */
	DEVICE_PTR(const uint16_t) q_norm;
	DEVICE_PTR(const uint16_t) k_norm;
	DEVICE_PTR(uint16_t) kv;      /* (positions, 2 kv_heads head_dim): row `position` is written */
	DEVICE_PTR(float) o;	      /* (heads head_dim) */
	DEVICE_PTR(float) part;	      /* (DECODE_SPLITS, heads, head_dim + 2) */
	DEVICE_PTR(uint32_t) arrived; /* (kv_heads): 0 before and after */
	struct decode_heads heads;
	uint32_t position, reserved;
};
static_assert(sizeof(struct decode_attend_args) == 96, "layout shared with nvcc");

/* Rows begin .. begin + rows - 1 of a document, each attending to the cache up to itself; their keys and
 * values are in it. Any grid; shared memory as decode_attend's. */
struct decode_rows_args {
	DEVICE_PTR(const uint16_t) q; /* (rows, heads head_dim), ld_q: rotated */
	DEVICE_PTR(uint16_t) kv;      /* (positions, 2 kv_heads head_dim), without gaps */
	DEVICE_PTR(uint16_t) o;	      /* (rows, heads head_dim), ld_o */
	uint64_t ld_q, ld_o;
	struct decode_heads heads;
	uint32_t rows, begin;
};
static_assert(sizeof(struct decode_rows_args) == 72, "layout shared with nvcc");

struct decode_state {
	int32_t token;	   /* the next to be fed */
	uint32_t position; /* where it comes to stand */
	uint32_t made;	   /* tokens that this launch chose */
	uint32_t stopped;  /* one of them was a stop: no launch does anything after it */
	uint32_t infinite; /* the token of this launch whose logits had NaN or infinity, counted from 1; 0:
			      none */
	uint32_t reserved[3];
};
static_assert(sizeof(struct decode_state) == 32, "layout shared with nvcc");

/* Cooperative. `barrier` is 0 before each launch. position + count <= positions of the cache and of cos_sin.
 */
struct decode_tokens_args {
	DEVICE_PTR(const struct decode_layer) layers;
	DEVICE_PTR(const uint16_t) embed; /* (vocab, hidden) */
	DEVICE_PTR(const uint16_t) norm;  /* (hidden) */
	DEVICE_PTR(const uint16_t) head;  /* (vocab, hidden) */
	DEVICE_PTR(const float) cos_sin;
	DEVICE_PTR(struct decode_state) state;
	DEVICE_PTR(int32_t) chosen;	     /* (count) */
	DEVICE_PTR(struct decode_best) best; /* (grid) */
	DEVICE_PTR(uint32_t) barrier;
	DEVICE_PTR(uint32_t) arrived; /* (kv_heads): 0 before and after */
	DEVICE_PTR(float) x;	      /* (hidden): a layer's input */
	DEVICE_PTR(float) x2;	      /* (hidden): behind attention */
	DEVICE_PTR(float) qkv;
	DEVICE_PTR(float) o;
	DEVICE_PTR(float) h;	    /* (ffn) */
	DEVICE_PTR(float) u;	    /* (adapters * rank), the most of any map; 0: no adapters */
	DEVICE_PTR(float) part;	    /* (DECODE_SPLITS, heads, head_dim + 2) */
	DEVICE_PTR(float) logits;   /* (vocab): of the last token fed */
	DEVICE_PTR(uint64_t) trace; /* clocks of block 0, DECODE_STAMPS a step of the last token; 0: none */
	struct decode_heads heads;
	uint32_t layer_count, hidden, vocab, limit; /* ids below `limit` may be chosen */
	uint32_t count;				    /* tokens to make */
	uint32_t depth, ring;			    /* of the rings, and where they begin in shared memory */
	uint32_t stops;
	int32_t stop[DECODE_STOPS];
};
static_assert(sizeof(struct decode_tokens_args) == 240, "layout shared with nvcc");

#ifdef __CUDACC__
__host__ __device__
#endif
	static inline uint32_t
	decode_padded(uint32_t in)
{
	return (in + DECODE_CHUNK - 1) / DECODE_CHUNK * DECODE_CHUNK;
}

/* Rows times the grid's blocks stay below 2^32, and so do a block's chunks times its warps. */
static inline int decode_refuses_rows(uint64_t out, uint32_t in, uint32_t grid)
{
	return out * grid > UINT32_MAX ||
	       (out / grid + 2) * (decode_padded(in) / DECODE_CHUNK) * DECODE_WARPS > UINT32_MAX;
}

/* Heads of another size than 16, 32, 64, 128 or 256 are not taken. */
static inline int decode_refuses_heads(int64_t dim)
{
	return dim < 16 || dim > 256 || (dim & (dim - 1)) != 0;
}

/* Floats of a tile of keys, or of values. */
#ifdef __CUDACC__
__host__ __device__
#endif
	static inline uint32_t
	decode_tile(uint32_t head_dim)
{
	return DECODE_KEYS * DECODE_THREADS * 8 / head_dim * (head_dim + 8) / 2;
}

/* Floats of shared memory that attention takes, from the begin of the block's: q; powers; tiles; sums of each
 * warp. */
static inline uint32_t decode_attend_floats(const struct decode_heads *h)
{
	return h->heads / h->kv_heads * h->head_dim + DECODE_THREADS + 2 * decode_tile(h->head_dim) +
	       DECODE_WARPS * h->head_dim;
}

/* Floats of shared memory that a block of the grid multiplies by a map in: the vector, and its rows' sums,
 * one for each unit of chunks and row that meet. */
static inline uint32_t decode_work(uint32_t out, uint32_t in, uint32_t grid)
{
	const uint32_t rows = 2 * (out / 2 / grid + 1) + 1; /* gate and up are dealt in pairs */
	const uint32_t chunks = decode_padded(in) / DECODE_CHUNK;

	return decode_padded(in) + rows * ((chunks + DECODE_UNIT - 1) / DECODE_UNIT + 1) + 2;
}

/* Bytes of shared memory before the rings, where maps need `work` at most and have at most u_max adapters *
 * rank, a multiple of 4; heads may be NULL: no attention. A multiple of 16. */
static inline uint32_t decode_front(const struct decode_heads *h, uint32_t work, uint32_t u_max)
{
	const uint32_t attend = h ? decode_attend_floats(h) : 0;

	work = attend > work ? attend : work;
	if (work < 2 * DECODE_THREADS)
		work = 2 * DECODE_THREADS; /* the search for the largest logit */
	/* notes, the board, and what a step works in */
	return (4 * (DECODE_MISC + u_max + work) + DECODE_BOARD + 15) / 16 * 16;
}

/* Slots of a ring that fit in what a block may have of shared memory; 0: none. */
static inline uint32_t decode_depth(uint32_t front, uint32_t most)
{
	uint32_t depth = front < most ? (most - front) / (DECODE_WARPS * DECODE_SLOT_BYTES) : 0;

	return depth > DECODE_DEPTH ? DECODE_DEPTH : depth;
}

static inline uint32_t decode_shared(uint32_t front, uint32_t depth)
{
	return front + DECODE_WARPS * depth * DECODE_SLOT_BYTES;
}
#endif
