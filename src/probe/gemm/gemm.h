/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `gemm`: C = op(A) op(B) (+ bias), one way to do it an engine. All matrices are dense and row-major as
 * stored, leading dimension = stored columns: A is m x k (ta=t: stored k x m), B is k x n (tb=t: stored n x
 * k), C is m x n, bias has n elements, one a column; `batch` such products lie one after the other. Every
 * input element is a function of (seed, stream, position in the stored array), so host and device recompute
 * any of them alone.
 */
#ifndef PROBE_GEMM_GEMM_H
#define PROBE_GEMM_GEMM_H
#include <stdbool.h>
#include <stdint.h>
#include "run/probe.h"

/* name, text, bytes of an input element, bytes of an output element. FP8 writes BF16, INT8 writes INT32,
 * everything else its own type; TF32 is stored as FP32. */
#define GEMM_TYPES(X)                                                                                        \
	X(FP64, "fp64", 8, 8)                                                                                \
	X(FP32, "fp32", 4, 4)                                                                                \
	X(TF32, "tf32", 4, 4)                                                                                \
	X(FP16, "fp16", 2, 2)                                                                                \
	X(BF16, "bf16", 2, 2)                                                                                \
	X(E4M3, "e4m3", 1, 2)                                                                                \
	X(E5M2, "e5m2", 1, 2)                                                                                \
	X(INT8, "int8", 1, 4)
#define X(name, ...) GEMM_##name,
enum gemm_type { GEMM_TYPES(X) GEMM_TYPE_COUNT };
#undef X
enum gemm_trans { GEMM_N, GEMM_T };
enum gemm_accumulate { GEMM_ACCUMULATE_FAST, GEMM_ACCUMULATE_EXACT }; /* FP8 on GPUs alone */
enum gemm_scale { GEMM_SCALE_TENSOR, GEMM_SCALE_BLOCK };	      /* FP8 on GPUs alone */
enum gemm_search { GEMM_SEARCH_FIRST, GEMM_SEARCH_TOP, GEMM_SEARCH_EXHAUSTIVE };
enum gemm_data { GEMM_DATA_RANDOM, GEMM_DATA_ZEROS, GEMM_DATA_INTEGER /* verification's, no option */ };

struct gemm_opts {
	uint32_t type, m, n, k, ta, tb, batch, accumulate, scale, search, data, threads;
	bool bias;
};

/* Streams of the generator. */
enum gemm_stream { GEMM_STREAM_A = 1, GEMM_STREAM_B, GEMM_STREAM_BIAS };

/*
 * Input element by its position in the stored array (all batches counted on), before rounding to the type:
 * integer: nibble i % 8 of word i / 8 of the stream: 0 gives 1, 1 gives -1, all else 0 (density 1/8);
 * random: INT8 the top byte of word i as a signed number, all others random_f32 (uniform in (-1, 1)); zeros:
 * 0.
 */
double gemm_element(uint64_t seed, enum gemm_stream stream, enum gemm_data data, enum gemm_type type,
		    uint64_t i);

const char *gemm_type_name(enum gemm_type type);
unsigned gemm_in_bytes(enum gemm_type type);
unsigned gemm_out_bytes(enum gemm_type type);
/* B's type: A's own, but E4M3 beside an E5M2 A (no library multiplies two E5M2 matrices). */
enum gemm_type gemm_type_b(enum gemm_type type);

/*
 * One set's C seen through two weights, each depending on the position: w[0](p) = 1 + p, w[1](p) = 1 + (p *
 * 2654435761 mod 2^32) >> 20 (1 .. 4096). gemm_weight computes them. All sums are exact 64-bit integers. An
 * element that is not an integer of magnitude k + 1 at most (NaN, infinity, a fraction) enters no sum: it is
 * counted in odd_row and odd_column.
 */
struct gemm_products {
	int64_t *cw[2];	      /* (m) C w, by row */
	int64_t *wc[2];	      /* (n) w^T C, by column */
	uint32_t *odd_row;    /* (m) */
	uint32_t *odd_column; /* (n) */
};
int64_t gemm_weight(unsigned which, uint64_t position);

/* What verification asks of an engine. Every call waits until the device is done. */
struct gemm_access {
	/* Puts `data` into A, B and bias of every set (GEMM_DATA_INTEGER: of set 0 at least). */
	enum status (*fill)(void *state, enum gemm_data data, struct error *err);
	/* Overwrites every set's C by a value that no right answer has (NaN; INT32_MIN for INT8). */
	enum status (*poison)(void *state, struct error *err);
	/* One multiplication on this set, as enqueue does it. */
	enum status (*run)(void *state, unsigned set, struct error *err);
	/* products: sums over C of batch b, by code independent of the library under test. */
	enum status (*products)(void *state, unsigned set, uint32_t b, struct gemm_products *out,
				struct error *err);
	/* Elements of C by index (b * m + row) * n + column, as doubles. */
	enum status (*elements)(void *state, unsigned set, const uint64_t *index, size_t count, double *out,
				struct error *err);
	/* Optional: a hash of all bits of this set's C. */
	enum status (*hash)(void *state, unsigned set, uint64_t *out, struct error *err);
	/* Compares all of this set's C with set 0's: a == b, or |a - b| <= tolerance; NaN differs. Bitwise
	 * equality (a hash) is enough for a yes. */
	enum status (*differences)(void *state, unsigned set, double tolerance, uint64_t *count,
				   uint64_t *first_index, struct error *err);
};

