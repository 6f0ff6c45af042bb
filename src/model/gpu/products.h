/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of products, one a shape, and which of the library's candidates each takes. */
#ifndef MODEL_GPU_PRODUCTS_H
#define MODEL_GPU_PRODUCTS_H
#include "model/gpu/internal.h"

struct planned {
	struct matmul_shape shape;
	struct matmul_plan *plan;
	bool tuned;
	unsigned chosen;
	double seconds, first_seconds; /* a product by the chosen and the first candidate; 0: not timed */
};

struct products {
	struct matmul *library;
	struct planned *planned;
	size_t count, room;
	char name[64];
};

/* Times the library's candidates on these operands and selects the fastest. What D holds is as it was before;
 * where the arena has no room to keep it, the first heuristic stays. */
enum status products_tune(struct back *back, struct planned *p, const struct gemm *g,
			  const struct matmul_operands *o, struct error *err);
#endif
