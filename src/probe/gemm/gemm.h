/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `gemm`: C = op(A) op(B) (+ bias); each engine is one implementation. All matrices are dense and
 * row-major as stored, and the leading dimension is the number of stored columns. A is m x k (ta=t: stored k
 * x m), B is k x n (tb=t: stored n x k), C is m x n. The bias has n elements, one per column. The matrices of
 * a batch are contiguous. Every input element is a function of (seed, stream, position in the stored array),
 * so host and device can recompute any element alone.
 */
#ifndef PROBE_GEMM_GEMM_H
#define PROBE_GEMM_GEMM_H
#include <stdbool.h>
#include <stdint.h>
#include "run/probe.h"

/* name, text, bytes of an input element, bytes of an output element. FP8 inputs give BF16 output, INT8 inputs
 * give INT32; all others give their own type. TF32 is stored as FP32. */
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
enum gemm_accumulate { GEMM_ACCUMULATE_FAST, GEMM_ACCUMULATE_EXACT }; /* only for FP8 on GPUs */
enum gemm_scale { GEMM_SCALE_TENSOR, GEMM_SCALE_BLOCK };	      /* only for FP8 on GPUs */
enum gemm_search { GEMM_SEARCH_FIRST, GEMM_SEARCH_TOP, GEMM_SEARCH_EXHAUSTIVE };
enum gemm_data { GEMM_DATA_RANDOM, GEMM_DATA_ZEROS, GEMM_DATA_INTEGER /* for verification, not an option */ };

struct gemm_opts {
	uint32_t type, m, n, k, ta, tb, batch, accumulate, scale, search, data, threads;
	bool bias;
};

/* Streams of the generator. */
enum gemm_stream { GEMM_STREAM_A = 1, GEMM_STREAM_B, GEMM_STREAM_BIAS };

/*
 * Input element by its position in the stored array, where all batches count as one array; before rounding to
 * the type. integer: nibble i % 8 of word i / 8 of the stream: 0 gives 1, 1 gives -1, all others give 0
 * (density 1/8). random: for INT8 the top byte of word i as a signed number; for all others random_f32
 * (uniform in (-1, 1)). zeros: 0.
 */
double gemm_element(uint64_t seed, enum gemm_stream stream, enum gemm_data data, enum gemm_type type,
		    uint64_t i);

const char *gemm_type_name(enum gemm_type type);
unsigned gemm_in_bytes(enum gemm_type type);
unsigned gemm_out_bytes(enum gemm_type type);
/* Type of B: the same as A's, but E4M3 if A is E5M2 (no library multiplies two E5M2 matrices). */
enum gemm_type gemm_type_b(enum gemm_type type);

/*
 * Sums over one set's C under two weights that depend on the position: w[0](p) = 1 + p, w[1](p) = 1 + (p *
 * 2654435761 mod 2^32) >> 20 (1 .. 4096), as gemm_weight computes them. All sums are exact 64-bit integers.
 * An element that is not an integer of magnitude k + 1 at most (NaN, infinity, a fraction) enters no sum;
 * odd_row and odd_column count it.
 */
struct gemm_products {
	int64_t *cw[2];	      /* (m) C w, by row */
	int64_t *wc[2];	      /* (n) w^T C, by column */
	uint32_t *odd_row;    /* (m) */
	uint32_t *odd_column; /* (n) */
};
int64_t gemm_weight(unsigned which, uint64_t position);

/* Functions that verification needs from an engine. Each waits until the device is done. */
struct gemm_access {
	/* Fills A, B and bias of every set with `data` (GEMM_DATA_INTEGER: at least those of set 0). */
	enum status (*fill)(void *state, enum gemm_data data, struct error *err);
	/* Overwrites every set's C with a value that no correct result has (NaN; INT32_MIN for INT8). */
	enum status (*poison)(void *state, struct error *err);
	/* Runs one GEMM on this set, as enqueue does. */
	enum status (*run)(void *state, unsigned set, struct error *err);
	/* Sums over C of batch b, by code independent of the library under test. */
	enum status (*products)(void *state, unsigned set, uint32_t b, struct gemm_products *out,
				struct error *err);
	/* Elements of C, as doubles, by their index (b * m + row) * n + column. */
	enum status (*elements)(void *state, unsigned set, const uint64_t *index, size_t count, double *out,
				struct error *err);
	/* Optional: a hash of all bits of this set's C. */
	enum status (*hash)(void *state, unsigned set, uint64_t *out, struct error *err);
	/* Compares all of this set's C with set 0's: a == b, or |a - b| <= tolerance; NaN differs. An engine
	 * may return at once if both are equal bit for bit (by a hash). */
	enum status (*differences)(void *state, unsigned set, double tolerance, uint64_t *count,
				   uint64_t *first_index, struct error *err);
};

enum { GEMM_SAMPLES = 64 }; /* elements of the random pass */

