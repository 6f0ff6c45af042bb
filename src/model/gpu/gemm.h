/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of products, one a shape, and which of the library's candidates each takes. */
#ifndef MODEL_GPU_GEMM_H
#define MODEL_GPU_GEMM_H
#include "model/gpu/internal.h"

struct gemm_plan {
	struct matmul_shape shape;
	struct matmul_plan *plan;
	bool tuned, recalled; /* recalled: by an algorithm that was not found for it now */
	bool alike;	      /* recalled, of another number of rows */
	bool cached;	      /* recalled, and chosen by another run */
	unsigned times;	      /* alike: done so often */
	unsigned chosen;
	double seconds, first_seconds; /* a product by the chosen and the first candidate; 0: not timed */
};

struct gemm_plans {
	struct matmul *library;
	struct gemm_plan *planned;
	size_t count, room;
	struct gpu_choice *known; /* chosen by a run before */
	size_t known_count;
	char name[64];
};

/* All that a choice hangs on: "NT 8192x4608x3584 bf16 bf16 to bf16, rows 3584 3584 4608, by 256, added,
 * bias". */
void gemm_plans_key(char out[160], const struct matmul_shape *s);

/* Times the library's candidates on these operands and selects the fastest. What D holds is as it was before;
 * where the arena has no room to keep it now, the first heuristic is taken and the next one of this shape is
 * tried again. */
enum status gemm_plans_tune(struct backend *back, struct gemm_plan *p, const struct gemm *g,
			    const struct matmul_operands *o, struct error *err);
/* Plans from the `count`-th on are no more; nothing of them is enqueued. */
void gemm_plans_forget(struct gemm_plans *p, size_t count);
#endif
