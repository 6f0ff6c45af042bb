/* SPDX-License-Identifier: Apache-2.0 */
/* A table of cases that differ only in their pair of GPUs: rows send, columns receive. */
#ifndef REPORT_TABLES_PAIR_MATRIX_H
#define REPORT_TABLES_PAIR_MATRIX_H
#include "report/tables/grid.h"

struct view;
struct view_row;

enum { MATRIX_GPUS = 16, MATRIX_LEAST = 2 /* pairs */ };

struct matrix {
	const char *title;	   /* the title of its rows; owned by the view */
	const char *unit;	   /* unit of the cells: "GB/s" or "ns" */
	double scale;		   /* factor from a figure to this unit */
	unsigned gpu[MATRIX_GPUS]; /* GPU numbers of the machine, ascending */
	size_t count;
	const struct view_row *cell[MATRIX_GPUS][MATRIX_GPUS]; /* sender, receiver; NULL: not measured */
	size_t pairs;
	/* The pair that is farthest behind the median of the others, and that share; NULL: no pair is 2 %
	 * behind. */
	const struct view_row *worst;
	double behind;
	const struct view_row
		*at_once; /* every GPU to all others at once, by the same engine; NULL: not measured */
	double median;	  /* median of the pairs' figures */
};

/* Collects the matrices of a view into *out, which the caller frees, and marks their rows `in_matrix`. False:
 * out of memory. */
bool matrix_collect(struct matrix **out, size_t *count, struct view *v);
void matrix_grid(struct grid *g, const struct matrix *m);
/* The connection between the two GPUs of a pair, as the case reported it; "" if it did not. Owned by the
 * record. */
const char *matrix_path(const struct view_row *row);
#endif
