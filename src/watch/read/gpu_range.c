/* SPDX-License-Identifier: Apache-2.0 */
/* The values that the readings of a GPU can have. A failing driver may answer success with all ones, or with
 * a number that no device can have. The value is then absent, with a reason. */
#include <math.h>
#include <string.h>
#include "core/math/plausible_range.h"
#include "watch/read/gpu.h"

struct range {
	enum catalogue row;
	double raw;	  /* the unit of the driver's number, in units of the row */
	const char *name; /* a range in core/math/plausible_range.h; NULL: low and high */
	double scale;	  /* the unit of that range, in units of the row */
	double low, high; /* in units of the row */
};

#define SHARE(row)                                                                                           \
	{                                                                                                    \
		CATALOGUE_##row, 0.01, "utilization_share", 1, 0, 0                                          \
	}
#define NAMED(row, raw, name, scale)                                                                         \
	{                                                                                                    \
		CATALOGUE_##row, raw, #name, scale, 0, 0                                                     \
	}
#define WITHIN(row, raw, low, high)                                                                          \
	{                                                                                                    \
		CATALOGUE_##row, raw, NULL, 1, low, high                                                     \
	}
#define RATE_MAX 1e13	/* bytes per second: far above any PCIe link */
#define COUNT_MAX 1e15	/* errors */
#define BYTES_MAX 1e20	/* a link carries this in 3 years at 1 TB/s */
#define SECONDS_MAX 1e9 /* 32 years; 64 bits of ones are 585 years in ns */
static const struct range ranges[] = {
	SHARE(GPU_UTILIZATION),
	SHARE(GPU_MEMORY_UTILIZATION),
	SHARE(GPU_ENCODER),
	SHARE(GPU_DECODER),
	SHARE(GPU_ENGINE_ACTIVE),
	SHARE(GPU_SM_ACTIVE),
	SHARE(GPU_SM_OCCUPANCY),
	SHARE(GPU_TENSOR_ACTIVE),
	SHARE(GPU_DRAM_ACTIVE),
	SHARE(GPU_FP64_ACTIVE),
	SHARE(GPU_FP32_ACTIVE),
	SHARE(GPU_FP16_ACTIVE),
	WITHIN(GPU_PCIE_TX, 1048576, 0, RATE_MAX),
	WITHIN(GPU_PCIE_RX, 1048576, 0, RATE_MAX),
	NAMED(GPU_MEMORY, 1, memory_bytes, 1),
	NAMED(GPU_MEMORY_USED, 1, memory_used_bytes, 1),
	NAMED(GPU_MEMORY_FREE, 1, memory_free_bytes, 1),
	NAMED(GPU_MEMORY_RESERVED, 1, memory_used_bytes, 1),
	NAMED(GPU_TEMPERATURE, 1, temperature_c, 1),
	NAMED(GPU_TEMPERATURE_MEMORY, 1, temperature_memory_c, 1),
	NAMED(GPU_POWER, 1e-3, power_w, 1),
	NAMED(GPU_POWER_LIMIT, 1e-3, power_limit_w, 1),
	NAMED(GPU_ENERGY, 1e-3, energy_j, 1),
	NAMED(GPU_SM_CLOCK, 1e6, sm_clock_mhz, 1e6),
	NAMED(GPU_SM_CLOCK_MAX, 1e6, sm_clock_max_mhz, 1e6),
	NAMED(GPU_MEMORY_CLOCK, 1e6, memory_clock_mhz, 1e6),
	WITHIN(GPU_LIMITED_POWER, 1e-9, 0, SECONDS_MAX),
	WITHIN(GPU_LIMITED_THERMAL, 1e-9, 0, SECONDS_MAX),
	WITHIN(GPU_LIMITED_BOARD, 1e-9, 0, SECONDS_MAX),
	WITHIN(GPU_LIMITED_RELIABILITY, 1e-9, 0, SECONDS_MAX),
	NAMED(GPU_ECC_CORRECTED, 1, ecc_volatile_corrected, 1),
	NAMED(GPU_ECC_UNCORRECTED, 1, ecc_volatile_uncorrected, 1),
	NAMED(GPU_ROWS_CORRECTABLE, 1, remapped_correctable, 1),
	NAMED(GPU_ROWS_UNCORRECTABLE, 1, remapped_uncorrectable, 1),
	NAMED(GPU_ROWS_PENDING, 1, remap_pending, 1),
	NAMED(GPU_ROWS_FAILED, 1, remap_failed, 1),
	NAMED(GPU_PCIE_GENERATION, 1, pcie_gen, 1),
	NAMED(GPU_PCIE_WIDTH, 1, pcie_width, 1),
	NAMED(GPU_PCIE_REPLAYS, 1, pcie_replays, 1),
	WITHIN(GPU_NVLINK_CRC, 1, 0, COUNT_MAX),
	WITHIN(GPU_NVLINK_REPLAY, 1, 0, COUNT_MAX),
	WITHIN(GPU_NVLINK_RECOVERY, 1, 0, COUNT_MAX),
	WITHIN(NVLINK_UP, 1, 0, 1),
	WITHIN(NVLINK_TX, 1024, 0, BYTES_MAX),
	WITHIN(NVLINK_RX, 1024, 0, BYTES_MAX),
	NAMED(PROCESS_MEMORY, 1, memory_used_bytes, 1),
	SHARE(PROCESS_SM),
	NAMED(INSTANCE_MEMORY, 1, memory_bytes, 1),
	NAMED(INSTANCE_MEMORY_USED, 1, memory_used_bytes, 1),
	SHARE(INSTANCE_ENGINE_ACTIVE),
	SHARE(INSTANCE_SM_ACTIVE),
	SHARE(INSTANCE_TENSOR_ACTIVE),
	SHARE(INSTANCE_DRAM_ACTIVE),
};
#undef SHARE
#undef NAMED
#undef WITHIN

