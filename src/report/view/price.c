/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prices of one hour, for runs that state none: ranges of public on-demand list prices for one GPU. They age
 * fast, so each row has a date and --price wins. The row is chosen by the SKU row, never by the device's
 * name.
 */
#include "report/view/about.h"

static const struct {
	const char *sku; /* start of the SKU row's name */
	double low, high;
	const char *date, *source;
} prices[] = {
	{"a100-sxm-80", 0.80, 3.00, "2026-05", "on-demand list prices, one GPU-hour"},
	{"b200", 5.98, 6.03, "2026-03", "two providers' on-demand list prices"},
	{"gb200", 9.08, 9.08, "2026-03", "one provider's on-demand list price, a superchip"},
	{"h100-sxm", 1.99, 5.00, "2026-05", "on-demand list prices, one GPU-hour"},
	{"h200-sxm", 2.50, 7.00, "2026-05", "on-demand list prices, one GPU-hour"},
};

bool about_price(const struct view *v, const struct gpu *gpu, struct about_price *out)
{
	const json_t *stated = json_object_get(v->in->record->open, "price_per_hour");
	const char *sku = about_sku(v, gpu);

	if (json_is_number(stated) && json_number_value(stated) > 0) {
		*out = (struct about_price){.low = json_number_value(stated),
					    .high = json_number_value(stated),
					    .source = "stated with the run",
					    .date = ""};
		return true;
	}
	for (size_t i = 0; i < sizeof(prices) / sizeof(prices[0]); i++)
		if (!strncmp(sku, prices[i].sku, strlen(prices[i].sku))) {
			*out = (struct about_price){.low = prices[i].low,
						    .high = prices[i].high,
						    .source = prices[i].source,
						    .date = prices[i].date};
			return true;
		}
	return false;
}
