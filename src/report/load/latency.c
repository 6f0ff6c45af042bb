/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies with their intervals, limits and goodput, and the stages of a sweep. */
#include <math.h>
#include "core/json/member.h"
#include "judge/case/verdict.h"
#include "report/load/load.h"
#include "report/text/format.h"

static const struct {
	const char *name, *shown;
} latencies[] = {
	{"ttft", "TTFT, from the schedule"},
	{"ttft_send", "TTFT, from the send"},
	{"tpot", "TPOT"},
	{"itl", "ITL"},
	{"chunk_gap", "gap between chunks"},
	{"e2e", "E2E, from the schedule"},
	{"e2e_send", "E2E, from the send"},
};
static const struct {
	const char *name, *shown;
} parts[] = {
	{"p50", "P50"}, {"p90", "P90"}, {"p95", "P95"}, {"p99", "P99"}, {"p999", "P99.9"},
};

static double part_of(const json_t *values, const char *name, const char *part, const char *end)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_%s%s", name, part, end);
	return json_member_number(values, key);
}

/* "18.2 ms (17.9–18.6 ms)" */
static void interval_cell(struct grid *g, double value, double low, double high, const char *unit)
{
	char is[48], range[96], cell[160];

	load_value_text(is, sizeof(is), unit, value);
	if (!isfinite(value) || !isfinite(low) || !isfinite(high)) {
		grid_cell(g, is);
		return;
	}
	format_range(range, sizeof(range), low, high, unit);
	snprintf(cell, sizeof(cell), "%s (%s)", is, range);
	grid_cell(g, cell);
}

static void number_cell(struct grid *g, const char *unit, double value)
{
	char text[48];

	load_value_text(text, sizeof(text), unit, value);
	grid_cell(g, text);
}

bool load_latency_grid(struct grid *g, const struct view *v)
{
	const json_t *values = load_values(v);

	if (!values)
		return false;
	text_add(&g->title, "Latencies");
	text_add(&g->note,
		 "In brackets: the 95 % interval. A percentile without enough samples is left out. From the "
		 "schedule: since the request was due, so waiting counts. TPOT: time per output token "
		 "after the first, of each request. ITL: time between two tokens, all requests pooled");
	g->row_heads = true;
	grid_column(g, "", false);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		grid_column(g, parts[i].shown, true);
	grid_column(g, "max", true);
	grid_column(g, "samples", true);
	for (size_t i = 0; i < sizeof(latencies) / sizeof(latencies[0]); i++) {
		const char *name = latencies[i].name;

		if (!(part_of(values, name, "samples", "") > 0))
			continue;
		grid_cell(g, latencies[i].shown);
		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
			interval_cell(g, part_of(values, name, parts[k].name, "_s"),
				      part_of(values, name, parts[k].name, "_low_s"),
				      part_of(values, name, parts[k].name, "_high_s"), "s");
		number_cell(g, "s", part_of(values, name, "max", "_s"));
		number_cell(g, "", part_of(values, name, "samples", ""));
	}
	return g->cells > 0;
}

/* "TTFT 200 ms, TPOT 50 ms" */
static void limits_text(char *out, size_t size, const json_t *set)
{
	static const struct {
		const char *name, *shown;
	} of[] = {{"ttft_s", "TTFT"}, {"tpot_s", "TPOT"}, {"e2e_s", "E2E"}};
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]) && used < size; i++) {
		const double limit = json_member_number(set, of[i].name);
		char text[48];

		if (!(limit > 0))
			continue;
		load_value_text(text, sizeof(text), "s", limit);
		used += (size_t)snprintf(out + used, size - used, "%s%s %s", used ? ", " : "", of[i].shown,
					 text);
	}
}

static void share_range(struct grid *g, const json_t *set)
{
	const double low = json_member_number(set, "share_low"), high = json_member_number(set, "share_high");
	char text[64];

	snprintf(text, sizeof(text), FORMAT_NONE);
	if (isfinite(low) && isfinite(high))
		snprintf(text, sizeof(text), "%.2f–%.2f %%", 100 * low, 100 * high);
	grid_cell(g, text);
}

bool load_slo_grid(struct grid *g, const struct view *v)
{
	static const char *const heads[] = {"set",	     "limits",	 "attainment",
					    "95 % interval", "required", "goodput"};
	static const char *const words[] = {
		[SLO_MET] = "met", [SLO_MISSED] = "missed", [SLO_UNDECIDED] = "undecided"};
	const json_t *list = json_object_get(load_values(v), "slo"), *set;
	size_t i;

	text_add(&g->title, "Limits and goodput");
	text_add(&g->note,
		 "Attainment: share of the requests that met all limits of the set; failed requests did not. "
		 "Undecided: the interval holds the required share");
	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], i > 1);
	grid_column(g, "result", false);
	json_array_foreach((json_t *)list, i, set)
	{
		char limits[128];

		limits_text(limits, sizeof(limits), set);
		grid_cell(g, json_member_text(set, "name"));
		grid_cell(g, limits);
		number_cell(g, "share", json_member_number(set, "share"));
		share_range(g, set);
		number_cell(g, "share", json_member_number(set, "attainment"));
		number_cell(g, "1/s", json_member_number(set, "goodput"));
		grid_cell(g, words[slo_state_of(set)]);
	}
	return g->cells > 0;
}

static const char *stage_met(const json_t *values)
{
	const json_t *list = json_object_get(values, "slo"), *set;
	bool met = json_array_size(list) > 0;
	size_t i;

	json_array_foreach((json_t *)list, i, set) met &= json_is_true(json_object_get(set, "met"));
	return !json_array_size(list) ? FORMAT_NONE : met ? "yes" : "no";
}

static void add_stage(struct grid *g, const struct record_phase *p)
{
	const double rate = json_member_number(p->values, "offered_rate");
	char text[48];

	grid_cell(g, p->name + strlen("stage "));
	load_value_text(text, sizeof(text), "1/s", rate);
	grid_cell(g, rate > 0 ? text : "closed loop");
	number_cell(g, "1/s", json_member_number(p->values, "achieved_rate"));
	number_cell(g, "1/s", json_member_number(p->values, "completed_rate"));
	number_cell(g, "", json_member_number(p->values, "output_tokens_per_s"));
	number_cell(g, "s", json_member_number(p->values, "ttft_p50_s"));
	number_cell(g, "s", json_member_number(p->values, "ttft_p99_s"));
	number_cell(g, "s", json_member_number(p->values, "tpot_p50_s"));
	number_cell(g, "share", json_member_number(p->values, "slo_share"));
	grid_cell(g, stage_met(p->values));
}

bool load_stages_grid(struct grid *g, const struct view *v)
{
	static const char *const heads[] = {"stage",	"rate",	    "achieved", "completed", "tokens/s",
					    "TTFT P50", "TTFT P99", "TPOT P50", "attainment"};
	const struct record_case *c = load_case(v);
	char words[240];

	text_add(&g->title, "Stages of the sweep");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], true);
	grid_column(g, "met", false);
	for (size_t i = 0; c && i < c->phase_count; i++)
		if (!strncmp(c->phase[i].name, "stage ", 6) && c->phase[i].values)
			add_stage(g, &c->phase[i]);
	if (g->cells && json_member_number(load_values(v), "sweep_met_rate") > 0) {
		sweep_words(words, sizeof(words), load_values(v));
		text_addf(&g->note, "T%s", words + 1); /* it begins a sentence */
	}
	return g->cells > 0;
}
