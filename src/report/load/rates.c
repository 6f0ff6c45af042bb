/* SPDX-License-Identifier: Apache-2.0 */
/* Rates and tokens, errors by class, checks of the client, and the GPUs during the load. */
#include <math.h>
#include "core/json/member.h"
#include "report/load/load.h"
#include "report/text/format.h"

/* Help and unit of a field, from the plan of the journal; NULL: it has none of this name. */
static const json_t *field_of(const struct view *v, const char *name)
{
	const json_t *list = json_object_get(json_object_get(v->in->record->plan, "fields"), "load"), *field;
	size_t i;

	json_array_foreach((json_t *)list, i,
			   field) if (!strcmp(json_member_text(field, "name"), name)) return field;
	return NULL;
}

static void add_rate(struct grid *g, const struct view *v, const char *name, const char *shown,
		     const char *unit)
{
	const json_t *values = load_values(v);
	const double value = json_member_number(values, name);
	char key[64], text[96];
	double low, high;

	if (!isfinite(value))
		return;
	grid_cell(g, shown);
	load_value_text(text, sizeof(text), unit, value);
	grid_cell(g, text);
	snprintf(key, sizeof(key), "%s_low", name);
	low = json_member_number(values, key);
	snprintf(key, sizeof(key), "%s_high", name);
	high = json_member_number(values, key);
	text_copy(text, sizeof(text), "");
	if (isfinite(low) && isfinite(high))
		format_range(text, sizeof(text), low, high, unit);
	grid_cell(g, text);
	grid_cell(g, json_member_text(field_of(v, name), "help"));
}

bool load_rates_grid(struct grid *g, const struct view *v)
{
	static const struct {
		const char *name, *shown, *unit;
	} rows[] = {
		{"offered_rate", "offered", "1/s"},
		{"achieved_rate", "achieved", "1/s"},
		{"completed_rate", "completed", "1/s"},
		{"saturated_rate", "saturated", "1/s"},
		{"output_tokens_per_s", "output tokens/s", "token/s"},
		{"total_tokens_per_s", "all tokens/s", "token/s"},
		{"requests", "requests", ""},
		{"answered", "answered", ""},
		{"failed", "failed", ""},
		{"errors_cancelled", "not answered in time", ""},
		{"prompt_tokens", "prompt tokens", ""},
		{"output_tokens", "output tokens", ""},
		{"tokens_per_chunk", "tokens per chunk", ""},
		{"cache_share", "prefix cache", "share"},
		{"in_flight_mean", "in flight, mean", ""},
		{"in_flight_most", "in flight, most", ""},
		{"over_saturated", "over-saturated", ""},
		{"dropped_turns", "turns not sent", ""},
		{"window_s", "measured window", "s"},
	};

	if (!load_values(v))
		return false;
	text_add(&g->title, "Rates and tokens");
	grid_column(g, "", false);
	grid_column(g, "value", true);
	grid_column(g, "95 % interval", true);
	grid_column(g, "what", false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add_rate(g, v, rows[i].name, rows[i].shown, rows[i].unit);
	return g->cells > 0;
}

bool load_errors_grid(struct grid *g, const struct view *v)
{
	const json_t *errors = json_object_get(load_values(v), "errors"), *count;
	const char *word;

	text_add(&g->title, "Requests without an answer");
	grid_column(g, "class", false);
	grid_column(g, "requests", true);
	grid_column(g, "what", false);
	json_object_foreach((json_t *)errors, word, count)
	{
		char key[64], text[32];

		snprintf(key, sizeof(key), "errors_%.40s", word);
		snprintf(text, sizeof(text), "%.0f", json_number_value(count));
		grid_cell(g, word);
		grid_cell(g, text);
		grid_cell(g, json_member_text(field_of(v, key), "help"));
	}
	return g->cells > 0;
}

static void add_check(struct grid *g, const struct view *v, const json_t *check)
{
	const char *name = json_member_text(check, "name");
	const json_t *field = field_of(v, name);
	const char *unit = json_member_text(field, "unit");
	const size_t size = strlen(name);
	char text[48];

	if ((size > 6 && !strcmp(name + size - 6, "_share")) ||
	    (size > 10 && !strcmp(name + size - 10, "_deviation")))
		unit = "share";
	grid_cell(g, name);
	load_value_text(text, sizeof(text), unit, json_member_number(check, "value"));
	grid_cell(g, text);
	load_value_text(text, sizeof(text), unit, json_member_number(check, "limit"));
	grid_cell(g, text);
	grid_cell(g, json_is_false(json_object_get(check, "kept")) ? "exceeded" : "kept");
	grid_cell(g, json_member_text(field, "help"));
}

/* Appends the texts of a list as sentences; the note of a grid has no full stop at its end. */
static void add_sentences(struct text *out, const json_t *list)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		const char *text = json_string_value(one);
		const size_t size = text ? strlen(text) : 0;

		text_add(out, out->size ? ". " : "");
		text_add_bytes(out, text ? text : "", size && text[size - 1] == '.' ? size - 1 : size);
	}
}

bool load_checks_grid(struct grid *g, const struct view *v)
{
	const json_t *values = load_values(v), *checks = json_object_get(values, "checks"), *check;
	size_t i;

	text_add(&g->title, "Checks of the client and of the answers");
	grid_column(g, "check", false);
	grid_column(g, "value", true);
	grid_column(g, "limit", true);
	grid_column(g, "result", false);
	grid_column(g, "what", false);
	json_array_foreach((json_t *)checks, i, check) add_check(g, v, check);
	add_sentences(&g->note, json_object_get(values, "untrusted"));
	add_sentences(&g->note, json_object_get(values, "notes"));
	return g->cells > 0;
}

