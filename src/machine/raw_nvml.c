/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's answers, each [code, value]; the value only where the code is 0. Keys are the rows of vendor/nvml.h.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "machine/raw.h"
#include "vendor/nvml.h"

enum { PROCESSES_MAX = 256 };

static void put(json_t *map, const char *key, nvmlReturn_t ret, json_t *value)
{
	json_t *answer = json_array();

	json_array_append_new(answer, json_integer((json_int_t)ret));
	if (ret == NVML_SUCCESS && value)
		json_array_append_new(answer, value);
	else
		json_decref(value);
	json_object_set_new(map, key, answer);
}

static json_t *integer(unsigned long long v)
{
	return json_integer((json_int_t)v);
}

/* The calls of one device that give one unsigned number. */
#define UINT_CALLS(X)                                                                                        \
	X(minor)                                                                                             \
	X(module_id)                                                                                         \
	X(bus_width)                                                                                         \
	X(cores)                                                                                             \
	X(power)                                                                                             \
	X(power_limit)                                                                                       \
	X(power_limit_managed)                                                                               \
	X(power_limit_default)                                                                               \
	X(mig_count_max)                                                                                     \
	X(pcie_gen)                                                                                          \
	X(pcie_width)                                                                                        \
	X(pcie_gen_max)                                                                                      \
	X(pcie_gen_device)                                                                                   \
	X(pcie_width_max)                                                                                    \
	X(pcie_replays)                                                                                      \
	X(numa_node)

#define U64_CALLS(X)                                                                                         \
	X(reasons)                                                                                           \
	X(reasons_old)                                                                                       \
	X(reasons_supported)                                                                                 \
	X(energy)                                                                                            \
	X(event_types)

#define TEXT_CALLS(X)                                                                                        \
	X(name)                                                                                              \
	X(uuid)                                                                                              \
	X(serial)                                                                                            \
	X(vbios)                                                                                             \
	X(part_number)                                                                                       \
	X(inforom)

static void simple_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	unsigned int u = 0;
	unsigned long long v = 0;
	char text[160];
	nvmlReturn_t ret;

