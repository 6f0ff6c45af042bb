/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 that answers from a file in the form of a recording's nvml.json
 * (docs/design/machine.md), so any recorded machine and any failure can be staged. Without FAKE_NVML_FILE it
 * is one healthy H100 (tests/fake/h100.json). Switches, each an environment variable; KEY is a key of the
 * file: "power", "reasons", "fabric", "energy_total": FAKE_NVML_INIT=9            nvmlInit answers 9 (driver
 * not loaded) FAKE_NVML_COUNT=7           fewer (or more) devices than the file has FAKE_NVML_RET=KEY=15,...
 * that call answers the code FAKE_NVML_VALUE=KEY=72,...  that call answers 0 and the number
 *   FAKE_NVML_RATE=KEY=5e6,...  that number grows by so much a second (negative: runs backwards)
 *   FAKE_NVML_AFTER=0.5         RET, VALUE and HANG begin so many seconds after nvmlInit
 *   FAKE_NVML_LOST=1            every call on device 1 answers 15 (GPU is lost)
 *   FAKE_NVML_HANG=KEY          that call never returns ("init" too)
 *   FAKE_NVML_CRASH=KEY         that call kills the process
 *   FAKE_NVML_XID=94@0.3        an Xid event on device 0, 0.3 s after nvmlInit
 * Energy: "energy_total" and "energy" grow with "power_instant", in steps of 0.1 s as on the real cards.
 */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>
#include "vendor/nvml.h"

#define X(need, ret, field, symbol, params) ret symbol params;
NVML_FUNCTIONS(X)
#undef X

struct nvmlDevice_st {
	unsigned index;
};
struct nvmlGpmSample_st {
	double at;
};
struct nvmlEventSet_st {
	bool delivered;
};

static json_t *file;
static struct nvmlDevice_st devices[64];
static double began;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The text after "KEY=" in a comma-separated list, or NULL. */
static const char *listed(const char *variable, const char *key)
{
	const char *p = getenv(variable);
	size_t n = strlen(key);

	while (p && *p) {
		if (!strncmp(p, key, n) && p[n] == '=')
			return p + n + 1;
		p = strchr(p, ',');
		p = p ? p + 1 : NULL;
	}
	return NULL;
}

static bool is(const char *variable, const char *key)
{
	const char *v = getenv(variable);

	return v && !strcmp(v, key);
}

static bool active(void)
{
	const char *after = getenv("FAKE_NVML_AFTER");

	return !after || now() - began >= strtod(after, NULL);
}

static void stage(const char *key)
{
	if (active() && is("FAKE_NVML_HANG", key)) {
		for (;;)
			pause();
	}
	if (active() && is("FAKE_NVML_CRASH", key))
		raise(SIGSEGV);
}

static const json_t *load(void)
{
	const char *path = getenv("FAKE_NVML_FILE");
	json_error_t e;

	if (!file) {
		file = json_load_file(path ? path : FAKE_NVML_DEFAULT, 0, &e);
		if (!file) {
			fprintf(stderr, "fake nvml: %s:%d: %s\n", path ? path : FAKE_NVML_DEFAULT, e.line,
				e.text);
			abort();
		}
	}
	return file;
}

static const json_t *device(nvmlDevice_t d)
{
	return d ? json_array_get(json_object_get(load(), "gpus"), d->index) : NULL;
}

/* The code of one answer [code, value?]; the value, lent, in *value. Absent: not supported. */
static nvmlReturn_t answer(nvmlDevice_t d, const json_t *map, const char *key, const json_t **value)
{
	const json_t *a = json_object_get(map, key);
	const char *lost = getenv("FAKE_NVML_LOST"), *ret;

	*value = NULL;
	stage(key);
	if (d && lost && active() && strtoul(lost, NULL, 10) == d->index)
		return NVML_ERROR_GPU_IS_LOST;
	ret = active() ? listed("FAKE_NVML_RET", key) : NULL;
	if (ret)
		return (nvmlReturn_t)strtol(ret, NULL, 10);
	if (!json_is_array(a))
		return active() && listed("FAKE_NVML_VALUE", key) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
	*value = json_array_get(a, 1);
	return (nvmlReturn_t)json_integer_value(json_array_get(a, 0));
}

