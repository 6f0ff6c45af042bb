/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMM by cuBLASLt: plans and search, for probes and for training. Shapes are row-major, as tensors are
 * stored:
 *
 *   D[m x n] = epilogue(alpha * A[m x k] B[k x n] + beta * C[m x n] + bias[n])
 *
 * A is stored m x k (k x m with transpose_a). B is stored k x n (n x k with transpose_b: a linear layer's
 * weight). The column-major library computes D^T = B^T A^T; callers need not know this. In the library's
 * terms the layout is NN if neither is transposed, and TN with transpose_b only. A plan never times: it lists
 * candidates, and the caller times them and selects.
 */
#ifndef GPU_MATMUL_MATMUL_H
#define GPU_MATMUL_MATMUL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "gpu/device/gpu.h"

/* name, text, bytes per element, integer (1) or floating point (0) */
#define MATMUL_TYPES(X)                                                                                      \
	X(F64, "fp64", 8, 0)                                                                                 \
	X(F32, "fp32", 4, 0)                                                                                 \
	X(F16, "fp16", 2, 0)                                                                                 \
	X(BF16, "bf16", 2, 0)                                                                                \
	X(E4M3, "e4m3", 1, 0)                                                                                \
	X(E5M2, "e5m2", 1, 0)                                                                                \
	X(S8, "int8", 1, 1)                                                                                  \
	X(S32, "int32", 4, 1)
#define X(name, ...) MATMUL_##name,
enum matmul_type { MATMUL_TYPES(X) MATMUL_TYPE_COUNT };
#undef X

/* Type in which products are accumulated. TF32 takes FP32 operands. */
enum matmul_compute { MATMUL_COMPUTE_F64, MATMUL_COMPUTE_F32, MATMUL_COMPUTE_TF32, MATMUL_COMPUTE_S32 };

/* bias[n] is added to every row of D before the activation. GELU is the tanh form. */
enum matmul_epilogue {
	MATMUL_PLAIN,
	MATMUL_BIAS,
	MATMUL_RELU,
	MATMUL_RELU_BIAS,
	MATMUL_GELU,
	MATMUL_GELU_BIAS,
	MATMUL_EPILOGUE_COUNT
};

/*
 * Scaling of FP8 operands; the factors are in device memory. TENSOR: one float. ROW: one float per row of A
 * and per column of B. BLOCK32: one UE8M0 byte per 32 elements along k. VEC128: one float per 128 elements
 * along k. BLOCK128: one float per 128 x 128 elements. UNSUPPORTED, with the library's message, if the device
 * or library lacks the mode.
 */
enum matmul_scale {
	MATMUL_SCALE_NONE,
	MATMUL_SCALE_TENSOR,
	MATMUL_SCALE_ROW,
	MATMUL_SCALE_BLOCK32,
	MATMUL_SCALE_VEC128,
	MATMUL_SCALE_BLOCK128,
	MATMUL_SCALE_COUNT
};

struct matmul_shape {
	enum matmul_type a, b, d; /* C has D's type */
	enum matmul_compute compute;
	uint64_t m, n, k;
	bool transpose_a, transpose_b;
	uint64_t row_a, row_b, row_d;	       /* elements from one stored row to the next; 0: packed */
	uint32_t batch;			       /* 0 means 1 */
	uint64_t stride_a, stride_b, stride_d; /* elements from one batch to the next; 0: packed */
	enum matmul_epilogue epilogue;
	enum matmul_type bias;
	enum matmul_scale scale_a, scale_b;
	bool fast_accumulate; /* FP8: partial sums are not promoted to FP32 during the accumulation */
	bool accumulate;      /* beta is not zero: C is read */
	bool whole_sums;    /* split-K adds its partial sums in the compute type, never rounded to D's type */
	unsigned sm_target; /* number of SMs to plan for; 0: all */
	unsigned align_bytes;  /* minimum alignment of A, B, C, D; 0: 256 */
	unsigned cluster_most; /* maximum blocks per cluster, if the library has such an algorithm; 0: any */
};

struct matmul_operands {
	gpu_ptr a, b, c, d; /* c = 0: same as d */
	gpu_ptr bias, scale_a, scale_b;
	double alpha, beta;
};