/* First member of every engine's state; verify uses it. */
struct gemm {
	struct gemm_opts opts;
	uint64_t seed;
	const struct gemm_access *access;
	/* sets of A, B and C over which enqueue rotates: set i % sets; all have the same inputs */
	unsigned sets;
	/* one bit per set (OPERAND_SETS_MAX): enqueue sets it when it writes the set's C; poisoning clears
	 * it */
	uint32_t written;
	uint64_t hash; /* hash of the C that verification accepted; valid if hashed is true */
	bool hashed;
	/* the integer pass succeeded; select clears it, so that each variant is checked once */
	bool integer_done;
	bool ready; /* verify has run once */
	/* Threads for verification: the engine's own, or threads that verify creates while it runs. NULL:
	 * only the calling thread. */
	struct cpu_pool *pool;
	/* Cached correct values, which are the same for every variant; gemm_end frees them. */
	struct gemm_products right;
	bool right_known, samples_known;
	struct gemm_sample {
		double exact, magnitude;
	} sample[GEMM_SAMPLES];
};

/* Initialises the common part; the seed is the bench's. */
void gemm_begin(struct gemm *g, const struct bench *b, const struct gemm_opts *o,
		const struct gemm_access *access, unsigned sets);
/* Frees the cached values of verification. An engine's release calls it. Accepts a zeroed struct. */
void gemm_end(struct gemm *g);

/*
 * The probe's verify (verify.c). It first checks the output of the timed iterations. Then, once per variant,
 * it runs the integer pass and the random pass. It leaves the case's own data in the inputs and every C
 * poisoned, so that the next output comes from the timed phases.
 */
enum status gemm_verify(void *state, struct wrong *wrong, struct error *err);

/*
 * The parts of gemm_verify. Integer pass (check.c): fills set 0 with integers, runs once, and compares C w
 * with A (B w) and w^T C with (w^T A) B in 64-bit integers. Every element enters these sums. A wrong element
 * is counted, and located by row and column.
 */
enum status gemm_check_integer(struct gemm *g, struct wrong *wrong, struct error *err);
/* (expect.c) Correct sums of batch b for integer data. The arrays of out have the sizes given at
 * gemm_products; odd_* are not changed. */
enum status gemm_expected(const struct gemm *g, uint32_t b, struct gemm_products *out, struct error *err);
/* Random pass (sample.c): compares GEMM_SAMPLES elements of this set's C with dot products in double
 * precision. */
enum status gemm_check_samples(struct gemm *g, unsigned set, struct wrong *wrong, struct error *err);
/* Correct value of C[b](row, column) in double precision; *magnitude is the sum of the absolute products. */
double gemm_exact(const struct gemm *g, enum gemm_data data, uint32_t b, uint32_t row, uint32_t column,
		  double *magnitude);
/* Allowed |C - exact| for a sum of k products whose absolute values sum to `magnitude`:
 * docs/explanation/methods/cpu-probes.md, "GEMM tolerance". */
double gemm_tolerance(enum gemm_type type, uint32_t k, double exact, double magnitude);
/* x rounded to the input type (to nearest even; E4M3 and E5M2 saturate), or to the output type. */
double gemm_round_in(enum gemm_type type, double x);
double gemm_round_out(enum gemm_type type, double x);
/* Element i of an array of the output type, as a double. */
double gemm_value_out(enum gemm_type type, const void *c, uint64_t i);
/* Counts a wrong element; records values and place of the first one. */
void gemm_note(const struct gemm *g, struct wrong *w, uint32_t b, uint32_t row, uint32_t column,
	       double expected, double found);
/* Sums over a C in host memory (row-major double, float or int32). CPU engines use it as their `products`. */
enum status gemm_products_host(const struct gemm *g, const void *c, struct gemm_products *out,
			       struct error *err);

/* name, unit, kind, better, help: the probe's own fields. Engines set the fields that apply to them. */
#define GEMM_FIELDS(X)                                                                                       \
	X(library, "", TEXT, 0, "library that computed the GEMM: version and file")                          \
	X(library_config, "", TEXT, 0,                                                                       \
	  "the library's own description of its build, and the CPU core type it selected")                   \
	X(instruction_set, "", TEXT, 0, "instruction set that the library reports")                          \
	X(kernels, "", TEXT, 0,                                                                              \
	  "set of kernels that OpenBLAS selected for this CPU (openblas_get_corename)")                      \
	X(rotated_sets, "", U64, 0, "number of sets of A, B and C over which iterations rotate")             \
	X(workspace_bytes, "B", U64, 0, "size of the library's workspace")                                   \
	X(algorithm, "", U64, 0, "the library's number of the algorithm it selects first")                   \
	X(tile, "", TEXT, 0, "tile of C that a block computes, as the library reports it")                   \
	X(stages, "", TEXT, 0, "depth along k and number of pipeline stages, as the library reports them")   \
	X(cluster, "", TEXT, 0, "blocks per cluster, as the library reports it")                             \
	X(swizzle, "", U64, 0, "the library's number for the order of the tiles")                            \
	X(waves, "", F64, 0,                                                                                 \
	  "number of tiles divided by the tiles that fit on the device at once, as the library reports it")  \
	X(grid, "", U64, 0, "number of tiles or blocks launched")                                            \
	X(split_k, "", U64, 0, "number of parts of k that are summed separately")                            \
	X(candidates, "", U64, 0, "number of algorithms that the library offered")
#define X(name, ...) GEMM_FIELD_##name,
enum gemm_field { GEMM_FIELDS(X) GEMM_FIELD_COUNT };
#undef X
extern const struct field gemm_fields[];

extern const struct engine gemm_cublaslt_engine;
#endif