static double field_value(nvmlDevice_t d, const char *key)
{
	const json_t *a = json_object_get(json_object_get(device(d), "fields"), key);

	return json_number_value(json_array_get(a, 1));
}

/* The number of an answer, with the switches that alter it. */
static double number(nvmlDevice_t d, const char *key, double value)
{
	const char *fixed = active() ? listed("FAKE_NVML_VALUE", key) : NULL;
	const char *rate = listed("FAKE_NVML_RATE", key);
	double t = now() - began;

	if (fixed)
		value = strtod(fixed, NULL);
	if (!strcmp(key, "energy") || !strcmp(key, "energy_total")) {
		t = floor(10 * t) / 10;
		if (!rate)
			value += t * field_value(d, "power_instant");
	}
	return rate ? value + t * strtod(rate, NULL) : value;
}

static nvmlReturn_t get_number(nvmlDevice_t d, const char *key, double *out)
{
	const json_t *value;
	nvmlReturn_t ret = answer(d, json_object_get(device(d), "calls"), key, &value);

	if (!ret)
		*out = number(d, key, json_number_value(value));
	return ret;
}

static nvmlReturn_t get_uint(nvmlDevice_t d, const char *key, unsigned *out)
{
	double value;
	nvmlReturn_t ret = get_number(d, key, &value);

	if (!ret)
		*out = (unsigned)value;
	return ret;
}

static nvmlReturn_t get_u64(nvmlDevice_t d, const char *key, unsigned long long *out)
{
	double value;
	nvmlReturn_t ret = get_number(d, key, &value);

	if (!ret)
		*out = (unsigned long long)value;
	return ret;
}

static nvmlReturn_t copy_text(const json_t *value, char *out, unsigned size)
{
	const char *text = json_string_value(value);

	if (!text || strlen(text) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, text, strlen(text) + 1);
	return NVML_SUCCESS;
}

static nvmlReturn_t get_text(nvmlDevice_t d, const char *key, char *out, unsigned size)
{
	const json_t *value;
	nvmlReturn_t ret = answer(d, json_object_get(device(d), "calls"), key, &value);

	return ret ? ret : copy_text(value, out, size);
}

/* `count` numbers of a list answer; a number alone (FAKE_NVML_VALUE) stands for the first. */
static nvmlReturn_t get_list(nvmlDevice_t d, const char *key, double *out, size_t count)
{
	const json_t *value;
	nvmlReturn_t ret = answer(d, json_object_get(device(d), "calls"), key, &value);

	for (size_t i = 0; !ret && i < count; i++)
		out[i] = json_number_value(json_array_get(value, i));
	if (!ret)
		out[0] = number(d, key, out[0]);
	return ret;
}

nvmlReturn_t nvmlInit_v2(void)
{
	const char *code = getenv("FAKE_NVML_INIT");
	const json_t *init = json_object_get(load(), "init");

	if (began <= 0)
		began = now();
	stage("init");
	for (unsigned i = 0; i < 64; i++)
		devices[i].index = i;
	return (nvmlReturn_t)(code ? strtol(code, NULL, 10) : json_integer_value(init));
}

