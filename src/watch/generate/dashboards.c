/* SPDX-License-Identifier: Apache-2.0 */
/* Five dashboards. A test runs every query against a Prometheus. */
#include "watch/generate/generate.h"

#define N "{instance=~\"$instance\"}" /* of the chosen nodes */
#define S "{instance=~\"$server\"}"   /* of the chosen servers */
#define I "[$__rate_interval]"
#define G "GPU {{gpu}} {{instance}}"

/* clang-format off */
static const struct generate_panel fleet[] = {
	{"Nodes", "stat", "short", 4, {{"count(@EXPORTER_READER_UP" N ")", "nodes"}}},
	{"GPUs", "stat", "short", 4, {{"count(@GPU_UP" N ")", "GPUs"}}},
	{"GPUs that do not answer", "stat", "short", 4, {{"sum(1 - @GPU_UP" N ")", "lost"}}},
	{"Sources that do not answer", "stat", "short", 4, {{"sum(1 - @SOURCE_UP" N ")", "sources"}}},
	{"Power of all GPUs", "stat", "watt", 4, {{"sum(@GPU_POWER" N ")", "power"}}},
	{"Mean utilization", "stat", "percentunit", 4, {{"avg(@GPU_UTILIZATION" N ")", "utilization"}}},
	{"Utilization of each node", "timeseries", "percentunit", 12,
	 {{"avg by (instance) (@GPU_UTILIZATION" N ")", "{{instance}}"}}},
	{"Power of each node", "timeseries", "watt", 12, {{"sum by (instance) (@GPU_POWER" N ")", "{{instance}}"}}},
	{"Hottest GPU of each node", "timeseries", "celsius", 12,
	 {{"max by (instance) (@GPU_TEMPERATURE" N ")", "{{instance}}"}}},
	{"Time in which heat or power limited clocks", "timeseries", "percentunit", 12,
	 {{"max by (instance, reason) (rate(@*GPU_LIMITED_POWER" N I "))", "{{instance}} {{reason}}"}}},
	{"Xid errors", "timeseries", "short", 12, {{"sum by (instance, xid) (@XID_COUNT" N ")", "{{instance}} Xid {{xid}}"}}},
	{"NVLinks that are up", "timeseries", "short", 12, {{"sum by (instance) (@NVLINK_UP" N ")", "{{instance}}"}}},
	{"Hottest GPUs", "table", "celsius", 12, {{"topk(20, @GPU_TEMPERATURE" N ")", G}}},
	{"State of the sources", "timeseries", "short", 12, {{"min by (instance, source) (@SOURCE_UP" N ")", "{{instance}} {{source}}"}}},
};

static const struct generate_panel node[] = {
	{"Utilization", "timeseries", "percentunit", 12, {{"@GPU_UTILIZATION" N, G}}},
	{"SMs active", "timeseries", "percentunit", 12, {{"@GPU_SM_ACTIVE" N, G}}},
	{"Tensor pipes active", "timeseries", "percentunit", 12, {{"@GPU_TENSOR_ACTIVE" N, G}}},
	{"Memory interface active", "timeseries", "percentunit", 12, {{"@GPU_DRAM_ACTIVE" N, G}}},
	{"GPU memory", "timeseries", "bytes", 12, {{"@GPU_MEMORY_USED" N, G " used"}, {"@GPU_MEMORY" N, G " size"}}},
	{"Power and limit", "timeseries", "watt", 12, {{"@GPU_POWER" N, G}, {"@GPU_POWER_LIMIT" N, G " limit"}}},
	{"Temperature", "timeseries", "celsius", 12, {{"@GPU_TEMPERATURE" N, G}, {"@GPU_TEMPERATURE_MEMORY" N, G " memory"}}},
	{"SM clock", "timeseries", "hertz", 12, {{"@GPU_SM_CLOCK" N, G}, {"@GPU_SM_CLOCK_MAX" N, G " highest"}}},
	{"Reasons that hold the clock", "timeseries", "short", 12, {{"@*GPU_HELD_IDLE" N " == 1", G " {{reason}}"}}},
	{"Share of time with a limited clock", "timeseries", "percentunit", 12,
	 {{"rate(@*GPU_LIMITED_POWER" N I ")", G " {{reason}}"}}},
	{"NVLink traffic", "timeseries", "Bps", 12,
	 {{"sum by (instance, gpu) (rate(@NVLINK_TX" N I "))", G " sent"}, {"sum by (instance, gpu) (rate(@NVLINK_RX" N I "))", G " received"}}},
	{"PCIe traffic", "timeseries", "Bps", 12, {{"@GPU_PCIE_TX" N, G " sent"}, {"@GPU_PCIE_RX" N, G " received"}}},
	{"ECC errors and replaced rows", "timeseries", "short", 12,
	 {{"@*GPU_ECC_CORRECTED" N, G " {{type}} errors"}, {"@*GPU_ROWS_CORRECTABLE" N, G " rows, {{cause}}"}}},
	{"Processes", "table", "bytes", 12, {{"@PROCESS_MEMORY" N, "{{pid}} {{user}} {{comm}}"}}},
	{"Network ports", "timeseries", "Bps", 12, {{"rate(@PORT_TX" N I ")", "{{device}}:{{port}} sent"}, {"rate(@PORT_RX" N I ")", "{{device}}:{{port}} received"}}},
	{"Network interfaces", "timeseries", "Bps", 12, {{"rate(@INTERFACE_TX" N I ")", "{{interface}} sent"}, {"rate(@INTERFACE_RX" N I ")", "{{interface}} received"}}},
	{"Processors", "timeseries", "percentunit", 12, {{"@CPU_BUSY" N, "busy"}, {"@CPU_LOAD" N " / @CPU_COUNT" N, "load per processor"}}},
	{"Memory", "timeseries", "bytes", 12, {{"@MEMORY_TOTAL" N " - @MEMORY_AVAILABLE" N, "used"}, {"@MEMORY_TOTAL" N, "size"}}},
	{"NVLink errors", "timeseries", "short", 12, {{"@*GPU_NVLINK_CRC" N, G " {{error}}"}}},
	{"Last checks", "table", "short", 12, {{"@*CHECK_PASS" N " == 1", "{{suite}} {{verdict}}"}}},
	{"Disks", "timeseries", "Bps", 12, {{"rate(@DISK_READ" N I ")", "{{disk}} read"}, {"rate(@DISK_WRITTEN" N I ")", "{{disk}} written"}}},
	{"Disks, busy time", "timeseries", "percentunit", 12, {{"rate(@DISK_BUSY" N I ")", "{{disk}}"}}},
};