/* 32 or 64 bits that are all ones, or -1. */
static bool is_all_ones(double raw)
{
	return fabs(raw - 4294967295.0) < 0.5 || raw >= 18446744073709551615.0 || fabs(raw + 1) < 1e-9;
}

void gpu_limits_init(struct gpu_limits limits[CATALOGUE_COUNT])
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *r = &ranges[i];
		const struct plausible *named = r->name ? plausible_of(r->name) : NULL;

		limits[r->row] = (struct gpu_limits){.raw = r->raw,
						     .low = named ? named->low * r->scale : r->low,
						     .high = named ? named->high * r->scale : r->high};
	}
}

bool gpu_value_is_possible(const struct gpu_reader *r, enum catalogue row, double value)
{
	const struct gpu_limits *limits = &r->limits[row];
	double half = 0.5 * catalogue_row(row)->resolution; /* a share of 1.002 is shown as 1 */

	if (!isfinite(value))
		return false;
	if (!(limits->raw > 0))
		return true;
	if (row == CATALOGUE_GPU_PCIE_WIDTH)
		return plausible("pcie_width", value);
	return !is_all_ones(value / limits->raw) && value >= limits->low && value <= limits->high + half;
}

const char *gpu_impossible(struct gpu_reader *r, enum catalogue row)
{
	const struct gpu_limits *limits = &r->limits[row];
	const char *unit = catalogue_row(row)->unit;
	bool has_unit = strcmp(unit, "ratio") && strcmp(unit, "bool") && strcmp(unit, "number");
	char *why = r->impossible[row];

	if (*why)
		return why;
	snprintf(why, GPU_WHY, "%s answered an impossible number", catalogue_row(row)->source);
	if (limits->raw > 0)
		snprintf(why + strlen(why), GPU_WHY - strlen(why), "; possible are %.9g to %.9g%s%s",
			 limits->low, limits->high, has_unit ? " " : "", has_unit ? unit : "");
	return why;
}

void gpu_set(struct gpu_reader *r, uint32_t e, enum catalogue row, double value)
{
	if (gpu_value_is_possible(r, row, value))
		out_set(&r->out, e, row, value);
	else
		out_absent(&r->out, e, row, gpu_impossible(r, row));
}
