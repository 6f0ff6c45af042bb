/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One packed micro-batch: sequences (documents) end to end. Attention does not cross their borders. Padding
 * is a separate untrained document at the end. No document is empty.
 */
#ifndef MODEL_BATCH_H
#define MODEL_BATCH_H
#include <stdint.h>
#include "core/error.h"

enum { BATCH_UNTRAINED = -100 }; /* same value as PyTorch's ignore_index */

/* A plan needs only the counts and doc_start; the other lists may be NULL. */
struct batch {
	const int32_t *token, *position; /* [tokens]; position starts at 0 in each document */
	const int32_t *target;		 /* [tokens]; the next token id, or BATCH_UNTRAINED */
	const int32_t *doc_start;	 /* [docs + 1], host memory; first 0, last = tokens */
	const int32_t *starts;		 /* doc_start in the device's memory; set by ops->batch */
	const uint32_t *order;	/* [ordered], in the device's memory: order of attention's work, or NULL */
	const int32_t *trained; /* [targets], ascending: rows with a target; the head computes only these */
	int64_t tokens, docs, doc_len_max, targets, ordered;
	/* A micro-batch of its kind (training or evaluation) is planned for so many tokens, so it is not
	 * padded beyond them. 0: the device's limit holds (gpu_backend_fill) */
	int64_t tokens_most;
	uint64_t row_begin; /* number of row 0 among all rows of the step, for dropout's masks */
};

/* Checks everything stated above, and that ids are below `vocab`. BAD_INPUT names the row. */
enum status batch_check(const struct batch *b, int64_t vocab, struct error *err);
#endif
