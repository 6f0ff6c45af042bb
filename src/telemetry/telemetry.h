/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler is a process, `assay __sample`: NVML hangs where CUDA hangs. It writes journal `telemetry`
 * bodies (journal/journal.h), one a line, to fd 3, about five times a second; when it stalls the run goes on
 * and its spans are absent. Times are CLOCK_MONOTONIC, shared by the processes of a node; a reading's time is
 * the middle of its call. What a device lacks is not there. Nobody reading: the oldest lines go, and
 * `lost_lines` of the source "host" counts them. Costs and sources: docs/explanation/methods, "Telemetry".
 */
#ifndef TELEMETRY_TELEMETRY_H
#define TELEMETRY_TELEMETRY_H
#include <signal.h>
#include <stdbool.h>
#include "core/error.h"
#include "core/log.h"
#include "core/process/process.h"
#include "journal/telemetry/series.h"

/* name (as in journals), unit, kind, period ms, help */
/* clang-format off */
#define TELEMETRY_SIGNALS(X)                                                            \
	X(sm_clock_mhz, "MHz", GAUGE, 20, "SM clock as NVML says")                      \
	X(memory_clock_mhz, "MHz", GAUGE, 1000, "memory clock as NVML says")            \
	X(power_w, "W", GAUGE, 20, "instant power")                                     \
	X(energy_j, "J", COUNTER, 50, "energy counter")                                 \
	X(clock_reasons, "", BITS, 20, "clock event reasons")                           \
	X(temperature_c, "C", GAUGE, 1000, "GPU temperature")                           \
	X(temperature_memory_c, "C", GAUGE, 1000, "memory temperature")                 \
	X(violation_power_s, "s", COUNTER, 200, "time limited by power")                \
	X(violation_thermal_s, "s", COUNTER, 200, "time limited by temperature")        \
	X(violation_board_s, "s", COUNTER, 200, "time limited by the board")            \
	X(violation_reliability_s, "s", COUNTER, 200, "time limited by reliability")    \
	X(gpm_tensor_share, "", GAUGE, 250, "GPM 5, any tensor pipe, over the interval before t") \
	X(gpm_fp64_share, "", GAUGE, 250, "GPM 11")                                     \
	X(gpm_fp32_share, "", GAUGE, 250, "GPM 12")                                     \
	X(gpm_sm_share, "", GAUGE, 250, "GPM 2, SM utilisation")                        \
	X(gpm_dram_share, "", GAUGE, 250, "GPM 10, DRAM bandwidth")                     \
	X(gpm_pcie_tx_rate, "B/s", GAUGE, 250, "GPM 20, PCIe traffic from the GPU")     \
	X(gpm_pcie_rx_rate, "B/s", GAUGE, 250, "GPM 21, PCIe traffic to the GPU")       \
	X(gpm_nvlink_rx_rate, "B/s", GAUGE, 250, "GPM 60, NVLink traffic to the GPU")   \
	X(gpm_nvlink_tx_rate, "B/s", GAUGE, 250, "GPM 61, NVLink traffic from the GPU") \
	X(pcie_gen, "", GAUGE, 500, "PCIe generation")                                  \
	X(pcie_width, "", GAUGE, 500, "PCIe lanes")                                     \
	X(pcie_replays, "", COUNTER, 1000, "PCIe replays")                              \
	X(xid, "", GAUGE, 0, "Xid event: its number, at the time it came")              \
	X(nvml_error, "", GAUGE, 0, "NVML stopped to answer for the GPU: its code, at the time it was noticed") \
	X(xid_unwatched, "", GAUGE, 0, "NVML gives no Xid events of the GPU: the code with which it refuses") \
	X(cpu_busy_share, "", GAUGE, 200, "host: busy CPU time over all CPUs")          \
	X(cpu_energy_j, "J", COUNTER, 100, "host: RAPL package energy since the sampler began") \
	X(lost_lines, "", COUNTER, 0, "host: lines of telemetry that nobody read in time")
/* clang-format on */
#define X(name, ...) TELEMETRY_##name,
enum telemetry_signal_id { TELEMETRY_SIGNALS(X) TELEMETRY_SIGNAL_COUNT };
#undef X

struct telemetry_signal {
	const char *name, *unit, *help;
	enum signal_kind kind;
	unsigned period_ms;
};
const struct telemetry_signal *telemetry_signal_by_name(const char *name); /* NULL: unknown */

struct telemetry_spec {
	const char *const *gpu_pci; /* PCI addresses, "0000:1b:00.0" */
	unsigned gpu_count;
	bool host;
};

/* Starts the sampler process; its lines come on process.channel (non-blocking). What it warns of goes to our
 * stderr. */
enum status sampler_start(struct process *p, const struct telemetry_spec *spec, struct error *err);
/* A window begins: GPM's intervals begin anew SERIES_GPM_ASK_NS from now, so that even a short one holds a
 * whole interval (METHODS, "GPM"). Never waits; a sampler that does not listen goes on as it did. */
void sampler_align(const struct process *p);
/* TERM, KILL, leave behind. */
void sampler_stop(struct process *p);
/* The process's main: words are "host" (optional, first), then PCI addresses. Ends, after a last flush, when
 * *stop is set or nobody reads. 0, or 1 where nothing at all can be sampled. */
int sampler_main(int argc, char **argv, const volatile sig_atomic_t *stop, const struct log *log);
#endif
