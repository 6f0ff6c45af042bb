/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML as a table of functions. Every reading is optional: if a driver lacks one, it is absent, which is not
 * an error. NVIDIA removes in CUDA 14 what it marked deprecated in 13, so each deprecated row is next to its
 * successor. Only functions that read are listed. A test refuses names that change the machine.
 */
#ifndef VENDOR_NVML_H
#define VENDOR_NVML_H
#include "vendor/lib.h"
#include "vendor/nvml_types.h"

/* clang-format off */
#define NVML_FUNCTIONS(X) \
	X(REQUIRED, nvmlReturn_t, init, nvmlInit_v2, (void)) \
	X(REQUIRED, nvmlReturn_t, shutdown, nvmlShutdown, (void)) \
	X(REQUIRED, const char *, error_string, nvmlErrorString, (nvmlReturn_t)) \
	X(REQUIRED, nvmlReturn_t, count, nvmlDeviceGetCount_v2, (unsigned int *)) \
	X(REQUIRED, nvmlReturn_t, by_index, nvmlDeviceGetHandleByIndex_v2, (unsigned int, nvmlDevice_t *)) \
	X(REQUIRED, nvmlReturn_t, by_pci, nvmlDeviceGetHandleByPciBusId_v2, (const char *, nvmlDevice_t *)) \
	X(REQUIRED, nvmlReturn_t, pci, nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t *)) \
	X(OPTIONAL, nvmlReturn_t, driver_version, nvmlSystemGetDriverVersion, (char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, nvml_version, nvmlSystemGetNVMLVersion, (char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, cuda_version, nvmlSystemGetCudaDriverVersion_v2, (int *)) \
	X(OPTIONAL, nvmlReturn_t, process_name, nvmlSystemGetProcessName, (unsigned int, char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, name, nvmlDeviceGetName, (nvmlDevice_t, char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, uuid, nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, serial, nvmlDeviceGetSerial, (nvmlDevice_t, char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, vbios, nvmlDeviceGetVbiosVersion, (nvmlDevice_t, char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, part_number, nvmlDeviceGetBoardPartNumber, (nvmlDevice_t, char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, inforom, nvmlDeviceGetInforomImageVersion, (nvmlDevice_t, char *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, gsp_version, nvmlDeviceGetGspFirmwareVersion, (nvmlDevice_t, char *)) \
	X(OPTIONAL, nvmlReturn_t, index, nvmlDeviceGetIndex, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, minor, nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, module_id, nvmlDeviceGetModuleId, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, compute_capability, nvmlDeviceGetCudaComputeCapability, \
	  (nvmlDevice_t, int *, int *)) \
	X(OPTIONAL, nvmlReturn_t, memory_v2, nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t, nvmlMemory_v2_t *)) \
	X(OPTIONAL, nvmlReturn_t, memory, nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t *)) \
	X(OPTIONAL, nvmlReturn_t, bar1, nvmlDeviceGetBAR1MemoryInfo, (nvmlDevice_t, nvmlBAR1Memory_t *)) \
	X(OPTIONAL, nvmlReturn_t, bus_width, nvmlDeviceGetMemoryBusWidth, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, cores, nvmlDeviceGetNumGpuCores, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, clock, nvmlDeviceGetClockInfo, (nvmlDevice_t, nvmlClockType_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, clock_max, nvmlDeviceGetMaxClockInfo, \
	  (nvmlDevice_t, nvmlClockType_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, reasons, nvmlDeviceGetCurrentClocksEventReasons, \
	  (nvmlDevice_t, unsigned long long *)) \
	X(OPTIONAL, nvmlReturn_t, reasons_old, nvmlDeviceGetCurrentClocksThrottleReasons, \
	  (nvmlDevice_t, unsigned long long *)) \
	X(OPTIONAL, nvmlReturn_t, reasons_supported, nvmlDeviceGetSupportedClocksEventReasons, \
	  (nvmlDevice_t, unsigned long long *)) \
	X(OPTIONAL, nvmlReturn_t, performance_state, nvmlDeviceGetPerformanceState, (nvmlDevice_t, nvmlPstates_t *)) \
	X(OPTIONAL, nvmlReturn_t, power, nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, power_limit, nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, power_limit_managed, nvmlDeviceGetPowerManagementLimit, \
	  (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, power_limit_default, nvmlDeviceGetPowerManagementDefaultLimit, \
	  (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, power_limit_range, nvmlDeviceGetPowerManagementLimitConstraints, \
	  (nvmlDevice_t, unsigned int *, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, energy, nvmlDeviceGetTotalEnergyConsumption, (nvmlDevice_t, unsigned long long *)) \
	X(OPTIONAL, nvmlReturn_t, temperature, nvmlDeviceGetTemperatureV, (nvmlDevice_t, nvmlTemperature_t *)) \
	X(OPTIONAL, nvmlReturn_t, temperature_old, nvmlDeviceGetTemperature, \
	  (nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, temperature_threshold, nvmlDeviceGetTemperatureThreshold, \
	  (nvmlDevice_t, nvmlTemperatureThresholds_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, utilization, nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t *)) \
	X(OPTIONAL, nvmlReturn_t, encoder, nvmlDeviceGetEncoderUtilization, \
	  (nvmlDevice_t, unsigned int *, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, decoder, nvmlDeviceGetDecoderUtilization, \
	  (nvmlDevice_t, unsigned int *, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, ecc_mode, nvmlDeviceGetEccMode, \
	  (nvmlDevice_t, nvmlEnableState_t *, nvmlEnableState_t *)) \
	X(OPTIONAL, nvmlReturn_t, ecc_total, nvmlDeviceGetTotalEccErrors, \
	  (nvmlDevice_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t, unsigned long long *)) \
	X(OPTIONAL, nvmlReturn_t, ecc_sram, nvmlDeviceGetSramEccErrorStatus, \
	  (nvmlDevice_t, nvmlEccSramErrorStatus_t *)) \
	X(OPTIONAL, nvmlReturn_t, remapped_rows, nvmlDeviceGetRemappedRows, \
	  (nvmlDevice_t, unsigned int *, unsigned int *, unsigned int *, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, remap_histogram, nvmlDeviceGetRowRemapperHistogram, \
	  (nvmlDevice_t, nvmlRowRemapperHistogramValues_t *)) \
	X(OPTIONAL, nvmlReturn_t, retired_pages, nvmlDeviceGetRetiredPages, \
	  (nvmlDevice_t, nvmlPageRetirementCause_t, unsigned int *, unsigned long long *)) \
	X(OPTIONAL, nvmlReturn_t, retired_pending, nvmlDeviceGetRetiredPagesPendingStatus, \
	  (nvmlDevice_t, nvmlEnableState_t *)) \
	X(OPTIONAL, nvmlReturn_t, violation_old, nvmlDeviceGetViolationStatus, \
	  (nvmlDevice_t, nvmlPerfPolicyType_t, nvmlViolationTime_t *)) \
	X(OPTIONAL, nvmlReturn_t, fields, nvmlDeviceGetFieldValues, (nvmlDevice_t, int, nvmlFieldValue_t *)) \
	X(OPTIONAL, nvmlReturn_t, persistence, nvmlDeviceGetPersistenceMode, (nvmlDevice_t, nvmlEnableState_t *)) \
	X(OPTIONAL, nvmlReturn_t, compute_mode, nvmlDeviceGetComputeMode, (nvmlDevice_t, nvmlComputeMode_t *)) \
	X(OPTIONAL, nvmlReturn_t, mig_mode, nvmlDeviceGetMigMode, (nvmlDevice_t, unsigned int *, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, mig_count_max, nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, mig_device, nvmlDeviceGetMigDeviceHandleByIndex, \
	  (nvmlDevice_t, unsigned int, nvmlDevice_t *)) \
	X(OPTIONAL, nvmlReturn_t, mig_instance, nvmlDeviceGetGpuInstanceId, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, mig_compute, nvmlDeviceGetComputeInstanceId, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, virtualization, nvmlDeviceGetVirtualizationMode, \
	  (nvmlDevice_t, nvmlGpuVirtualizationMode_t *)) \
	X(OPTIONAL, nvmlReturn_t, pcie_gen, nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, pcie_width, nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, pcie_gen_max, nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, pcie_gen_device, nvmlDeviceGetGpuMaxPcieLinkGeneration, \
	  (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, pcie_width_max, nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, pcie_replays, nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, pcie_throughput, nvmlDeviceGetPcieThroughput, \
	  (nvmlDevice_t, nvmlPcieUtilCounter_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, nvlink_state, nvmlDeviceGetNvLinkState, \
	  (nvmlDevice_t, unsigned int, nvmlEnableState_t *)) \
	X(OPTIONAL, nvmlReturn_t, nvlink_version, nvmlDeviceGetNvLinkVersion, \
	  (nvmlDevice_t, unsigned int, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, nvlink_remote_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2, \
	  (nvmlDevice_t, unsigned int, nvmlPciInfo_t *)) \
	X(OPTIONAL, nvmlReturn_t, nvlink_remote_type, nvmlDeviceGetNvLinkRemoteDeviceType, \
	  (nvmlDevice_t, unsigned int, nvmlIntNvLinkDeviceType_t *)) \
	X(OPTIONAL, nvmlReturn_t, nvlink_errors, nvmlDeviceGetNvLinkErrorCounter, \
	  (nvmlDevice_t, unsigned int, nvmlNvLinkErrorCounter_t, unsigned long long *)) \
	X(OPTIONAL, nvmlReturn_t, fabric, nvmlDeviceGetGpuFabricInfoV, (nvmlDevice_t, nvmlGpuFabricInfoV_t *)) \
	X(OPTIONAL, nvmlReturn_t, fabric_old, nvmlDeviceGetGpuFabricInfo, (nvmlDevice_t, nvmlGpuFabricInfo_t *)) \
	X(OPTIONAL, nvmlReturn_t, compute_processes, nvmlDeviceGetComputeRunningProcesses_v3, \
	  (nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *)) \
	X(OPTIONAL, nvmlReturn_t, graphics_processes, nvmlDeviceGetGraphicsRunningProcesses_v3, \
	  (nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *)) \
	X(OPTIONAL, nvmlReturn_t, process_utilization, nvmlDeviceGetProcessUtilization, \
	  (nvmlDevice_t, nvmlProcessUtilizationSample_t *, unsigned int *, unsigned long long)) \
	X(OPTIONAL, nvmlReturn_t, common_ancestor, nvmlDeviceGetTopologyCommonAncestor, \
	  (nvmlDevice_t, nvmlDevice_t, nvmlGpuTopologyLevel_t *)) \
	X(OPTIONAL, nvmlReturn_t, numa_node, nvmlDeviceGetNumaNodeId, (nvmlDevice_t, unsigned int *)) \
	X(OPTIONAL, nvmlReturn_t, event_types, nvmlDeviceGetSupportedEventTypes, \
	  (nvmlDevice_t, unsigned long long *)) \
	X(OPTIONAL, nvmlReturn_t, event_set_create, nvmlEventSetCreate, (nvmlEventSet_t *)) \
	X(OPTIONAL, nvmlReturn_t, event_set_free, nvmlEventSetFree, (nvmlEventSet_t)) \
	X(OPTIONAL, nvmlReturn_t, event_set_wait, nvmlEventSetWait_v2, \
	  (nvmlEventSet_t, nvmlEventData_t *, unsigned int)) \
	X(OPTIONAL, nvmlReturn_t, event_register, nvmlDeviceRegisterEvents, \
	  (nvmlDevice_t, unsigned long long, nvmlEventSet_t)) \
	X(OPTIONAL, nvmlReturn_t, gpm_support, nvmlGpmQueryDeviceSupport, (nvmlDevice_t, nvmlGpmSupport_t *)) \
	X(OPTIONAL, nvmlReturn_t, gpm_sample_alloc, nvmlGpmSampleAlloc, (nvmlGpmSample_t *)) \
	X(OPTIONAL, nvmlReturn_t, gpm_sample_free, nvmlGpmSampleFree, (nvmlGpmSample_t)) \
	X(OPTIONAL, nvmlReturn_t, gpm_sample, nvmlGpmSampleGet, (nvmlDevice_t, nvmlGpmSample_t)) \
	X(OPTIONAL, nvmlReturn_t, gpm_instance_sample, nvmlGpmMigSampleGet, \
	  (nvmlDevice_t, unsigned int, nvmlGpmSample_t)) \
	X(OPTIONAL, nvmlReturn_t, gpm_metrics, nvmlGpmMetricsGet, (nvmlGpmMetricsGet_t *))
/* clang-format on */

struct nvml {
#define X(need, ret, field, symbol, params) ret(*field) params;
	NVML_FUNCTIONS(X)
#undef X
};

/* Use: lib_open(&nvml, &nvml_lib, NULL, &fact, err); then nvml.init(). */
extern const struct lib_spec nvml_lib;

/* Converts a return code: LOST, UNSUPPORTED, UNAVAILABLE (permission, driver), NO_RESOURCE or VENDOR, with
 * its cause. */
enum status nvml_status(nvmlReturn_t ret, enum cause *cause);
/* Reports a failed call as an error that names the call: "nvmlInit_v2: Driver Not Loaded". Returns
 * nvml_status. */
enum status nvml_error(const struct nvml *nvml, nvmlReturn_t ret, const char *call, struct error *err);
/* Meaning of a nonzero code for a reading, for reports: "not supported by this device or driver". NVML's own
 * text needs the library, and a recording has only the code. */
const char *nvml_code_text(int code);
/* Whether the code means that this device or driver does not have the reading and never will. */
bool nvml_lacks(nvmlReturn_t ret);
/* Converts a field's value to double, whatever its type. Returns false unless its nvmlReturn is success and
 * the type is known. */
int nvml_field_f64(const nvmlFieldValue_t *value, double *out);
/* Converts NVML's "00000000:1B:00.0" to "0000:1b:00.0". Returns false if it is not a PCI address. `out` has
 * room for 16 bytes. */
int nvml_pci_text(char out[16], const char *bus_id);
#endif