#define X(key)                                                                                               \
	if (n->key) {                                                                                        \
		ret = n->key(d, &u);                                                                         \
		put(calls, #key, ret, integer(u));                                                           \
	}
	UINT_CALLS(X)
#undef X
#define X(key)                                                                                               \
	if (n->key) {                                                                                        \
		ret = n->key(d, &v);                                                                         \
		put(calls, #key, ret, integer(v));                                                           \
	}
	U64_CALLS(X)
#undef X
#define X(key)                                                                                               \
	if (n->key) {                                                                                        \
		text[0] = 0;                                                                                 \
		ret = n->key(d, text, sizeof(text));                                                         \
		put(calls, #key, ret, json_string(text));                                                    \
	}
	TEXT_CALLS(X)
#undef X
	if (n->reasons_old && !n->reasons) {
		ret = n->reasons_old(d, &v);
		put(calls, "reasons_old", ret, integer(v));
	}
	if (n->gsp_version) {
		text[0] = 0;
		ret = n->gsp_version(d, text);
		put(calls, "gsp_version", ret, json_string(text));
	}
}

static void enum_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	nvmlPstates_t pstate = NVML_PSTATE_UNKNOWN;
	nvmlEnableState_t on = NVML_FEATURE_DISABLED, pending = NVML_FEATURE_DISABLED;
	nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
	nvmlGpuVirtualizationMode_t virtual = NVML_GPU_VIRTUALIZATION_MODE_NONE;
	unsigned int a = 0, b = 0;
	nvmlReturn_t ret;

	if (n->performance_state) {
		ret = n->performance_state(d, &pstate);
		put(calls, "performance_state", ret, integer(pstate));
	}
	if (n->persistence) {
		ret = n->persistence(d, &on);
		put(calls, "persistence", ret, integer(on));
	}
	if (n->compute_mode) {
		ret = n->compute_mode(d, &mode);
		put(calls, "compute_mode", ret, integer(mode));
	}
	if (n->virtualization) {
		ret = n->virtualization(d, &virtual);
		put(calls, "virtualization", ret, integer(virtual));
	}
	if (n->retired_pending) {
		ret = n->retired_pending(d, &pending);
		put(calls, "retired_pending", ret, integer(pending));
	}
	if (n->ecc_mode) {
		ret = n->ecc_mode(d, &on, &pending);
		put(calls, "ecc_mode", ret, json_pack("[i,i]", (int)on, (int)pending));
	}
	if (n->mig_mode) {
		ret = n->mig_mode(d, &a, &b);
		put(calls, "mig_mode", ret, json_pack("[i,i]", (int)a, (int)b));
	}
}

/* The maximum costs 1.5 ms a call on an H100: only the two that are facts. */
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
			put(calls, rows[i].now, ret, integer(mhz));
		}
		if (n->clock_max) {
			ret = n->clock_max(d, rows[i].type, &mhz);
			put(calls, rows[i].max, ret, integer(mhz));
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
		put(calls, "memory_v2", ret,
		    json_pack("[I,I,I,I]", (json_int_t)m2.total, (json_int_t)m2.reserved, (json_int_t)m2.free,
			      (json_int_t)m2.used));
	}
	if (n->memory && !n->memory_v2) {
		ret = n->memory(d, &m);
		put(calls, "memory", ret,
		    json_pack("[I,I,I]", (json_int_t)m.total, (json_int_t)m.free, (json_int_t)m.used));
	}
	if (n->bar1) {
		ret = n->bar1(d, &bar);
		put(calls, "bar1", ret,
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
		put(calls, "temperature", ret, json_integer(t.temperature));
	}
	if (n->temperature_old && !n->temperature) {
		ret = n->temperature_old(d, NVML_TEMPERATURE_GPU, &u);
		put(calls, "temperature_old", ret, integer(u));
	}
	for (unsigned i = 0; n->temperature_threshold && i < 4; i++) {
		ret = n->temperature_threshold(d, (nvmlTemperatureThresholds_t)i, &u);
		put(calls, thresholds[i], ret, integer(u));
	}
	if (n->utilization) {
		ret = n->utilization(d, &use);
		put(calls, "utilization", ret, json_pack("[i,i]", (int)use.gpu, (int)use.memory));
	}
	if (n->power_limit_range) {
		ret = n->power_limit_range(d, &u, &high);
		put(calls, "power_limit_range", ret, json_pack("[I,I]", (json_int_t)u, (json_int_t)high));
	}
}

