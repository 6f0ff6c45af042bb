/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM plans, one per shape, and cuBLASLt's candidate that each uses. */
#ifndef MODEL_GPU_GEMM_H
#define MODEL_GPU_GEMM_H
#include "model/gpu/internal.h"

struct gemm_plan {
	struct matmul_shape shape;
	struct matmul_plan *plan;
	bool tuned, recalled; /* recalled: the algorithm was not chosen for this plan by timing */
	bool alike;	      /* recalled from a GEMM with a similar number of rows */
	bool cached;	      /* recalled from another run */
	unsigned times;	      /* number of runs, counted while alike */
	unsigned chosen;
	double seconds, first_seconds; /* time with the chosen and with the first candidate; 0: not timed */
};

struct gemm_plans {
	struct matmul *library;
	struct gemm_plan *planned;
	size_t count, room;
	struct gpu_choice *known; /* choices of earlier runs */
	size_t known_count;
	char name[64];
};

/* Everything that a choice depends on: "NT 8192x4608x3584 bf16 bf16 to bf16, rows 3584 3584 4608, by 256,
 * added, bias". */
void gemm_plans_key(char out[160], const struct matmul_shape *s);

/* Times the library's candidates with these operands and selects the fastest. The contents of D are
 * preserved. If the arena has no room to save them, the first candidate is used, and the next GEMM of this
 * shape tries again. */
enum status gemm_plans_tune(struct backend *back, struct gemm_plan *p, const struct gemm *g,
			    const struct matmul_operands *o, struct error *err);
/* Runs a GEMM by cuBLASLt. before: back->cost.flop without its cost. With weights in E4M3, a is E4M3 too. */
enum status gemm_plans_run(struct backend *back, const struct gemm *g, double before, struct error *err);

/* GEMMs by assay's own kernels (gemm_few_rows.c). h: matrix of rows 0, or the result of SwiGLU. */
bool few_rows_take(const struct gpu_state *g, const struct gemm *m, const struct mat *h);
enum status few_rows_run(struct backend *back, const struct gemm *m, const struct mat *h, struct error *err);
/* Removes the plans from number `count` on. None of them may be enqueued. */
void gemm_plans_forget(struct gemm_plans *p, size_t count);
#endif
