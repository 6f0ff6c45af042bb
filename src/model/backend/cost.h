/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost and workspace of operations. The back ends that compute and the one that plans share these functions.
 * FLOP are those of GEMMs and attention; docs/explanation/methods/model-step.md derives a step's.
 */
#ifndef MODEL_BACKEND_COST_H
#define MODEL_BACKEND_COST_H
#include "model/backend/ops.h"

void cost_add(struct op_cost *to, const struct op_cost *more);
void cost_gemm(struct backend *back, const struct gemm *g);
/* Pairs that the causal mask keeps: counted once forward, and 2.5 times backward (P is recomputed). */
void cost_attention(struct backend *back, const struct attention *at, const struct batch *b, bool backward);
/* Adds `times` reads or writes of every element of m. */
void cost_touch(struct backend *back, const struct mat *m, double times);

/* Adds the bytes of a step of AdamW: the gradient is read, the other operands are read and written. */
void cost_adamw(struct backend *back, const struct adamw_part *p);
void cost_refresh(struct backend *back, const struct live_range *range);
/* The bytes that a lane copies; they belong to no part of the main stream's time. */
void cost_lane(struct backend *back, const struct lane_copies *copies);
void cost_slot_fill(struct backend *back, const struct slot_fill *fill);

enum { ATTENTION_ROWS = 64 };  /* queries that a CPU thread processes at once */
enum { REDUCE_BLOCK = 65536 }; /* elements per partial sum */
/* Allocate the workspace of operations, for a CPU or a GPU according to back->kind. The caller releases it
 * with the arena's mark. */
enum status workspace_attention(struct backend *back, const struct batch *b, bool backward, struct mat *tile,
				struct error *err);
/* A CPU thread attends this many rows of a sequence to this many keys at once. */
enum { CPU_PAGED_ROWS = 8, CPU_PAGED_TILE = 64 };
/* Allocates the memory of steps within the limits. */
enum status workspace_paged(struct backend *back, const struct attention *at, const struct paged_limits *most,
			    struct paged_room *room, struct error *err);
/* Where the lists and the workspace of a sample lie in a GPU's room->sampling, in bytes. */
struct sampling_places {
	uint64_t row, bias, mask, part, tops, bins, end;
	int64_t biases; /* most biases of all rows together */
};
struct sampling_places sampling_places_of(const struct paged_limits *most);
/* Allocates room->sampling of a GPU. */
enum status workspace_sampling(struct backend *back, struct paged_room *room, struct error *err);
/* Causal attention of the step's rows to the keys of their sequences. Needs begin and keys in host memory. */
void cost_paged(struct backend *back, const struct attention *at, const struct paged_rows *rows);
/* Workspace of a GEMM with quantized weights: x is quantized too. */
enum status workspace_blocks(struct backend *back, const struct gemm *g, struct mat *room, struct error *err);
/* GPU only: rows of a GEMM with E4M3 weights in E4M3, with their factors. */
enum status workspace_e4m3(struct backend *back, const struct gemm *g, struct mat *rows, struct error *err);
/* Reads weights once and writes them in E4M3, and transposed unless that is absent. */
void cost_quantize(struct backend *back, const struct mat *from, const struct mat *transposed);
/* CPU only: numbers of some rows of a linear layer in 4 bits that becomes E4M3. */
enum status workspace_slot_numbers(struct backend *back, const struct slot_part *part, struct mat *rows,
				   struct error *err);
/* GPU only: the copy in E4M3 along k that an operand of a GEMM in FP8 has, or NULL; room for one, with its
 * rows along k. along_rows: k is x's rows. */
const struct mat *workspace_fp8_copy(const struct mat *x, bool along_rows);
enum status workspace_fp8_rows(struct backend *back, const struct mat *x, bool along_rows, struct mat *q,
			       struct error *err);
/* CPU only: the operands of a GEMM in FP8, as numbers. */
enum status workspace_fp8_numbers(struct backend *back, const struct gemm *g, struct mat *a, struct mat *b,
				  struct error *err);
/* GPU only: memory that double quantization needs besides the result. rows 0: none. */
enum status workspace_quantize(struct backend *back, const struct stored *to, struct mat *room,
			       struct error *err);
/* Rows of the lists of a micro-batch on a GPU: token, position, target, trained, starts, order. There is
 * room for any division of the rows into sequences. */
enum { BATCH_TOKEN, BATCH_POSITION, BATCH_TARGET, BATCH_TRAINED, BATCH_STARTS, BATCH_ORDER, BATCH_LISTS };
enum status workspace_batch(struct backend *back, const struct batch *b, struct mat *lists,
			    struct error *err);
/* Allocates back->lists for micro-batches of at most `rows` rows. There are two: one is copied while the
 * other is in use. No effect on a CPU. */
enum status workspace_lists(struct backend *back, int64_t rows, struct error *err);
static inline bool lists_hold(const struct backend *back, int64_t rows)
{
	return back->lists[1].rows && rows < back->lists[1].cols;
}
/* GPU only: partial sums of at most `rows` blocks over columns; workspace of attention's backward pass. */
enum status workspace_sums(struct backend *back, int64_t rows, int64_t cols, struct mat *sums,
			   struct error *err);
uint64_t workspace_attention_bytes(const struct attention *at, int64_t tokens);
enum status workspace_attention_bwd(struct backend *back, const struct attention *at, const struct batch *b,
				    struct mat *room, struct error *err);
/* A GPU stores lse per sequence, padded to the longest sequence. That may need up to this many times the
 * rows. */
enum { ATTENTION_LSE_ROOM = 4 };
enum status workspace_reduce(struct backend *back, const struct mat *x, struct mat *sums, struct error *err);
#endif