static void ecc_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	static const char *const keys[2][2] = {{"ecc_volatile_corrected", "ecc_aggregate_corrected"},
					       {"ecc_volatile_uncorrected", "ecc_aggregate_uncorrected"}};
	nvmlEccSramErrorStatus_t s = {.version = nvmlEccSramErrorStatus_v1};
	nvmlRowRemapperHistogramValues_t h = {0};
	unsigned int r[4] = {0}, count;
	unsigned long long v = 0;
	nvmlReturn_t ret;

	for (unsigned type = 0; n->ecc_total && type < 2; type++) {
		for (unsigned counter = 0; counter < 2; counter++) {
			ret = n->ecc_total(d, (nvmlMemoryErrorType_t)type, (nvmlEccCounterType_t)counter, &v);
			put(calls, keys[type][counter], ret, integer(v));
		}
	}
	if (n->ecc_sram) {
		ret = n->ecc_sram(d, &s);
		put(calls, "ecc_sram", ret,
		    json_pack("[I,I,I,I,I,I,I,I,I,I,I,I]", (json_int_t)s.aggregateUncParity,
			      (json_int_t)s.aggregateUncSecDed, (json_int_t)s.aggregateCor,
			      (json_int_t)s.volatileUncParity, (json_int_t)s.volatileUncSecDed,
			      (json_int_t)s.volatileCor, (json_int_t)s.aggregateUncBucketL2,
			      (json_int_t)s.aggregateUncBucketSm, (json_int_t)s.aggregateUncBucketPcie,
			      (json_int_t)s.aggregateUncBucketMcu, (json_int_t)s.aggregateUncBucketOther,
			      (json_int_t)s.bThresholdExceeded));
	}
	if (n->remapped_rows) {
		ret = n->remapped_rows(d, &r[0], &r[1], &r[2], &r[3]);
		put(calls, "remapped_rows", ret,
		    json_pack("[i,i,i,i]", (int)r[0], (int)r[1], (int)r[2], (int)r[3]));
	}
	if (n->remap_histogram) {
		ret = n->remap_histogram(d, &h);
		put(calls, "remap_histogram", ret,
		    json_pack("[i,i,i,i,i]", (int)h.max, (int)h.high, (int)h.partial, (int)h.low,
			      (int)h.none));
	}
	for (unsigned cause = 0; n->retired_pages && cause < 2; cause++) {
		count = 0;
		ret = n->retired_pages(d, (nvmlPageRetirementCause_t)cause, &count, NULL);
		if (ret == NVML_ERROR_INSUFFICIENT_SIZE)
			ret = NVML_SUCCESS; /* the count is what we asked for */
		put(calls, cause ? "retired_dbe" : "retired_sbe", ret, integer(count));
	}
}

static void fabric_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	nvmlGpuFabricInfoV_t v = {.version = nvmlGpuFabricInfo_v3};
	nvmlGpuFabricInfo_t old = {0};
	nvmlGpmSupport_t gpm = {.version = NVML_GPM_SUPPORT_VERSION};
	nvmlReturn_t ret;

	if (n->fabric) {
		ret = n->fabric(d, &v);
		if (ret == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
			v = (nvmlGpuFabricInfoV_t){.version = nvmlGpuFabricInfo_v2};
			ret = n->fabric(d, &v);
		}
		put(calls, "fabric", ret,
		    json_pack("[i,i,I,I]", (int)v.state, (int)v.status, (json_int_t)v.cliqueId,
			      (json_int_t)v.healthMask));
	}
	if (n->fabric_old && !n->fabric) {
		ret = n->fabric_old(d, &old);
		put(calls, "fabric_old", ret,
		    json_pack("[i,i,I]", (int)old.state, (int)old.status, (json_int_t)old.cliqueId));
	}
	if (n->gpm_support) {
		ret = n->gpm_support(d, &gpm);
		put(calls, "gpm_support", ret, integer(gpm.isSupportedDevice));
	}
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

		if (info[i].usedGpuMemory < 1ULL << 50) /* all ones: not available */
			json_object_set_new(row, "memory", integer(info[i].usedGpuMemory));
		if (n->process_name && !n->process_name(info[i].pid, name, sizeof(name)) && name[0])
			json_object_set_new(row, "name", json_string(name));
		json_array_append_new(rows, row);
	}
	put(calls, graphics ? "graphics_processes" : "compute_processes", ret, rows);
}

/* Fields in ns and mJ count what a run does, cost up to 3 ms each, and are the sampler's. */
static bool is_a_fact(const char *unit)
{
	return strcmp(unit, "ns") && strcmp(unit, "mJ");
}

static void field_values(const struct nvml *n, nvmlDevice_t d, json_t *fields)
{
	static const struct {
		const char *name, *unit;
		unsigned id;
	} rows[] = {
#define X(name, id, unit) {#name, unit, id},
		NVML_FIELDS(X)
#undef X
	};
	enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
	nvmlFieldValue_t values[COUNT] = {0};
	const char *names[COUNT];
	nvmlReturn_t ret;
	int count = 0;

	if (!n->fields)
		return;
	for (size_t i = 0; i < COUNT; i++) {
		if (!is_a_fact(rows[i].unit))
			continue;
		names[count] = rows[i].name;
		values[count++].fieldId = rows[i].id;
	}
	ret = n->fields(d, count, values);
	for (int i = 0; i < count; i++) {
		double v = 0;
		bool known = !ret && nvml_field_f64(&values[i], &v);

		put(fields, names[i], ret ? ret : values[i].nvmlReturn,
		    !known			 ? NULL
		    : v == (double)(json_int_t)v ? json_integer((json_int_t)v)
						 : json_real(v));
	}
}