/* Bytes of one A, B and C. */
double gemm_set_bytes(const struct gemm_opts *o);

enum { GEMM_SAMPLES = 64 }; /* elements of the random pass */

/* First member of every engine's state: what verify uses. */
struct gemm {
	struct gemm_opts opts;
	uint64_t seed;
	const struct gemm_access *access;
	unsigned sets;	  /* A, B, C rotated by enqueue: set i % sets; all hold the same inputs */
	uint32_t written; /* bit a set (OPERAND_SETS_MAX): enqueue wrote its C since the last poison; enqueue
			   * sets it
			   */
	uint64_t hash;	  /* of the C that verification accepted; valid when hashed */
	bool hashed;
	bool integer_done; /* the integer pass went well; select clears it: each variant is passed once */
	bool ready;	   /* the first verify was done */
	/* Threads that verification computes on: an engine's own, or verify's for as long as it runs; NULL:
	 * the caller's alone. */
	struct cpu_pool *pool;
	/* What is right, kept since it is the same for every variant; gemm_end frees it. */
	struct gemm_products right;
	bool right_known, samples_known;
	struct gemm_sample {
		double exact, magnitude;
	} sample[GEMM_SAMPLES];
};

/* Fills the common part. seed from the bench. */
void gemm_begin(struct gemm *g, const struct bench *b, const struct gemm_opts *o,
		const struct gemm_access *access, unsigned sets);
/* Frees what verification kept; an engine's release calls it. Fine on a zeroed one. */
void gemm_end(struct gemm *g);

/*
 * The probe's verify (probe/attention/verify/verify.c): first the outputs that timing left, then, once a
 * variant, the integer pass and a random pass; leaves the case's own data in place and every C poisoned, so
 * that what timing leaves is its own.
 */
enum status gemm_verify(void *state, struct wrong *wrong, struct error *err);

/*
 * Its parts. Integer pass (check.c): fills set 0 with integers, runs once, holds C w and w^T C against A (B
 * w) and (w^T A) B in 64-bit integers; every element enters it; a wrong one is counted and found by row and
 * column.
 */
enum status gemm_check_integer(struct gemm *g, struct wrong *wrong, struct error *err);
/* (expect.c) The right products of batch b, for integer data; arrays of out as gemm_products has them, odd_*
 * left alone.
 */
enum status gemm_expected(const struct gemm *g, uint32_t b, struct gemm_products *out, struct error *err);
/* Random pass (sample.c): GEMM_SAMPLES elements of this set's C against double-precision dot products. */
enum status gemm_check_samples(struct gemm *g, unsigned set, struct wrong *wrong, struct error *err);
/* The right value of C[b](row, column) in double, and the sum of the absolute products. */
double gemm_exact(const struct gemm *g, enum gemm_data data, uint32_t b, uint32_t row, uint32_t column,
		  double *magnitude);
/* |C - exact| allowed for a sum of k products whose absolute values sum to `magnitude`: METHODS "GEMM
 * tolerance". */
double gemm_tolerance(enum gemm_type type, uint32_t k, double exact, double magnitude);
/* x as the input type holds it (nearest even; E4M3 and E5M2 saturate); as the output type holds it. */
double gemm_round_in(enum gemm_type type, double x);
double gemm_round_out(enum gemm_type type, double x);
/* Element i of an array of the output type, as a double. */
double gemm_value_out(enum gemm_type type, const void *c, uint64_t i);
/* Counts a wrong element; the first is kept with its place. */
void gemm_note(const struct gemm *g, struct wrong *w, uint32_t b, uint32_t row, uint32_t column,
	       double expected, double found);
/* C products of row-major double/float/int32 arrays on the host: what a CPU engine's `products` calls. */
enum status gemm_products_host(const struct gemm *g, const void *c, struct gemm_products *out,
			       struct error *err);

/* name, unit, kind, better, help: the probe's own fields. Engines fill what they know. */
#define GEMM_FIELDS(X)                                                                                       \
	X(library, "", TEXT, 0, "library that multiplied: version and file")                                 \
	X(library_config, "", TEXT, 0, "how the library says it was built, and the core it chose")           \
	X(instruction_set, "", TEXT, 0, "instruction set the library says it used")                          \
	X(kernels, "", TEXT, 0, "set of kernels that OpenBLAS chose for this CPU (openblas_get_corename)")   \
	X(rotated_sets, "", U64, 0, "sets of A, B and C that the iterations rotate over")                    \
	X(workspace_bytes, "B", U64, 0, "workspace the library was given")                                   \
	X(algorithm, "", U64, 0, "the library's number of the algorithm first chosen")                       \
	X(tile, "", TEXT, 0, "tile of C a block computes, as the library tells it")                          \
	X(stages, "", TEXT, 0, "depth along k and stages of its pipeline, as the library tells them")        \
	X(cluster, "", TEXT, 0, "blocks that share their tiles, as the library tells it")                    \
	X(swizzle, "", U64, 0, "order of the tiles, by the library's number")                                \
	X(waves, "", F64, 0, "tiles over what the device holds at once, as the library tells it")            \
	X(grid, "", U64, 0, "tiles or blocks launched")                                                      \
	X(split_k, "", U64, 0, "parts of k summed apart")                                                    \
	X(candidates, "", U64, 0, "algorithms the library offered")
#define X(name, ...) GEMM_FIELD_##name,
enum gemm_field { GEMM_FIELDS(X) GEMM_FIELD_COUNT };
#undef X
extern const struct field gemm_fields[];

extern const struct engine gemm_cublaslt_engine;
#endif
