/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include "load/metrics.h"

static const double bounds_s[TTFT_BUCKETS] = {0.001, 0.005, 0.02, 0.1, 0.5, 2.5, 10, 60};

enum value {
	V_RUNNING,
	V_WAITING,
	V_REQUESTS,
	V_COMPLETE,
	V_PROMPT,
	V_TOKENS,
	V_CACHED,
	V_HIT_RATE,
	V_CACHE_USE,
	V_TTFT,
	V_PROMPT_LENGTHS,
	V_TOKEN_LENGTHS,
};
struct row {
	enum stub_names names;
	enum value value;
	const char *name, *labels; /* labels: more of them */
};

static const struct row rows[] = {
	{STUB_NAMES_VLLM, V_RUNNING, "vllm:num_requests_running", "engine=\"0\","},
	{STUB_NAMES_VLLM, V_WAITING, "vllm:num_requests_waiting", "engine=\"0\","},
	{STUB_NAMES_VLLM, V_CACHE_USE, "vllm:kv_cache_usage_perc", "engine=\"0\","},
	{STUB_NAMES_VLLM, V_COMPLETE, "vllm:request_success_total",
	 "engine=\"0\",finished_reason=\"length\","},
	{STUB_NAMES_VLLM, V_PROMPT, "vllm:prompt_tokens_total", "engine=\"0\","},
	{STUB_NAMES_VLLM, V_TOKENS, "vllm:generation_tokens_total", "engine=\"0\","},
	{STUB_NAMES_VLLM, V_PROMPT, "vllm:prefix_cache_queries_total", "engine=\"0\","},
	{STUB_NAMES_VLLM, V_CACHED, "vllm:prefix_cache_hits_total", "engine=\"0\","},
	{STUB_NAMES_VLLM, V_TTFT, "vllm:time_to_first_token_seconds", "engine=\"0\","},
	{STUB_NAMES_SGLANG, V_RUNNING, "sglang:num_running_reqs", ""},
	{STUB_NAMES_SGLANG, V_WAITING, "sglang:num_queue_reqs", ""},
	{STUB_NAMES_SGLANG, V_CACHE_USE, "sglang:token_usage", ""},
	{STUB_NAMES_SGLANG, V_HIT_RATE, "sglang:cache_hit_rate", ""},
	{STUB_NAMES_SGLANG, V_REQUESTS, "sglang:num_requests_total", ""},
	{STUB_NAMES_SGLANG, V_PROMPT, "sglang:prompt_tokens_total", ""},
	{STUB_NAMES_SGLANG, V_CACHED, "sglang:cached_tokens_total", ""},
	{STUB_NAMES_SGLANG, V_TOKENS, "sglang:generation_tokens_total", ""},
	{STUB_NAMES_SGLANG, V_TTFT, "sglang:time_to_first_token_seconds", ""},
	{STUB_NAMES_TGI, V_RUNNING, "tgi_batch_current_size", NULL},
	{STUB_NAMES_TGI, V_WAITING, "tgi_queue_size", NULL},
	{STUB_NAMES_TGI, V_REQUESTS, "tgi_request_count", NULL},
	{STUB_NAMES_TGI, V_COMPLETE, "tgi_request_success", NULL},
	{STUB_NAMES_TGI, V_PROMPT_LENGTHS, "tgi_request_input_length", NULL},
	{STUB_NAMES_TGI, V_TOKEN_LENGTHS, "tgi_request_generated_tokens", NULL},
	{STUB_NAMES_LLAMACPP, V_RUNNING, "llamacpp:requests_processing", NULL},
	{STUB_NAMES_LLAMACPP, V_WAITING, "llamacpp:requests_deferred", NULL},
	{STUB_NAMES_LLAMACPP, V_PROMPT, "llamacpp:prompt_tokens_total", NULL},
	{STUB_NAMES_LLAMACPP, V_TOKENS, "llamacpp:tokens_predicted_total", NULL},
	{STUB_NAMES_ASSAY, V_RUNNING, "assay_requests_running", ""},
	{STUB_NAMES_ASSAY, V_WAITING, "assay_requests_waiting", ""},
	{STUB_NAMES_ASSAY, V_REQUESTS, "assay_requests_total", ""},
	{STUB_NAMES_ASSAY, V_COMPLETE, "assay_requests_success_total", ""},
	{STUB_NAMES_ASSAY, V_PROMPT, "assay_prompt_tokens_total", ""},
	{STUB_NAMES_ASSAY, V_TOKENS, "assay_generated_tokens_total", ""},
	{STUB_NAMES_ASSAY, V_PROMPT, "assay_prefix_cache_queries_total", ""},
	{STUB_NAMES_ASSAY, V_CACHED, "assay_prefix_cache_hits_total", ""},
	{STUB_NAMES_ASSAY, V_CACHE_USE, "assay_kv_cache_use_ratio", ""},
	{STUB_NAMES_ASSAY, V_TTFT, "assay_time_to_first_token_seconds", ""},
};