static void link_fields(const struct nvml *n, nvmlDevice_t d, unsigned link, json_t *fields)
{
	static const struct {
		const char *name;
		unsigned id;
	} rows[] = {
#define X(name, id, unit) {#name, id},
		NVML_LINK_FIELDS(X)
#undef X
	};
	enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
	nvmlFieldValue_t values[COUNT] = {0};
	nvmlReturn_t ret;

	for (size_t i = 0; i < COUNT; i++) {
		values[i].fieldId = rows[i].id;
		values[i].scopeId = link;
	}
	ret = n->fields(d, COUNT, values);
	for (size_t i = 0; i < COUNT; i++) {
		double v = 0;
		bool known = !ret && nvml_field_f64(&values[i], &v);

		put(fields, rows[i].name, ret ? ret : values[i].nvmlReturn,
		    known ? json_integer((json_int_t)v) : NULL);
	}
}

static json_t *pci_value(const nvmlPciInfo_t *pci)
{
	return json_pack("{s:s,s:I,s:I}", "bus_id", pci->busId, "device", (json_int_t)pci->pciDeviceId,
			 "subsystem", (json_int_t)pci->pciSubSystemId);
}

/* One link; false when there is none of that number. Counters only of a link whose state is known. */
static bool add_link(const struct nvml *n, nvmlDevice_t d, unsigned link, json_t *links)
{
	nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
	nvmlEnableState_t up = NVML_FEATURE_DISABLED;
	nvmlPciInfo_t pci = {0};
	unsigned int version = 0;
	json_t *row, *fields;
	nvmlReturn_t ret;

	if (!n->nvlink_state)
		return false;
	ret = n->nvlink_state(d, link, &up);
	if (ret == NVML_ERROR_INVALID_ARGUMENT || (ret && link))
		return false;
	row = json_object();
	put(row, "nvlink_state", ret, integer(up));
	json_array_append_new(links, row);
	if (ret)
		return false;
	if (n->nvlink_version) {
		ret = n->nvlink_version(d, link, &version);
		put(row, "nvlink_version", ret, integer(version));
	}
	if (n->nvlink_remote_type) {
		ret = n->nvlink_remote_type(d, link, &type);
		put(row, "nvlink_remote_type", ret, integer(type));
	}
	if (n->nvlink_remote_pci) {
		ret = n->nvlink_remote_pci(d, link, &pci);
		put(row, "nvlink_remote_pci", ret, pci_value(&pci));
	}
	if (n->fields) {
		fields = json_object();
		link_fields(n, d, link, fields);
		json_object_set_new(row, "fields", fields);
	}
	return true;
}

static json_t *read_gpu(const struct nvml *n, unsigned index)
{
	json_t *gpu = json_pack("{s:{},s:{},s:[]}", "calls", "fields", "links");
	json_t *calls = json_object_get(gpu, "calls");
	nvmlPciInfo_t pci = {0};
	nvmlDevice_t d = NULL;
	int major = 0, minor = 0;
	nvmlReturn_t ret = n->by_index(index, &d);

	put(gpu, "by_index", ret, NULL);
	if (ret)
		return gpu;
	ret = n->pci(d, &pci);
	put(calls, "pci", ret, pci_value(&pci));
	if (n->compute_capability) {
		ret = n->compute_capability(d, &major, &minor);
		put(calls, "compute_capability", ret, json_pack("[i,i]", major, minor));
	}
	simple_calls(n, d, calls);
	enum_calls(n, d, calls);
	clock_calls(n, d, calls);
	memory_calls(n, d, calls);
	temperature_calls(n, d, calls);
	ecc_calls(n, d, calls);
	fabric_calls(n, d, calls);
	one_process_list(n, d, false, calls);
	one_process_list(n, d, true, calls);
	field_values(n, d, json_object_get(gpu, "fields"));
	for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
		if (!add_link(n, d, link, json_object_get(gpu, "links")))
			break;
	}
	return gpu;
}

