/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All memory of a model at work: one block, handed out from its begin. With base NULL it plans: the same
 * calls give the same places, sizes alone. So the plan's table is the arena that is used.
 */
#ifndef MODEL_TENSOR_ARENA_H
#define MODEL_TENSOR_ARENA_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "model/tensor/tensor.h"

/* name, what it is */
/* clang-format off */
#define MEMORY_KINDS(X)                                                     \
	X(WEIGHTS, "weights", "frozen parameters and tables")               \
	X(TRAINED, "trained", "parameters that are trained")                \
	X(GRADIENT, "gradient", "their gradient")                           \
	X(OPTIMISER, "optimiser", "their moments")                          \
	X(SAVED, "saved", "what forward keeps for backward")                \
	X(SCRATCH, "scratch", "what lives within a layer")                  \
	X(LOGITS, "logits", "one chunk of the head")                        \
	X(CACHE, "cache", "keys and values of generation")                  \
	X(WORKSPACE, "workspace", "what single operations need")
/* clang-format on */
#define X(name, ...) MEM_##name,
enum memory_kind { MEMORY_KINDS(X) MEM_KINDS };
#undef X
const char *memory_kind_name(enum memory_kind kind);
const char *memory_kind_text(enum memory_kind kind);

enum { ARENA_ALIGN = 256 };

struct arena {
	uint8_t *base; /* lent by the caller; NULL: planning, `size` is no limit */
	size_t size, used, peak;
	size_t kind_used[MEM_KINDS],
		kind_peak[MEM_KINDS];	/* kinds peak at different times: no sum of peaks */
	size_t kind_at_peak[MEM_KINDS]; /* these add up to `peak` */
};
struct arena_mark {
	size_t used, kind_used[MEM_KINDS];
};

/* Place for m->rows x m->cols of m->dtype: sets data (uninitialised; NULL while planning) and ld = cols.
 * NO_RESOURCE names `name` and what is missing; BAD_INPUT where its bytes pass 2^62. */
enum status arena_mat(struct arena *a, enum memory_kind kind, struct mat *m, const char *name,
		      struct error *err);
/* Everything placed after the mark is given back at once. */
struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, const struct arena_mark *mark);
#endif
