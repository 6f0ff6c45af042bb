/* SPDX-License-Identifier: Apache-2.0 */
/* The library itself, its devices, and what a device is called and answers with one number. */
#include "nvml_fake.h"

struct nvmlDevice_st fake_devices[64 + 64 * FAKE_INSTANCES];

nvmlReturn_t nvmlInit_v2(void)
{
	const char *code = getenv("FAKE_NVML_INIT");
	const json_t *init = json_object_get(fake_file(), "init");

	if (fake_began <= 0)
		fake_began = fake_now();
	fake_stage("init");
	for (unsigned i = 0; i < sizeof(fake_devices) / sizeof(fake_devices[0]); i++)
		fake_devices[i].index = i;
	return (nvmlReturn_t)(code ? strtol(code, NULL, 10) : json_integer_value(init));
}

nvmlReturn_t nvmlShutdown(void)
{
	fake_stage("shutdown");
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

	fake_stage("count");
	*count = count_text ? (unsigned)strtoul(count_text, NULL, 10)
			    : (unsigned)json_array_size(json_object_get(fake_file(), "gpus"));
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *out)
{
	const json_t *by =
		json_object_get(json_array_get(json_object_get(fake_file(), "gpus"), index), "by_index");
	const char *ret = fake_listed("FAKE_NVML_RET", "by_index");

	fake_stage("by_index");
	if (index >= 64 || index >= json_array_size(json_object_get(fake_file(), "gpus")))
		return NVML_ERROR_INVALID_ARGUMENT;
	*out = &fake_devices[index];
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

		if (!nvmlDeviceGetPciInfo_v3(&fake_devices[i], &pci) && pci.domain == domain &&
		    pci.bus == bus && pci.device == dev) {
			*out = &fake_devices[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t fake_pci(const json_t *value, nvmlPciInfo_t *pci)
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
	nvmlReturn_t ret = fake_answer(d, json_object_get(fake_device(d), "calls"), "pci", &value);

	return ret ? ret : fake_pci(value, pci);
}

static nvmlReturn_t system_text(const char *key, char *out, unsigned size)
{
	const json_t *value;
	nvmlReturn_t ret = fake_answer(NULL, json_object_get(fake_file(), "calls"), key, &value);

	return ret ? ret : fake_copy_text(value, out, size);
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
	nvmlReturn_t ret = fake_answer(NULL, json_object_get(fake_file(), "calls"), "cuda_version", &value);

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
		return fake_get_text(d, key, out, size);                                                     \
	}
TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetBoardPartNumber, "part_number")
TEXT(nvmlDeviceGetInforomImageVersion, "inforom")

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t d, char *out)
{
	return fake_get_text(d, "gsp_version", out, 64);
}

#define UINT(symbol, key)                                                                                    \
	nvmlReturn_t symbol(nvmlDevice_t d, unsigned int *out)                                               \
	{                                                                                                    \
		return fake_get_uint(d, key, out);                                                           \
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
		return fake_get_u64(d, key, out);                                                            \
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
		nvmlReturn_t ret = fake_get_uint(d, key, &value);                                            \
                                                                                                             \
		*out = (type)value;                                                                          \
		return ret;                                                                                  \
	}
ENUM(nvmlDeviceGetPerformanceState, nvmlPstates_t, "performance_state")
ENUM(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, "persistence")
ENUM(nvmlDeviceGetComputeMode, nvmlComputeMode_t, "compute_mode")
ENUM(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, "virtualization")
ENUM(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t, "retired_pending")

#define UTILIZATION(symbol, key)                                                                             \
	nvmlReturn_t symbol(nvmlDevice_t d, unsigned int *percent, unsigned int *period_us)                  \
	{                                                                                                    \
		*period_us = 167000;                                                                         \
		return fake_get_uint(d, key, percent);                                                       \
	}
UTILIZATION(nvmlDeviceGetEncoderUtilization, "encoder")
UTILIZATION(nvmlDeviceGetDecoderUtilization, "decoder")

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t d, unsigned int *out)
{
	*out = d->index;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor)
{
	double v[2];
	nvmlReturn_t ret = fake_get_list(d, "compute_capability", v, 2);

	if (!ret) {
		*major = (int)v[0];
		*minor = (int)v[1];
	}
	return ret;
}
