/* SPDX-License-Identifier: Apache-2.0 */
/* The machine, the software and the conditions of a run as name and value, for every rendering. */
#ifndef REPORT_VIEW_ABOUT_H
#define REPORT_VIEW_ABOUT_H
#include "report/view/view.h"

/* Called once a fact; `name` and `value` are lent for the call. Names are replaced already. */
typedef void about_visit(void *arg, const char *name, const char *value);
void about_machine(const struct view *v, about_visit *visit, void *arg);
void about_gpu(const struct view *v, const struct gpu *gpu, about_visit *visit, void *arg);
void about_software(const struct view *v, about_visit *visit, void *arg);
/* Suite, seed, start, plan, judged against, price, how the run ended. */
void about_run(const struct view *v, about_visit *visit, void *arg);

/* What an hour of this GPU costs: stated with the run, else from the dated table, else nothing. */
struct about_price {
	double low, high;   /* dollars an hour; equal where one figure is known */
	const char *source; /* static; "stated with the run" */
	const char *date;   /* static; "" */
};
bool about_price(const struct view *v, const struct gpu *gpu, struct about_price *out);
/* The SKU row's name, "" where none fits. */
const char *about_sku(const struct view *v, const struct gpu *gpu);
#endif
