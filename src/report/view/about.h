/* SPDX-License-Identifier: Apache-2.0 */
/* The machine, the software and the conditions of a run as pairs of name and value. Every renderer uses them.
 */
#ifndef REPORT_VIEW_ABOUT_H
#define REPORT_VIEW_ABOUT_H
#include "report/view/view.h"

/* Called once per fact. `name` and `value` are valid during the call; pseudonyms are applied already. */
typedef void about_visit(void *arg, const char *name, const char *value);
void about_machine(const struct view *v, about_visit *visit, void *arg);
void about_gpu(const struct view *v, const struct gpu *gpu, about_visit *visit, void *arg);
void about_software(const struct view *v, about_visit *visit, void *arg);
/* Visits suite, seed, start, plan, expectations, price and the end of the run. */
void about_run(const struct view *v, about_visit *visit, void *arg);

/* The price of one hour of this GPU: the price stated with the run, else a range of the report's prices.
 * about_price returns false if neither is known. */
struct about_price {
	double low, high;   /* dollars per hour; equal if one price is known */
	const char *source; /* "stated with the run", or of the report's prices */
	const char *date;   /* "": stated */
	bool old;	    /* at the start of the run it was older than PRICE_OLD_DAYS (price/prices.h) */
};
bool about_price(const struct view *v, const struct gpu *gpu, struct about_price *out);
/* The name of the SKU row of expectations/ that fits the GPU; "" if none does. */
const char *about_sku(const struct view *v, const struct gpu *gpu);
#endif
