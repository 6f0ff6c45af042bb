/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results.csv: one row per case and measured phase. The columns of the CUTLASS profiler come first, under its
 * names, so that tools for its files can read this one; assay's columns follow. One difference: a GB is 1e9
 * bytes here and 2^30 there. Runtime is in ms in both.
 */
#include <inttypes.h>
#include <math.h>
#include "core/text/utf8.h"
#include "judge/case/context.h"
#include "report/text/basis.h"
#include "report/files/merge.h"
#include "report/report.h"
#include "report/text/format.h"

/* Appends a text quoted by RFC 4180, with control characters as spaces. A leading = + - @ would be a formula
 * in a spreadsheet, so it gets a quote mark before it. */
void csv_text(struct text *out, const char *s)
{
	size_t size;

	text_add(out, "\"");
	if (s[0] && strchr("=+-@\t\r", s[0]))
		text_add(out, "'");
	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size) {
		if (code == '"')
			text_add(out, "\"\"");
		else if (utf8_is_control(code))
			text_add(out, " ");
		else if (code == UTF8_REPLACEMENT)
			text_add(out, "\xef\xbf\xbd");
		else
			text_add_bytes(out, s, size);
	}
	text_add(out, "\"");
}

/* One line of the file. `phase` NULL: nothing was measured. */
struct line {
	const struct view *v;
	const struct view_row *row;
	const struct record_phase *phase;
};

static const char *option(const struct line *l, const char *name)
{
	const char *text = record_option(l->row->c, name);

	return text ? text : "";
}

/* Counts are printed exactly, whatever their length: a double represents every integer below 2^53. */
static void csv_number(struct text *out, double value)
{
	if (isfinite(value))
		text_addf(out, value == trunc(value) && fabs(value) < 0x1p53 ? "%.0f" : "%.10g", value);
}

static bool value_of(const struct line *l, const char *field, double *out)
{
	return l->phase && record_number(l->phase, field, out) && isfinite(*out);
}

static double bytes_of(const struct line *l)
{
	return l->row->c->work_read + l->row->c->work_write;
}

static void col_operation_kind(struct text *out, const struct line *l)
{
	csv_text(out, l->row->c->probe);
}

static void col_provider(struct text *out, const struct line *l)
{
	csv_text(out, format_engine(l->row->c->engine));
}

static void col_operation(struct text *out, const struct line *l)
{
	const char *variant = l->phase ? record_text(l->phase, "variant") : NULL;

	if (!variant) /* a phase without a variant has that of the case */
		variant = case_text(l->row->c, "variant");
	csv_text(out, variant ? variant : l->row->title);
}

/* The profiler's words for the result: passed, incorrect, not_verified, not_run, failed. A case is verified
 * once, in a separate phase, and the result holds for all of its rows. */
static void col_disposition(struct text *out, const struct line *l)
{
	const struct record_case *c = l->row->c;
	double wrong;

	if (c->skipped || !c->begun)
		csv_text(out, "not_run");
	else if (l->row->j->cause == CAUSE_WRONG_RESULT || l->row->j->cause == CAUSE_NAN ||
		 c->status == STATUS_MISMATCH)
		csv_text(out, "incorrect");
	else if (c->ending != ENDING_DONE || c->status != STATUS_OK)
		csv_text(out, "failed");
	else
		csv_text(out, !case_number(c, "wrong_count", &wrong) ? "not_verified"
			      : wrong > 0			     ? "incorrect"
								     : "passed");
}

static void col_status(struct text *out, const struct line *l)
{
	const struct record_case *c = l->row->c;

	if (c->skipped)
		csv_text(out, c->skip_status == STATUS_UNSUPPORTED ? "not_supported"
								   : status_name(c->skip_status));
	else if (c->ending != ENDING_DONE)
		csv_text(out, ending_name(c->ending));
	else
		csv_text(out, c->status == STATUS_OK ? "success" : status_name(c->status));
}

static void operand(struct text *out, const struct line *l, const char *transpose)
{
	char word[64];

	if (strcmp(l->row->c->probe, "gemm"))
		return;
	snprintf(word, sizeof(word), "%s:%s", option(l, "type"),
		 !strcmp(option(l, transpose), "t") ? "column" : "row");
	csv_text(out, word);
}

static void col_a(struct text *out, const struct line *l)
{
	operand(out, l, "ta");
}

static void col_b(struct text *out, const struct line *l)
{
	operand(out, l, "tb");
}

static void col_bytes(struct text *out, const struct line *l)
{
	csv_number(out, bytes_of(l));
}

static void col_flops(struct text *out, const struct line *l)
{
	csv_number(out, l->row->c->work_flop);
}

static void col_intensity(struct text *out, const struct line *l)
{
	if (bytes_of(l) > 0)
		csv_number(out, l->row->c->work_flop / bytes_of(l));
}

