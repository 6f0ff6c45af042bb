/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a machine, each a row of one table. The exporter's pages, dashboards, rules, alerts, the
 * columns of `top` and the reference page are made from it (docs/explanation/design/watch.md). Names and
 * units follow Prometheus' practice: base units, "_total" on counters.
 */
#ifndef JOURNAL_METRICS_CATALOGUE_H
#define JOURNAL_METRICS_CATALOGUE_H
#include <stdbool.h>
#include "journal/metrics/metrics.h"

/* MIG divides a GPU into at most seven compute slices, so it has at most seven instances. That is what
 * nvmlDeviceGetMaxMigDeviceCount gives on A100 and H100. Smaller GPUs have fewer. */
enum { METRIC_GPU_INSTANCES_MOST = 7 };

/*
 * Kinds of entities: symbol, name in the stream, most entities of one node, three lists of labels, help. The
 * labels of the first list tell entities apart. Those of the second one describe them. Those of the third one
 * stand on a page. The exporter's rows with assay's own names carry the page labels only; the rest is on
 * assay_gpu_info. The label hostname is added by whoever shows several nodes. Entities of the scopes SOURCE
 * and EXPORTER are not in a stream: whoever reads the stream makes them.
 */
/* clang-format off */
#define METRIC_SCOPES(X) \
	X(NODE, "node", 1, "", "pod_resources", "", "the machine") \
	X(CPU, "cpu", 1, "", "model", "", "its processors and memory") \
	X(GPU, "gpu", 64, "pci_bus_id", "gpu UUID device modelName DCGM_FI_DRIVER_VERSION container pod namespace hpc_job power_state", "gpu", "a GPU") \
	X(GPU_INSTANCE, "gpu_instance", 64 * METRIC_GPU_INSTANCES_MOST, "pci_bus_id GPU_I_ID GPU_C_ID", "gpu UUID GPU_I_PROFILE container pod namespace", "gpu GPU_I_ID GPU_C_ID", "an instance of a GPU under MIG") \
	X(XID, "xid", 512, "pci_bus_id xid", "gpu since", "gpu xid since", "a kind of Xid error on a GPU") \
	X(NVLINK, "nvlink", 1152, "pci_bus_id nvlink", "gpu", "gpu nvlink", "an NVLink of a GPU") \
	X(PROCESS, "process", 1024, "pci_bus_id pid", "gpu user container comm command hpc_job GPU_I_ID", "gpu pid user container comm hpc_job", "a process on a GPU") \
	X(PORT, "port", 64, "device port", "kind interface", "device port", "an InfiniBand or RoCE port") \
	X(PORT_ERROR, "port_error", 1280, "device port error", "", "device port error", "a kind of error on such a port") \
	X(INTERFACE, "interface", 64, "interface", "", "interface", "a network interface") \
	X(DISK, "disk", 64, "disk", "", "disk", "a block device") \
	X(RUN, "run", 16, "run", "kind model", "run kind model", "a live training or serving run of assay") \
	X(CHECK, "check", 16, "suite", "run", "suite", "the last finished check of this machine") \
	X(READER, "reader", 8, "source", "", "source", "a process that reads a source") \
	X(SOURCE, "source", 0, "source", "", "source", "a source of the readings") \
	X(EXPORTER, "exporter", 0, "", "version", "", "the exporter itself")
/* clang-format on */
#define X(symbol, ...) METRIC_SCOPE_##symbol,
enum metric_scope { METRIC_SCOPES(X) METRIC_SCOPE_COUNT };
#undef X

/* FAST rows are read each interval, SLOW rows every five seconds unless asked for. RARE rows are read in each
 * sixth SLOW reading, because their calls keep a CPU busy for milliseconds on a real driver. */
enum metric_pace { METRIC_FAST, METRIC_SLOW, METRIC_RARE, METRIC_PACE_COUNT };
enum { METRIC_RARE_SLOW = 6 }; /* SLOW readings per RARE reading */

/* dcgm-exporter's metric: name, its value divided by ours, its type, whether it exports it by default. */
struct dcgm_metric {
	const char *name; /* NULL: it has none */
	double scale;
	enum metric_type type;
	bool by_default;
};
#define DCGM(name, scale, type, by_default)                                                                  \
	{                                                                                                    \
		name, scale, METRIC_##type, by_default                                                       \
	}
#define DCGM_NONE                                                                                            \
	{                                                                                                    \
		NULL, 1, METRIC_GAUGE, false                                                                 \
	}

/* symbol, name, fixed label or NULL, type, unit, scope, pace, resolution (0: as read), dcgm-exporter's
 * metric, source, help. Rows with the same name stand together and differ in the fixed label. Rows of one
 * scope stand together. */
