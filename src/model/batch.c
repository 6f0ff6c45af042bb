/* SPDX-License-Identifier: Apache-2.0 */
#include "model/batch.h"

static enum status check_documents(const struct batch *b, struct error *err)
{
	if (b->docs < 1 || b->doc_start[0] != 0 || b->doc_start[b->docs] != b->tokens)
		return error_set(err, STATUS_BAD_INPUT, "batch: %lld documents do not cover its %lld rows",
				 (long long)b->docs, (long long)b->tokens);
	for (int64_t i = 0; i < b->docs; i++) {
		int64_t length = (int64_t)b->doc_start[i + 1] - b->doc_start[i];

		if (length < 1 || length > b->doc_len_max)
			return error_set(err, STATUS_BAD_INPUT,
					 "batch: document %lld has %lld rows of 1 to %lld", (long long)i,
					 (long long)length, (long long)b->doc_len_max);
		for (int64_t t = 0; t < length; t++)
			if (b->position[b->doc_start[i] + t] != t)
				return error_set(err, STATUS_BAD_INPUT,
						 "batch: row %lld is at position %d, not %lld",
						 (long long)(b->doc_start[i] + t),
						 b->position[b->doc_start[i] + t], (long long)t);
	}
	return STATUS_OK;
}

static enum status check_row(const struct batch *b, int64_t row, int64_t vocab, struct error *err)
{
	if (b->token[row] < 0 || b->token[row] >= vocab)
		return error_set(err, STATUS_BAD_INPUT, "batch: row %lld holds id %d, but the model has %lld",
				 (long long)row, b->token[row], (long long)vocab);
	if (b->target[row] != BATCH_UNTRAINED && (b->target[row] < 0 || b->target[row] >= vocab))
		return error_set(err, STATUS_BAD_INPUT,
				 "batch: row %lld has target %d, but the model has %lld ids", (long long)row,
				 b->target[row], (long long)vocab);
	return STATUS_OK;
}

enum status batch_check(const struct batch *b, int64_t vocab, struct error *err)
{
	enum status st = check_documents(b, err);
	int64_t trained = 0;

	for (int64_t row = 0; !st && row < b->tokens; row++) {
		st = check_row(b, row, vocab, err);
		if (st || b->target[row] == BATCH_UNTRAINED)
			continue;
		if (trained >= b->targets || b->trained[trained] != row)
			return error_set(err, STATUS_BAD_INPUT,
					 "batch: row %lld has a target, but is not listed as trained",
					 (long long)row);
		trained++;
	}
	if (!st && trained != b->targets)
		st = error_set(err, STATUS_BAD_INPUT,
			       "batch: %lld rows are listed as trained, %lld have a target",
			       (long long)b->targets, (long long)trained);
	return st;
}
