/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler is a separate process, `assay __sample`, because NVML hangs when CUDA hangs. About five times a
 * second it writes journal `telemetry` bodies (journal/journal.h), one per line, to descriptor 3. If it
 * stalls, the run continues and the values of that time are absent. Times are CLOCK_MONOTONIC, which all
 * processes of a node share; the time of a reading is the middle of its call. Signals that a device lacks are
 * absent. If the reader is slow, the oldest lines are dropped, and `lost_lines` of the source "host" counts
 * them. Costs and sources: docs/explanation/methods/telemetry.md.
 */
#ifndef TELEMETRY_TELEMETRY_H
#define TELEMETRY_TELEMETRY_H
#include <signal.h>
#include <stdbool.h>
#include "core/error.h"
#include "core/log.h"
#include "core/process/process.h"
#include "journal/telemetry/series.h"

/* name (as in journals), unit, kind, period in ms, help */
/* clang-format off */
#define TELEMETRY_SIGNALS(X)                                                            \
	X(sm_clock_mhz, "MHz", GAUGE, 20, "SM clock, from NVML")                              \
	X(memory_clock_mhz, "MHz", GAUGE, 1000, "memory clock, from NVML")                    \
	X(power_w, "W", GAUGE, 20, "instantaneous power")                                     \
	X(energy_j, "J", COUNTER, 50, "energy counter")                                       \
	X(clock_reasons, "", BITS, 20, "clock event reasons")                                 \
	X(temperature_c, "C", GAUGE, 1000, "GPU temperature")                                 \
	X(temperature_memory_c, "C", GAUGE, 1000, "memory temperature")                       \
	X(memory_used_bytes, "B", GAUGE, 1000, "device memory in use, without what the driver reserves") \
	X(violation_power_s, "s", COUNTER, 200, "time in which power limited the clock")      \
	X(violation_thermal_s, "s", COUNTER, 200, "time in which temperature limited the clock") \
	X(violation_board_s, "s", COUNTER, 200, "time in which the board limited the clock")  \
	X(violation_reliability_s, "s", COUNTER, 200, "time in which reliability limited the clock") \
	X(gpm_tensor_share, "", GAUGE, 250, "GPM 5, any tensor pipe active, over the interval that ends at t") \
	X(gpm_fp64_share, "", GAUGE, 250, "GPM 11, FP64 pipe active")                         \
	X(gpm_fp32_share, "", GAUGE, 250, "GPM 12, FP32 pipe active")                         \
	X(gpm_sm_share, "", GAUGE, 250, "GPM 2, SM utilization")                              \
	X(gpm_dram_share, "", GAUGE, 250, "GPM 10, DRAM bandwidth")                           \
	X(gpm_pcie_tx_rate, "B/s", GAUGE, 250, "GPM 20, PCIe traffic from the GPU")           \
	X(gpm_pcie_rx_rate, "B/s", GAUGE, 250, "GPM 21, PCIe traffic to the GPU")             \
	X(gpm_nvlink_rx_rate, "B/s", GAUGE, 250, "GPM 60, NVLink traffic to the GPU")         \
	X(gpm_nvlink_tx_rate, "B/s", GAUGE, 250, "GPM 61, NVLink traffic from the GPU")       \
	X(pcie_gen, "", GAUGE, 500, "PCIe generation")                                        \
	X(pcie_width, "", GAUGE, 500, "PCIe lanes")                                           \
	X(pcie_replays, "", COUNTER, 1000, "PCIe replays")                                    \
	X(xid, "", EVENT, 0, "Xid event: its number, at the time of its arrival")             \
	X(nvml_error, "", GAUGE, 0, "NVML stopped answering for the GPU: its error code, when it was noticed") \
	X(xid_unwatched, "", GAUGE, 0, "NVML provides no Xid events of the GPU: its error code") \
	X(cpu_busy_share, "", GAUGE, 200, "host: busy share of the time of all CPUs")         \
	X(cpu_energy_j, "J", COUNTER, 100, "host: RAPL package energy since the sampler began") \
	X(dram_energy_j, "J", COUNTER, 100, "host: RAPL energy of the memory, outside the packages, since the sampler began") \
	X(node_power_w, "W", GAUGE, 1000, "host: power of the whole node by its only ACPI power meter (hwmon)") \
	X(lost_lines, "", COUNTER, 0, "host: lines of telemetry dropped because they were not read in time")
/* clang-format on */
#define X(name, ...) TELEMETRY_##name,
enum telemetry_signal_id { TELEMETRY_SIGNALS(X) TELEMETRY_SIGNAL_COUNT };
#undef X

struct telemetry_signal {
	const char *name, *unit, *help;
	enum signal_kind kind;
	unsigned period_ms;
};

struct telemetry_spec {
	const char *const *gpu_pci; /* PCI addresses, "0000:1b:00.0" */
	unsigned gpu_count;
	bool host;
};

/* Starts the sampler process. Its lines arrive on process.channel, which is non-blocking. Its warnings go to
 * this process's stderr. Owner: caller, sampler_stop. */
enum status sampler_start(struct process *p, const struct telemetry_spec *spec, struct error *err);
/* Call when a window begins: a new GPM interval begins SERIES_GPM_ASK_NS from now, so that even a short
 * window holds a whole interval (docs/explanation/methods/measuring.md, "GPM shares"). Never waits, and has
 * no effect on a stalled sampler. */
void sampler_align(const struct process *p);
/* Sends TERM, then KILL; does not wait for a sampler that survives both. */
void sampler_stop(struct process *p);
/* How often a sampler has died. Zeroed: not yet. */
struct sampler_life {
	unsigned deaths;
	uint64_t started_ns; /* set by whoever starts it */
	uint64_t again_ns;   /* when it is to start again; 0: not */
};
/* Call when the sampler has died: sets again_ns, to 1, 2 and 4 s from now. False: the fourth death, each
 * within a minute of its start, is the last. */
bool sampler_died(struct sampler_life *life, uint64_t now_ns);
/* Main function of the sampler process. Arguments: "host" (optional, first), then PCI addresses. Ends after a
 * last flush, when *stop is set or the reader is gone. Returns 0, or 1 if there is nothing to sample. */
int sampler_main(int argc, char **argv, const volatile sig_atomic_t *stop, const struct log *log);
#endif
