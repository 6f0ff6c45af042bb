/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of scope GPU by NVML calls and fields. */
#include <limits.h>
#include <string.h>
#include "core/clock.h"
#include "core/math/plausible_range.h"
#include "watch/read/gpu.h"

void gpu_take(struct gpu_reader *r, struct gpu *g, enum catalogue row, nvmlReturn_t ret, double value)
{
	if (ret == NVML_SUCCESS) {
		gpu_set(r, g->e, row, value);
		return;
	}
	if (gpu_is_lost(ret))
		g->gone = ret;
	else
		out_absent(&r->out, g->e, row, nvml_code_text((int)ret));
	g->never[row] = nvml_lacks(ret);
}

/* A call that gives one number: row, member of struct nvml, factor. */
typedef nvmlReturn_t number_call(nvmlDevice_t, unsigned int *);

static void take_number(struct gpu_reader *r, struct gpu *g, enum catalogue row, number_call *call,
			double scale)
{
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned value = 0;

	if (g->never[row] || g->gone)
		return;
	if (call)
		ret = call(g->device, &value);
	gpu_take(r, g, row, ret, scale * value);
}

static void take_engine(struct gpu_reader *r, struct gpu *g, enum catalogue row,
			nvmlReturn_t (*call)(nvmlDevice_t, unsigned int *, unsigned int *))
{
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned percent = 0, period_us;

	if (g->never[row] || g->gone)
		return;
	if (call)
		ret = call(g->device, &percent, &period_us);
	gpu_take(r, g, row, ret, 0.01 * percent);
}

static void take_clock(struct gpu_reader *r, struct gpu *g, enum catalogue row,
		       nvmlReturn_t (*call)(nvmlDevice_t, nvmlClockType_t, unsigned int *),
		       nvmlClockType_t type)
{
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned mhz = 0;

	if (g->never[row] || g->gone)
		return;
	if (call)
		ret = call(g->device, type, &mhz);
	gpu_take(r, g, row, ret, 1e6 * mhz);
}

static void take_utilization(struct gpu_reader *r, struct gpu *g)
{
	nvmlUtilization_t u = {0};
	nvmlReturn_t ret;

	if (g->never[CATALOGUE_GPU_UTILIZATION] || g->gone)
		return;
	ret = r->nvml.utilization ? r->nvml.utilization(g->device, &u) : NVML_ERROR_FUNCTION_NOT_FOUND;
	gpu_take(r, g, CATALOGUE_GPU_UTILIZATION, ret, 0.01 * u.gpu);
	gpu_take(r, g, CATALOGUE_GPU_MEMORY_UTILIZATION, ret, 0.01 * u.memory);
}

static void take_memory(struct gpu_reader *r, struct gpu *g, bool slow)
{
	nvmlMemory_v2_t m = {.version = nvmlMemory_v2};
	nvmlMemory_t old = {0};
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND, reserved;

	if (g->gone)
		return;
	if (r->nvml.memory_v2)
		ret = r->nvml.memory_v2(g->device, &m);
	reserved = ret;
	if (ret && ret != NVML_ERROR_GPU_IS_LOST && r->nvml.memory) {
		ret = r->nvml.memory(g->device, &old); /* its `used` includes what the driver reserves */
		m.total = old.total;
		m.free = old.free;
		m.used = old.used;
	}
	gpu_take(r, g, CATALOGUE_GPU_MEMORY_USED, ret, (double)m.used);
	gpu_take(r, g, CATALOGUE_GPU_MEMORY_FREE, ret, (double)m.free);
	if (!slow)
		return;
	gpu_take(r, g, CATALOGUE_GPU_MEMORY, ret, (double)m.total);
	gpu_take(r, g, CATALOGUE_GPU_MEMORY_RESERVED, reserved, (double)m.reserved);
}

