/* SPDX-License-Identifier: Apache-2.0 */
/* Places for labels on a plot: the first candidate that covers nothing taken before. */
#ifndef REPORT_PLOT_LABEL_PLACES_H
#define REPORT_PLOT_LABEL_PLACES_H
#include <stdbool.h>
#include <stddef.h>

struct label_box {
	double x0, y0, x1, y1;
};

enum { LABEL_BOXES = 1024 };

struct labels {
	struct label_box frame; /* nothing is placed outside */
	struct label_box taken[LABEL_BOXES];
	size_t count;
};

void labels_take(struct labels *l, struct label_box box);
/* Takes all boxes if all are free. A turned text is a row of small boxes. */
bool labels_try(struct labels *l, const struct label_box *boxes, size_t count);
#endif