nvmlReturn_t nvmlShutdown(void)
{
	stage("shutdown");
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t ret)
{
	switch ((int)ret) {
	case 0:
		return "Success";
	case 3:
		return "Not Supported";
	case 4:
		return "Insufficient Permissions";
	case 9:
		return "Driver Not Loaded";
	case 15:
		return "GPU is lost";
	case 18:
		return "Driver/library version mismatch";
	case 999:
		return "Unknown Error";
	default:
		return "Some Error";
	}
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	const char *count_text = getenv("FAKE_NVML_COUNT");

	stage("count");
	*count = count_text ? (unsigned)strtoul(count_text, NULL, 10)
			    : (unsigned)json_array_size(json_object_get(load(), "gpus"));
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *out)
{
	const json_t *by =
		json_object_get(json_array_get(json_object_get(load(), "gpus"), index), "by_index");
	const char *ret = listed("FAKE_NVML_RET", "by_index");

	stage("by_index");
	if (index >= 64 || index >= json_array_size(json_object_get(load(), "gpus")))
		return NVML_ERROR_INVALID_ARGUMENT;
	*out = &devices[index];
	return (nvmlReturn_t)(ret ? strtol(ret, NULL, 10) : json_integer_value(json_array_get(by, 0)));
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *out)
{
	unsigned count = 0, domain, bus, dev;

	if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &dev) != 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	nvmlDeviceGetCount_v2(&count);
	for (unsigned i = 0; i < count && i < 64; i++) {
		nvmlPciInfo_t pci;

		if (!nvmlDeviceGetPciInfo_v3(&devices[i], &pci) && pci.domain == domain && pci.bus == bus &&
		    pci.device == dev) {
			*out = &devices[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t fill_pci(const json_t *value, nvmlPciInfo_t *pci)
{
	unsigned domain = 0, bus = 0, dev = 0;
	const char *id = json_string_value(json_object_get(value, "bus_id"));

	*pci = (nvmlPciInfo_t){0};
	if (!id || sscanf(id, "%x:%x:%x", &domain, &bus, &dev) != 3)
		return NVML_ERROR_UNKNOWN;
	pci->domain = domain;
	pci->bus = bus;
	pci->device = dev;
	pci->pciDeviceId = (unsigned)json_integer_value(json_object_get(value, "device"));
	pci->pciSubSystemId = (unsigned)json_integer_value(json_object_get(value, "subsystem"));
	snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.0", domain, bus & 0xff, dev & 0xff);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *pci)
{
	const json_t *value;
	nvmlReturn_t ret = answer(d, json_object_get(device(d), "calls"), "pci", &value);

	return ret ? ret : fill_pci(value, pci);
}

static nvmlReturn_t system_text(const char *key, char *out, unsigned size)
{
	const json_t *value;
	nvmlReturn_t ret = answer(NULL, json_object_get(load(), "calls"), key, &value);

	return ret ? ret : copy_text(value, out, size);
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned int size)
{
	return system_text("driver_version", out, size);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *out, unsigned int size)
{
	return system_text("nvml_version", out, size);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *out)
{
	const json_t *value;
	nvmlReturn_t ret = answer(NULL, json_object_get(load(), "calls"), "cuda_version", &value);

	*out = (int)json_integer_value(value);
	return ret;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *out, unsigned int size)
{
	snprintf(out, size, "/opt/fake/process-%u", pid);
	return NVML_SUCCESS;
}

#define TEXT(symbol, key)                                                                                    \
	nvmlReturn_t symbol(nvmlDevice_t d, char *out, unsigned int size)                                    \
	{                                                                                                    \
		return get_text(d, key, out, size);                                                          \
	}
TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetBoardPartNumber, "part_number")
TEXT(nvmlDeviceGetInforomImageVersion, "inforom")

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t d, char *out)
{
	return get_text(d, "gsp_version", out, 64);
}

#define UINT(symbol, key)                                                                                    \
	nvmlReturn_t symbol(nvmlDevice_t d, unsigned int *out)                                               \
	{                                                                                                    \
		return get_uint(d, key, out);                                                                \
	}
UINT(nvmlDeviceGetMinorNumber, "minor")
UINT(nvmlDeviceGetModuleId, "module_id")
UINT(nvmlDeviceGetMemoryBusWidth, "bus_width")
UINT(nvmlDeviceGetNumGpuCores, "cores")
UINT(nvmlDeviceGetPowerUsage, "power")
UINT(nvmlDeviceGetEnforcedPowerLimit, "power_limit")
UINT(nvmlDeviceGetPowerManagementLimit, "power_limit_managed")
UINT(nvmlDeviceGetPowerManagementDefaultLimit, "power_limit_default")
UINT(nvmlDeviceGetMaxMigDeviceCount, "mig_count_max")
UINT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen")
UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
UINT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max")
UINT(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_gen_device")
UINT(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
UINT(nvmlDeviceGetPcieReplayCounter, "pcie_replays")
UINT(nvmlDeviceGetNumaNodeId, "numa_node")

#define U64(symbol, key)                                                                                     \
	nvmlReturn_t symbol(nvmlDevice_t d, unsigned long long *out)                                         \
	{                                                                                                    \
		return get_u64(d, key, out);                                                                 \
	}
U64(nvmlDeviceGetCurrentClocksEventReasons, "reasons")
U64(nvmlDeviceGetCurrentClocksThrottleReasons, "reasons_old")
U64(nvmlDeviceGetSupportedClocksEventReasons, "reasons_supported")
U64(nvmlDeviceGetTotalEnergyConsumption, "energy")
U64(nvmlDeviceGetSupportedEventTypes, "event_types")

#define ENUM(symbol, type, key)                                                                              \
	nvmlReturn_t symbol(nvmlDevice_t d, type *out)                                                       \
	{                                                                                                    \
		unsigned value = 0;                                                                          \
		nvmlReturn_t ret = get_uint(d, key, &value);                                                 \
                                                                                                             \
		*out = (type)value;                                                                          \
		return ret;                                                                                  \
	}
ENUM(nvmlDeviceGetPerformanceState, nvmlPstates_t, "performance_state")
ENUM(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, "persistence")
ENUM(nvmlDeviceGetComputeMode, nvmlComputeMode_t, "compute_mode")
ENUM(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, "virtualization")
ENUM(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t, "retired_pending")

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor)
{
	double v[2];
	nvmlReturn_t ret = get_list(d, "compute_capability", v, 2);

	if (!ret) {
		*major = (int)v[0];
		*minor = (int)v[1];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *out)
{
	double v[4];
	nvmlReturn_t ret = get_list(d, "memory_v2", v, 4);

	if (out->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!ret) {
		out->total = (unsigned long long)v[0];
		out->reserved = (unsigned long long)v[1];
		out->free = (unsigned long long)v[2];
		out->used = (unsigned long long)v[3];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *out)
{
	double v[3];
	nvmlReturn_t ret = get_list(d, "memory", v, 3);

	if (!ret)
		*out = (nvmlMemory_t){(unsigned long long)v[0], (unsigned long long)v[1],
				      (unsigned long long)v[2]};
	return ret;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlBAR1Memory_t *out)
{
	double v[3];
	nvmlReturn_t ret = get_list(d, "bar1", v, 3);

	if (!ret)
		*out = (nvmlBAR1Memory_t){(unsigned long long)v[0], (unsigned long long)v[1],
					  (unsigned long long)v[2]};
	return ret;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *out)
{
	static const char *const keys[] = {"clock_graphics", "clock_sm", "clock_memory", "clock_video"};

	return (unsigned)type < 4 ? get_uint(d, keys[type], out) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *out)
{
	static const char *const keys[] = {"clock_max_graphics", "clock_max_sm", "clock_max_memory",
					   "clock_max_video"};

	return (unsigned)type < 4 ? get_uint(d, keys[type], out) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned int *low,
							  unsigned int *high)
{
	double v[2];
	nvmlReturn_t ret = get_list(d, "power_limit_range", v, 2);

	if (!ret) {
		*low = (unsigned)v[0];
		*high = (unsigned)v[1];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_t *out)
{
	double value;
	nvmlReturn_t ret = get_number(d, "temperature", &value);

	if (out->version != nvmlTemperature_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!ret)
		out->temperature = (int)value;
	return ret;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *out)
{
	(void)sensor;
	return get_uint(d, "temperature_old", out);
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t which,
					       unsigned int *out)
{
	static const char *const keys[] = {"temperature_shutdown", "temperature_slowdown",
					   "temperature_memory_max", "temperature_gpu_max"};

	return (unsigned)which < 4 ? get_uint(d, keys[which], out) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *out)
{
	double v[2];
	nvmlReturn_t ret = get_list(d, "utilization", v, 2);

	if (!ret)
		*out = (nvmlUtilization_t){(unsigned)v[0], (unsigned)v[1]};
	return ret;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	double v[2];
	nvmlReturn_t ret = get_list(d, "ecc_mode", v, 2);

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

	return get_u64(d, keys[type == 1][counter == 1], out);
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t d, nvmlEccSramErrorStatus_t *out)
{
	double v[12];
	nvmlReturn_t ret = get_list(d, "ecc_sram", v, 12);
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
	nvmlReturn_t ret = get_list(d, "remapped_rows", v, 4);

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
	nvmlReturn_t ret = get_list(d, "remap_histogram", v, 5);

	if (!ret)
		*out = (nvmlRowRemapperHistogramValues_t){(unsigned)v[0], (unsigned)v[1], (unsigned)v[2],
							  (unsigned)v[3], (unsigned)v[4]};
	return ret;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *count,
				       unsigned long long *pages)
{
	(void)pages;
	return get_uint(d, cause ? "retired_dbe" : "retired_sbe", count);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t d, nvmlPerfPolicyType_t policy,
					  nvmlViolationTime_t *out)
{
	static const char *const keys[] = {"violation_power",		"violation_thermal",
					   "violation_sync_boost",	"violation_board",
					   "violation_low_utilization", "violation_reliability"};
	const json_t *value;
	nvmlReturn_t ret;

	if ((unsigned)policy >= 6)
		return NVML_ERROR_INVALID_ARGUMENT;
	ret = answer(d, json_object_get(device(d), "fields"), keys[policy], &value);
	if (!ret) {
		out->violationTime = (unsigned long long)number(d, keys[policy], json_number_value(value));
		out->referenceTime = (unsigned long long)(1e6 * now());
	}
	return ret;
}

static const char *field_key(unsigned id, bool *per_link)
{
	*per_link = false;
	switch (id) {
#define X(name, number_, unit)                                                                               \
	case number_:                                                                                        \
		return #name;
		NVML_FIELDS(X)
#undef X
	default:
		break;
	}
	*per_link = true;
	switch (id) {
#define X(name, number_, unit)                                                                               \
	case number_:                                                                                        \
		return #name;
		NVML_LINK_FIELDS(X)
#undef X
	default:
		return NULL;
	}
}

static void answer_field(nvmlDevice_t d, nvmlFieldValue_t *f)
{
	bool per_link;
	const char *key = field_key(f->fieldId, &per_link);
	const json_t *map = device(d), *value;

	f->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	if (!key)
		return;
	if (per_link)
		map = json_array_get(json_object_get(map, "links"), f->scopeId);
	f->nvmlReturn = answer(d, json_object_get(map, "fields"), key, &value);
	if (f->nvmlReturn)
		return;
	f->timestamp = (long long)(1e6 * now());
	f->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	f->value.ullVal = (unsigned long long)number(d, key, json_number_value(value));
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int count, nvmlFieldValue_t *values)
{
	const char *lost = getenv("FAKE_NVML_LOST");

	stage("fields");
	if (lost && active() && strtoul(lost, NULL, 10) == d->index)
		return NVML_ERROR_GPU_IS_LOST;
	for (int i = 0; i < count; i++)
		answer_field(d, &values[i]);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending)
{
	double v[2];
	nvmlReturn_t ret = get_list(d, "mig_mode", v, 2);

	if (!ret) {
		*current = (unsigned)v[0];
		*pending = (unsigned)v[1];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, nvmlPcieUtilCounter_t counter, unsigned int *out)
{
	return get_uint(d, counter ? "pcie_throughput_rx" : "pcie_throughput_tx", out);
}

/* One answer of one link. */
static nvmlReturn_t link_number(nvmlDevice_t d, unsigned link, const char *key, double *out)
{
	const json_t *map = json_array_get(json_object_get(device(d), "links"), link), *value;
	nvmlReturn_t ret = answer(d, map, key, &value);

	*out = ret ? 0 : number(d, key, json_number_value(value));
	return ret;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int link, nvmlEnableState_t *out)
{
	double v;
	nvmlReturn_t ret = link_number(d, link, "nvlink_state", &v);

	*out = (nvmlEnableState_t)v;
	return ret;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t d, unsigned int link, unsigned int *out)
{
	double v;
	nvmlReturn_t ret = link_number(d, link, "nvlink_version", &v);

	*out = (unsigned)v;
	return ret;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t d, unsigned int link,
						 nvmlIntNvLinkDeviceType_t *out)
{
	double v;
	nvmlReturn_t ret = link_number(d, link, "nvlink_remote_type", &v);

	*out = (nvmlIntNvLinkDeviceType_t)v;
	return ret;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned int link, nvmlPciInfo_t *out)
{
	const json_t *map = json_array_get(json_object_get(device(d), "links"), link), *value;
	nvmlReturn_t ret = answer(d, map, "nvlink_remote_pci", &value);

	return ret ? ret : fill_pci(value, out);
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t d, unsigned int link,
					     nvmlNvLinkErrorCounter_t counter, unsigned long long *out)
{
	static const char *const keys[] = {"error_replay", "error_recovery", "error_crc", "error_crc",
					   "error_ecc"};
	double v;
	nvmlReturn_t ret;

	if ((unsigned)counter >= 5)
		return NVML_ERROR_INVALID_ARGUMENT;
	ret = link_number(d, link, keys[counter], &v);
	*out = (unsigned long long)v;
	return ret;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfoV_t *out)
{
	double v[4];
	nvmlReturn_t ret = get_list(d, "fabric", v, 4);

	if (out->version != nvmlGpuFabricInfo_v3 && out->version != nvmlGpuFabricInfo_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!ret) {
		out->state = (unsigned char)v[0];
		out->status = (nvmlReturn_t)v[1];
		out->cliqueId = (unsigned)v[2];
		out->healthMask = (unsigned)v[3];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t *out)
{
	double v[3];
	nvmlReturn_t ret = get_list(d, "fabric_old", v, 3);

	if (!ret) {
		out->state = (unsigned char)v[0];
		out->status = (nvmlReturn_t)v[1];
		out->cliqueId = (unsigned)v[2];
	}
	return ret;
}

static nvmlReturn_t get_processes(nvmlDevice_t d, const char *key, unsigned *count, nvmlProcessInfo_t *out)
{
	const json_t *value;
	nvmlReturn_t ret = answer(d, json_object_get(device(d), "calls"), key, &value);
	size_t n = json_array_size(value);

	if (ret)
		return ret;
	if (n > *count) {
		*count = (unsigned)n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = (unsigned)n;
	for (size_t i = 0; i < n; i++) {
		const json_t *p = json_array_get(value, i);

		out[i] = (nvmlProcessInfo_t){
			.pid = (unsigned)json_integer_value(json_object_get(p, "pid")),
			.usedGpuMemory = (unsigned long long)json_integer_value(json_object_get(p, "memory")),
		};
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *count,
						     nvmlProcessInfo_t *out)
{
	return get_processes(d, "compute_processes", count, out);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned int *count,
						      nvmlProcessInfo_t *out)
{
	return get_processes(d, "graphics_processes", count, out);
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *out)
{
	*out = a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	stage("event_set_create");
	*set = calloc(1, sizeof(**set));
	return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	free(set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set)
{
	const char *ret = listed("FAKE_NVML_RET", "event_register");

	(void)d, (void)types, (void)set;
	return (nvmlReturn_t)(ret ? strtol(ret, NULL, 10) : 0);
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	const char *xid = getenv("FAKE_NVML_XID");
	const char *at = xid ? strchr(xid, '@') : NULL;
	double end = now() + timeout_ms * 1e-3;

	stage("event_set_wait");
	do {
		if (xid && !set->delivered && now() - began >= (at ? strtod(at + 1, NULL) : 0)) {
			set->delivered = true;
			*data = (nvmlEventData_t){.device = &devices[0],
						  .eventType = nvmlEventTypeXidCriticalError,
						  .eventData = strtoull(xid, NULL, 10)};
			return NVML_SUCCESS;
		}
		if (timeout_ms)
			usleep(1000);
	} while (now() < end);
	return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *out)
{
	return get_uint(d, "gpm_support", &out->isSupportedDevice);
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	free(sample);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t sample)
{
	const json_t *value;

	sample->at = now();
	return answer(d, json_object_get(device(d), "calls"), "gpm_support", &value);
}

/* "gpm": { "5": 91.8 } on device 0; a metric that is not listed is not supported. */
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
	const json_t *gpm = json_object_get(device(&devices[0]), "gpm");

	if (get->version != NVML_GPM_METRICS_GET_VERSION || get->numMetrics > NVML_GPM_METRIC_MAX)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!get->sample1 || !get->sample2 || get->sample2->at < get->sample1->at)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < get->numMetrics; i++) {
		char key[16], named[24];
		const json_t *value;

		snprintf(key, sizeof(key), "%u", get->metrics[i].metricId);
		snprintf(named, sizeof(named), "gpm_%s", key);
		value = json_object_get(gpm, key);
		get->metrics[i].nvmlReturn = value ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
		get->metrics[i].value = value ? number(&devices[0], named, json_number_value(value)) : 0;
	}
	return NVML_SUCCESS;
}