/* The part of the run in which the load was measured. */
static bool window_of(const struct view *v, uint64_t *t0_ns, uint64_t *t1_ns)
{
	const json_t *curves = json_object_get(load_values(v), "curves");
	const struct record_phase *window = record_phase(load_case(v), "window");

	if (window) {
		*t0_ns = window->t0_ns;
		*t1_ns = window->t1_ns;
		return true;
	}
	return load_time_ns(v, json_member_number(curves, "from_s"), t0_ns) &&
	       load_time_ns(v, json_member_number(curves, "to_s"), t1_ns) && *t0_ns < *t1_ns;
}

static bool span_of(const struct view *v, const char *source, const char *signal, uint64_t t0_ns,
		    uint64_t t1_ns, struct span *out)
{
	const struct series *s = record_series(v->in->record, source, signal);

	return s && !series_over(s, t0_ns, t1_ns, out);
}

static void span_cell(struct grid *g, bool known, double value, const char *format)
{
	char text[64] = FORMAT_NONE;

	if (known && isfinite(value))
		snprintf(text, sizeof(text), format, value);
	grid_cell(g, text);
}

static void quantity_cell(struct grid *g, bool known, double value, const char *unit)
{
	char text[64] = FORMAT_NONE;

	if (known)
		format_quantity(text, sizeof(text), value, 0, unit);
	grid_cell(g, text);
}

static void add_gpu(struct grid *g, const struct view *v, const char *source, uint64_t t0_ns, uint64_t t1_ns)
{
	const struct record_phase *idle = record_phase(load_case(v), "idle");
	struct span s;
	char words[160] = FORMAT_NONE;
	bool known;

	grid_cell(g, source + strlen("gpu:"));
	known = idle && span_of(v, source, "power_w", idle->t0_ns, idle->t1_ns, &s);
	span_cell(g, known, known ? s.mean : 0, "%.0f W");
	known = span_of(v, source, "power_w", t0_ns, t1_ns, &s);
	span_cell(g, known, known ? s.mean : 0, "%.0f W");
	span_cell(g, known, known ? s.max : 0, "%.0f W");
	known = span_of(v, source, "sm_clock_mhz", t0_ns, t1_ns, &s);
	span_cell(g, known, known ? s.mean : 0, "%.0f MHz");
	known = span_of(v, source, "temperature_c", t0_ns, t1_ns, &s);
	span_cell(g, known, known ? s.max : 0, "%.0f °C");
	known = span_of(v, source, "memory_used_bytes", t0_ns, t1_ns, &s);
	quantity_cell(g, known, known ? s.max : 0, "B");
	known = span_of(v, source, "gpm_nvlink_tx_rate", t0_ns, t1_ns, &s);
	quantity_cell(g, known, known ? s.mean : 0, "B/s");
	if (span_of(v, source, "clock_reasons", t0_ns, t1_ns, &s))
		format_clock_reasons(words, sizeof(words), s.bits_or);
	grid_cell(g, words);
}

/* Readings of another machine are cut at the window to within the error of its clock. */
static void note_node(struct grid *g, const struct view *v)
{
	const struct record_phase *node = record_phase(load_case(v), "node");
	const double error_s = node ? json_member_number(node->values, "clock_error_s") : (double)NAN;
	char text[48];

	if (!isfinite(error_s))
		return;
	load_value_text(text, sizeof(text), "s", error_s);
	text_addf(&g->note,
		  "GPUs of the server's node. The difference of its clock to the client's is known to ±%s",
		  text);
}

bool load_gpus_grid(struct grid *g, const struct view *v)
{
	static const char *const heads[] = {"GPU",	   "idle",	  "mean power",
					    "most power",  "clock",	  "temperature",
					    "most memory", "NVLink sent", "limits of the clock"};
	const struct record *r = v->in->record;
	uint64_t t0_ns, t1_ns;

	if (!load_case(v) || !window_of(v, &t0_ns, &t1_ns))
		return false;
	text_add(&g->title, "GPUs in the measured window");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], i && i + 1 < sizeof(heads) / sizeof(heads[0]));
	for (size_t i = 0; i < r->series_count; i++)
		if (!strncmp(r->series[i].source, "gpu:", 4) && !strcmp(r->series[i].signal, "power_w"))
			add_gpu(g, v, r->series[i].source, t0_ns, t1_ns);
	note_node(g, v);
	return g->cells > 0;
}

static const char *silence_words(const char *cause)
{
	static const struct {
		const char *cause, *words;
	} all[] = {
		{"silent", "the node or the network was gone; the load test continued"},
		{"ended", "ssh or the assay on the node ended"},
		{"no answer", "the assay on the node never answered"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].cause, cause))
			return all[i].words;
	return FORMAT_NONE;
}

bool load_silences_grid(struct grid *g, const struct view *v)
{
	const json_t *list = json_object_get(load_values(v), "node_silences"), *one;
	size_t i;

	text_add(&g->title, "Times without telemetry of the server's node");
	grid_column(g, "from", true);
	grid_column(g, "length", true);
	grid_column(g, "reason", false);
	json_array_foreach((json_t *)list, i, one)
	{
		char text[48];

		load_value_text(text, sizeof(text), "s", json_member_number(one, "from_s"));
		grid_cell(g, text);
		load_value_text(text, sizeof(text), "s", json_member_number(one, "seconds"));
		grid_cell(g, text);
		grid_cell(g, silence_words(json_member_text(one, "cause")));
	}
	text_add(&g->note,
		 "Counted from the start of the sampler on the node. The power in these times is not known");
	return g->cells > 0;
}