/* clang-format off */
#define CATALOGUE(X) \
	X(GPU_INFO, "assay_gpu_info", NULL, GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "NVML", "1; its labels identify the GPU") \
	X(GPU_UP, "assay_gpu_up", NULL, GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvml", "1 while the GPU answers, 0 once NVML says that it is lost") \
	X(GPU_UTILIZATION, "assay_gpu_utilization_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_DEV_GPU_UTIL", 100, GAUGE, true), "nvmlDeviceGetUtilizationRates", "Share of time in which a kernel ran") \
	X(GPU_MEMORY_UTILIZATION, "assay_gpu_memory_utilization_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_DEV_MEM_COPY_UTIL", 100, GAUGE, true), "nvmlDeviceGetUtilizationRates", "Share of time in which memory was read or written") \
	X(GPU_ENCODER, "assay_gpu_encoder_utilization_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_DEV_ENC_UTIL", 100, GAUGE, true), "nvmlDeviceGetEncoderUtilization", "Utilization of the video encoder") \
	X(GPU_DECODER, "assay_gpu_decoder_utilization_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_DEV_DEC_UTIL", 100, GAUGE, true), "nvmlDeviceGetDecoderUtilization", "Utilization of the video decoder") \
	X(GPU_ENGINE_ACTIVE, "assay_gpu_engine_active_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1, GAUGE, true), "GPM 1", "Share of time in which the compute or graphics engine was busy") \
	X(GPU_SM_ACTIVE, "assay_gpu_sm_active_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_PROF_SM_ACTIVE", 1, GAUGE, false), "GPM 2", "Share of cycles with a resident warp, mean of the SMs") \
	X(GPU_SM_OCCUPANCY, "assay_gpu_sm_occupancy_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_PROF_SM_OCCUPANCY", 1, GAUGE, false), "GPM 3", "Resident warps over the most possible, mean of the SMs") \
	X(GPU_TENSOR_ACTIVE, "assay_gpu_tensor_active_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1, GAUGE, true), "GPM 5", "Share of cycles in which a tensor pipe was active") \
	X(GPU_DRAM_ACTIVE, "assay_gpu_dram_active_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_PROF_DRAM_ACTIVE", 1, GAUGE, true), "GPM 10", "Share of cycles in which the memory interface moved data") \
	X(GPU_FP64_ACTIVE, "assay_gpu_fp64_active_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 1, GAUGE, false), "GPM 11", "Share of cycles in which the FP64 pipe was active") \
	X(GPU_FP32_ACTIVE, "assay_gpu_fp32_active_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1, GAUGE, false), "GPM 12", "Share of cycles in which the FP32 pipe was active") \
	X(GPU_FP16_ACTIVE, "assay_gpu_fp16_active_ratio", NULL, GAUGE, "ratio", GPU, FAST, 0.01, DCGM("DCGM_FI_PROF_PIPE_FP16_ACTIVE", 1, GAUGE, false), "GPM 13", "Share of cycles in which the FP16 pipe was active") \
	X(GPU_PCIE_TX, "assay_gpu_pcie_transmit_bytes_per_second", NULL, GAUGE, "bytes/second", GPU, FAST, 1e4, DCGM("DCGM_FI_PROF_PCIE_TX_BYTES", 1, GAUGE, true), "GPM 20", "PCIe traffic from the GPU, with headers") \
	X(GPU_PCIE_RX, "assay_gpu_pcie_receive_bytes_per_second", NULL, GAUGE, "bytes/second", GPU, FAST, 1e4, DCGM("DCGM_FI_PROF_PCIE_RX_BYTES", 1, GAUGE, true), "GPM 21", "PCIe traffic to the GPU, with headers") \
	X(GPU_MEMORY, "assay_gpu_memory_bytes", NULL, GAUGE, "bytes", GPU, SLOW, 1048576, DCGM("DCGM_FI_DEV_FB_TOTAL", 9.5367431640625e-07, GAUGE, false), "nvmlDeviceGetMemoryInfo_v2", "Memory of the GPU") \
	X(GPU_MEMORY_USED, "assay_gpu_memory_used_bytes", NULL, GAUGE, "bytes", GPU, FAST, 1048576, DCGM("DCGM_FI_DEV_FB_USED", 9.5367431640625e-07, GAUGE, true), "nvmlDeviceGetMemoryInfo_v2", "Memory in use, without what the driver reserves") \
	X(GPU_MEMORY_FREE, "assay_gpu_memory_free_bytes", NULL, GAUGE, "bytes", GPU, FAST, 1048576, DCGM("DCGM_FI_DEV_FB_FREE", 9.5367431640625e-07, GAUGE, true), "nvmlDeviceGetMemoryInfo_v2", "Free memory") \
	X(GPU_MEMORY_RESERVED, "assay_gpu_memory_reserved_bytes", NULL, GAUGE, "bytes", GPU, SLOW, 1048576, DCGM("DCGM_FI_DEV_FB_RESERVED", 9.5367431640625e-07, GAUGE, true), "nvmlDeviceGetMemoryInfo_v2", "Memory that the driver reserves") \
	X(GPU_TEMPERATURE, "assay_gpu_temperature_celsius", NULL, GAUGE, "celsius", GPU, FAST, 0, DCGM("DCGM_FI_DEV_GPU_TEMP", 1, GAUGE, true), "nvmlDeviceGetTemperatureV", "Temperature of the GPU") \
	X(GPU_TEMPERATURE_MEMORY, "assay_gpu_memory_temperature_celsius", NULL, GAUGE, "celsius", GPU, SLOW, 0, DCGM("DCGM_FI_DEV_MEMORY_TEMP", 1, GAUGE, true), "NVML field 82", "Temperature of the memory") \
	X(GPU_POWER, "assay_gpu_power_watts", NULL, GAUGE, "watts", GPU, FAST, 0.1, DCGM("DCGM_FI_DEV_POWER_USAGE", 1, GAUGE, true), "nvmlDeviceGetPowerUsage", "Power; on Ampere and newer a mean of one second") \
	X(GPU_POWER_LIMIT, "assay_gpu_power_limit_watts", NULL, GAUGE, "watts", GPU, SLOW, 0.1, DCGM_NONE, "nvmlDeviceGetEnforcedPowerLimit", "Power limit that holds now") \
	X(GPU_ENERGY, "assay_gpu_energy_joules_total", NULL, COUNTER, "joules", GPU, SLOW, 0.1, DCGM("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1000, COUNTER, true), "nvmlDeviceGetTotalEnergyConsumption", "Energy since the driver was loaded") \
	X(GPU_SM_CLOCK, "assay_gpu_sm_clock_hertz", NULL, GAUGE, "hertz", GPU, FAST, 1e6, DCGM("DCGM_FI_DEV_SM_CLOCK", 1e-06, GAUGE, true), "nvmlDeviceGetClockInfo", "SM clock") \
	X(GPU_SM_CLOCK_MAX, "assay_gpu_sm_clock_max_hertz", NULL, GAUGE, "hertz", GPU, RARE, 1e6, DCGM_NONE, "nvmlDeviceGetMaxClockInfo", "Highest SM clock") \
	X(GPU_MEMORY_CLOCK, "assay_gpu_memory_clock_hertz", NULL, GAUGE, "hertz", GPU, FAST, 1e6, DCGM("DCGM_FI_DEV_MEM_CLOCK", 1e-06, GAUGE, true), "nvmlDeviceGetClockInfo", "Memory clock") \
	X(GPU_HELD_IDLE, "assay_gpu_clock_held", "reason=\"idle\"", GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_SETTING, "assay_gpu_clock_held", "reason=\"setting\"", GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_POWER, "assay_gpu_clock_held", "reason=\"power_cap\"", GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_HW_SLOWDOWN, "assay_gpu_clock_held", "reason=\"hw_slowdown\"", GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_SYNC, "assay_gpu_clock_held", "reason=\"sync_boost\"", GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_SW_THERMAL, "assay_gpu_clock_held", "reason=\"sw_thermal\"", GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_HW_THERMAL, "assay_gpu_clock_held", "reason=\"hw_thermal\"", GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_BRAKE, "assay_gpu_clock_held", "reason=\"hw_power_brake\"", GAUGE, "bool", GPU, FAST, 0, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_LIMITED_POWER, "assay_gpu_clock_limited_seconds_total", "reason=\"power\"", COUNTER, "seconds", GPU, SLOW, 0.001, DCGM("DCGM_FI_DEV_POWER_VIOLATION", 1e+09, COUNTER, false), "NVML field 74", "Time in which this reason limited the clock, since the driver was loaded") \
	X(GPU_LIMITED_THERMAL, "assay_gpu_clock_limited_seconds_total", "reason=\"thermal\"", COUNTER, "seconds", GPU, SLOW, 0.001, DCGM("DCGM_FI_DEV_THERMAL_VIOLATION", 1e+09, COUNTER, false), "NVML field 75", "Time in which this reason limited the clock, since the driver was loaded") \
	X(GPU_LIMITED_BOARD, "assay_gpu_clock_limited_seconds_total", "reason=\"board\"", COUNTER, "seconds", GPU, SLOW, 0.001, DCGM("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", 1e+09, COUNTER, false), "NVML field 77", "Time in which this reason limited the clock, since the driver was loaded") \
	X(GPU_LIMITED_RELIABILITY, "assay_gpu_clock_limited_seconds_total", "reason=\"reliability\"", COUNTER, "seconds", GPU, SLOW, 0.001, DCGM("DCGM_FI_DEV_RELIABILITY_VIOLATION", 1e+09, COUNTER, false), "NVML field 79", "Time in which this reason limited the clock, since the driver was loaded") \
	X(GPU_SAMPLED_SETTING, "assay_gpu_clock_limited_sampled_seconds_total", "reason=\"setting\"", COUNTER, "seconds", GPU, FAST, 0.001, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "Time in which this reason was set, summed over the readings since the reader began") \
	X(GPU_SAMPLED_HW_SLOWDOWN, "assay_gpu_clock_limited_sampled_seconds_total", "reason=\"hw_slowdown\"", COUNTER, "seconds", GPU, FAST, 0.001, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "Time in which this reason was set, summed over the readings since the reader began") \
	X(GPU_SAMPLED_SYNC, "assay_gpu_clock_limited_sampled_seconds_total", "reason=\"sync_boost\"", COUNTER, "seconds", GPU, FAST, 0.001, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "Time in which this reason was set, summed over the readings since the reader began") \
	X(GPU_SAMPLED_SW_THERMAL, "assay_gpu_clock_limited_sampled_seconds_total", "reason=\"sw_thermal\"", COUNTER, "seconds", GPU, FAST, 0.001, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "Time in which this reason was set, summed over the readings since the reader began") \
	X(GPU_SAMPLED_HW_THERMAL, "assay_gpu_clock_limited_sampled_seconds_total", "reason=\"hw_thermal\"", COUNTER, "seconds", GPU, FAST, 0.001, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "Time in which this reason was set, summed over the readings since the reader began") \
	X(GPU_SAMPLED_BRAKE, "assay_gpu_clock_limited_sampled_seconds_total", "reason=\"hw_power_brake\"", COUNTER, "seconds", GPU, FAST, 0.001, DCGM_NONE, "nvmlDeviceGetCurrentClocksEventReasons", "Time in which this reason was set, summed over the readings since the reader began") \
	X(GPU_ECC_CORRECTED, "assay_gpu_ecc_errors_total", "type=\"corrected\"", COUNTER, "errors", GPU, SLOW, 0, DCGM("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 1, COUNTER, false), "nvmlDeviceGetTotalEccErrors", "ECC errors since the driver was loaded") \
	X(GPU_ECC_UNCORRECTED, "assay_gpu_ecc_errors_total", "type=\"uncorrected\"", COUNTER, "errors", GPU, SLOW, 0, DCGM("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, COUNTER, false), "nvmlDeviceGetTotalEccErrors", "ECC errors since the driver was loaded") \
	X(GPU_ROWS_CORRECTABLE, "assay_gpu_remapped_rows", "cause=\"corrected\"", GAUGE, "rows", GPU, SLOW, 0, DCGM("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 1, COUNTER, true), "nvmlDeviceGetRemappedRows", "Rows of memory replaced by spare ones") \
	X(GPU_ROWS_UNCORRECTABLE, "assay_gpu_remapped_rows", "cause=\"uncorrected\"", GAUGE, "rows", GPU, SLOW, 0, DCGM("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 1, COUNTER, true), "nvmlDeviceGetRemappedRows", "Rows of memory replaced by spare ones") \
	X(GPU_ROWS_PENDING, "assay_gpu_row_remap_pending", NULL, GAUGE, "bool", GPU, SLOW, 0, DCGM("DCGM_FI_DEV_ROW_REMAP_PENDING", 1, GAUGE, false), "nvmlDeviceGetRemappedRows", "1 if a row will be replaced at the next reset") \
	X(GPU_ROWS_FAILED, "assay_gpu_row_remap_failed", NULL, GAUGE, "bool", GPU, SLOW, 0, DCGM("DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, GAUGE, true), "nvmlDeviceGetRemappedRows", "1 if a row could not be replaced") \
	X(GPU_XID_LAST, "assay_gpu_xid_last", NULL, GAUGE, "number", GPU, FAST, 0, DCGM("DCGM_FI_DEV_XID_ERRORS", 1, GAUGE, true), "NVML events", "Number of the last Xid error; absent until one arrives") \
	X(GPU_PCIE_GENERATION, "assay_gpu_pcie_generation", NULL, GAUGE, "number", GPU, SLOW, 0, DCGM_NONE, "nvmlDeviceGetCurrPcieLinkGeneration", "PCIe generation in use") \
	X(GPU_PCIE_WIDTH, "assay_gpu_pcie_width", NULL, GAUGE, "lanes", GPU, SLOW, 0, DCGM_NONE, "nvmlDeviceGetCurrPcieLinkWidth", "PCIe lanes in use") \
	X(GPU_PCIE_REPLAYS, "assay_gpu_pcie_replays_total", NULL, COUNTER, "replays", GPU, RARE, 0, DCGM("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 1, COUNTER, true), "nvmlDeviceGetPcieReplayCounter", "PCIe packets sent again") \
	X(GPU_NVLINK_CRC, "assay_gpu_nvlink_errors_total", "error=\"crc\"", COUNTER, "errors", GPU, RARE, 0, DCGM_NONE, "NVML fields 161 to 163", "Errors of all NVLinks of the GPU") \
	X(GPU_NVLINK_REPLAY, "assay_gpu_nvlink_errors_total", "error=\"replay\"", COUNTER, "errors", GPU, RARE, 0, DCGM_NONE, "NVML fields 161 to 163", "Errors of all NVLinks of the GPU") \
	X(GPU_NVLINK_RECOVERY, "assay_gpu_nvlink_errors_total", "error=\"recovery\"", COUNTER, "errors", GPU, RARE, 0, DCGM_NONE, "NVML fields 161 to 163", "Errors of all NVLinks of the GPU") \
	X(XID_COUNT, "assay_gpu_xid_errors_total", NULL, COUNTER, "errors", XID, FAST, 0, DCGM_NONE, "NVML events, kernel log", "Xid errors of this number; the label since says from when they are counted") \
	X(NVLINK_UP, "assay_nvlink_up", NULL, GAUGE, "bool", NVLINK, SLOW, 0, DCGM_NONE, "nvmlDeviceGetNvLinkState", "1 while the link is active") \
	X(NVLINK_TX, "assay_nvlink_transmit_bytes_total", NULL, COUNTER, "bytes", NVLINK, SLOW, 0, DCGM_NONE, "NVML field 138", "Payload sent on this link") \
	X(NVLINK_RX, "assay_nvlink_receive_bytes_total", NULL, COUNTER, "bytes", NVLINK, SLOW, 0, DCGM_NONE, "NVML field 139", "Payload received on this link") \
	X(PROCESS_MEMORY, "assay_process_gpu_memory_bytes", NULL, GAUGE, "bytes", PROCESS, FAST, 1048576, DCGM_NONE, "nvmlDeviceGetComputeRunningProcesses_v3", "GPU memory of a process") \
	X(PROCESS_SM, "assay_process_gpu_sm_ratio", NULL, GAUGE, "ratio", PROCESS, FAST, 0.01, DCGM_NONE, "nvmlDeviceGetProcessUtilization", "Share of the SMs that a process used") \
	X(INSTANCE_MEMORY, "assay_gpu_instance_memory_bytes", NULL, GAUGE, "bytes", GPU_INSTANCE, SLOW, 1048576, DCGM_NONE, "nvmlDeviceGetMemoryInfo_v2", "Memory of an instance under MIG") \
	X(INSTANCE_MEMORY_USED, "assay_gpu_instance_memory_used_bytes", NULL, GAUGE, "bytes", GPU_INSTANCE, FAST, 1048576, DCGM_NONE, "nvmlDeviceGetMemoryInfo_v2", "Memory in use of an instance under MIG") \
	X(INSTANCE_ENGINE_ACTIVE, "assay_gpu_instance_engine_active_ratio", NULL, GAUGE, "ratio", GPU_INSTANCE, FAST, 0.01, DCGM_NONE, "GPM 1", "Share of time in which the compute or graphics engine of an instance under MIG was busy") \
	X(INSTANCE_SM_ACTIVE, "assay_gpu_instance_sm_active_ratio", NULL, GAUGE, "ratio", GPU_INSTANCE, FAST, 0.01, DCGM_NONE, "GPM 2", "Share of cycles with a resident warp, mean of the SMs of an instance under MIG") \
	X(INSTANCE_TENSOR_ACTIVE, "assay_gpu_instance_tensor_active_ratio", NULL, GAUGE, "ratio", GPU_INSTANCE, FAST, 0.01, DCGM_NONE, "GPM 5", "Share of cycles in which a tensor pipe of an instance under MIG was active") \
	X(INSTANCE_DRAM_ACTIVE, "assay_gpu_instance_dram_active_ratio", NULL, GAUGE, "ratio", GPU_INSTANCE, FAST, 0.01, DCGM_NONE, "GPM 10", "Share of cycles in which the memory interface of an instance under MIG moved data") \
	X(PORT_UP, "assay_port_up", NULL, GAUGE, "bool", PORT, FAST, 0, DCGM_NONE, "/sys/class/infiniband", "1 while the port is active") \
	X(PORT_RATE, "assay_port_rate_bytes_per_second", NULL, GAUGE, "bytes/second", PORT, FAST, 1e4, DCGM_NONE, "/sys/class/infiniband", "Signalled rate of the port") \
	X(PORT_TX, "assay_port_transmit_bytes_total", NULL, COUNTER, "bytes", PORT, FAST, 0, DCGM_NONE, "/sys/class/infiniband", "Data sent by the port") \
	X(PORT_RX, "assay_port_receive_bytes_total", NULL, COUNTER, "bytes", PORT, FAST, 0, DCGM_NONE, "/sys/class/infiniband", "Data received by the port") \
	X(PORT_ERRORS, "assay_port_errors_total", NULL, COUNTER, "errors", PORT_ERROR, SLOW, 0, DCGM_NONE, "/sys/class/infiniband", "Errors of the port") \
	X(INTERFACE_UP, "assay_interface_up", NULL, GAUGE, "bool", INTERFACE, FAST, 0, DCGM_NONE, "/sys/class/net", "1 while the interface has a carrier") \
	X(INTERFACE_TX, "assay_interface_transmit_bytes_total", NULL, COUNTER, "bytes", INTERFACE, FAST, 0, DCGM_NONE, "/sys/class/net", "Bytes sent") \
	X(INTERFACE_RX, "assay_interface_receive_bytes_total", NULL, COUNTER, "bytes", INTERFACE, FAST, 0, DCGM_NONE, "/sys/class/net", "Bytes received") \
	X(INTERFACE_ERRORS, "assay_interface_errors_total", NULL, COUNTER, "errors", INTERFACE, FAST, 0, DCGM_NONE, "/sys/class/net", "Packets lost or damaged, sent and received") \
	X(CPU_BUSY, "assay_cpu_busy_ratio", NULL, GAUGE, "ratio", CPU, FAST, 0.01, DCGM_NONE, "/proc/stat", "Busy share of all processors over the last interval") \
	X(CPU_COUNT, "assay_cpu_processors", NULL, GAUGE, "processors", CPU, FAST, 0, DCGM_NONE, "/proc/stat", "Processors") \
	X(CPU_LOAD, "assay_cpu_load", NULL, GAUGE, "processes", CPU, FAST, 0.01, DCGM_NONE, "/proc/loadavg", "Load of the last minute") \
	X(CPU_ENERGY, "assay_cpu_energy_joules_total", NULL, COUNTER, "joules", CPU, FAST, 0.1, DCGM_NONE, "RAPL", "Energy of the processor packages since the reader's start") \
	X(MEMORY_TOTAL, "assay_memory_bytes", NULL, GAUGE, "bytes", CPU, FAST, 0, DCGM_NONE, "/proc/meminfo", "Memory of the machine") \
	X(MEMORY_AVAILABLE, "assay_memory_available_bytes", NULL, GAUGE, "bytes", CPU, FAST, 16777216, DCGM_NONE, "/proc/meminfo", "Memory that programs can still get") \
	X(DISK_READ, "assay_disk_read_bytes_total", NULL, COUNTER, "bytes", DISK, FAST, 0, DCGM_NONE, "/proc/diskstats", "Bytes read") \
	X(DISK_WRITTEN, "assay_disk_written_bytes_total", NULL, COUNTER, "bytes", DISK, FAST, 0, DCGM_NONE, "/proc/diskstats", "Bytes written") \
	X(DISK_BUSY, "assay_disk_busy_seconds_total", NULL, COUNTER, "seconds", DISK, FAST, 0.001, DCGM_NONE, "/proc/diskstats", "Time with a request under way") \
	X(RUN_LOSS, "assay_run_loss", NULL, GAUGE, "nats", RUN, FAST, 0, DCGM_NONE, "journal", "Training loss of the last step") \
	X(RUN_STEP, "assay_run_step", NULL, GAUGE, "steps", RUN, FAST, 0, DCGM_NONE, "journal", "Last step") \
	X(RUN_STEPS, "assay_run_steps", NULL, GAUGE, "steps", RUN, FAST, 0, DCGM_NONE, "journal", "Steps of the whole run") \
	X(RUN_STEP_SECONDS, "assay_run_step_seconds", NULL, GAUGE, "seconds", RUN, FAST, 0, DCGM_NONE, "journal", "Duration of the last step") \
	X(RUN_PART_FORWARD, "assay_run_step_part_seconds", "part=\"forward\"", GAUGE, "seconds", RUN, FAST, 0, DCGM_NONE, "journal", "Time that the last step spent in this part") \
	X(RUN_PART_BACKWARD, "assay_run_step_part_seconds", "part=\"backward\"", GAUGE, "seconds", RUN, FAST, 0, DCGM_NONE, "journal", "Time that the last step spent in this part") \
	X(RUN_PART_OPTIMIZER, "assay_run_step_part_seconds", "part=\"optimizer\"", GAUGE, "seconds", RUN, FAST, 0, DCGM_NONE, "journal", "Time that the last step spent in this part") \
	X(RUN_PART_WAIT, "assay_run_step_part_seconds", "part=\"wait\"", GAUGE, "seconds", RUN, FAST, 0, DCGM_NONE, "journal", "Time that the last step spent in this part") \
	X(RUN_TOKENS, "assay_run_tokens_per_second", NULL, GAUGE, "tokens/second", RUN, FAST, 0, DCGM_NONE, "journal", "Trained or generated tokens per second") \
	X(RUN_MFU, "assay_run_mfu_ratio", NULL, GAUGE, "ratio", RUN, FAST, 0, DCGM_NONE, "journal", "Model FLOP utilization of the last step") \
	X(RUN_REQUESTS, "assay_run_requests_running", NULL, GAUGE, "sequences", RUN, FAST, 0, DCGM_NONE, "journal", "Sequences that a server computes") \
	X(RUN_WAITING, "assay_run_requests_waiting", NULL, GAUGE, "sequences", RUN, FAST, 0, DCGM_NONE, "journal", "Sequences that wait in a server's queue") \
	X(RUN_TTFT, "assay_run_time_to_first_token_seconds", NULL, GAUGE, "seconds", RUN, FAST, 0, DCGM_NONE, "journal", "Median time to first token of the requests that ended in the last five seconds") \
	X(RUN_CACHE, "assay_run_kv_cache_use_ratio", NULL, GAUGE, "ratio", RUN, FAST, 0, DCGM_NONE, "journal", "Share of the KV cache pages in use") \
	X(RUN_RECORDED, "assay_run_recorded_time_seconds", NULL, GAUGE, "seconds", RUN, FAST, 0, DCGM_NONE, "journal", "When the run last recorded figures, in seconds since 1970") \
	X(CHECK_PASS, "assay_check_verdict", "verdict=\"pass\"", GAUGE, "bool", CHECK, FAST, 0, DCGM_NONE, "run directory", "1 for the verdict of the last finished check of this suite, 0 for the others") \
	X(CHECK_MEASURED, "assay_check_verdict", "verdict=\"measured\"", GAUGE, "bool", CHECK, FAST, 0, DCGM_NONE, "run directory", "1 for the verdict of the last finished check of this suite, 0 for the others") \
	X(CHECK_WARN, "assay_check_verdict", "verdict=\"warn\"", GAUGE, "bool", CHECK, FAST, 0, DCGM_NONE, "run directory", "1 for the verdict of the last finished check of this suite, 0 for the others") \
	X(CHECK_FAIL, "assay_check_verdict", "verdict=\"fail\"", GAUGE, "bool", CHECK, FAST, 0, DCGM_NONE, "run directory", "1 for the verdict of the last finished check of this suite, 0 for the others") \
	X(CHECK_UNKNOWN, "assay_check_verdict", "verdict=\"unknown\"", GAUGE, "bool", CHECK, FAST, 0, DCGM_NONE, "run directory", "1 for the verdict of the last finished check of this suite, 0 for the others") \
	X(CHECK_SKIP, "assay_check_verdict", "verdict=\"skip\"", GAUGE, "bool", CHECK, FAST, 0, DCGM_NONE, "run directory", "1 for the verdict of the last finished check of this suite, 0 for the others") \
	X(CHECK_UNTRUSTED, "assay_check_verdict", "verdict=\"untrusted\"", GAUGE, "bool", CHECK, FAST, 0, DCGM_NONE, "run directory", "1 for the verdict of the last finished check of this suite, 0 for the others") \
	X(CHECK_ERROR, "assay_check_verdict", "verdict=\"error\"", GAUGE, "bool", CHECK, FAST, 0, DCGM_NONE, "run directory", "1 for the verdict of the last finished check of this suite, 0 for the others") \
	X(CHECK_END, "assay_check_end_time_seconds", NULL, GAUGE, "seconds", CHECK, FAST, 0, DCGM_NONE, "run directory", "When the last check of this suite ended, in seconds since 1970") \
	X(NODE_BOOT, "assay_node_boot_time_seconds", NULL, GAUGE, "seconds", NODE, FAST, 0.001, DCGM_NONE, "/proc/stat", "Time of the last boot, in seconds since 1970") \
	X(READER_CPU, "assay_reader_cpu_seconds_total", NULL, COUNTER, "seconds", READER, SLOW, 0.001, DCGM_NONE, "getrusage", "CPU time of the process that reads this source, driver calls included") \
	X(SOURCE_UP, "assay_source_up", NULL, GAUGE, "bool", SOURCE, FAST, 0, DCGM_NONE, "assay", "1 while this source answers within its limit") \
	X(SOURCE_AGE, "assay_source_age_seconds", NULL, GAUGE, "seconds", SOURCE, FAST, 0, DCGM_NONE, "assay", "Age of the last reading of this source") \
	X(BUILD_INFO, "assay_build_info", NULL, GAUGE, "bool", EXPORTER, FAST, 0, DCGM_NONE, "assay", "1; its label is the version") \
	X(EXPORTER_CPU, "assay_exporter_cpu_seconds_total", NULL, COUNTER, "seconds", EXPORTER, FAST, 0, DCGM_NONE, "getrusage", "CPU time of the exporter, without the readers") \
	X(EXPORTER_LEFT_OUT, "assay_exporter_series_left_out", NULL, GAUGE, "series", EXPORTER, FAST, 0, DCGM_NONE, "assay", "Series left out because of the limits on their number") \
	X(EXPORTER_READER_UP, "assay_exporter_reader_up", NULL, GAUGE, "bool", EXPORTER, FAST, 0, DCGM_NONE, "assay", "1 while the process that reads the machine sends readings") \
	X(EXPORTER_SCRAPES, "assay_exporter_scrapes_total", NULL, COUNTER, "scrapes", EXPORTER, FAST, 0, DCGM_NONE, "assay", "Pages sent") \
	X(EXPORTER_CONNECTIONS, "assay_exporter_connections", NULL, GAUGE, "connections", EXPORTER, FAST, 0, DCGM_NONE, "assay", "Open connections") \
	X(EXPORTER_CLOSED, "assay_exporter_closed_total", NULL, COUNTER, "connections", EXPORTER, FAST, 0, DCGM_NONE, "assay", "Connections closed because they were slow, or to make room for others") \
	X(EXPORTER_REFUSED, "assay_exporter_refused_total", NULL, COUNTER, "requests", EXPORTER, FAST, 0, DCGM_NONE, "assay", "Requests refused because of their password") \
	X(EXPORTER_MEMORY, "process_resident_memory_bytes", NULL, GAUGE, "bytes", EXPORTER, FAST, 0, DCGM_NONE, "/proc/self/statm", "Resident memory of the exporter") \
	X(EXPORTER_START, "process_start_time_seconds", NULL, GAUGE, "seconds", EXPORTER, FAST, 0, DCGM_NONE, "/proc/self/stat", "Start of the exporter, in seconds since 1970") \
	X(EXPORTER_SERIES, "assay_exporter_series", NULL, GAUGE, "series", EXPORTER, FAST, 0, DCGM_NONE, "assay", "Series of this page")

/* Default metrics of dcgm-exporter that assay does not give: name, reason. */
#define DCGM_WITHOUT(X) \
	X("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "it is typed counter, but its value is a rate in MiB/s; assay_nvlink_transmit_bytes_total and assay_nvlink_receive_bytes_total count bytes") \
	X("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "it concerns only virtual GPUs, which assay does not read")
/* clang-format on */
#define X(symbol, ...) CATALOGUE_##symbol,
enum catalogue { CATALOGUE(X) CATALOGUE_COUNT };
#undef X

struct catalogue_row {
	const char *symbol, *name;
	const char *fixed; /* label="value" that tells rows of the same name apart; NULL: none */
	enum metric_type type;
	const char *unit;
	enum metric_scope scope;
	enum metric_pace pace;
	double resolution; /* values are rounded to multiples of it; 0: as read */
	struct dcgm_metric dcgm;
	const char *source, *help;
};
const struct catalogue_row *catalogue_row(enum catalogue c);
/* Finds a row by its name in a stream: NAME or NAME{FIXED}. CATALOGUE_COUNT: there is none. */
enum catalogue catalogue_find_full(const char *full);
/* Appends a row's name in a stream. */
void catalogue_add_full(struct text *out, enum catalogue c);
/* The number of a scope's rows. */
unsigned catalogue_scope_rows(enum metric_scope s);
/* The first row of a scope. */
enum catalogue catalogue_first(enum metric_scope s);

struct scope_row {
	const char *name;
	unsigned most; /* entities of one node in a stream */
	const char *identity, *attributes, *page, *help;
};
const struct scope_row *metric_scope_row(enum metric_scope s);
/* Finds a scope by its name in the stream; METRIC_SCOPE_COUNT: there is none. */
enum metric_scope metric_scope_find(const char *name);
/* Whether a label is declared for a scope. */
bool metric_scope_has(enum metric_scope s, const char *label, bool identity);
/* Default metrics of dcgm-exporter that assay does not give; NULL: there are no more. *why: the reason. */
const char *dcgm_without(unsigned i, const char **why);
#endif