static const struct generate_panel training[] = {
	{"Loss", "timeseries", "none", 12, {{"@RUN_LOSS" N, "{{run}}"}}},
	{"Tokens per second", "timeseries", "short", 12, {{"@RUN_TOKENS" N, "{{run}}"}}},
	{"Model FLOP utilization", "timeseries", "percentunit", 12, {{"@RUN_MFU" N, "{{run}}"}}},
	{"Duration of a step", "timeseries", "s", 12, {{"@RUN_STEP_SECONDS" N, "{{run}}"}}},
	{"Steps done", "bargauge", "percentunit", 12, {{"@RUN_STEP" N " / @RUN_STEPS" N, "{{run}}"}}},
	{"Time left", "stat", "s", 12, {{"(@RUN_STEPS" N " - @RUN_STEP" N ") * @RUN_STEP_SECONDS" N, "{{run}}"}}},
	{"SMs and tensor pipes active, mean", "timeseries", "percentunit", 12,
	 {{"avg by (instance) (@GPU_SM_ACTIVE" N ")", "{{instance}} SMs"}, {"avg by (instance) (@GPU_TENSOR_ACTIVE" N ")", "{{instance}} tensor pipes"}}},
	{"Least and most utilized GPU", "timeseries", "percentunit", 12,
	 {{"min by (instance) (@GPU_SM_ACTIVE" N ")", "{{instance}} least"}, {"max by (instance) (@GPU_SM_ACTIVE" N ")", "{{instance}} most"}}},
	{"NVLink traffic of each node", "timeseries", "Bps", 12, {{"sum by (instance) (rate(@NVLINK_TX" N I "))", "{{instance}} sent"}}},
	{"Traffic of network ports", "timeseries", "Bps", 12, {{"sum by (instance) (rate(@PORT_TX" N I "))", "{{instance}} sent"}}},
	{"Tokens per joule of the GPUs", "timeseries", "short", 12,
	 {{"sum by (instance) (@RUN_TOKENS" N ") / sum by (instance) (rate(@GPU_ENERGY" N I "))", "{{instance}}"}}},
	{"Disk reads", "timeseries", "Bps", 12, {{"sum by (instance) (rate(@DISK_READ" N I "))", "{{instance}}"}}},
};

