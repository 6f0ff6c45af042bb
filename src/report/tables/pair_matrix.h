/* SPDX-License-Identifier: Apache-2.0 */
/* Cases between pairs of GPUs that differ in the pair alone, as one table: rows send, columns receive. */
#ifndef REPORT_TABLES_PAIR_MATRIX_H
#define REPORT_TABLES_PAIR_MATRIX_H
#include "report/tables/grid.h"

struct view;
struct view_row;

enum { MATRIX_GPUS = 16, MATRIX_LEAST = 2 /* pairs */ };

struct matrix {
	const char *title;	   /* of its rows; lent */
	const char *unit;	   /* what the cells are shown in: "GB/s" or "ns" */
	double scale;		   /* of a figure to it */
	unsigned gpu[MATRIX_GPUS]; /* numbers of the machine, growing */
	size_t count;
	const struct view_row *cell[MATRIX_GPUS][MATRIX_GPUS]; /* sender, receiver; NULL: not measured */
	size_t pairs;
	/* The pair that falls farthest behind the median of the others, with that share; NULL: none by 2 %.
	 */
	const struct view_row *worst;
	double behind;
	const struct view_row *at_once; /* every GPU to all others, the same way; NULL: not measured */
	double median;			/* of the pairs' figures */
};

/* Collects the matrices of a view into *out (caller frees); marks their rows `in_matrix`. False: no memory.
 */
bool matrix_collect(struct matrix **out, size_t *count, struct view *v);
void matrix_grid(struct grid *g, const struct matrix *m);
/* What lies between the two of a pair, as the case told it; "" where it did not. Lent. */
const char *matrix_path(const struct view_row *row);
#endif