static void take_temperature(struct gpu_reader *r, struct gpu *g)
{
	nvmlTemperature_t t = {.version = nvmlTemperature_v1, .sensorType = NVML_TEMPERATURE_GPU};
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned old = 0;

	if (g->gone || g->never[CATALOGUE_GPU_TEMPERATURE])
		return;
	if (r->nvml.temperature)
		ret = r->nvml.temperature(g->device, &t);
	if (ret && ret != NVML_ERROR_GPU_IS_LOST && r->nvml.temperature_old) {
		ret = r->nvml.temperature_old(g->device, NVML_TEMPERATURE_GPU, &old);
		t.temperature = (int)old;
	}
	gpu_take(r, g, CATALOGUE_GPU_TEMPERATURE, ret, t.temperature);
}

/* Reasons: the row that is 1 while it is set, and the row that sums its time (CATALOGUE_COUNT: the driver
 * counts it, or it is no limit). */
static const struct {
	unsigned bit;
	enum catalogue held, sampled;
} reasons[] = {
	{NVML_REASON_IDLE, CATALOGUE_GPU_HELD_IDLE, CATALOGUE_COUNT},
	{NVML_REASON_APPLICATION_CLOCKS, CATALOGUE_GPU_HELD_SETTING, CATALOGUE_GPU_SAMPLED_SETTING},
	{NVML_REASON_SW_POWER_CAP, CATALOGUE_GPU_HELD_POWER, CATALOGUE_COUNT},
	{NVML_REASON_HW_SLOWDOWN, CATALOGUE_GPU_HELD_HW_SLOWDOWN, CATALOGUE_GPU_SAMPLED_HW_SLOWDOWN},
	{NVML_REASON_SYNC_BOOST, CATALOGUE_GPU_HELD_SYNC, CATALOGUE_GPU_SAMPLED_SYNC},
	{NVML_REASON_SW_THERMAL, CATALOGUE_GPU_HELD_SW_THERMAL, CATALOGUE_GPU_SAMPLED_SW_THERMAL},
	{NVML_REASON_HW_THERMAL, CATALOGUE_GPU_HELD_HW_THERMAL, CATALOGUE_GPU_SAMPLED_HW_THERMAL},
	{NVML_REASON_HW_POWER_BRAKE, CATALOGUE_GPU_HELD_BRAKE, CATALOGUE_GPU_SAMPLED_BRAKE},
};

static void take_reasons(struct gpu_reader *r, struct gpu *g)
{
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned long long bits = 0;
	uint64_t now_ns = clock_now_ns(clock_monotonic());
	double past_s = g->reasons_ns ? 1e-9 * (double)(now_ns - g->reasons_ns) : 0;
	unsigned sampled = 0;
	bool possible;

	if (g->gone || g->never[CATALOGUE_GPU_HELD_IDLE])
		return;
	if (r->nvml.reasons)
		ret = r->nvml.reasons(g->device, &bits);
	if (ret && ret != NVML_ERROR_GPU_IS_LOST && r->nvml.reasons_old)
		ret = r->nvml.reasons_old(g->device, &bits);
	possible = ret || (bits != UINT_MAX && plausible("clock_reasons", (double)bits));
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		bool set = !ret && bits & reasons[i].bit;

		if (possible)
			gpu_take(r, g, reasons[i].held, ret, set);
		else
			out_absent(&r->out, g->e, reasons[i].held, gpu_impossible(r, reasons[i].held));
		if (reasons[i].sampled == CATALOGUE_COUNT)
			continue;
		set = set && possible;
		g->sampled_s[sampled] += set ? past_s : 0;
		gpu_take(r, g, reasons[i].sampled, ret, g->sampled_s[sampled++]);
	}
	g->reasons_ns = ret || !possible ? 0 : now_ns;
}

