/* SPDX-License-Identifier: Apache-2.0 */
/* Plausible values of GPU readings. A failing driver may return all ones, or a number that no device can
 * have; such an answer is not a reading. The names are shared by GPU facts (machine/machine.h) and
 * telemetry signals (telemetry/telemetry.h); tests compare the table with both. */
#ifndef CORE_MATH_PLAUSIBLE_RANGE_H
#define CORE_MATH_PLAUSIBLE_RANGE_H
#include <stdbool.h>

/*
 * Columns: name, lowest value, highest value, unit, vendor function that returns it. The highest values are
 * far above any device and far below the all-ones value of a failed read: 2^32 - 1, or -1 for 64 bits.
 * Temperatures range from the storage temperature of silicon to well above every shutdown threshold. A clock
 * or power of zero is possible only at rest: see plausible_under_load.
 */
/* clang-format off */
#define PLAUSIBLE(X)                                                                                      \
	X(sm_count, 1, 4096, "", "cuDeviceGetAttribute")                                                  \
	X(cc, 10, 999, "", "nvmlDeviceGetCudaComputeCapability")                                          \
	X(memory_bytes, 1, 1e15, "B", "nvmlDeviceGetMemoryInfo_v2")                                       \
	X(memory_free_bytes, 0, 1e15, "B", "nvmlDeviceGetMemoryInfo_v2")                                  \
	X(memory_used_bytes, 0, 1e15, "B", "nvmlDeviceGetMemoryInfo_v2")                                  \
	X(bus_bits, 1, 65536, "bit", "nvmlDeviceGetMemoryBusWidth")                                       \
	X(l2_bytes, 0, 1e12, "B", "cuDeviceGetAttribute")                                                 \
	X(smem_optin_bytes, 0, 1e9, "B", "cuDeviceGetAttribute")                                          \
	X(sm_clock_mhz, 0, 10000, "MHz", "nvmlDeviceGetClockInfo")                                        \
	X(sm_clock_max_mhz, 1, 10000, "MHz", "nvmlDeviceGetMaxClockInfo")                                 \
	X(memory_clock_mhz, 0, 50000, "MHz", "nvmlDeviceGetClockInfo")                                    \
	X(memory_clock_max_mhz, 1, 50000, "MHz", "nvmlDeviceGetMaxClockInfo")                             \
	X(power_limit_w, 1, 20000, "W", "nvmlDeviceGetEnforcedPowerLimit")                                \
	X(power_limit_default_w, 1, 20000, "W", "nvmlDeviceGetPowerManagementDefaultLimit")               \
	X(power_limit_max_w, 1, 20000, "W", "nvmlDeviceGetPowerManagementLimitConstraints")               \
	X(power_w, 0, 20000, "W", "nvmlDeviceGetPowerUsage")                                              \
	X(energy_j, 0, 1e15, "J", "nvmlDeviceGetTotalEnergyConsumption")                                  \
	X(temperature_c, -55, 200, "C", "nvmlDeviceGetTemperatureV")                                      \
	X(temperature_slowdown_c, 1, 200, "C", "nvmlDeviceGetTemperatureThreshold")                       \
	X(temperature_memory_c, -55, 200, "C", "nvmlDeviceGetFieldValues")                                \
	X(utilization_share, 0, 1, "", "nvmlDeviceGetUtilizationRates")                                   \
	X(ecc_enabled, 0, 1, "", "nvmlDeviceGetEccMode")                                                  \
	X(ecc_volatile_uncorrected, 0, 1e15, "", "nvmlDeviceGetTotalEccErrors")                           \
	X(ecc_aggregate_uncorrected, 0, 1e15, "", "nvmlDeviceGetTotalEccErrors")                          \
	X(ecc_volatile_corrected, 0, 1e15, "", "nvmlDeviceGetTotalEccErrors")                             \
	X(ecc_aggregate_corrected, 0, 1e15, "", "nvmlDeviceGetTotalEccErrors")                            \
	X(ecc_sram_threshold, 0, 1, "", "nvmlDeviceGetSramEccErrorStatus")                                \
	X(remapped_correctable, 0, 1e6, "", "nvmlDeviceGetRemappedRows")                                  \
	X(remapped_uncorrectable, 0, 1e6, "", "nvmlDeviceGetRemappedRows")                                \
	X(remap_pending, 0, 1, "", "nvmlDeviceGetRemappedRows")                                           \
	X(remap_failed, 0, 1, "", "nvmlDeviceGetRemappedRows")                                            \
	X(remap_banks_none, 0, 1e6, "", "nvmlDeviceGetRowRemapperHistogram")                              \
	X(retired_pages, 0, 1e6, "", "nvmlDeviceGetRetiredPages")                                         \
	X(pcie_gen, 1, 8, "", "nvmlDeviceGetCurrPcieLinkGeneration")                                      \
	X(pcie_gen_max, 1, 8, "", "nvmlDeviceGetMaxPcieLinkGeneration")                                   \
	X(pcie_gen_device, 1, 8, "", "nvmlDeviceGetGpuMaxPcieLinkGeneration")                             \
	X(pcie_width, 1, 32, "", "nvmlDeviceGetCurrPcieLinkWidth")                                        \
	X(pcie_width_max, 1, 32, "", "nvmlDeviceGetMaxPcieLinkWidth")                                     \
	X(pcie_replays, 0, 4294967294.0, "", "nvmlDeviceGetPcieReplayCounter")                            \
	X(mig_mode, 0, 1, "", "nvmlDeviceGetMigMode")                                                     \
	X(persistence, 0, 1, "", "nvmlDeviceGetPersistenceMode")                                          \
	X(compute_mode, 0, 3, "", "nvmlDeviceGetComputeMode")                                             \
	X(nvlink_rate_gbps, 0, 1000, "GB/s", "nvmlDeviceGetFieldValues")                                  \
	X(fabric_state, 0, 255, "", "nvmlDeviceGetGpuFabricInfoV")                                        \
	X(fabric_status, 0, 65535, "", "nvmlDeviceGetGpuFabricInfoV")                                     \
	X(recovery_action, 0, 255, "", "nvmlDeviceGetFieldValues")                                        \
	X(clock_reasons, 0, 9007199254740991.0, "", "nvmlDeviceGetCurrentClocksEventReasons")             \
	X(virtualization, 0, 255, "", "nvmlDeviceGetVirtualizationMode")                                  \
	X(copy_engines, 0, 255, "", "cuDeviceGetAttribute")
/* clang-format on */

/* NULL if the name has no range: then every finite value is accepted. */
const struct plausible {
	const char *name;
	double low, high;
	const char *unit, *function;
} * plausible_of(const char *name);
/* False if the value is outside the range of its name, or not a finite number. */
bool plausible(const char *name, double value);
/* Like plausible, but also false for a clock or a power of zero, which no working device has. */
bool plausible_under_load(const char *name, double value);
#endif
