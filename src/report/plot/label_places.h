/* SPDX-License-Identifier: Apache-2.0 */
/* Places labels on a plot: the first candidate position that covers no earlier label. */
#ifndef REPORT_PLOT_LABEL_PLACES_H
#define REPORT_PLOT_LABEL_PLACES_H
#include <stdbool.h>
#include <stddef.h>

struct label_box {
	double x0, y0, x1, y1;
};

enum { LABEL_BOXES = 1024 };

struct labels {
	struct label_box frame; /* labels stay inside */
	struct label_box taken[LABEL_BOXES];
	size_t count;
};

void labels_take(struct labels *l, struct label_box box);
/* Takes all boxes and returns true if all are free. A rotated text is a row of small boxes. */
bool labels_try(struct labels *l, const struct label_box *boxes, size_t count);
#endif
