/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of tensor parallel beside the undivided model of model_bed.h. */
#ifndef UNIT_SPLIT_BED_H
#define UNIT_SPLIT_BED_H
#include "unit/model_bed.h"

static inline double split_number(const struct mat *m, int64_t row, int64_t col)
{
	return bed_get(m, (size_t)(row * m->ld + col));
}

/* The place of a rank's tensor number i in the whole one. */
static inline struct split_part split_place(const struct bed *b, int i)
{
	const struct param *whole = &b->model->whole->params.table[i];

	return split_part_of(&b->model->split, &b->model->whole->shape, whole->name, whole->rows,
			     whole->cols);
}
#endif
