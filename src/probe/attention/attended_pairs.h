/* SPDX-License-Identifier: Apache-2.0 */
/* Which pairs of query and key an attention keeps: by its mask and lengths (gpu/attention/problem.h), and by
 * block lists where there are any. */
#ifndef PROBE_ATTENTION_ATTENDED_PAIRS_H
#define PROBE_ATTENTION_ATTENDED_PAIRS_H
#include "gpu/attention/problem.h"
#include "probe/attention/blocks.h"

/* Spans that attention_pairs_spans fills at most. `l` NULL: dense, here and below. */
uint32_t attention_attended_room(const struct attention_blocks *l);
/* Keys kept for query `row` of sequence b and query head h: rising spans that do not touch. Their number. */
uint32_t attention_pairs_spans(const struct attention_problem *p, const struct attention_blocks *l,
			       uint32_t b, uint32_t h, uint32_t row, struct attention_keys *out);
/* Pairs kept, all sequences and query heads. */
double attention_attended_pairs(const struct attention_problem *p, const struct attention_blocks *l);
/* Share of the keys, all sequences and key heads, in blocks that some query lists; 1 where dense. */
double attention_attended_keys(const struct attention_problem *p, const struct attention_blocks *l);
#endif
