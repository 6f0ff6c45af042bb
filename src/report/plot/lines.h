/* SPDX-License-Identifier: Apache-2.0 */
/* A plot of lines over a common axis: values over time, distributions, one figure against another. */
#ifndef REPORT_PLOT_LINES_H
#define REPORT_PLOT_LINES_H
#include "report/plot/canvas.h"

enum { LINES_WIDTH = 960, LINES_HEIGHT = 260, LINES_SERIES = 16 };

struct lines_series {
	char name[48];
	double *x, *y; /* NaN in y: the line has a gap there */
	size_t count;
	bool dashed;
};

/* An axis; lowest and highest value are found from the data where low == high. */
struct lines_axis {
	const char *label, *unit; /* unit "share": 0 to 1 as per cent */
	double low, high;
	bool log;  /* values of 0 and less are left out */
	bool zero; /* begins at 0; not with log */
};

struct lines {
	struct lines_axis x, y;
	double shade_from, shade_to; /* on the x axis; equal: none */
	bool marks;		     /* a mark at each point */
	struct lines_series series[LINES_SERIES];
	size_t count;
};

/* Whether a line has a point to draw. */
bool lines_any(const struct lines *l);
/* Draws frame, axes, legend and lines. The canvas has at least 360 x 160 points. */
void lines_draw(struct canvas *c, const struct lines *l);
#endif
