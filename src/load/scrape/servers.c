/* SPDX-License-Identifier: Apache-2.0 */
/* Names of metrics in the servers that are known. */
#include <math.h>
#include <string.h>
#include "load/scrape/prometheus.h"

#define X(name, word, unit, grows, meaning) {word, unit, meaning, grows},
static const struct load_reading_row rows[] = {LOAD_READINGS(X)};
#undef X

/* Older names come after newer ones; the first one that a server prints counts. */
struct metric_name {
	const char *server;
	enum load_reading reading;
	/* "+..": its value is added to that of the name before it, if the server prints both */
	const char *name;
};
static const struct metric_name names[] = {
	/* assay repeats its figures under vLLM's names, so it stands before vLLM */
	{"assay", LOAD_READING_RUNNING, "assay_requests_running"},
	{"assay", LOAD_READING_WAITING, "assay_requests_waiting"},
	{"assay", LOAD_READING_KV_USE, "assay_kv_cache_use_ratio"},
	{"assay", LOAD_READING_PROMPT_TOKENS, "assay_prompt_tokens_total"},
	{"assay", LOAD_READING_GENERATED_TOKENS, "assay_generated_tokens_total"},
	{"assay", LOAD_READING_CACHE_QUERIES, "assay_prefix_cache_queries_total"},
	{"assay", LOAD_READING_CACHE_HITS, "assay_prefix_cache_hits_total"},
	{"assay", LOAD_READING_PREEMPTIONS, "assay_preemptions_total"},
	{"vllm", LOAD_READING_RUNNING, "vllm:num_requests_running"},
	{"vllm", LOAD_READING_WAITING, "vllm:num_requests_waiting"},
	{"vllm", LOAD_READING_KV_USE, "vllm:kv_cache_usage_perc"},
	{"vllm", LOAD_READING_KV_USE, "vllm:gpu_cache_usage_perc"},
	{"vllm", LOAD_READING_PROMPT_TOKENS, "vllm:prompt_tokens_total"},
	{"vllm", LOAD_READING_GENERATED_TOKENS, "vllm:generation_tokens_total"},
	{"vllm", LOAD_READING_CACHE_QUERIES, "vllm:prefix_cache_queries_total"},
	{"vllm", LOAD_READING_CACHE_QUERIES, "vllm:gpu_prefix_cache_queries_total"},
	{"vllm", LOAD_READING_CACHE_HITS, "vllm:prefix_cache_hits_total"},
	{"vllm", LOAD_READING_CACHE_HITS, "vllm:gpu_prefix_cache_hits_total"},
	{"vllm", LOAD_READING_PREEMPTIONS, "vllm:num_preemptions_total"},
	{"sglang", LOAD_READING_RUNNING, "sglang:num_running_reqs"},
	{"sglang", LOAD_READING_WAITING, "sglang:num_queue_reqs"},
	{"sglang", LOAD_READING_KV_USE, "sglang:token_usage"},
	{"sglang", LOAD_READING_PROMPT_TOKENS, "sglang:prompt_tokens_total"},
	{"sglang", LOAD_READING_GENERATED_TOKENS, "sglang:generation_tokens_total"},
	{"sglang", LOAD_READING_CACHE_QUERIES, "sglang:prompt_tokens_total"},
	{"sglang", LOAD_READING_CACHE_HITS, "sglang:cached_tokens_total"},
	{"tgi", LOAD_READING_RUNNING, "tgi_batch_current_size"},
	{"tgi", LOAD_READING_WAITING, "tgi_queue_size"},
	{"tgi", LOAD_READING_PROMPT_TOKENS, "tgi_request_input_length_sum"},
	{"tgi", LOAD_READING_GENERATED_TOKENS, "tgi_request_generated_tokens_sum"},
	{"llama.cpp", LOAD_READING_RUNNING, "llamacpp:requests_processing"},
	{"llama.cpp", LOAD_READING_WAITING, "llamacpp:requests_deferred"},
	{"llama.cpp", LOAD_READING_KV_USE, "llamacpp:kv_cache_usage_ratio"},
	/* llama.cpp counts only the computed tokens of prompts, and newer versions the cached ones apart */
	{"llama.cpp", LOAD_READING_PROMPT_TOKENS, "llamacpp:prompt_tokens_total"},
	{"llama.cpp", LOAD_READING_PROMPT_TOKENS, "+llamacpp:prompt_tokens_cached_total"},
	{"llama.cpp", LOAD_READING_CACHE_QUERIES, "llamacpp:prompt_tokens_cached_total"},
	{"llama.cpp", LOAD_READING_CACHE_QUERIES, "+llamacpp:prompt_tokens_total"},
	{"llama.cpp", LOAD_READING_CACHE_HITS, "llamacpp:prompt_tokens_cached_total"},
	{"llama.cpp", LOAD_READING_GENERATED_TOKENS, "llamacpp:tokens_predicted_total"},
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

struct found {
	double sum[NAMES];
	size_t count[NAMES];
};

static bool adds(size_t i)
{
	return *names[i].name == '+';
}

const struct load_reading_row *load_reading_row(enum load_reading r)
{
	return &rows[r];
}

static void take(void *arg, const struct prometheus_sample *s)
{
	struct found *f = arg;

	for (size_t i = 0; i < NAMES && isfinite(s->value); i++) {
		const char *name = names[i].name + adds(i);

		if (strlen(name) == s->name_size && !memcmp(name, s->name, s->name_size)) {
			f->sum[i] += s->value;
			f->count[i]++;
		}
	}
}

enum status load_scrape_read(struct load_scrape *out, const char *text, size_t size, struct error *err)
{
	struct found f = {0};
	enum status st = prometheus_read(text, size, take, &f, err);

	*out = (struct load_scrape){0};
	for (size_t i = 0; i < NAMES && !st; i++) {
		const enum load_reading r = names[i].reading;

		if (f.count[i] && !out->server)
			out->server = names[i].server;
		if (!f.count[i] || strcmp(names[i].server, out->server) != 0 || out->known[r] != adds(i))
			continue;
		out->known[r] = true;
		out->value[r] += r == LOAD_READING_KV_USE ? f.sum[i] / (double)f.count[i] : f.sum[i];
	}
	return st;
}
