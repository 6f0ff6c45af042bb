/* SPDX-License-Identifier: Apache-2.0 */
/* Memory errors of a GPU: counts, row remaps and retired pages. */
#include "machine/raw/nvml.h"

static void error_counts(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	static const char *const keys[2][2] = {{"ecc_volatile_corrected", "ecc_aggregate_corrected"},
					       {"ecc_volatile_uncorrected", "ecc_aggregate_uncorrected"}};
	unsigned long long v = 0;
	nvmlReturn_t ret;

	for (unsigned type = 0; n->ecc_total && type < 2; type++) {
		for (unsigned counter = 0; counter < 2; counter++) {
			ret = n->ecc_total(d, (nvmlMemoryErrorType_t)type, (nvmlEccCounterType_t)counter, &v);
			raw_put(calls, keys[type][counter], ret, raw_integer(v));
		}
	}
}

static void sram_status(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	nvmlEccSramErrorStatus_t s = {.version = nvmlEccSramErrorStatus_v1};
	nvmlReturn_t ret;

	if (!n->ecc_sram)
		return;
	ret = n->ecc_sram(d, &s);
	raw_put(calls, "ecc_sram", ret,
		json_pack("[I,I,I,I,I,I,I,I,I,I,I,I]", (json_int_t)s.aggregateUncParity,
			  (json_int_t)s.aggregateUncSecDed, (json_int_t)s.aggregateCor,
			  (json_int_t)s.volatileUncParity, (json_int_t)s.volatileUncSecDed,
			  (json_int_t)s.volatileCor, (json_int_t)s.aggregateUncBucketL2,
			  (json_int_t)s.aggregateUncBucketSm, (json_int_t)s.aggregateUncBucketPcie,
			  (json_int_t)s.aggregateUncBucketMcu, (json_int_t)s.aggregateUncBucketOther,
			  (json_int_t)s.bThresholdExceeded));
}

static void remapped_rows(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	nvmlRowRemapperHistogramValues_t h = {0};
	unsigned int r[4] = {0};
	nvmlReturn_t ret;

	if (n->remapped_rows) {
		ret = n->remapped_rows(d, &r[0], &r[1], &r[2], &r[3]);
		raw_put(calls, "remapped_rows", ret,
			json_pack("[i,i,i,i]", (int)r[0], (int)r[1], (int)r[2], (int)r[3]));
	}
	if (n->remap_histogram) {
		ret = n->remap_histogram(d, &h);
		raw_put(calls, "remap_histogram", ret,
			json_pack("[i,i,i,i,i]", (int)h.max, (int)h.high, (int)h.partial, (int)h.low,
				  (int)h.none));
	}
}

static void retired_pages(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	for (unsigned cause = 0; n->retired_pages && cause < 2; cause++) {
		unsigned int count = 0;
		nvmlReturn_t ret = n->retired_pages(d, (nvmlPageRetirementCause_t)cause, &count, NULL);

		if (ret == NVML_ERROR_INSUFFICIENT_SIZE)
			ret = NVML_SUCCESS; /* only the count is needed */
		raw_put(calls, cause ? "retired_dbe" : "retired_sbe", ret, raw_integer(count));
	}
}

void raw_nvml_ecc(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	error_counts(n, d, calls);
	sram_status(n, d, calls);
	remapped_rows(n, d, calls);
	retired_pages(n, d, calls);
}
