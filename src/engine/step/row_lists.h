/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of a step's rows (struct paged_rows), built sequence by sequence. */
#ifndef ENGINE_STEP_ROW_LISTS_H
#define ENGINE_STEP_ROW_LISTS_H
#include "core/error.h"
#include "model/backend/paged.h"

struct row_lists;
/* Room for steps within the limits. Owner: caller, row_lists_destroy. */
enum status row_lists_create(struct row_lists **l, const struct paged_limits *most, struct error *err);
void row_lists_destroy(struct row_lists **l);

/* Rows of one sequence. */
struct row_sequence {
	const int32_t *token; /* of the whole sequence: [known] */
	int64_t known;	      /* a row at a later position takes the id that its place sampled last */
	int64_t first, rows;  /* positions first .. first + rows - 1 */
	int64_t outputs;      /* the last `outputs` rows need logits */
	int32_t place;
	int32_t adapter;      /* the number of the sequence's adapter; -1: none */
	const uint32_t *page; /* page numbers, at least up to the last position */
};
void row_lists_clear(struct row_lists *l);
/* The caller keeps within the limits of row_lists_create. */
void row_lists_add(struct row_lists *l, const struct row_sequence *s);
/* Number of rows and outputs added so far, without padding. */
int64_t row_lists_rows(const struct row_lists *l);
int64_t row_lists_outputs(const struct row_lists *l);
/* Adds padding up to the given numbers and returns the lists, lent until row_lists_clear. */
struct paged_rows row_lists_end(struct row_lists *l, int64_t rows, int64_t outputs);
/* The number of rows or outputs that a GPU computes for `count`: a step of a ladder, so that few shapes of
 * GEMMs occur; at most `most`. */
int64_t row_lists_ladder(int64_t count, int64_t most);
#endif
