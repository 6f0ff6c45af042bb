/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/expect/expect.h"
#include "report/view/gap.h"

double gap_datasheet(const struct report_input *in, const struct gpu *gpu, const char *limit)
{
	const struct sku *sku = in->expectations && gpu ? expect_sku(in->expectations, gpu) : NULL;
	const struct sku_value *value = NULL;

	if (sku && !strncmp(limit, "compute.", 8))
		value = sku_datasheet(sku, limit + 8);
	else if (sku && !strcmp(limit, "memory"))
		value = &sku->fact[SKU_memory_bandwidth];
	return value && value->present ? value->value : 0;
}
