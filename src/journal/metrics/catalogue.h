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

/* What an entity is: symbol, name in the stream, labels that tell it apart (separated by spaces), help.
 * The label hostname is added by whoever shows several nodes. */
/* clang-format off */
#define METRIC_SCOPES(X) \
	X(NODE, "node", "", "the machine") \
	X(CPU, "cpu", "", "its processors and memory") \
	X(GPU, "gpu", "gpu UUID pci_bus_id device modelName DCGM_FI_DRIVER_VERSION", "a GPU, or an instance of one under MIG (GPU_I_ID, GPU_I_PROFILE)") \
	X(XID, "xid", "gpu UUID xid", "a kind of Xid error on a GPU") \
	X(NVLINK, "nvlink", "gpu UUID nvlink", "an NVLink of a GPU") \
	X(PROCESS, "process", "gpu UUID pid user container command", "a process on a GPU") \
	X(PORT, "port", "device port", "an InfiniBand or RoCE port") \
	X(PORT_ERROR, "port_error", "device port error", "a kind of error on such a port") \
	X(INTERFACE, "interface", "interface", "a network interface") \
	X(DISK, "disk", "disk", "a block device") \
	X(RUN, "run", "run kind model", "a live training or serving run of assay") \
	X(CHECK, "check", "suite verdict", "the last finished check of this machine") \
	X(SOURCE, "source", "source", "a source of the readings")
/* clang-format on */
#define X(symbol, ...) METRIC_SCOPE_##symbol,
enum metric_scope { METRIC_SCOPES(X) METRIC_SCOPE_COUNT };
#undef X

/* symbol, name, fixed label or NULL, type, unit, scope, dcgm-exporter's name or NULL, its unit divided by
 * ours, source, help. Rows with the same name stand together and differ in the fixed label. */
