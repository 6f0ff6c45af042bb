/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operations cost and what they need beside their operands: the same for the back end that works and
 * the one that plans. FLOP are those of products and attention; docs/explanation/methods derives a step's.
 */
#ifndef MODEL_BACKEND_COST_H
#define MODEL_BACKEND_COST_H
#include "model/backend/ops.h"

void cost_gemm(struct backend *back, const struct gemm *g);
/* Pairs kept by the causal mask, once forward and 2.5 times backward (P is made again). */
void cost_attention(struct backend *back, const struct attention *at, const struct batch *b, bool backward);
void cost_cached(struct backend *back, const struct attention *at, int64_t begin, int64_t rows);
/* Elements of m read and written so many times. */
void cost_touch(struct backend *back, const struct mat *m, double times);

enum { ATTENTION_ROWS = 64 };  /* queries that a thread of a CPU takes at once */
enum { REDUCE_BLOCK = 65536 }; /* elements summed before sums are summed */
/* Places of operations, a CPU's or a GPU's as back->kind says; the caller gives them back by the arena's
 * mark. */
enum status workspace_attention(struct backend *back, const struct batch *b, bool backward, struct mat *tile,
				struct error *err);
enum status workspace_cached(struct backend *back, int64_t keys, struct mat *scores, struct error *err);
/* A product with weights in blocks: few rows as bytes themselves, or a panel of weights as numbers a thread.
 */
enum { BLOCKS_ROWS = 8, BLOCKS_PANEL = 64 };
enum status workspace_blocks(struct backend *back, const struct gemm *g, struct mat *room, struct error *err);
/* Rows of lists of a batch on a GPU: token, position, target, trained, starts, order; room for any deal of
 * its rows into documents. */
enum { BATCH_TOKEN, BATCH_POSITION, BATCH_TARGET, BATCH_TRAINED, BATCH_STARTS, BATCH_ORDER, BATCH_LISTS };
enum status workspace_batch(struct backend *back, const struct batch *b, struct mat *lists,
			    struct error *err);
/* back->lists, for batches of at most so many rows: one is copied while another is worked on. Nothing on a
 * CPU. */
enum status workspace_lists(struct backend *back, int64_t rows, struct error *err);
static inline bool lists_hold(const struct backend *back, int64_t rows)
{
	return back->lists[1].rows && rows < back->lists[1].cols;
}
/* A GPU's: sums of at most `rows` blocks over columns; what attention's backward pass has beside its
 * operands. */
enum status workspace_sums(struct backend *back, int64_t rows, int64_t cols, struct mat *sums,
			   struct error *err);
uint64_t workspace_attention_bytes(const struct attention *at, int64_t tokens);
enum status workspace_attention_bwd(struct backend *back, const struct attention *at, const struct batch *b,
				    struct mat *room, struct error *err);
/* A GPU keeps lse by document, each as long as the longest: so many times the rows may they be. */
enum { ATTENTION_LSE_ROOM = 4 };
enum status workspace_reduce(struct backend *back, const struct mat *x, struct mat *sums, struct error *err);
#endif
