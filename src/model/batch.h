/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One packed micro-batch: documents end to end, attention never crosses their borders. Padding is a document
 * of its own at the end, untrained; no document is empty.
 */
#ifndef MODEL_BATCH_H
#define MODEL_BATCH_H
#include <stdint.h>
#include "core/error.h"

enum { BATCH_UNTRAINED = -100 }; /* as PyTorch's ignore_index */

/* Planning needs the counts and doc_start; the other lists may be NULL then. */
struct batch {
	const int32_t *token, *position; /* [tokens]; position begins at 0 in each document */
	const int32_t *target;		 /* [tokens]; the id that follows, or BATCH_UNTRAINED */
	const int32_t *doc_start;	 /* [docs + 1], host memory; first 0, last = tokens */
	const int32_t *starts;		 /* doc_start where operations read it: ops->batch sets it */
	const uint32_t
		*order; /* [ordered], where operations read it: the order of attention's work, or NULL */
	const int32_t *trained; /* [targets], ascending: rows with a target; the head runs on these alone */
	int64_t tokens, docs, doc_len_max, targets, ordered;
	uint64_t row_begin; /* number of row 0 among all rows of the step: dropout's masks follow it */
};

/* Every sentence above, and ids below `vocab`: BAD_INPUT names the row. */
enum status batch_check(const struct batch *b, int64_t vocab, struct error *err);
#endif
