/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are prices, or a refusal that names file and line. */
#include "fuzz.h"

#include "price/prices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prices *p = NULL;
	struct error err = {0};
	size_t count;
	enum status st;

	if (size > 65536)
		return 0;
	st = prices_parse(&p, "input", (const char *)data, size, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == err.status);
	FUZZ_CHECK(st == STATUS_OK || (!strncmp(err.text, "input:", 6) && !p));
	if (st)
		return 0;
	for (size_t i = 0; i < (prices_gpu_hours(p, &count), count); i++) {
		const struct price_gpu *g = prices_gpu_hours(p, &count) + i;

		FUZZ_CHECK(g->low > 0 && g->low <= g->high && *g->origin.source && *g->origin.date);
		FUZZ_CHECK(prices_gpu_hour(p, g->sku));
	}
	prices_free(p);
	return 0;
}
