/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of a GPU that change during use. */
#include <stdbool.h>
#include "core/text/redact.h"
#include "machine/raw/nvml.h"

enum { PROCESSES_MAX = 256 };

/* A maximum clock costs 1.5 ms per call on an H100, so only the two that are facts are read. */
static void clock_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	static const struct {
		nvmlClockType_t type;
		const char *now, *max;
	} rows[] = {{NVML_CLOCK_SM, "clock_sm", "clock_max_sm"},
		    {NVML_CLOCK_MEM, "clock_memory", "clock_max_memory"}};
	nvmlReturn_t ret;
	unsigned int mhz = 0;

	for (size_t i = 0; i < 2; i++) {
		if (n->clock) {
			ret = n->clock(d, rows[i].type, &mhz);
			raw_put(calls, rows[i].now, ret, raw_integer(mhz));
		}
		if (n->clock_max) {
			ret = n->clock_max(d, rows[i].type, &mhz);
			raw_put(calls, rows[i].max, ret, raw_integer(mhz));
		}
	}
}

static void memory_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	nvmlMemory_v2_t m2 = {.version = nvmlMemory_v2};
	nvmlMemory_t m = {0};
	nvmlBAR1Memory_t bar = {0};
	nvmlReturn_t ret;

	if (n->memory_v2) {
		ret = n->memory_v2(d, &m2);
		raw_put(calls, "memory_v2", ret,
			json_pack("[I,I,I,I]", (json_int_t)m2.total, (json_int_t)m2.reserved,
				  (json_int_t)m2.free, (json_int_t)m2.used));
	}
	if (n->memory && !n->memory_v2) {
		ret = n->memory(d, &m);
		raw_put(calls, "memory", ret,
			json_pack("[I,I,I]", (json_int_t)m.total, (json_int_t)m.free, (json_int_t)m.used));
	}
	if (n->bar1) {
		ret = n->bar1(d, &bar);
		raw_put(calls, "bar1", ret,
			json_pack("[I,I,I]", (json_int_t)bar.bar1Total, (json_int_t)bar.bar1Free,
				  (json_int_t)bar.bar1Used));
	}
}

static void temperature_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	static const char *const thresholds[] = {"temperature_shutdown", "temperature_slowdown",
						 "temperature_memory_max", "temperature_gpu_max"};
	nvmlTemperature_t t = {.version = nvmlTemperature_v1, .sensorType = NVML_TEMPERATURE_GPU};
	nvmlUtilization_t use = {0};
	unsigned int u = 0, high = 0;
	nvmlReturn_t ret;

	if (n->temperature) {
		ret = n->temperature(d, &t);
		raw_put(calls, "temperature", ret, json_integer(t.temperature));
	}
	if (n->temperature_old && !n->temperature) {
		ret = n->temperature_old(d, NVML_TEMPERATURE_GPU, &u);
		raw_put(calls, "temperature_old", ret, raw_integer(u));
	}
	for (unsigned i = 0; n->temperature_threshold && i < 4; i++) {
		ret = n->temperature_threshold(d, (nvmlTemperatureThresholds_t)i, &u);
		raw_put(calls, thresholds[i], ret, raw_integer(u));
	}
	if (n->utilization) {
		ret = n->utilization(d, &use);
		raw_put(calls, "utilization", ret, json_pack("[i,i]", (int)use.gpu, (int)use.memory));
	}
	if (n->power_limit_range) {
		ret = n->power_limit_range(d, &u, &high);
		raw_put(calls, "power_limit_range", ret, json_pack("[I,I]", (json_int_t)u, (json_int_t)high));
	}
}

/* For programs of other users, some drivers return the whole command line instead of the name. */
static json_t *shown_name(const char *name)
{
	struct redact words = {0};
	char shown[256];

	redact_word(&words, shown, sizeof(shown), name);
	return json_string(shown);
}

static void one_process_list(const struct nvml *n, nvmlDevice_t d, bool graphics, json_t *calls)
{
	nvmlReturn_t (*list)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *) =
		graphics ? n->graphics_processes : n->compute_processes;
	nvmlProcessInfo_t info[PROCESSES_MAX];
	unsigned int count = PROCESSES_MAX;
	json_t *rows;
	nvmlReturn_t ret;

	if (!list)
		return;
	ret = list(d, &count, info);
	rows = json_array();
	for (unsigned i = 0; !ret && i < count && i < PROCESSES_MAX; i++) {
		json_t *row = json_pack("{s:I}", "pid", (json_int_t)info[i].pid);
		char name[160] = "";

		if (info[i].usedGpuMemory < 1ULL << 50) /* all bits set: not available */
			json_object_set_new(row, "memory", raw_integer(info[i].usedGpuMemory));
		if (n->process_name && !n->process_name(info[i].pid, name, sizeof(name)) && name[0])
			json_object_set_new(row, "name", shown_name(name));
		json_array_append_new(rows, row);
	}
	raw_put(calls, graphics ? "graphics_processes" : "compute_processes", ret, rows);
}

void raw_nvml_state(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	clock_calls(n, d, calls);
	memory_calls(n, d, calls);
	temperature_calls(n, d, calls);
	one_process_list(n, d, false, calls);
	one_process_list(n, d, true, calls);
}
