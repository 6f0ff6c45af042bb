/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roofline of one or several runs: ceilings measured and by data sheet or device facts, one point a case.
 * Devices of one name share a series: their ceilings are the highest, their points all stand.
 */
#ifndef REPORT_PLOT_ROOFLINE_H
#define REPORT_PLOT_ROOFLINE_H
#include "report/plot/canvas.h"
#include "report/view/view.h"

enum roofline_kind { ROOFLINE_MEMORY, ROOFLINE_CACHE, ROOFLINE_COMPUTE };

struct roofline_ceiling {
	enum roofline_kind kind;
	bool measured; /* else from facts of the device or its data sheet */
	double value;  /* B/s; FLOP/s */
	char name[48]; /* "memory", "cache", "BF16" */
};

struct roofline_point {
	double intensity, rate; /* FLOP a byte; FLOP/s */
	enum verdict verdict;
	bool labelled; /* a headline case; the others are marks alone */
	char name[96];
};

struct roofline_series {
	char name[96];
	struct roofline_ceiling *ceiling;
	struct roofline_point *point;
	size_t ceiling_count, ceiling_room, point_count, point_room;
};

struct roofline {
	struct roofline_series *series;
	size_t count, room;
	const char *key; /* what lines and marks are; NULL: of a run's cases */
	bool failed;	 /* out of memory */
};

/* Adds what a run measured. */
void roofline_add(struct roofline *r, const struct view *v);
void roofline_release(struct roofline *r);
/* False where there is neither a ceiling nor a point: nothing would be on the plot. */
bool roofline_any(const struct roofline *r);
/* Into an initialised canvas of any size from 480 x 320 up. Labels never lie on one another; one that finds
 * no place is left out and *left_out counts it (may be NULL). */
void roofline_draw(struct canvas *c, const struct roofline *r, unsigned *left_out);
#endif
