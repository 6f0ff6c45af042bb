/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges that published lab guides give for some GEMM cases. Reports show them for orientation; no verdict
 * depends on them. */
#ifndef REPORT_VIEW_GUIDE_BANDS_H
#define REPORT_VIEW_GUIDE_BANDS_H
#include "report/view/view.h"

struct guide_band {
	double low, high, fail; /* FLOP/s; high 0: no upper end; fail 0: no threshold */
	const char *reading;	/* static */
};
/* False if no guide has a range for this case on this GPU model. */
bool guide_bands_of(const struct view *v, const struct view_row *row, struct guide_band *out);
/* Writes "700–850 TFLOPS" or "> 60.0 TFLOPS" to `out`. */
void guide_bands_band_text(char *out, size_t size, const struct guide_band *s);
#endif
