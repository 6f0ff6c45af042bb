/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our matrix plans and memory kernels as a shared library, for tests/oracles/ (pairs.py): PyTorch and we run
 * in one process, on one context, one stream, the same arrays and the same cuBLASLt file, so that the work is
 * all that differs. Calls return 0, or where they return a pointer or a number that, else `text` (of `size`)
 * says why not.
 */
#ifndef TESTS_GPU_PAIRS_H
#define TESTS_GPU_PAIRS_H
#include <stddef.h>
#include <stdint.h>

struct pairs;

/* On the device whose primary context PyTorch uses (NULL: CUDA's first). Owner: caller, pairs_close. */
struct pairs *pairs_open(const char *pci, char *text, size_t size);
void pairs_close(struct pairs *p); /* after its moves */

/* The held clock between stamp 0 and stamp 1 of a slot, both on `stream` (a CUstream); read after the stream
 * was waited for. */
enum { PAIRS_SLOTS = 16 };
int pairs_stamp(struct pairs *p, unsigned slot, unsigned which, void *stream, char *text, size_t size);
int pairs_clock(struct pairs *p, unsigned slot, double *hz, char *text, size_t size);
/* Host nanoseconds that each of `count` launches of an empty kernel took to enqueue. */
int pairs_launches(struct pairs *p, void *stream, unsigned count, double *ns, char *text, size_t size);

/* Matrix products (pairs_matmul.c). */
struct pairs_shape {
	const char *a, *b, *d; /* "bf16" .. as gpu/matmul/matmul.h names types */
	const char *compute;   /* "fp64", "fp32", "tf32", "int32" */
	uint64_t m, n, k;
	int32_t transpose_a, transpose_b, fast_accumulate, scaled;
	uint32_t candidates; /* heuristics asked for */
};

/* Opens the library that the plans come from, once. lib_path NULL: as assay finds it. */
int pairs_matmul(struct pairs *p, const char *lib_path, char *text, size_t size);
int pairs_version(const struct pairs *p); /* of that library; 0 before */
/* Number of candidates, or 0. */
unsigned pairs_plan(struct pairs *p, const struct pairs_shape *s, char *text, size_t size);
/* The candidate's name into `text`. */
int pairs_select(struct pairs *p, unsigned candidate, char *text, size_t size);
/* Device addresses. */
int pairs_run(struct pairs *p, uint64_t a, uint64_t b, uint64_t d, uint64_t scale_a, uint64_t scale_b,
	      void *stream, char *text, size_t size);

/* Memory (pairs_move.c): a kernel of gpu/memory/move.h in one launch shape over the caller's arrays. */
struct pairs_move;
struct pairs_arrays { /* device addresses; what the operation does not use may be 0 */
	uint64_t in0, in1, out;
	uint64_t partial, partial_count; /* read, dot: doubles */
	uint64_t count;			 /* floats of an array */
	float factor;			 /* scale, triad; write: the value */
};
struct pairs_launch {  /* as struct move_shape says */
	uint32_t rung; /* 0: the device's own shape number `index`, the rest does not count; 11: bulk */
	uint32_t index;
	uint32_t threads, per_sm, resident;
	uint32_t tile_bytes, stages, evict_first; /* bulk */
};

/* Ready to launch, its name in `text`. Arrays are lent. Owner: caller, pairs_move_close. */
struct pairs_move *pairs_move_open(struct pairs *p, const char *op, const struct pairs_launch *shape,
				   const struct pairs_arrays *arrays, char *text, size_t size);
void pairs_move_close(struct pairs_move *m);
int pairs_move_run(struct pairs_move *m, void *stream, char *text, size_t size);
/* What the last read or dot summed; waits. */
int pairs_move_sum(struct pairs_move *m, double *sum, char *text, size_t size);

/* The driver's own: copy and fill on the device, copies over the link (host memory pinned by the caller). */
int pairs_copy(struct pairs *p, uint64_t to, uint64_t from, uint64_t bytes, void *stream, char *text,
	       size_t size);
int pairs_fill(struct pairs *p, uint64_t to, uint32_t word, uint64_t words, void *stream, char *text,
	       size_t size);
int pairs_copy_to(struct pairs *p, uint64_t to, const void *from, uint64_t bytes, void *stream, char *text,
		  size_t size);
int pairs_copy_from(struct pairs *p, void *to, uint64_t from, uint64_t bytes, void *stream, char *text,
		    size_t size);

/* Attention forward (pairs_attention.c): the candidates of gpu/attention/own_forward.h over the caller's tensors,
 * which are dense [batch][heads][rows][head_dim]; log-sum-exp is written. */
struct pairs_attention;
struct pairs_attention_shape {
	const char *type, *out_type, *mask; /* as gpu/attention/problem.h names them */
	uint32_t batch, heads, kv_heads, q_len, kv_len, head_dim;
};
struct pairs_attention_arrays { /* device addresses; FP8's scales: 0 elsewhere */
	uint64_t q, k, v, o, lse;
	uint64_t descale_q, descale_k, descale_v, scale_o;
};

/* Owner: caller, pairs_attention_close, before pairs_close. */
struct pairs_attention *pairs_attention_open(struct pairs *p, const struct pairs_attention_shape *s,
					     char *text, size_t size);
/* Block-sparse, query blocks of 128 and key blocks of `k_block` rows: `map` has a byte a block, [batch][heads]
 * [query block][key block], 0 where it is dropped, on the device for the life of this. The kernel's name into
 * `text`; no candidates. Owner: caller, as above. */
struct pairs_attention *pairs_attention_open_map(struct pairs *p, const struct pairs_attention_shape *s,
						 uint64_t map, uint32_t k_block, char *text, size_t size);
/* Makes the block lists by the map; before the first run, and again where that is to be timed. */
int pairs_attention_lists(struct pairs_attention *a, void *stream, char *text, size_t size);
void pairs_attention_close(struct pairs_attention *a); /* NULL: nothing */
/* Of a dense one: 0 of a block-sparse one. */
unsigned pairs_attention_count(const struct pairs_attention *a);
/* The candidate's name into `text`. */
int pairs_attention_select(struct pairs_attention *a, unsigned candidate, char *text, size_t size);
int pairs_attention_run(struct pairs_attention *a, const struct pairs_attention_arrays *x, void *stream,
			char *text, size_t size);
#endif
