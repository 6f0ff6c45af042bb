/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a server: one table with name, type, unit and help, and their values in Prometheus' text
 * form. A metric may have a second name, vLLM's, so that dashboards made for it work.
 */
#ifndef JOURNAL_METRICS_METRICS_H
#define JOURNAL_METRICS_METRICS_H
#include <stdint.h>
#include "core/text/text.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/* symbol, name, type, unit, vLLM's name or NULL, help */
/* clang-format off */
#define METRICS(X) \
	X(REQUESTS, "assay_requests_total", COUNTER, "requests", NULL, "Requests received on endpoints that generate text") \
	X(REQUESTS_OK, "assay_requests_success_total", COUNTER, "requests", "vllm:request_success_total", "Requests answered completely") \
	X(REQUESTS_REFUSED, "assay_requests_refused_total", COUNTER, "requests", NULL, "Requests refused because of their content, key or size (4xx but 429)") \
	X(REQUESTS_LIMITED, "assay_requests_limited_total", COUNTER, "requests", NULL, "Requests refused because the queue was full (429)") \
	X(REQUESTS_FAILED, "assay_requests_failed_total", COUNTER, "requests", NULL, "Requests that ended with a server error (5xx)") \
	X(REQUESTS_LEFT, "assay_requests_left_total", COUNTER, "requests", NULL, "Requests cancelled because the client left or did not read") \
	X(REQUESTS_RETRIED, "assay_requests_retried_total", COUNTER, "requests", NULL, "Requests submitted again after the engine was lost") \
	X(REQUESTS_RUNNING, "assay_requests_running", GAUGE, "sequences", "vllm:num_requests_running", "Sequences that the engine computes") \
	X(REQUESTS_WAITING, "assay_requests_waiting", GAUGE, "sequences", "vllm:num_requests_waiting", "Sequences that wait in the engine's queue") \
	X(CONNECTIONS, "assay_connections", GAUGE, "connections", NULL, "Open connections") \
	X(PROMPT_TOKENS, "assay_prompt_tokens_total", COUNTER, "tokens", "vllm:prompt_tokens_total", "Tokens of prompts processed") \
	X(TOKENS, "assay_generated_tokens_total", COUNTER, "tokens", "vllm:generation_tokens_total", "Tokens generated") \
	X(CACHED_QUERIES, "assay_prefix_cache_queries_total", COUNTER, "tokens", "vllm:prefix_cache_queries_total", "Tokens of prompts looked up in the prefix cache") \
	X(CACHED_TOKENS, "assay_prefix_cache_hits_total", COUNTER, "tokens", "vllm:prefix_cache_hits_total", "Tokens of prompts found in the prefix cache") \
	X(PREEMPTIONS, "assay_preemptions_total", COUNTER, "sequences", "vllm:num_preemptions_total", "Sequences preempted to free pages of the KV cache") \
	X(CACHE_USE, "assay_kv_cache_use_ratio", GAUGE, "ratio", "vllm:kv_cache_usage_perc", "Share of the KV cache pages in use, 0 to 1") \
	X(CACHE_PAGES, "assay_kv_cache_pages", GAUGE, "pages", NULL, "Pages of the KV cache") \
	X(STEPS, "assay_engine_steps_total", COUNTER, "steps", NULL, "Steps of the engine") \
	X(STEP_SECONDS, "assay_engine_step_seconds", GAUGE, "seconds", NULL, "Duration of the last step") \
	X(BUSY_SECONDS, "assay_engine_busy_seconds_total", COUNTER, "seconds", NULL, "Time in steps") \
	X(ENGINE_READY, "assay_engine_ready", GAUGE, "bool", NULL, "1 while an engine with loaded weights answers") \
	X(ENGINE_STARTS, "assay_engine_starts_total", COUNTER, "starts", NULL, "Starts of the engine process") \
	X(TTFT, "assay_time_to_first_token_seconds", HISTOGRAM, "seconds", "vllm:time_to_first_token_seconds", "Time from a request's last byte to its first token") \
	X(ITL, "assay_inter_token_latency_seconds", HISTOGRAM, "seconds", "vllm:inter_token_latency_seconds", "Time between two tokens of a sequence that follow each other") \
	X(TPOT, "assay_time_per_output_token_seconds", HISTOGRAM, "seconds", "vllm:request_time_per_output_token_seconds", "Mean time between tokens of a request, per request") \
	X(LATENCY, "assay_request_seconds", HISTOGRAM, "seconds", "vllm:e2e_request_latency_seconds", "Time from a request's last byte to the end of its answer") \
	X(PROMPT_LENGTH, "assay_request_prompt_tokens", HISTOGRAM, "tokens", "vllm:request_prompt_tokens", "Tokens of a request's prompts") \
	X(TEXT_LENGTH, "assay_request_generated_tokens", HISTOGRAM, "tokens", "vllm:request_generation_tokens", "Tokens generated for a request")
/* clang-format on */
#define X(name, ...) METRIC_##name,
enum metric { METRICS(X) METRIC_COUNT };
#undef X

struct metric_row {
	const char *symbol, *name, *unit, *alias, *help;
	enum metric_type type;
};
const struct metric_row *metric_row(enum metric m);

enum { METRIC_BUCKETS_MOST = 20 };
struct metric_buckets {
	uint64_t count[METRIC_BUCKETS_MOST + 1]; /* the last one has no bound */
	uint64_t total;
	double sum;
};

/* Zeroed is empty. */
struct metrics {
	double value[METRIC_COUNT];
	struct metric_buckets buckets[METRIC_COUNT]; /* of histograms */
};
void metrics_add(struct metrics *m, enum metric which, double amount);
void metrics_set(struct metrics *m, enum metric which, double value);
void metrics_observe(struct metrics *m, enum metric which, double value);
/* Appends all metrics. `model` becomes the label model_name. */
void metrics_write(struct text *out, const struct metrics *m, const char *model);
#endif