static bool mean_ns(const struct line *l, double *ns)
{
	return value_of(l, "time_ns_mean", ns) || value_of(l, "time_ns_median", ns);
}

static void col_runtime(struct text *out, const struct line *l)
{
	double ns;

	if (mean_ns(l, &ns))
		csv_number(out, ns * 1e-6);
}

static void rate(struct text *out, const struct line *l, const char *field, double work)
{
	double value, ns;

	if (value_of(l, field, &value))
		csv_number(out, value * 1e-9);
	else if (mean_ns(l, &ns) && ns > 0 && work > 0)
		csv_number(out, work / ns);
}

static void col_gbps(struct text *out, const struct line *l)
{
	rate(out, l, "byte_rate", bytes_of(l));
}

static void col_gflops(struct text *out, const struct line *l)
{
	rate(out, l, "flop_rate", l->row->c->work_flop);
}

static void col_case(struct text *out, const struct line *l)
{
	text_addf(out, "%u", l->row->c->id);
}

static void col_target(struct text *out, const struct line *l)
{
	csv_text(out, l->row->where);
}

/* The node, so that rows of several machines stay distinguishable in a merged file. */
static void col_node(struct text *out, const struct line *l)
{
	const struct record *r = l->v->in->record;
	const char *node = json_string_value(json_object_get(r->open, "node"));
	char shown[128];

	if (r->node_count)
		node = r->node[l->row->c->node].name;
	pseudonym_map_copy(&l->v->names, shown, sizeof(shown), node ? node : "");
	csv_text(out, shown);
}

static void col_device(struct text *out, const struct line *l)
{
	char name[256];
	const struct gpu *gpu;

	view_target_name(name, sizeof(name), l->v, l->row->c, &gpu);
	csv_text(out, gpu ? gpu->name : name);
}

static void col_key(struct text *out, const struct line *l)
{
	csv_text(out, l->row->c->key);
}

static void col_phase(struct text *out, const struct line *l)
{
	csv_text(out, l->phase ? l->phase->name : "");
}

static void col_judged(struct text *out, const struct line *l)
{
	text_add(out, l->phase && l->phase == l->row->phase ? "1" : "0");
}

static void col_verdict(struct text *out, const struct line *l)
{
	csv_text(out, verdict_name(l->row->j->verdict));
}

static void col_cause(struct text *out, const struct line *l)
{
	csv_text(out, cause_name(l->row->j->cause));
}

static void col_reason(struct text *out, const struct line *l)
{
	csv_text(out, l->row->reason);
}

static void col_bound(struct text *out, const struct line *l)
{
	if (l->row->j->bound.from != BOUND_NONE)
		csv_number(out, l->row->j->bound.value);
}

static void col_low(struct text *out, const struct line *l)
{
	if (l->row->j->has_band)
		csv_number(out, l->row->j->band.low);
}

static void col_high(struct text *out, const struct line *l)
{
	if (l->row->j->has_band)
		csv_number(out, l->row->j->band.high);
}

static void col_judged_by(struct text *out, const struct line *l)
{
	if (l->row->j->judged_by != JUDGED_NOTHING)
		csv_text(out, judged_by_name(l->row->j->judged_by));
}

static void col_confidence(struct text *out, const struct line *l)
{
	const char *word = basis_confidence(l->row->j);

	if (word[0])
		csv_text(out, word);
}

static void col_basis(struct text *out, const struct line *l)
{
	struct text words = {0};

	basis_add(&words, l->row->j);
	if (words.size)
		csv_text(out, text_str(&words));
	text_release(&words);
}

static void col_share(struct text *out, const struct line *l)
{
	if (l->row->j->share_of_bound > 0)
		csv_number(out, l->row->j->share_of_bound);
}

static void col_unexplained(struct text *out, const struct line *l)
{
	if (l->row->j->unexplained > 0)
		csv_number(out, l->row->j->unexplained);
}

static void col_reasons(struct text *out, const struct line *l)
{
	char words[160];
	double bits;

	if (!value_of(l, "clock_reasons_or", &bits))
		return;
	format_clock_reasons(words, sizeof(words), (uint64_t)bits);
	csv_text(out, words);
}