/* clang-format off */
#define CATALOGUE(X) \
	X(GPU_UP, "assay_gpu_up", NULL, GAUGE, "bool", GPU, NULL, 1, "nvml", "1 while the GPU answers, 0 once NVML says that it is lost") \
	X(GPU_UTILIZATION, "assay_gpu_utilization_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_DEV_GPU_UTIL", 100, "nvmlDeviceGetUtilizationRates", "Share of time in which a kernel ran") \
	X(GPU_MEMORY_UTILIZATION, "assay_gpu_memory_utilization_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_DEV_MEM_COPY_UTIL", 100, "nvmlDeviceGetUtilizationRates", "Share of time in which memory was read or written") \
	X(GPU_ENCODER, "assay_gpu_encoder_utilization_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_DEV_ENC_UTIL", 100, "nvmlDeviceGetEncoderUtilization", "Utilization of the video encoder") \
	X(GPU_DECODER, "assay_gpu_decoder_utilization_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_DEV_DEC_UTIL", 100, "nvmlDeviceGetDecoderUtilization", "Utilization of the video decoder") \
	X(GPU_ENGINE_ACTIVE, "assay_gpu_engine_active_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1, "GPM 1", "Share of time in which the compute or graphics engine was busy") \
	X(GPU_SM_ACTIVE, "assay_gpu_sm_active_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_PROF_SM_ACTIVE", 1, "GPM 2", "Share of cycles with a resident warp, mean of the SMs") \
	X(GPU_SM_OCCUPANCY, "assay_gpu_sm_occupancy_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_PROF_SM_OCCUPANCY", 1, "GPM 3", "Resident warps over the most possible, mean of the SMs") \
	X(GPU_TENSOR_ACTIVE, "assay_gpu_tensor_active_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1, "GPM 5", "Share of cycles in which a tensor pipe was active") \
	X(GPU_DRAM_ACTIVE, "assay_gpu_dram_active_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_PROF_DRAM_ACTIVE", 1, "GPM 10", "Share of cycles in which the memory interface moved data") \
	X(GPU_FP64_ACTIVE, "assay_gpu_fp64_active_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", 1, "GPM 11", "Share of cycles in which the FP64 pipe was active") \
	X(GPU_FP32_ACTIVE, "assay_gpu_fp32_active_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1, "GPM 12", "Share of cycles in which the FP32 pipe was active") \
	X(GPU_FP16_ACTIVE, "assay_gpu_fp16_active_ratio", NULL, GAUGE, "ratio", GPU, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", 1, "GPM 13", "Share of cycles in which the FP16 pipe was active") \
	X(GPU_PCIE_TX, "assay_gpu_pcie_transmit_bytes_per_second", NULL, GAUGE, "bytes/second", GPU, "DCGM_FI_PROF_PCIE_TX_BYTES", 1, "GPM 20", "PCIe traffic from the GPU, with headers") \
	X(GPU_PCIE_RX, "assay_gpu_pcie_receive_bytes_per_second", NULL, GAUGE, "bytes/second", GPU, "DCGM_FI_PROF_PCIE_RX_BYTES", 1, "GPM 21", "PCIe traffic to the GPU, with headers") \
	X(GPU_MEMORY, "assay_gpu_memory_bytes", NULL, GAUGE, "bytes", GPU, NULL, 1, "nvmlDeviceGetMemoryInfo_v2", "Memory of the GPU") \
	X(GPU_MEMORY_USED, "assay_gpu_memory_used_bytes", NULL, GAUGE, "bytes", GPU, "DCGM_FI_DEV_FB_USED", 9.5367431640625e-07, "nvmlDeviceGetMemoryInfo_v2", "Memory in use, without what the driver reserves") \
	X(GPU_MEMORY_FREE, "assay_gpu_memory_free_bytes", NULL, GAUGE, "bytes", GPU, "DCGM_FI_DEV_FB_FREE", 9.5367431640625e-07, "nvmlDeviceGetMemoryInfo_v2", "Free memory") \
	X(GPU_MEMORY_RESERVED, "assay_gpu_memory_reserved_bytes", NULL, GAUGE, "bytes", GPU, "DCGM_FI_DEV_FB_RESERVED", 9.5367431640625e-07, "nvmlDeviceGetMemoryInfo_v2", "Memory that the driver reserves") \
	X(GPU_TEMPERATURE, "assay_gpu_temperature_celsius", NULL, GAUGE, "celsius", GPU, "DCGM_FI_DEV_GPU_TEMP", 1, "nvmlDeviceGetTemperatureV", "Temperature of the GPU") \
	X(GPU_TEMPERATURE_MEMORY, "assay_gpu_memory_temperature_celsius", NULL, GAUGE, "celsius", GPU, "DCGM_FI_DEV_MEMORY_TEMP", 1, "NVML field 82", "Temperature of the memory") \
	X(GPU_POWER, "assay_gpu_power_watts", NULL, GAUGE, "watts", GPU, "DCGM_FI_DEV_POWER_USAGE", 1, "nvmlDeviceGetPowerUsage", "Power; on Ampere and newer a mean of one second") \
	X(GPU_POWER_LIMIT, "assay_gpu_power_limit_watts", NULL, GAUGE, "watts", GPU, NULL, 1, "nvmlDeviceGetEnforcedPowerLimit", "Power limit that holds now") \
	X(GPU_ENERGY, "assay_gpu_energy_joules_total", NULL, COUNTER, "joules", GPU, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1000, "nvmlDeviceGetTotalEnergyConsumption", "Energy since the driver was loaded") \
	X(GPU_SM_CLOCK, "assay_gpu_sm_clock_hertz", NULL, GAUGE, "hertz", GPU, "DCGM_FI_DEV_SM_CLOCK", 1e-06, "nvmlDeviceGetClockInfo", "SM clock") \
	X(GPU_SM_CLOCK_MAX, "assay_gpu_sm_clock_max_hertz", NULL, GAUGE, "hertz", GPU, NULL, 1, "nvmlDeviceGetMaxClockInfo", "Highest SM clock") \
	X(GPU_MEMORY_CLOCK, "assay_gpu_memory_clock_hertz", NULL, GAUGE, "hertz", GPU, "DCGM_FI_DEV_MEM_CLOCK", 1e-06, "nvmlDeviceGetClockInfo", "Memory clock") \
	X(GPU_HELD_IDLE, "assay_gpu_clock_held", "reason=\"idle\"", GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_SETTING, "assay_gpu_clock_held", "reason=\"setting\"", GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_POWER, "assay_gpu_clock_held", "reason=\"power_cap\"", GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_HW_SLOWDOWN, "assay_gpu_clock_held", "reason=\"hw_slowdown\"", GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_SYNC, "assay_gpu_clock_held", "reason=\"sync_boost\"", GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_SW_THERMAL, "assay_gpu_clock_held", "reason=\"sw_thermal\"", GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_HW_THERMAL, "assay_gpu_clock_held", "reason=\"hw_thermal\"", GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_HELD_BRAKE, "assay_gpu_clock_held", "reason=\"hw_power_brake\"", GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetCurrentClocksEventReasons", "1 while this reason holds the clock below its maximum") \
	X(GPU_LIMITED_POWER, "assay_gpu_clock_limited_seconds_total", "reason=\"power\"", COUNTER, "seconds", GPU, "DCGM_FI_DEV_POWER_VIOLATION", 1e+09, "NVML field 74", "Time in which this reason limited the clock, since the driver was loaded") \
	X(GPU_LIMITED_THERMAL, "assay_gpu_clock_limited_seconds_total", "reason=\"thermal\"", COUNTER, "seconds", GPU, "DCGM_FI_DEV_THERMAL_VIOLATION", 1e+09, "NVML field 75", "Time in which this reason limited the clock, since the driver was loaded") \
	X(GPU_LIMITED_BOARD, "assay_gpu_clock_limited_seconds_total", "reason=\"board\"", COUNTER, "seconds", GPU, NULL, 1, "NVML field 77", "Time in which this reason limited the clock, since the driver was loaded") \
	X(GPU_LIMITED_RELIABILITY, "assay_gpu_clock_limited_seconds_total", "reason=\"reliability\"", COUNTER, "seconds", GPU, NULL, 1, "NVML field 79", "Time in which this reason limited the clock, since the driver was loaded") \
	X(GPU_ECC_CORRECTED, "assay_gpu_ecc_errors_total", "type=\"corrected\"", COUNTER, "errors", GPU, NULL, 1, "nvmlDeviceGetTotalEccErrors", "ECC errors since the driver was loaded") \
	X(GPU_ECC_UNCORRECTED, "assay_gpu_ecc_errors_total", "type=\"uncorrected\"", COUNTER, "errors", GPU, NULL, 1, "nvmlDeviceGetTotalEccErrors", "ECC errors since the driver was loaded") \
	X(GPU_ROWS_CORRECTABLE, "assay_gpu_remapped_rows", "cause=\"corrected\"", GAUGE, "rows", GPU, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 1, "nvmlDeviceGetRemappedRows", "Rows of memory replaced by spare ones") \
	X(GPU_ROWS_UNCORRECTABLE, "assay_gpu_remapped_rows", "cause=\"uncorrected\"", GAUGE, "rows", GPU, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 1, "nvmlDeviceGetRemappedRows", "Rows of memory replaced by spare ones") \
	X(GPU_ROWS_PENDING, "assay_gpu_row_remap_pending", NULL, GAUGE, "bool", GPU, NULL, 1, "nvmlDeviceGetRemappedRows", "1 if a row will be replaced at the next reset") \
	X(GPU_ROWS_FAILED, "assay_gpu_row_remap_failed", NULL, GAUGE, "bool", GPU, "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, "nvmlDeviceGetRemappedRows", "1 if a row could not be replaced") \
	X(GPU_XID_LAST, "assay_gpu_xid_last", NULL, GAUGE, "number", GPU, "DCGM_FI_DEV_XID_ERRORS", 1, "NVML events", "Number of the last Xid error; absent until one arrives") \
	X(GPU_PCIE_GENERATION, "assay_gpu_pcie_generation", NULL, GAUGE, "number", GPU, NULL, 1, "nvmlDeviceGetCurrPcieLinkGeneration", "PCIe generation in use") \
	X(GPU_PCIE_WIDTH, "assay_gpu_pcie_width", NULL, GAUGE, "lanes", GPU, NULL, 1, "nvmlDeviceGetCurrPcieLinkWidth", "PCIe lanes in use") \
	X(GPU_PCIE_REPLAYS, "assay_gpu_pcie_replays_total", NULL, COUNTER, "replays", GPU, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 1, "nvmlDeviceGetPcieReplayCounter", "PCIe packets sent again") \
	X(GPU_NVLINK_TX, "assay_gpu_nvlink_transmit_bytes_total", NULL, COUNTER, "bytes", GPU, NULL, 1, "NVML field 138", "Payload sent on all NVLinks of the GPU") \
	X(GPU_NVLINK_RX, "assay_gpu_nvlink_receive_bytes_total", NULL, COUNTER, "bytes", GPU, NULL, 1, "NVML field 139", "Payload received on all NVLinks of the GPU") \
	X(XID_COUNT, "assay_gpu_xid_errors_total", NULL, COUNTER, "errors", XID, "DCGM_EXP_XID_ERRORS_COUNT", 1, "NVML events, kernel log", "Xid errors of this number since boot where the kernel log is readable, else since the reader's start (label since)") \
	X(NVLINK_UP, "assay_nvlink_up", NULL, GAUGE, "bool", NVLINK, NULL, 1, "nvmlDeviceGetNvLinkState", "1 while the link is active") \
	X(NVLINK_TX, "assay_nvlink_transmit_bytes_total", NULL, COUNTER, "bytes", NVLINK, NULL, 1, "NVML field 138", "Payload sent on this link") \
	X(NVLINK_RX, "assay_nvlink_receive_bytes_total", NULL, COUNTER, "bytes", NVLINK, NULL, 1, "NVML field 139", "Payload received on this link") \
	X(NVLINK_CRC, "assay_nvlink_errors_total", "error=\"crc\"", COUNTER, "errors", NVLINK, NULL, 1, "nvmlDeviceGetNvLinkErrorCounter", "Errors of this link") \
	X(NVLINK_REPLAY, "assay_nvlink_errors_total", "error=\"replay\"", COUNTER, "errors", NVLINK, NULL, 1, "nvmlDeviceGetNvLinkErrorCounter", "Errors of this link") \
	X(NVLINK_RECOVERY, "assay_nvlink_errors_total", "error=\"recovery\"", COUNTER, "errors", NVLINK, NULL, 1, "nvmlDeviceGetNvLinkErrorCounter", "Errors of this link") \
	X(PROCESS_MEMORY, "assay_process_gpu_memory_bytes", NULL, GAUGE, "bytes", PROCESS, NULL, 1, "nvmlDeviceGetComputeRunningProcesses_v3", "GPU memory of a process") \
	X(PROCESS_SM, "assay_process_gpu_sm_ratio", NULL, GAUGE, "ratio", PROCESS, NULL, 1, "nvmlDeviceGetProcessUtilization", "Share of the SMs that a process used") \
	X(PORT_UP, "assay_port_up", NULL, GAUGE, "bool", PORT, NULL, 1, "/sys/class/infiniband", "1 while the port is active") \
	X(PORT_RATE, "assay_port_rate_bytes_per_second", NULL, GAUGE, "bytes/second", PORT, NULL, 1, "/sys/class/infiniband", "Signalled rate of the port") \
	X(PORT_TX, "assay_port_transmit_bytes_total", NULL, COUNTER, "bytes", PORT, NULL, 1, "/sys/class/infiniband", "Data sent by the port") \
	X(PORT_RX, "assay_port_receive_bytes_total", NULL, COUNTER, "bytes", PORT, NULL, 1, "/sys/class/infiniband", "Data received by the port") \
	X(PORT_ERRORS, "assay_port_errors_total", NULL, COUNTER, "errors", PORT_ERROR, NULL, 1, "/sys/class/infiniband", "Errors of the port") \
	X(INTERFACE_UP, "assay_interface_up", NULL, GAUGE, "bool", INTERFACE, NULL, 1, "/sys/class/net", "1 while the interface has a carrier") \
	X(INTERFACE_TX, "assay_interface_transmit_bytes_total", NULL, COUNTER, "bytes", INTERFACE, NULL, 1, "/sys/class/net", "Bytes sent") \
	X(INTERFACE_RX, "assay_interface_receive_bytes_total", NULL, COUNTER, "bytes", INTERFACE, NULL, 1, "/sys/class/net", "Bytes received") \
	X(INTERFACE_ERRORS, "assay_interface_errors_total", NULL, COUNTER, "errors", INTERFACE, NULL, 1, "/sys/class/net", "Packets lost or damaged, sent and received") \
	X(CPU_BUSY, "assay_cpu_busy_ratio", NULL, GAUGE, "ratio", CPU, NULL, 1, "/proc/stat", "Busy share of all processors over the last interval") \
	X(CPU_COUNT, "assay_cpu_count", NULL, GAUGE, "processors", CPU, NULL, 1, "/proc/stat", "Processors") \
	X(CPU_LOAD, "assay_cpu_load", NULL, GAUGE, "processes", CPU, NULL, 1, "/proc/loadavg", "Load of the last minute") \
	X(CPU_ENERGY, "assay_cpu_energy_joules_total", NULL, COUNTER, "joules", CPU, NULL, 1, "RAPL", "Energy of the processor packages since the reader's start") \
	X(MEMORY_TOTAL, "assay_memory_bytes", NULL, GAUGE, "bytes", CPU, NULL, 1, "/proc/meminfo", "Memory of the machine") \
	X(MEMORY_AVAILABLE, "assay_memory_available_bytes", NULL, GAUGE, "bytes", CPU, NULL, 1, "/proc/meminfo", "Memory that programs can still get") \
	X(DISK_READ, "assay_disk_read_bytes_total", NULL, COUNTER, "bytes", DISK, NULL, 1, "/proc/diskstats", "Bytes read") \
	X(DISK_WRITTEN, "assay_disk_written_bytes_total", NULL, COUNTER, "bytes", DISK, NULL, 1, "/proc/diskstats", "Bytes written") \
	X(DISK_BUSY, "assay_disk_busy_seconds_total", NULL, COUNTER, "seconds", DISK, NULL, 1, "/proc/diskstats", "Time with a request under way") \
	X(RUN_LOSS, "assay_run_loss", NULL, GAUGE, "nats", RUN, NULL, 1, "journal", "Training loss of the last step") \
	X(RUN_STEP, "assay_run_step", NULL, GAUGE, "steps", RUN, NULL, 1, "journal", "Last step") \
	X(RUN_STEPS, "assay_run_steps", NULL, GAUGE, "steps", RUN, NULL, 1, "journal", "Steps of the whole run") \
	X(RUN_STEP_SECONDS, "assay_run_step_seconds", NULL, GAUGE, "seconds", RUN, NULL, 1, "journal", "Duration of the last step") \
	X(RUN_TOKENS, "assay_run_tokens_per_second", NULL, GAUGE, "tokens/second", RUN, NULL, 1, "journal", "Trained or generated tokens per second") \
	X(RUN_MFU, "assay_run_mfu_ratio", NULL, GAUGE, "ratio", RUN, NULL, 1, "journal", "Model FLOP utilization of the last step") \
	X(RUN_REQUESTS, "assay_run_requests_running", NULL, GAUGE, "sequences", RUN, NULL, 1, "journal", "Sequences that a server computes") \
	X(RUN_WAITING, "assay_run_requests_waiting", NULL, GAUGE, "sequences", RUN, NULL, 1, "journal", "Sequences that wait in a server's queue") \
	X(RUN_TTFT, "assay_run_time_to_first_token_seconds", NULL, GAUGE, "seconds", RUN, NULL, 1, "journal", "Median time to first token over the last interval that the run recorded") \
	X(RUN_CACHE, "assay_run_kv_cache_use_ratio", NULL, GAUGE, "ratio", RUN, NULL, 1, "journal", "Share of the KV cache pages in use") \
	X(CHECK_AGE, "assay_check_age_seconds", NULL, GAUGE, "seconds", CHECK, NULL, 1, "run directory", "Time since the last check ended; its verdict is a label") \
	X(NODE_BOOT, "assay_node_boot_time_seconds", NULL, GAUGE, "seconds", NODE, NULL, 1, "/proc/stat", "Time of the last boot, in seconds since 1970") \
	X(SOURCE_UP, "assay_source_up", NULL, GAUGE, "bool", SOURCE, NULL, 1, "assay", "1 while this source answers within its limit") \
	X(SOURCE_AGE, "assay_source_age_seconds", NULL, GAUGE, "seconds", SOURCE, NULL, 1, "assay", "Age of the last reading of this source")
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
	const char *dcgm;  /* dcgm-exporter's name; NULL: it has none */
	double dcgm_scale; /* its value is ours times this */
	const char *source, *help;
};
const struct catalogue_row *catalogue_row(enum catalogue c);
/* Finds a row by its name and fixed label ("" or NULL: none). CATALOGUE_COUNT: there is none. */
enum catalogue catalogue_find(const char *name, const char *fixed);

struct scope_row {
	const char *name, *labels, *help;
};
const struct scope_row *metric_scope_row(enum metric_scope s);
/* Finds a scope by its name in the stream; METRIC_SCOPE_COUNT: there is none. */
enum metric_scope metric_scope_find(const char *name);
#endif