/* Description of a candidate. Numbers that the library does not report are 0. */
struct matmul_description {
	int id;
	unsigned tile_m, tile_n;     /* of D in the library's view: tile_m along n, tile_n along m */
	unsigned stage_k, stages;    /* depth along k; stages 0: the library decides */
	unsigned split_k, reduction; /* split_k 1: no split, 0: the library decides; reduction bits: 1 in
				      * place, 2 compute type, 4 output type */
	unsigned swizzle, custom, inner;
	unsigned cluster_m, cluster_n; /* 0: the library decides */
	double waves;		       /* tiles divided by the number of tiles that run at once */
	uint64_t workspace_bytes;
	char name[96]; /* e.g. "algo66 128x256 64xauto cluster2x1" */
};

struct matmul; /* library, handle and one workspace; only one stream may use it at a time */
struct matmul_plan;

/* Opens the library (lib_path NULL: search) on the device whose context is current. workspace_bytes 0 means
 * 32 MiB from sm_90 on, else 8 MiB + 128 KiB (docs/explanation/methods/gemm.md, "First heuristic"). Owner:
 * caller, matmul_close. UNAVAILABLE: the library or a symbol is missing. */
enum status matmul_open(struct matmul **mm, struct gpu_device *d, const char *lib_path,
			uint64_t workspace_bytes, struct error *err);
void matmul_close(struct matmul **mm);		  /* call after destroying its plans */
int matmul_version(const struct matmul *mm);	  /* 130101 for 13.1.1 */
const char *matmul_path(const struct matmul *mm); /* path of the library; lent */
uint64_t matmul_workspace_bytes(const struct matmul *mm);

/* Checks the shape and builds the descriptors. No candidate is selected. Owner: caller,
 * matmul_plan_destroy. */
enum status matmul_plan_create(struct matmul_plan **p, struct matmul *mm, const struct matmul_shape *s,
			       struct error *err);
void matmul_plan_destroy(struct matmul_plan **p);

/* Candidate 0 becomes the library's first heuristic and is selected. UNSUPPORTED, with the library's message,
 * if it has none. */
enum status matmul_plan_first(struct matmul_plan *p, struct error *err);
/* Candidates 0..count-1 become the library's first `wanted` heuristics, best first; 0 is selected. Both
 * functions drop candidates whose clusters exceed the shape's cluster_most, unless all exceed it. */
enum status matmul_plan_candidates(struct matmul_plan *p, unsigned wanted, struct error *err);
/* go_on is called before each configuration. If it returns an error, the listing ends with that error. If it
 * sets *enough, the listing ends with the candidates found so far. */
struct matmul_pace {
	enum status (*go_on)(void *arg, bool *enough, struct error *err);
	void *arg;
};
/*
 * Adds every configuration that the library's own check accepts (algorithm ids, tiles, stages, split-K,
 * clusters, swizzle, custom options), without duplicates. It stops at `limit` candidates, or when the pace
 * (NULL: none) ends the listing. Plain configurations come before split-K and unusual options, so a search
 * that is cut short has seen the likely ones.
 */
enum status matmul_plan_exhaust(struct matmul_plan *p, unsigned limit, const struct matmul_pace *pace,
				struct error *err);
unsigned matmul_plan_count(const struct matmul_plan *p);
enum status matmul_plan_select(struct matmul_plan *p, unsigned candidate, struct error *err);
void matmul_plan_describe(const struct matmul_plan *p, unsigned candidate, struct matmul_description *out);
/* The library's internal representation of a candidate. The same library on the same kind of device accepts
 * it again. */
enum { MATMUL_ALGORITHM_WORDS = 8 };
void matmul_plan_algorithm(const struct matmul_plan *p, unsigned candidate,
			   uint64_t out[MATMUL_ALGORITHM_WORDS]);
/* Replaces all candidates by this one and selects it. UNSUPPORTED: the library's check refuses it, and the
 * earlier candidates stay. */
enum status matmul_plan_recall(struct matmul_plan *p, const uint64_t algorithm[MATMUL_ALGORITHM_WORDS],
			       struct error *err);
/* Runs the selected candidate; may be captured. UNSUPPORTED: it does not support these operands. */
enum status matmul_plan_enqueue(struct matmul_plan *p, const struct matmul_operands *o, struct gpu_stream *s,
				struct error *err);

unsigned matmul_type_bytes(enum matmul_type type);
const char *matmul_type_name(enum matmul_type type);
/* Elements from the first to the last of an operand, batches included. */
uint64_t matmul_a_count(const struct matmul_shape *s);
uint64_t matmul_b_count(const struct matmul_shape *s);
uint64_t matmul_d_count(const struct matmul_shape *s);
#endif