/* A column is printed by `add`, or is an option by name, or a field of the phase times `scale`. */
static const struct csv_column {
	const char *name;
	void (*add)(struct text *out, const struct line *l);
	const char *option, *field;
	double scale;
} columns[] = {
	{"Problem", .add = col_case},
	{"Provider", .add = col_provider},
	{"OperationKind", .add = col_operation_kind},
	{"Operation", .add = col_operation},
	{"Disposition", .add = col_disposition},
	{"Status", .add = col_status},
	{"m", .option = "m"},
	{"n", .option = "n"},
	{"k", .option = "k"},
	{"A", .add = col_a},
	{"B", .add = col_b},
	{"batch_count", .option = "batch"},
	{"op", .option = "op"},
	{"size", .option = "size"},
	{"type", .option = "type"},
	{"Bytes", .add = col_bytes},
	{"Flops", .add = col_flops},
	{"Flops/Byte", .add = col_intensity},
	{"Runtime", .add = col_runtime},
	{"GB/s", .add = col_gbps},
	{"GFLOPs", .add = col_gflops},
	{"Target", .add = col_target},
	{"Phase", .add = col_phase},
	{"Judged", .add = col_judged},
	{"Verdict", .add = col_verdict},
	{"Cause", .add = col_cause},
	{"Bound", .add = col_bound},
	{"BandLow", .add = col_low},
	{"BandHigh", .add = col_high},
	{"ShareOfBound", .add = col_share},
	{"Unexplained", .add = col_unexplained},
	{"ClockMHz", .field = "clock_hz", .scale = 1e-6},
	{"ClockNvmlMHz", .field = "clock_nvml_hz", .scale = 1e-6},
	{"MemoryClockMHz", .field = "memory_clock_hz", .scale = 1e-6},
	{"PowerW", .field = "power_w", .scale = 1},
	{"EnergyJ", .field = "energy_j", .scale = 1},
	{"TemperatureC", .field = "temperature_c", .scale = 1},
	{"MemoryTemperatureC", .field = "temperature_memory_c", .scale = 1},
	{"ClockReasons", .add = col_reasons},
	{"PowerLimitedShare", .field = "violation_power_share", .scale = 1},
	{"ThermalLimitedShare", .field = "violation_thermal_share", .scale = 1},
	{"TensorActive", .field = "tensor_active_share", .scale = 1},
	{"DramActive", .field = "dram_active_share", .scale = 1},
	{"TimeMedianNs", .field = "time_ns_median", .scale = 1},
	{"TimeMinNs", .field = "time_ns_min", .scale = 1},
	{"TimeP05Ns", .field = "time_ns_p05", .scale = 1},
	{"TimeP99Ns", .field = "time_ns_p99", .scale = 1},
	{"IterationP50Ns", .field = "iteration_ns_p50", .scale = 1},
	{"IterationP99Ns", .field = "iteration_ns_p99", .scale = 1},
	{"TimeMaxNs", .field = "time_ns_max", .scale = 1},
	{"HalfWidthShare", .field = "half_width_share", .scale = 1},
	{"Samples", .field = "samples", .scale = 1},
	{"Settled", .field = "settled", .scale = 1},
	{"WrongCount", .field = "wrong_count", .scale = 1},
	{"WrongChecked", .field = "wrong_checked", .scale = 1},
	{"Node", .add = col_node},
	{"Device", .add = col_device},
	{"Key", .add = col_key},
	{"Reason", .add = col_reason},
	{"JudgedBy", .add = col_judged_by},
	{"Confidence", .add = col_confidence},
	{"Basis", .add = col_basis},
	{"IterationP90Ns", .field = "iteration_ns_p90", .scale = 1},
	{"IterationMaxNs", .field = "iteration_ns_max", .scale = 1},
	{"IterationSamples", .field = "iteration_samples", .scale = 1},
	{"IterationMarkNs", .field = "iteration_mark_ns", .scale = 1},
	{"IterationStarvedShare", .field = "iteration_starved_share", .scale = 1},
};

static void add_line(struct text *out, const struct line *l)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const struct csv_column *c = &columns[i];
		double value;

		if (i)
			text_add(out, ",");
		if (c->add)
			c->add(out, l);
		else if (c->option && option(l, c->option)[0])
			csv_text(out, option(l, c->option));
		else if (c->field && value_of(l, c->field, &value))
			csv_number(out, value * c->scale);
	}
	text_add(out, "\r\n");
}

void csv_heading(struct text *out)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		text_addf(out, "%s%s", i ? "," : "", columns[i].name);
	text_add(out, "\r\n");
}

void csv_lines(struct text *out, const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++) {
		const struct record_case *c = v->rows[i].c;
		bool any = false;

		for (size_t k = 0; k < c->phase_count; k++)
			if (c->phase[k].values && json_object_size(c->phase[k].values)) {
				add_line(out, &(struct line){v, &v->rows[i], &c->phase[k]});
				any = true;
			}
		if (!any)
			add_line(out, &(struct line){v, &v->rows[i], NULL});
	}
}

void report_csv(struct text *out, const struct report_input *in)
{
	struct view v;

	if (view_build(&v, in, NULL)) {
		out->failed = 1;
		return;
	}
	csv_heading(out);
	csv_lines(out, &v);
	view_release(&v);
}
