/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.json and load.csv: figures under the names, headings and units of AIPerf's exports (AIPerf 0.13,
 * profile_export_aiperf.json schema 1.4), where the meaning is the same.
 */
#include <math.h>
#include "core/json/member.h"
#include "report/load/load.h"

enum { DIGITS = 12 };

/* A distribution: AIPerf's tag and heading, and our latency. AIPerf measures from the send, and its
 * inter-token latency is the mean of each request. */
static const struct {
	const char *tag, *head, *name;
} spread[] = {
	{"inter_chunk_latency", "Inter Chunk Latency", "itl"},
	{"inter_chunk_latency", "Inter Chunk Latency", "chunk_gap"},
	{"inter_token_latency", "Inter Token Latency", "tpot"},
	{"request_latency", "Request Latency", "e2e_send"},
	{"request_latency_from_schedule", "Request Latency From Schedule", "e2e"},
	{"time_to_first_token", "Time to First Token", "ttft_send"},
	{"time_to_first_token_from_schedule", "Time to First Token From Schedule", "ttft"},
};
enum { SPREADS = sizeof(spread) / sizeof(spread[0]) };

/* Statistics of AIPerf, and the parts of our fields. */
static const struct {
	const char *stat, *part;
} stats[] = {
	{"avg", "mean"}, {"min", "min"}, {"max", "max"}, {"p50", "p50"},
	{"p90", "p90"},	 {"p95", "p95"}, {"p99", "p99"}, {"p999", "p999"},
};
enum { STATS = sizeof(stats) / sizeof(stats[0]) };

/* One value: numerator / denominator * factor; NULL denominator: none. */
static const struct {
	const char *tag, *head, *unit, *name, *over;
	double factor;
} single[] = {
	{"benchmark_duration", "Benchmark Duration", "sec", "window_s", NULL, 1},
	{"effective_concurrency", "Effective Concurrency", "requests", "in_flight_mean", NULL, 1},
	{"error_request_count", "Error Request Count", "requests", "failed", NULL, 1},
	{"good_request_fraction", "GoodRequestFraction", "ratio", "slo_share", NULL, 1},
	{"goodput", "Goodput", "requests/sec", "goodput", NULL, 1},
	{"input_sequence_length", "Input Sequence Length", "tokens", "prompt_tokens", "answered", 1},
	{"output_sequence_length", "Output Sequence Length", "tokens", "output_tokens", "answered", 1},
	{"output_token_throughput", "Output Token Throughput", "tokens/sec", "output_tokens_per_s", NULL, 1},
	{"overall_usage_prompt_cache_read_pct", "Overall Usage Prompt Cache Read %", "%", "cache_share", NULL,
	 100},
	{"request_count", "Request Count", "requests", "answered", NULL, 1},
	{"request_error_rate", "Request Error Rate", "%", "error_share", NULL, 100},
	{"request_throughput", "Request Throughput", "requests/sec", "completed_rate", NULL, 1},
	{"total_isl", "Total Input Sequence Length", "tokens", "prompt_tokens", NULL, 1},
	{"total_osl", "Total Output Sequence Length", "tokens", "output_tokens", NULL, 1},
	{"total_token_throughput", "Total Token Throughput", "tokens/sec", "total_tokens_per_s", NULL, 1},
};
enum { SINGLES = sizeof(single) / sizeof(single[0]) };

/* In milliseconds, as AIPerf. */
static double stat_of(const json_t *values, size_t at, size_t stat)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_%s_s", spread[at].name, stats[stat].part);
	return 1e3 * json_member_number(values, key);
}

static double samples_of(const json_t *values, size_t at)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_samples", spread[at].name);
	return json_member_number(values, key);
}

static double single_of(const json_t *values, size_t at)
{
	const double value = single[at].factor * json_member_number(values, single[at].name);

	return single[at].over ? value / json_member_number(values, single[at].over) : value;
}

static json_t *spread_json(const json_t *values, size_t at)
{
	json_t *one = json_pack("{s:s}", "unit", "ms");

	for (size_t k = 0; k < STATS; k++)
		if (isfinite(stat_of(values, at, k)))
			json_object_set_new(one, stats[k].stat, json_real(stat_of(values, at, k)));
	json_object_set_new(one, "count", json_integer((json_int_t)samples_of(values, at)));
	return one;
}

void load_export_json(struct text *out, const struct view *v)
{
	const struct judgements *j = v->in->judged;
	const json_t *values = load_values(v), *open = v->in->record->open;
	json_t *root = json_pack("{s:s, s:s, s:s, s:i}", "assay_version", json_member_text(open, "program"),
				 "verdict", verdict_name(j->verdict), "reason", v->headline, "exit_code",
				 j->exit_code);
	char *text;

	for (size_t i = 0; i < SPREADS; i++)
		if (samples_of(values, i) > 0)
			json_object_set_new(root, spread[i].tag, spread_json(values, i));
	for (size_t i = 0; i < SINGLES; i++)
		if (isfinite(single_of(values, i)))
			json_object_set_new(
				root, single[i].tag,
				json_pack("{s:s, s:f}", "unit", single[i].unit, "avg", single_of(values, i)));
	text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS));
	text_add(out, text ? text : "");
	text_add(out, "\n");
	out->failed |= !text;
	free(text);
	json_decref(root);
}

static void add_number(struct text *out, double value)
{
	text_add(out, ",");
	if (isfinite(value))
		text_addf(out, "%.*g", DIGITS, value);
}

/* As in AIPerf's file: distributions, an empty line, single values. Counts have no unit in their heading. */
void load_export_csv(struct text *out, const struct view *v)
{
	const json_t *values = load_values(v);

	text_add(out, "Metric");
	for (size_t k = 0; k < STATS; k++)
		text_addf(out, ",%s", stats[k].stat);
	text_add(out, "\n");
	for (size_t i = 0; i < SPREADS; i++) {
		if (!(samples_of(values, i) > 0))
			continue;
		text_addf(out, "%s (ms)", spread[i].head);
		for (size_t k = 0; k < STATS; k++)
			add_number(out, stat_of(values, i, k));
		text_add(out, "\n");
	}
	text_add(out, "\nMetric,Value\n");
	for (size_t i = 0; i < SINGLES; i++) {
		if (!isfinite(single_of(values, i)))
			continue;
		text_add(out, single[i].head);
		if (strcmp(single[i].unit, "requests") != 0)
			text_addf(out, " (%s)", single[i].unit);
		add_number(out, single_of(values, i));
		text_add(out, "\n");
	}
}
