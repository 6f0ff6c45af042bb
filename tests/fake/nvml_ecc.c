/* SPDX-License-Identifier: Apache-2.0 */
/* ECC, remapped rows, retired pages. */
#include "nvml_fake.h"

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	double v[2];
	nvmlReturn_t ret = fake_get_list(d, "ecc_mode", v, 2);

	if (!ret) {
		*current = (nvmlEnableState_t)v[0];
		*pending = (nvmlEnableState_t)v[1];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t type,
					 nvmlEccCounterType_t counter, unsigned long long *out)
{
	static const char *const keys[2][2] = {{"ecc_volatile_corrected", "ecc_aggregate_corrected"},
					       {"ecc_volatile_uncorrected", "ecc_aggregate_uncorrected"}};

	return fake_get_u64(d, keys[type == 1][counter == 1], out);
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t d, nvmlEccSramErrorStatus_t *out)
{
	double v[12];
	nvmlReturn_t ret = fake_get_list(d, "ecc_sram", v, 12);
	unsigned long long *to[] = {
		&out->aggregateUncParity,    &out->aggregateUncSecDed,	    &out->aggregateCor,
		&out->volatileUncParity,     &out->volatileUncSecDed,	    &out->volatileCor,
		&out->aggregateUncBucketL2,  &out->aggregateUncBucketSm,    &out->aggregateUncBucketPcie,
		&out->aggregateUncBucketMcu, &out->aggregateUncBucketOther,
	};

	for (size_t i = 0; !ret && i < 11; i++)
		*to[i] = (unsigned long long)v[i];
	if (!ret)
		out->bThresholdExceeded = (unsigned)v[11];
	return ret;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned int *cor, unsigned int *unc,
				       unsigned int *pending, unsigned int *failed)
{
	double v[4];
	nvmlReturn_t ret = fake_get_list(d, "remapped_rows", v, 4);

	if (!ret) {
		*cor = (unsigned)v[0];
		*unc = (unsigned)v[1];
		*pending = (unsigned)v[2];
		*failed = (unsigned)v[3];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t d, nvmlRowRemapperHistogramValues_t *out)
{
	double v[5];
	nvmlReturn_t ret = fake_get_list(d, "remap_histogram", v, 5);

	if (!ret)
		*out = (nvmlRowRemapperHistogramValues_t){(unsigned)v[0], (unsigned)v[1], (unsigned)v[2],
							  (unsigned)v[3], (unsigned)v[4]};
	return ret;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *count,
				       unsigned long long *pages)
{
	(void)pages;
	return fake_get_uint(d, cause ? "retired_dbe" : "retired_sbe", count);
}
