/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts. Each one has a case in tests/data/watch/alerts.test.yaml that fires, and one that does not. */
#include "watch/generate/generate.h"

/* Xids that a program causes by its own fault. NVIDIA's list calls them application errors. */
#define XIDS_OF_PROGRAMS "13|31|43|45|68|69|137"

/* clang-format off */
static const struct generate_alert alerts[] = {
	/* the exporter */
	{"assay_exporter", "AssayExporterDown", "up{job=\"assay\"} == 0", "3m", "critical",
	 "No metrics from {{ $labels.instance }}",
	 "Look at the service: systemctl status assay-exporter. If the node does not answer at all, it is down."},
	{"assay_exporter", "AssayReaderDown", "@EXPORTER_READER_UP == 0", "2m", "warning",
	 "The exporter on {{ $labels.instance }} gets no readings",
	 "Its page / and its log give the reason."},
	{"assay_exporter", "AssaySourceDown", "@SOURCE_UP == 0", "2m", "warning",
	 "Source {{ $labels.source }} on {{ $labels.instance }} does not answer",
	 "For source gpu, the driver hangs. Drain the node and read its kernel log."},
	{"assay_exporter", "AssaySeriesLeftOut", "@EXPORTER_LEFT_OUT > 0", "1h", "info",
	 "{{ $value }} series of scope {{ $labels.scope }} on {{ $labels.instance }} are left out",
	 "The node has more of them than an exporter shows. The reference page of the metrics has the limits."},
	/* GPUs */
	{"assay_gpu", "AssayGpuLost", "@GPU_UP == 0", "1m", "critical",
	 "GPU {{ $labels.gpu }} on {{ $labels.instance }} does not answer",
	 "Drain the node and restart it. If the GPU is lost again, replace it."},
	{"assay_gpu", "AssayGpuXid",
	 "(@XID_COUNT{xid!~\"" XIDS_OF_PROGRAMS "\"} unless @XID_COUNT offset 10m) > 0"
	 " or increase(@XID_COUNT{xid!~\"" XIDS_OF_PROGRAMS "\"}[10m]) > 0", "0m", "critical",
	 "Xid {{ $labels.xid }} on GPU {{ $labels.gpu }} of {{ $labels.instance }}",
	 "assay check health names the action for this Xid."},
	{"assay_gpu", "AssayGpuRowRemapFailed", "@GPU_ROWS_FAILED == 1", "0m", "critical",
	 "GPU {{ $labels.gpu }} on {{ $labels.instance }} could not replace a row of its memory",
	 "Replace the GPU."},
	{"assay_gpu", "AssayGpuRowRemapPending", "@GPU_ROWS_PENDING == 1", "1h", "warning",
	 "GPU {{ $labels.gpu }} on {{ $labels.instance }} waits for a reset to replace a row",
	 "Reset the GPU when no job uses it."},
	{"assay_gpu", "AssayGpuUncorrectedEcc", "increase(@GPU_ECC_UNCORRECTED[1h]) > 0", "0m", "warning",
	 "GPU {{ $labels.gpu }} on {{ $labels.instance }} had uncorrected memory errors",
	 "The job that ran is suspect. If it happens again, run assay check stress on the node."},
	{"assay_gpu", "AssayGpuThermalLimit",
	 "instance_gpu_reason:assay_gpu_clock_limited_ratio:rate5m{reason=\"thermal\"} > 0.1", "5m", "warning",
	 "Heat limits the clock of GPU {{ $labels.gpu }} on {{ $labels.instance }}",
	 "Check fans, air filters and inlet temperature."},
	{"assay_gpu", "AssayGpuHardwareSlowdown",
	 "rate(@*GPU_SAMPLED_HW_SLOWDOWN{reason=~\"hw_slowdown|hw_thermal|hw_power_brake\"}[5m]) > 0.1", "5m",
	 "critical", "The hardware slows GPU {{ $labels.gpu }} on {{ $labels.instance }} ({{ $labels.reason }})",
	 "Check power supplies and cooling."},
	{"assay_gpu", "AssayGpuPcieReplays", "increase(@GPU_PCIE_REPLAYS[1h]) > 100", "0m", "warning",
	 "GPU {{ $labels.gpu }} on {{ $labels.instance }} repeats PCIe packets",
	 "Reseat the card or its riser."},
	/* links */
	{"assay_links", "AssayNvlinkDown",
	 "sum by (instance, gpu) (@NVLINK_UP) < on (instance) group_left ()"
	 " max by (instance) (sum by (instance, gpu) (@NVLINK_UP))"
	 " or (sum by (instance, gpu) (@NVLINK_UP) < max_over_time(sum by (instance, gpu) (@NVLINK_UP)[1d:5m]))",
	 "2m", "critical",
	 "GPU {{ $labels.gpu }} on {{ $labels.instance }} has fewer NVLinks than other GPUs of the node, or than before",
	 "assay top and nvidia-smi nvlink -s name the link. Drain the node."},
	{"assay_links", "AssayPortDown", "@PORT_UP == 0 and max_over_time(@PORT_UP[1d]) == 1", "2m", "critical",
	 "Port {{ $labels.port }} of {{ $labels.device }} on {{ $labels.instance }} is down",
	 "Check cable and switch."},
	/* runs and checks */
	{"assay_runs", "AssayRunStalled", "changes(@RUN_STEP[15m]) == 0", "5m", "warning",
	 "Run {{ $labels.run }} on {{ $labels.instance }} makes no steps",
	 "Look at its log. A rank that hangs stops the whole run."},
	{"assay_runs", "AssayCheckFailed", "@CHECK_FAIL == 1", "0m", "critical",
	 "The last check {{ $labels.suite }} of {{ $labels.instance }} failed",
	 "assay report in its run directory gives the cases and their causes."},
	/* servers */
	{"assay_serving", "AssayEngineNotReady", "@ENGINE_READY == 0", "5m", "critical",
	 "The server {{ $labels.instance }} has no engine", "Its log gives the reason."},
	{"assay_serving", "AssayRequestsFail", "instance:assay_requests_failed_ratio:rate5m > 0.05", "5m", "critical",
	 "{{ $value | humanizePercentage }} of the requests to {{ $labels.instance }} fail", "Look at the server's log."},
	{"assay_serving", "AssayQueueStalled",
	 "@REQUESTS_RUNNING > 0 and rate(@TOKENS[5m]) == 0", "5m", "critical",
	 "{{ $labels.instance }} computes requests and generates no tokens", "Its engine hangs. Restart the server."},
	{"assay_serving", "AssayTimeToFirstTokenHigh",
	 "instance:assay_time_to_first_token_seconds:p99_rate5m > 2", "10m", "warning",
	 "The 99th percentile of the time to first token of {{ $labels.instance }} is {{ $value | humanizeDuration }}",
	 "Add servers, or admit fewer requests. 2 s is MLPerf's limit for an 8B model."},
	{"assay_serving", "AssayTimePerOutputTokenHigh",
	 "instance:assay_time_per_output_token_seconds:p99_rate5m > 0.1", "10m", "warning",
	 "The 99th percentile of the mean time between tokens of {{ $labels.instance }} is {{ $value | humanizeDuration }}",
	 "Lower --max-step-ms, or add servers. 100 ms is MLPerf's limit for an 8B model."},
	{"assay_serving", "AssayCacheFull", "@CACHE_USE > 0.95 and @REQUESTS_WAITING > 0", "5m", "warning",
	 "The KV cache of {{ $labels.instance }} is full and requests wait",
	 "Add servers, or give the server more memory."},
	{"assay_serving", "AssayPreemptions", "rate(@PREEMPTIONS[5m]) > 0.1", "10m", "warning",
	 "{{ $labels.instance }} stops sequences and computes them again",
	 "The KV cache is too small for the load: lower --max-sequences, or add servers."},
	{"assay_serving", "AssayEfficiencyFell",
	 "assay:generated_tokens_per_joule:rate1h"
	 " < 0.9 * avg_over_time(assay:generated_tokens_per_joule:rate1h[1d] offset 6d)"
	 " and sum(rate(@TOKENS[1h])) > 100", "1h", "warning",
	 "Fewer tokens per joule than a week ago: {{ $value | printf \"%.3g\" }}",
	 "Compare batch sizes, clocks and the version of the server with those of that day."},
};
/* clang-format on */

const struct generate_alert *generate_alert_at(size_t i)
{
	return i < sizeof(alerts) / sizeof(alerts[0]) ? &alerts[i] : NULL;
}