/* SLOW rows that are fields, read in one call. */
static const struct {
	enum catalogue row;
	unsigned field;
	double scale;
} fields[] = {
	{CATALOGUE_GPU_LIMITED_POWER, NVML_FIELD_violation_power, 1e-9},
	{CATALOGUE_GPU_LIMITED_THERMAL, NVML_FIELD_violation_thermal, 1e-9},
	{CATALOGUE_GPU_LIMITED_BOARD, NVML_FIELD_violation_board, 1e-9},
	{CATALOGUE_GPU_LIMITED_RELIABILITY, NVML_FIELD_violation_reliability, 1e-9},
	{CATALOGUE_GPU_TEMPERATURE_MEMORY, NVML_FIELD_memory_temperature, 1},
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static void take_fields(struct gpu_reader *r, struct gpu *g)
{
	nvmlFieldValue_t value[FIELDS];
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;

	if (g->gone)
		return;
	memset(value, 0, sizeof(value));
	for (size_t i = 0; i < FIELDS; i++)
		value[i].fieldId = fields[i].field;
	if (r->nvml.fields)
		ret = r->nvml.fields(g->device, FIELDS, value);
	for (size_t i = 0; i < FIELDS; i++) {
		nvmlReturn_t one = ret ? ret : value[i].nvmlReturn;
		double number = 0;

		if (!one && !nvml_field_f64(&value[i], &number))
			one = NVML_ERROR_UNKNOWN;
		gpu_take(r, g, fields[i].row, one, fields[i].scale * number);
	}
}

static void take_ecc(struct gpu_reader *r, struct gpu *g, enum catalogue row, nvmlMemoryErrorType_t type)
{
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned long long count = 0;

	if (g->gone || g->never[row])
		return;
	if (r->nvml.ecc_total)
		ret = r->nvml.ecc_total(g->device, type, NVML_VOLATILE_ECC, &count);
	gpu_take(r, g, row, ret, (double)count);
}

static void take_rows(struct gpu_reader *r, struct gpu *g)
{
	unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;

	if (g->gone || g->never[CATALOGUE_GPU_ROWS_PENDING])
		return;
	if (r->nvml.remapped_rows)
		ret = r->nvml.remapped_rows(g->device, &corrected, &uncorrected, &pending, &failed);
	gpu_take(r, g, CATALOGUE_GPU_ROWS_CORRECTABLE, ret, corrected);
	gpu_take(r, g, CATALOGUE_GPU_ROWS_UNCORRECTABLE, ret, uncorrected);
	gpu_take(r, g, CATALOGUE_GPU_ROWS_PENDING, ret, pending);
	gpu_take(r, g, CATALOGUE_GPU_ROWS_FAILED, ret, failed);
}

static void take_energy(struct gpu_reader *r, struct gpu *g)
{
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned long long mj = 0;

	if (g->gone || g->never[CATALOGUE_GPU_ENERGY])
		return;
	if (r->nvml.energy)
		ret = r->nvml.energy(g->device, &mj);
	gpu_take(r, g, CATALOGUE_GPU_ENERGY, ret, 1e-3 * (double)mj);
}

static void read_slow(struct gpu_reader *r, struct gpu *g)
{
	take_energy(r, g);
	take_fields(r, g);
	take_ecc(r, g, CATALOGUE_GPU_ECC_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
	take_ecc(r, g, CATALOGUE_GPU_ECC_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
	take_rows(r, g);
	take_number(r, g, CATALOGUE_GPU_POWER_LIMIT, r->nvml.power_limit, 1e-3);
	take_number(r, g, CATALOGUE_GPU_PCIE_GENERATION, r->nvml.pcie_gen, 1);
	take_number(r, g, CATALOGUE_GPU_PCIE_WIDTH, r->nvml.pcie_width, 1);
	if (!g->rare)
		return;
	take_clock(r, g, CATALOGUE_GPU_SM_CLOCK_MAX, r->nvml.clock_max, NVML_CLOCK_SM);
	take_number(r, g, CATALOGUE_GPU_PCIE_REPLAYS, r->nvml.pcie_replays, 1);
}

void gpu_read_values(struct gpu_reader *r, struct gpu *g, bool slow)
{
	take_utilization(r, g);
	take_engine(r, g, CATALOGUE_GPU_ENCODER, r->nvml.encoder);
	take_engine(r, g, CATALOGUE_GPU_DECODER, r->nvml.decoder);
	take_memory(r, g, slow);
	take_temperature(r, g);
	take_number(r, g, CATALOGUE_GPU_POWER, r->nvml.power, 1e-3);
	take_clock(r, g, CATALOGUE_GPU_SM_CLOCK, r->nvml.clock, NVML_CLOCK_SM);
	take_clock(r, g, CATALOGUE_GPU_MEMORY_CLOCK, r->nvml.clock, NVML_CLOCK_MEM);
	take_reasons(r, g);
	if (slow && !g->gone)
		read_slow(r, g);
}