void counter_add(struct counters *c, enum counter which, uint64_t more)
{
	atomic_fetch_add_explicit(&c->value[which], more, memory_order_relaxed);
}

void counter_add_ttft(struct counters *c, uint64_t ns)
{
	for (int i = 0; i < TTFT_BUCKETS; i++)
		if ((double)ns <= bounds_s[i] * 1e9)
			atomic_fetch_add_explicit(&c->ttft[i], 1, memory_order_relaxed);
	counter_add(c, COUNTER_TTFT_COUNT, 1);
	counter_add(c, COUNTER_TTFT_NS, ns);
}

void counters_sum(struct counters *sum, const struct counters *more)
{
	for (int i = 0; i < COUNTER_COUNT; i++)
		sum->value[i] += more->value[i];
	for (int i = 0; i < TTFT_BUCKETS; i++)
		sum->ttft[i] += more->ttft[i];
}

static double value_of(const struct counters *c, enum value v)
{
	/* The two are read one after the other. */
	uint64_t ended = c->value[COUNTER_ENDED], begun = c->value[COUNTER_REQUESTS];
	double running = begun > ended ? (double)(begun - ended) : 0;

	switch (v) {
	case V_RUNNING:
		return running;
	case V_REQUESTS:
		return (double)begun;
	case V_COMPLETE:
		return (double)c->value[COUNTER_COMPLETE];
	case V_PROMPT:
		return (double)c->value[COUNTER_PROMPT_TOKENS];
	case V_TOKENS:
		return (double)c->value[COUNTER_TOKENS];
	case V_CACHED:
		return (double)c->value[COUNTER_CACHED_TOKENS];
	case V_HIT_RATE:
		return c->value[COUNTER_PROMPT_TOKENS] ? (double)c->value[COUNTER_CACHED_TOKENS] /
								 (double)c->value[COUNTER_PROMPT_TOKENS]
						       : 0;
	case V_CACHE_USE: /* as if 10,000 requests filled the cache */
		return running < 10000 ? running / 10000 : 1;
	case V_WAITING:
	case V_TTFT:
	case V_PROMPT_LENGTHS:
	case V_TOKEN_LENGTHS:
		break;
	}
	return 0;
}

static void add_histogram(struct buf *out, const struct counters *c, const struct row *r, const char *model)
{
	for (int i = 0; i < TTFT_BUCKETS; i++)
		buf_addf(out, "%s_bucket{%smodel_name=\"%s\",le=\"%g\"} %" PRIu64 "\n", r->name, r->labels,
			 model, bounds_s[i], c->ttft[i]);
	buf_addf(out, "%s_bucket{%smodel_name=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", r->name, r->labels, model,
		 c->value[COUNTER_TTFT_COUNT]);
	buf_addf(out, "%s_sum{%smodel_name=\"%s\"} %.9g\n", r->name, r->labels, model,
		 (double)c->value[COUNTER_TTFT_NS] * 1e-9);
	buf_addf(out, "%s_count{%smodel_name=\"%s\"} %" PRIu64 "\n", r->name, r->labels, model,
		 c->value[COUNTER_TTFT_COUNT]);
}

/* A histogram of lengths whose only bucket has no bound. */
static void add_lengths(struct buf *out, const struct counters *c, const struct row *r, uint64_t sum)
{
	uint64_t count = c->value[COUNTER_COMPLETE];

	buf_addf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %" PRIu64 "\n%s_count %" PRIu64 "\n",
		 r->name, count, r->name, sum, r->name, count);
}

static const char *type_of(enum value v)
{
	switch (v) {
	case V_TTFT:
	case V_PROMPT_LENGTHS:
	case V_TOKEN_LENGTHS:
		return "histogram";
	case V_RUNNING:
	case V_WAITING:
	case V_HIT_RATE:
	case V_CACHE_USE:
		return "gauge";
	default:
		return "counter";
	}
}

void metrics_write(struct buf *out, const struct counters *c, enum stub_names names, const char *model)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];

		if (r->names != names)
			continue;
		buf_addf(out, "# HELP %s of the stub server\n# TYPE %s %s\n", r->name, r->name,
			 type_of(r->value));
		if (r->value == V_TTFT)
			add_histogram(out, c, r, model);
		else if (r->value == V_PROMPT_LENGTHS)
			add_lengths(out, c, r, c->value[COUNTER_PROMPT_TOKENS]);
		else if (r->value == V_TOKEN_LENGTHS)
			add_lengths(out, c, r, c->value[COUNTER_TOKENS]);
		else if (r->labels)
			buf_addf(out, "%s{%smodel_name=\"%s\"} %.17g\n", r->name, r->labels, model,
				 value_of(c, r->value));
		else
			buf_addf(out, "%s %.17g\n", r->name, value_of(c, r->value));
	}
}
