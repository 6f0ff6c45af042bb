/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roofline of one or several runs: measured ceilings, ceilings from data sheets or device facts, and one
 * point per case. Devices of one name share a series with the highest of their ceilings and all of their
 * points.
 */
#ifndef REPORT_PLOT_ROOFLINE_H
#define REPORT_PLOT_ROOFLINE_H
#include "report/plot/canvas.h"
#include "report/view/view.h"

enum roofline_kind { ROOFLINE_MEMORY, ROOFLINE_CACHE, ROOFLINE_COMPUTE };

struct roofline_ceiling {
	enum roofline_kind kind;
	bool measured; /* false: from facts of the device or its data sheet */
	double value;  /* B/s; FLOP/s */
	char name[48]; /* "memory", "cache", "BF16" */
};

struct roofline_point {
	double intensity, rate; /* FLOP per byte; FLOP/s */
	enum verdict verdict;
	bool labelled; /* a headline case; the others have no label */
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
	const char *key; /* explanation of lines and marks; NULL: that for the cases of a run */
	bool failed;	 /* out of memory */
};

/* Adds the ceilings and points of a run. */
void roofline_add(struct roofline *r, const struct view *v);
void roofline_release(struct roofline *r);
/* False if there is neither a ceiling nor a point. */
bool roofline_any(const struct roofline *r);
/* Draws into an initialised canvas of at least 480 x 320 points. Labels never overlap; a label without a
 * place is left out and counted in *left_out, which may be NULL. */
void roofline_draw(struct canvas *c, const struct roofline *r, unsigned *left_out);
#endif
