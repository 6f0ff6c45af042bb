/* SPDX-License-Identifier: Apache-2.0 */
/* Bands that published lab guides ask of some GEMM cases. Shown beside our own; they decide nothing. */
#ifndef REPORT_VIEW_GUIDE_BANDS_H
#define REPORT_VIEW_GUIDE_BANDS_H
#include "report/view/view.h"

struct guide_band {
	double low, high, fail; /* FLOP/s; high 0: no upper edge; fail 0: none */
	const char *reading;	/* static */
};
/* False where no guide speaks of this case on this product. */
bool guide_bands_of(const struct view *v, const struct view_row *row, struct guide_band *out);
void guide_bands_band_text(char *out, size_t size, const struct guide_band *s);
#endif
