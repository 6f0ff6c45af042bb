/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/guide_bands.h"
#include "report/view/about.h"
#include "report/text/format.h"

#define T 1e12

/* Square GEMM of `size` with random data. The guides give the ranges for 4096 and 8192; guide_bands_of has
 * the ±20 % of a guide's sanity test. No library reaches the FP32 range on these GPUs: the FP32 pipe sustains
 * 51 TFLOPS in practice. */
static const struct {
	const char *sku, *type; /* start of the SKU row's name; type as in the case's key */
	unsigned size;		/* 0: any */
	double low, high, fail;
} bands[] = {
	{"a100", "fp16", 8192, 230 * T, 280 * T, 200 * T},
	{"h100-sxm", "fp16", 8192, 700 * T, 850 * T, 600 * T},
	{"h100-sxm", "fp16", 4096, 300 * T, 400 * T, 0},
	{"h100-sxm", "e4m3", 4096, 600 * T, 800 * T, 0},
	{"h100-sxm", "bf16", 0, 700 * T, 0, 0},
	{"h100-sxm", "fp32", 0, 60 * T, 0, 0},
};

bool guide_bands_of(const struct view *v, const struct view_row *row, struct guide_band *out)
{
	const char *type = record_option(row->c, "type"), *m = record_option(row->c, "m");
	const char *n = record_option(row->c, "n"), *k = record_option(row->c, "k");
	const char *data = record_option(row->c, "data");
	const struct gpu *gpu;
	char name[256];
	double figure = row->j->figure;

	if (!row->j->has_figure || strcmp(row->c->probe, "gemm") || !type || !m || !n || !k || strcmp(m, n) ||
	    strcmp(m, k) || (data && strcmp(data, "random")))
		return false;
	view_target_name(name, sizeof(name), v, row->c, &gpu);
	for (size_t i = 0; i < sizeof(bands) / sizeof(bands[0]); i++) {
		if (strncmp(about_sku(v, gpu), bands[i].sku, strlen(bands[i].sku)) ||
		    strcmp(type, bands[i].type) || (bands[i].size && strtoul(m, NULL, 10) != bands[i].size))
			continue;
		*out = (struct guide_band){.low = bands[i].low, .high = bands[i].high, .fail = bands[i].fail};
		if (out->fail > 0 && figure < out->fail)
			out->reading = "below the guide's failure threshold";
		else if (figure >= out->low && (out->high == 0 || figure <= out->high))
			out->reading = "inside";
		else if (out->high > 0 && figure > out->high)
			out->reading = figure <= 1.2 * out->high ? "above, within 20 %" : "above";
		else
			out->reading = figure >= 0.8 * out->low ? "below, within 20 %" : "below";
		return true;
	}
	return false;
}

void guide_bands_band_text(char *out, size_t size, const struct guide_band *s)
{
	char low[48];

	if (s->high > 0) {
		format_range(out, size, s->low, s->high, "FLOP/s");
		return;
	}
	format_quantity(low, sizeof(low), s->low, 0, "FLOP/s");
	snprintf(out, size, "> %s", low);
}
