/* SPDX-License-Identifier: Apache-2.0 */
/* Recording rules. Their names have the form level:metric:operation. */
#include "watch/generate/generate.h"

/* clang-format off */
static const struct generate_rule rules[] = {
	{"assay_gpu", "instance:assay_gpu_power_watts:sum", "sum by (instance) (@GPU_POWER)",
	 "Power of the GPUs of a node"},
	{"assay_gpu", "instance:assay_gpu_utilization_ratio:avg", "avg by (instance) (@GPU_UTILIZATION)",
	 "Mean utilization of the GPUs of a node"},
	{"assay_gpu", "instance:assay_gpu_memory_used_ratio:avg",
	 "sum by (instance) (@GPU_MEMORY_USED) / sum by (instance) (@GPU_MEMORY)",
	 "Share of the memory of all GPUs of a node that is in use"},
	{"assay_gpu", "instance_gpu:assay_gpu_energy_watts:rate5m", "sum by (instance, gpu) (rate(@GPU_ENERGY[5m]))",
	 "Mean power of a GPU, from its energy counter"},
	{"assay_gpu", "instance_gpu:assay_gpu_nvlink_bytes:rate1m",
	 "sum by (instance, gpu) (rate(@NVLINK_TX[1m])) + sum by (instance, gpu) (rate(@NVLINK_RX[1m]))",
	 "NVLink traffic of a GPU, both directions, in bytes per second"},
	{"assay_gpu", "instance_gpu_reason:assay_gpu_clock_limited_ratio:rate5m",
	 "sum by (instance, gpu, reason) (rate(@*GPU_LIMITED_POWER[5m]))",
	 "Share of the time in which a reason limited the clock of a GPU"},
	{"assay_serving", "instance:assay_requests_failed_ratio:rate5m",
	 "sum by (instance) (rate(@REQUESTS_FAILED[5m])) / sum by (instance) (rate(@REQUESTS[5m]))",
	 "Share of the requests that ended with a server error"},
	{"assay_serving", "instance:assay_generated_tokens:rate5m", "sum by (instance) (rate(@TOKENS[5m]))",
	 "Generated tokens per second"},
	{"assay_serving", "instance:assay_time_to_first_token_seconds:p99_rate5m",
	 "histogram_quantile(0.99, sum by (instance, le) (rate(@TTFT_bucket[5m])))",
	 "99th percentile of the time to first token"},
	{"assay_serving", "instance:assay_inter_token_latency_seconds:p99_rate5m",
	 "histogram_quantile(0.99, sum by (instance, le) (rate(@ITL_bucket[5m])))",
	 "99th percentile of the time between tokens"},
	{"assay_serving", "instance:assay_time_per_output_token_seconds:p99_rate5m",
	 "histogram_quantile(0.99, sum by (instance, le) (rate(@TPOT_bucket[5m])))",
	 "99th percentile of the mean time between tokens of a request"},
	{"assay_serving", "instance:assay_request_seconds:p99_rate5m",
	 "histogram_quantile(0.99, sum by (instance, le) (rate(@LATENCY_bucket[5m])))",
	 "99th percentile of the duration of a request"},
	{"assay_autoscaling", "model:assay_requests_waiting:sum", "sum by (model_name) (@REQUESTS_WAITING)",
	 "Sequences that wait, over all servers of a model"},
	{"assay_autoscaling", "model:assay_requests_running:sum", "sum by (model_name) (@REQUESTS_RUNNING)",
	 "Sequences being computed, over all servers of a model"},
	{"assay_autoscaling", "model:assay_kv_cache_use_ratio:avg", "avg by (model_name) (@CACHE_USE)",
	 "Mean use of the KV cache, over all servers of a model"},
	{"assay_autoscaling", "model:assay_engines_ready:sum", "sum by (model_name) (@ENGINE_READY)",
	 "Servers of a model that can answer"},
	{"assay_efficiency", "assay:generated_tokens_per_joule:rate1h",
	 "sum(rate(@TOKENS[1h])) / sum(rate(@GPU_ENERGY[1h]))",
	 "Generated tokens per joule of all GPUs"},
};
/* clang-format on */

const struct generate_rule *generate_rule_at(size_t i)
{
	return i < sizeof(rules) / sizeof(rules[0]) ? &rules[i] : NULL;
}
