/* SPDX-License-Identifier: Apache-2.0 */
/* The pairs of query and key that an attention keeps: by its mask and lengths (gpu/attention/problem.h), and
 * by its block lists, if there are any. */
#ifndef PROBE_ATTENTION_ATTENDED_PAIRS_H
#define PROBE_ATTENTION_ATTENDED_PAIRS_H
#include "gpu/attention/problem.h"
#include "probe/attention/blocks.h"

/* Largest number of spans that attention_pairs_spans writes. Here and below, `l` is NULL for dense
 * attention. */
uint32_t attention_attended_room(const struct attention_blocks *l);
/* Writes the keys kept for query `row` of sequence b and query head h, as ascending spans that do not touch.
 * Returns the number of spans. */
uint32_t attention_pairs_spans(const struct attention_problem *p, const struct attention_blocks *l,
			       uint32_t b, uint32_t h, uint32_t row, struct attention_keys *out);
/* Number of kept pairs of all sequences and query heads. */
double attention_attended_pairs(const struct attention_problem *p, const struct attention_blocks *l);
/* Share of the keys, over all sequences and key heads, that are in a block listed by a query; 1 if dense. */
double attention_attended_keys(const struct attention_problem *p, const struct attention_blocks *l);
#endif