#define QUANTILE(q, metric) "histogram_quantile(" q ", sum by (le) (rate(@" metric "_bucket" S I ")))"
#define QUANTILES(metric) {{QUANTILE("0.5", metric), "p50"}, {QUANTILE("0.95", metric), "p95"}, {QUANTILE("0.99", metric), "p99"}}
static const struct generate_panel serving[] = {
	{"Servers that answer", "stat", "short", 6, {{"sum(@ENGINE_READY" S ")", "ready"}}},
	{"Starts of engines", "stat", "short", 6, {{"sum(@ENGINE_STARTS" S ")", "starts"}}},
	{"Requests per second", "stat", "reqps", 6, {{"sum(rate(@REQUESTS" S I "))", "requests"}}},
	{"Generated tokens per second", "stat", "short", 6, {{"sum(rate(@TOKENS" S I "))", "tokens"}}},
	{"Time to first token", "timeseries", "s", 12, QUANTILES("TTFT")},
	{"Time between tokens", "timeseries", "s", 12, QUANTILES("ITL")},
	{"Duration of a request", "timeseries", "s", 12, QUANTILES("LATENCY")},
	{"Running and waiting", "timeseries", "short", 12,
	 {{"sum(@REQUESTS_RUNNING" S ")", "running"}, {"sum(@REQUESTS_WAITING" S ")", "waiting"}}},
	{"Requests by result", "timeseries", "reqps", 12,
	 {{"sum(rate(@REQUESTS_OK" S I "))", "complete"}, {"sum(rate(@REQUESTS_REFUSED" S I "))", "refused"},
	  {"sum(rate(@REQUESTS_LIMITED" S I "))", "queue full"}, {"sum(rate(@REQUESTS_FAILED" S I "))", "failed"}}},
	{"Tokens", "timeseries", "short", 12,
	 {{"sum(rate(@PROMPT_TOKENS" S I "))", "prompts"}, {"sum(rate(@TOKENS" S I "))", "generated"}}},
	{"KV cache in use", "timeseries", "percentunit", 12, {{"@CACHE_USE" S, "{{instance}}"}}},
	{"Prompt tokens found in the prefix cache", "timeseries", "short", 12,
	 {{"sum(rate(@CACHED_TOKENS" S I "))", "found"}, {"sum(rate(@CACHED_QUERIES" S I "))", "looked up"}}},
	{"Preemptions", "timeseries", "short", 12, {{"sum(rate(@PREEMPTIONS" S I "))", "per second"}}},
	{"Share of time in steps", "timeseries", "percentunit", 12, {{"rate(@BUSY_SECONDS" S I ")", "{{instance}}"}}},
	{"Length of prompts", "timeseries", "short", 12, QUANTILES("PROMPT_LENGTH")},
	{"Length of answers", "timeseries", "short", 12, QUANTILES("TEXT_LENGTH")},
};

#define WATTS "sum(rate(@GPU_ENERGY" N I "))"
#define TOKENS_RATE "sum(rate(@TOKENS" S I "))"
static const struct generate_panel cost[] = {
	{"Power of the GPUs", "stat", "watt", 6, {{WATTS, "power"}}},
	{"Electricity per hour", "stat", "currencyUSD", 6, {{WATTS " / 1000 * $pue * $price_kwh", "per hour"}}},
	{"GPUs per hour", "stat", "currencyUSD", 6, {{"count(@GPU_UP" N ") * $gpu_hour", "per hour"}}},
	{"Electricity of the last day", "stat", "kwatth", 6, {{"sum(increase(@GPU_ENERGY" N "[1d])) / 3.6e6", "energy"}}},
	{"Power of each node", "timeseries", "watt", 12, {{"sum by (instance) (rate(@GPU_ENERGY" N I "))", "{{instance}}"}}},
	{"Power of processors and GPUs", "timeseries", "watt", 12,
	 {{"sum(rate(@CPU_ENERGY" N I "))", "processors"}, {WATTS, "GPUs"}}},
	{"Generated tokens per joule", "timeseries", "short", 12, {{TOKENS_RATE " / " WATTS, "tokens per joule"}}},
	{"Electricity for a million tokens", "timeseries", "currencyUSD", 12,
	 {{WATTS " / " TOKENS_RATE " * 1e6 / 3.6e6 * $pue * $price_kwh", "electricity"}}},
	{"GPU hours for a million tokens", "timeseries", "currencyUSD", 12,
	 {{"count(@GPU_UP" N ") * $gpu_hour / 3600 / " TOKENS_RATE " * 1e6", "GPU hours"}}},
	{"Training: electricity for a million tokens", "timeseries", "currencyUSD", 12,
	 {{WATTS " / sum(@RUN_TOKENS" N ") * 1e6 / 3.6e6 * $pue * $price_kwh", "electricity"}}},
	{"Power of GPUs with less than 5 % utilization", "timeseries", "watt", 12,
	 {{"sum(@GPU_POWER" N " and @GPU_UTILIZATION" N " < 0.05) or vector(0)", "idle"}}},
	{"Share of the power limit in use", "timeseries", "percentunit", 12,
	 {{"sum by (instance) (@GPU_POWER" N ") / sum by (instance) (@GPU_POWER_LIMIT" N ")", "{{instance}}"}}},
};
/* clang-format on */

#define PANELS(name) .panel = name, .count = sizeof(name) / sizeof(name[0])
static const struct generate_dashboard dashboards[] = {
	{.name = "fleet",
	 .title = "assay: fleet",
	 .help = "All nodes: which are hot, slow or silent.",
	 PANELS(fleet)},
	{.name = "node",
	 .title = "assay: node",
	 .help = "One node: its GPUs, links, network, disks and processors.",
	 PANELS(node)},
	{.name = "training",
	 .title = "assay: training",
	 .help = "Live training runs of assay, and what they use.",
	 PANELS(training)},
	{.name = "serving",
	 .title = "assay: serving",
	 .help = "Servers of assay: latency, throughput, queue and KV cache.",
	 PANELS(serving),
	 .servers = true},
	{.name = "cost",
	 .title = "assay: cost",
	 .help = "Power, electricity and GPU hours, and what a million tokens cost.",
	 PANELS(cost),
	 .servers = true,
	 .prices = true},
};

const struct generate_dashboard *generate_dashboard_at(size_t i)
{
	return i < sizeof(dashboards) / sizeof(dashboards[0]) ? &dashboards[i] : NULL;
}
