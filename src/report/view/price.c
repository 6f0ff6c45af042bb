/* SPDX-License-Identifier: Apache-2.0 */
/* The price of one hour of a GPU. The row is chosen by the SKU row, never by the device's name. */
#include "price/prices.h"
#include "core/json/member.h"
#include "report/view/about.h"

bool about_price(const struct view *v, const struct gpu *gpu, struct about_price *out)
{
	const json_t *open = v->in->record->open, *stated = json_object_get(open, "price_per_hour");
	const struct price_gpu *row =
		v->in->prices ? prices_gpu_hour(v->in->prices, about_sku(v, gpu)) : NULL;

	if (json_is_number(stated) && json_number_value(stated) > 0) {
		*out = (struct about_price){.low = json_number_value(stated),
					    .high = json_number_value(stated),
					    .source = "stated with the run",
					    .date = ""};
		return true;
	}
	if (!row)
		return false;
	*out = (struct about_price){.low = row->low,
				    .high = row->high,
				    .source = row->origin.source,
				    .date = row->origin.date,
				    .old = price_is_old(&row->origin, json_member_text(open, "wall"))};
	return true;
}
