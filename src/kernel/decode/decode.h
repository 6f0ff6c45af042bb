/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations of the decode kernels: the forward pass of one row over the paged KV cache. The KV cache is
 * BF16, and so are weights, or those of layers are E4M3 with a factor per row. Everything else, sums
 * included, is F32, but the vector that E4M3 weights multiply is rounded to FP16. Each SM has one block of
 * DECODE_THREADS with decode_shared() bytes of shared memory.
 *
 * - decode_linear: one linear layer, fused with the norm before it, bias, residual, SwiGLU and adapters.
 * - decode_attend: RoPE (and the head norm), the new row of the KV cache, and attention to the whole
 *   sequence, split over blocks.
 * - decode_token: a whole token, by one persistent grid. The launch is cooperative. The blocks synchronize
 *   at a barrier in device memory between steps, while the next steps' weights are already loading.
 *
 * The KV cache of a layer is a matrix of rows (2 kv_heads head_dim): keys, then values. Position p of the
 * sequence is its row (page[p >> page_bits] << page_bits) + p % (1 << page_bits).
 */
#ifndef KERNEL_DECODE_DECODE_H
#define KERNEL_DECODE_DECODE_H
#include <stdint.h>
#include "kernel/args.h"

enum {
	DECODE_WARPS = 16,
	DECODE_THREADS = DECODE_WARPS * 32,
	DECODE_CHUNK = 256,			/* elements of a row that a warp holds, eight per lane */
	DECODE_CHUNK_FLOATS = DECODE_CHUNK + 8, /* of shared memory for a chunk's part of the vector */
	DECODE_UNIT = 4,			/* chunks that are requested and multiplied together */
	DECODE_SLOT_BYTES = DECODE_UNIT * 2 * DECODE_CHUNK,
	DECODE_DEPTH = 8,	/* maximum number of slots of a warp's ring */
	DECODE_ADAPTERS = 3,	/* maximum number of adapters of a linear layer */
	DECODE_KEYS = 2,	/* keys that a thread has in flight */
	DECODE_SPLIT_KEYS = 64, /* minimum number of keys in a split of the cache */
	DECODE_SPLITS = 64,	/* maximum number of splits of a KV head's cache */
	DECODE_BOARD = 3584,	/* bytes of shared memory for a block's struct board */
	DECODE_STAMPS = 4,	/* per step: begun, staged, computed, all blocks arrived */
	DECODE_NOTES = 96,	/* words of shared memory for a block's notes */
	/* notes, the source of each warp's ring, and two words for each slot */
	DECODE_MISC = (DECODE_NOTES + (12 + 2 * DECODE_DEPTH) * DECODE_WARPS + 3) / 4 * 4
};

/* A linear layer: y = W x + bias + scale * B (A x). Rows are 16-byte aligned: `in` and ld are multiples of
 * 8, or of 16 if W is E4M3. Then there are no adapters. */
struct decode_map {
	DEVICE_PTR(const uint16_t) w;			       /* (out, in), ld: BF16, or E4M3 */
	DEVICE_PTR(const float) w_scale;		       /* (out): factors of E4M3 rows; 0: W is BF16 */
	DEVICE_PTR(const uint16_t) bias;		       /* (out); 0: absent */
	DEVICE_PTR(const uint16_t) a;			       /* (adapters * rank, in), contiguous */
	DEVICE_PTR(const uint16_t) b[DECODE_ADAPTERS];	       /* (rows of y, rank), contiguous */
	uint32_t begin[DECODE_ADAPTERS], end[DECODE_ADAPTERS]; /* rows of y of each adapter */
	uint32_t out, in, ld;
	uint32_t adapters, rank;
	float scale;
};
static_assert(sizeof(struct decode_map) == 104, "layout shared with nvcc");

struct decode_layer {
	struct decode_map qkv, o, gate_up, down;
	DEVICE_PTR(const uint16_t) norm1; /* (hidden) */
	DEVICE_PTR(const uint16_t) norm2;
	DEVICE_PTR(const uint16_t) q_norm; /* (head_dim); 0: absent */
	DEVICE_PTR(const uint16_t) k_norm;
	DEVICE_PTR(uint16_t) kv; /* (rows, 2 kv_heads head_dim) */
};
static_assert(sizeof(struct decode_layer) == 456, "layout shared with nvcc");

enum decode_kind {
	DECODE_PLAIN,  /* out = y */
	DECODE_ADD,    /* out = residual + y */
	DECODE_SWIGLU, /* y is gate, then up: out = silu(gate) * up */
	DECODE_DOWN    /* u = A x */
};

/* Any grid size. With adapters, a launch with DECODE_DOWN precedes the launch of the wanted kind. */
struct decode_linear_args {
	struct decode_map map;
	DEVICE_PTR(const float) x;	  /* (in) */
	DEVICE_PTR(const uint16_t) norm;  /* (in): norm weights for x; 0: no norm */
	DEVICE_PTR(const float) residual; /* (out); may be `out` */
	DEVICE_PTR(float) out;		  /* (out); SWIGLU: (out / 2) */
	DEVICE_PTR(float) u;		  /* (adapters * rank) */
	float eps;
	uint32_t kind;
	uint32_t depth, ring; /* depth and shared-memory offset of the rings */
};
static_assert(sizeof(struct decode_linear_args) == 160, "layout shared with nvcc");

struct decode_heads {
	uint32_t heads, kv_heads, head_dim; /* head_dim: 64 or 128 */
	float eps, scale;
	uint32_t reserved;
};

/* Any grid size. For each query head a split writes (m, l) and a sum. The split that ends last adds all of
 * them in order. */
