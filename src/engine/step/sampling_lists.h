/* SPDX-License-Identifier: Apache-2.0 */
/* The lists that sampling of a step needs (struct sample_lists), built row by row. */
#ifndef ENGINE_STEP_SAMPLING_LISTS_H
#define ENGINE_STEP_SAMPLING_LISTS_H
#include "engine/request.h"
#include "model/backend/paged.h"

struct sampling_lists;
/* rows: most rows of a step. vocab: ids of the model. Owner: caller, sampling_lists_destroy. */
enum status sampling_lists_create(struct sampling_lists **l, int64_t rows, int64_t vocab, struct error *err);
void sampling_lists_destroy(struct sampling_lists **l);

void sampling_lists_clear(struct sampling_lists *l);
/* A row that samples token number `index` (from 0) of the text. NO_RESOURCE: no memory for its bias. */
enum status sampling_lists_add(struct sampling_lists *l, const struct running *r, int32_t place,
			       int64_t index, struct error *err);
/* A row that gives the log probability of a token of the prompt. */
void sampling_lists_score(struct sampling_lists *l, const struct running *r, int32_t given);
/* A row of which only the status is wanted: whether the logits are finite. */
void sampling_lists_probe(struct sampling_lists *l);
/* The mask of row `row` (from 0, in the order of adding), to be filled by the caller: a bit per id of the
 * model, all 0. It is lent until the next call. NULL: no memory. */
uint32_t *sampling_lists_mask(struct sampling_lists *l, int64_t row);
/* Adds padding up to `rows`. Lent until sampling_lists_clear. */
struct sample_lists sampling_lists_end(struct sampling_lists *l, int64_t rows);
#endif