/* [[a, b, level], ..] by NVML indices. */
static json_t *topology(const struct nvml *n, unsigned count)
{
	json_t *list = json_array();

	for (unsigned a = 0; n->common_ancestor && a < count; a++) {
		for (unsigned b = a + 1; b < count; b++) {
			nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_SYSTEM;
			nvmlDevice_t left, right;

			if (!n->by_index(a, &left) && !n->by_index(b, &right) &&
			    !n->common_ancestor(left, right, &level))
				json_array_append_new(list, json_pack("[i,i,i]", (int)a, (int)b, (int)level));
		}
	}
	return list;
}

static void system_calls(const struct nvml *n, json_t *calls)
{
	char text[96];
	nvmlReturn_t ret;
	int version = 0;

	if (n->driver_version) {
		text[0] = 0;
		ret = n->driver_version(text, sizeof(text));
		put(calls, "driver_version", ret, json_string(text));
	}
	if (n->nvml_version) {
		text[0] = 0;
		ret = n->nvml_version(text, sizeof(text));
		put(calls, "nvml_version", ret, json_string(text));
	}
	if (n->cuda_version) {
		ret = n->cuda_version(&version);
		put(calls, "cuda_version", ret, json_integer(version));
	}
}

struct reader {
	const struct nvml *nvml;
	unsigned index;
	json_t *gpu;
	pthread_t thread;
	bool started;
};

static void *read_in_thread(void *arg)
{
	struct reader *r = arg;

	r->gpu = read_gpu(r->nvml, r->index);
	return NULL;
}

/* Side by side: one GPU takes some 30 ms, most of it waiting for its firmware. */
static void read_gpus(const struct nvml *n, unsigned count, json_t *gpus)
{
	struct reader *r = calloc(count ? count : 1, sizeof(*r));

	for (unsigned i = 0; r && i < count; i++) {
		r[i].nvml = n;
		r[i].index = i;
		r[i].started = !pthread_create(&r[i].thread, NULL, read_in_thread, &r[i]);
		if (!r[i].started)
			read_in_thread(&r[i]);
	}
	for (unsigned i = 0; r && i < count; i++) {
		if (r[i].started)
			pthread_join(r[i].thread, NULL);
		json_array_append_new(gpus, r[i].gpu);
	}
	free(r);
}

json_t *raw_nvml(void)
{
	json_t *raw = json_pack("{s:s,s:{},s:{},s:[]}", "layer", "nvml", "library", "calls", "gpus");
	json_t *library = json_object_get(raw, "library");
	struct lib_fact fact;
	struct nvml n;
	nvmlReturn_t ret;
	unsigned int count = 0;

	if (lib_open(&n, &nvml_lib, NULL, &fact, NULL)) {
		json_object_set_new(library, "missing",
				    json_string(fact.missing ? fact.missing : "not found"));
		lib_fact_release(&fact);
		return raw;
	}
	json_object_set_new(library, "path", json_string(fact.path ? fact.path : ""));
	lib_fact_release(&fact);
	ret = n.init();
	json_object_set_new(raw, "init", json_integer((json_int_t)ret));
	if (ret)
		return raw;
	system_calls(&n, json_object_get(raw, "calls"));
	ret = n.count(&count);
	put(json_object_get(raw, "calls"), "count", ret, integer(count));
	read_gpus(&n, ret ? 0 : count < 256 ? count : 256, json_object_get(raw, "gpus"));
	json_object_set_new(raw, "topology", topology(&n, ret ? 0 : count));
	n.shutdown();
	return raw;
}