struct decode_attend_args {
	DEVICE_PTR(const float) qkv;	 /* ((heads + 2 kv_heads) head_dim) */
	DEVICE_PTR(const float) cos_sin; /* (positions, head_dim): cosines, then sines */
	DEVICE_PTR(const uint16_t) q_norm;
	DEVICE_PTR(const uint16_t) k_norm;
	DEVICE_PTR(uint16_t) kv;	/* (rows, 2 kv_heads head_dim): the row of `position` is written */
	DEVICE_PTR(const int32_t) page; /* (position / page size + 1) */
	DEVICE_PTR(float) o;		/* (heads head_dim) */
	DEVICE_PTR(float) part;		/* (DECODE_SPLITS, heads, head_dim + 2) */
	DEVICE_PTR(uint32_t) arrived;	/* (kv_heads): 0 before and after */
	struct decode_heads heads;
	uint32_t position, page_bits;
};
static_assert(sizeof(struct decode_attend_args) == 104, "layout shared with nvcc");

/* Cooperative launch. The lists may be written by work that the stream ended before. position < positions of
 * cos_sin. */
struct decode_token_args {
	DEVICE_PTR(const struct decode_layer) layers;
	DEVICE_PTR(const uint16_t) embed; /* (vocab, hidden) */
	DEVICE_PTR(const uint16_t) norm;  /* (hidden) */
	DEVICE_PTR(const uint16_t) head;  /* (vocab, hidden) */
	DEVICE_PTR(const float) cos_sin;
	DEVICE_PTR(const int32_t)
	token; /* (1): an id, or below 0: the id last[-1 - token]. Bad ids have zeros. */
	DEVICE_PTR(const int32_t) last;	    /* (places) */
	DEVICE_PTR(const int32_t) position; /* (1) */
	DEVICE_PTR(const int32_t) page;	    /* (position / page size + 1) */
	DEVICE_PTR(uint32_t) barrier;	    /* 0 before and after */
	DEVICE_PTR(uint32_t) arrived;	    /* (kv_heads): 0 before and after */
	DEVICE_PTR(float) x;		    /* (hidden): input of a layer */
	DEVICE_PTR(float) x2;		    /* (hidden): after attention */
	DEVICE_PTR(float) qkv;
	DEVICE_PTR(float) o;
	DEVICE_PTR(float) h;	    /* (ffn) */
	DEVICE_PTR(float) u;	    /* (adapters * rank), maximum of all layers; 0: no adapters */
	DEVICE_PTR(float) part;	    /* (DECODE_SPLITS, heads, head_dim + 2) */
	DEVICE_PTR(float) logits;   /* (vocab) */
	DEVICE_PTR(uint64_t) trace; /* clocks of block 0, DECODE_STAMPS per step; 0: none */
	struct decode_heads heads;
	uint32_t layer_count, hidden, vocab, places;
	uint32_t page_bits;
	uint32_t depth, ring; /* depth and shared-memory offset of the rings */
	uint32_t reserved;
};
static_assert(sizeof(struct decode_token_args) == 216, "layout shared with nvcc");

#ifdef __CUDACC__
__host__ __device__
#endif
	static inline uint32_t
	decode_padded(uint32_t in)
{
	return (in + DECODE_CHUNK - 1) / DECODE_CHUNK * DECODE_CHUNK;
}

/* True if a linear layer is too large for the kernels. The kernels need rows times the grid's blocks, and a
 * block's chunks times its warps, to stay below 2^32. */
static inline int decode_refuses_rows(uint64_t out, uint32_t in, uint32_t grid)
{
	return out * grid > UINT32_MAX ||
	       (out / grid + 2) * (decode_padded(in) / DECODE_CHUNK) * DECODE_WARPS > UINT32_MAX;
}

/* True if the kernels do not support the head size. */
static inline int decode_refuses_heads(int64_t dim)
{
	return dim != 64 && dim != 128;
}

/* Floats of a tile of keys or of values. */
#ifdef __CUDACC__
__host__ __device__
#endif
	static inline uint32_t
	decode_tile(uint32_t head_dim)
{
	return DECODE_KEYS * DECODE_THREADS * 8 / head_dim * (head_dim + 8) / 2;
}

/* Floats of shared memory for attention: q, exponentials, tiles, and the sums of each warp. */
static inline uint32_t decode_attend_floats(const struct decode_heads *h)
{
	return h->heads / h->kv_heads * h->head_dim + DECODE_THREADS + 2 * decode_tile(h->head_dim) +
	       DECODE_WARPS * h->head_dim;
}

/* Floats of shared memory that a block needs for a linear layer: the vector, and one partial sum for each row
 * and unit of chunks that overlap. in: words of two bytes of a row of W, so half of the elements if W is
 * E4M3. */
static inline uint32_t decode_work(uint32_t out, uint32_t in, uint32_t grid)
{
	const uint32_t rows = 2 * (out / 2 / grid + 1) + 1; /* gate and up rows are assigned in pairs */
	const uint32_t chunks = decode_padded(in) / DECODE_CHUNK;

	return chunks * DECODE_CHUNK_FLOATS + rows * ((chunks + DECODE_UNIT - 1) / DECODE_UNIT + 1) + 2;
}

/* Bytes of shared memory before the rings, a multiple of 16. work: the maximum of decode_work over the linear
 * layers. u_max: the maximum of adapters * rank, a multiple of 4. heads may be NULL: no attention. */
static inline uint32_t decode_front(const struct decode_heads *h, uint32_t work, uint32_t u_max)
{
	const uint32_t attend = h ? decode_attend_floats(h) : 0;

	work = attend > work ? attend : work;
	/* notes, the board, and the working memory of a step */
	return (4 * (DECODE_MISC + u_max + work) + DECODE_BOARD + 15) / 16 * 16;
}

/* Slots of a ring that fit in a block's shared memory of `most` bytes; 0: none. */
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
