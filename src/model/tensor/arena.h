/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a model: one block, allocated from its beginning. With base NULL it plans: the same calls
 * give the same places, but only sizes count. So the plan equals what is used later.
 */
#ifndef MODEL_TENSOR_ARENA_H
#define MODEL_TENSOR_ARENA_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "model/tensor/tensor.h"

/* name, word, description */
/* clang-format off */
#define MEMORY_KINDS(X)                                                     \
	X(WEIGHTS, "weights", "frozen parameters and tables")               \
	X(SLOTS, "slots", "weights of a layer or two as GEMMs read them")   \
	X(TRAINED, "trained", "parameters that are trained")                \
	X(GRADIENT, "gradient", "gradient of the trained parameters")                           \
	X(OPTIMISER, "optimizer", "moments of the optimizer")                          \
	X(STAGED, "staged", "optimizer states that pass through the device")        \
	X(SAVED, "saved", "activations saved for the backward pass")                \
	X(SCRATCH, "scratch", "temporary matrices within a layer")                  \
	X(LOGITS, "logits", "logits of one chunk of the head")                        \
	X(CACHE, "cache", "KV cache for generation")                  \
	X(WORKSPACE, "workspace", "workspace of single operations")
/* clang-format on */
#define X(name, ...) MEM_##name,
enum memory_kind { MEMORY_KINDS(X) MEM_KINDS };
#undef X
const char *memory_kind_name(enum memory_kind kind);
const char *memory_kind_text(enum memory_kind kind);

enum { ARENA_ALIGN = 256 };

struct arena {
	uint8_t *base; /* lent by the caller; NULL: planning, without a limit by `size` */
	size_t size, used, peak;
	size_t kind_used[MEM_KINDS],
		/* Peak of each kind; they occur at different times, so they do not add up to `peak`. */
		kind_peak[MEM_KINDS];
	size_t kind_at_peak[MEM_KINDS]; /* size of each kind at the overall peak; these add up to `peak` */
};
struct arena_mark {
	size_t used, kind_used[MEM_KINDS];
};

/* Allocates m->rows x m->cols of m->dtype: sets data (not initialized; NULL while planning) and ld = cols.
 * NO_RESOURCE names `name` and the missing size; BAD_INPUT: more than 2^62 bytes. */
enum status arena_mat(struct arena *a, enum memory_kind kind, struct mat *m, const char *name,
		      struct error *err);
/* arena_reset returns everything allocated after the mark. */
struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, const struct arena_mark *mark);
#endif
