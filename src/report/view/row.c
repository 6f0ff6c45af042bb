/* SPDX-License-Identifier: Apache-2.0 */
/* A case as every renderer shows it: title, figure, expectation, conditions, reason. */
#include <math.h>
#include <stddef.h>
#include "report/view/build.h"
#include "report/text/format.h"

bool view_number(const struct view_row *row, const char *field, double *out)
{
	return row->phase && record_number(row->phase, field, out) && isfinite(*out);
}

bool view_estimate(const struct view_row *row)
{
	return row->j->bound.from == BOUND_CEILING && !strcmp(row->c->limit, "memory");
}

static void expected_text(struct view_row *row)
{
	const struct judgement *j = row->j;
	char value[48];

	row->expected[0] = '\0';
	if (j->has_band && isfinite(j->band.low) && isfinite(j->band.high) && j->band.high > 0) {
		format_range(row->expected, sizeof(row->expected), j->band.low, j->band.high, j->figure_unit);
	} else if (j->bound.from != BOUND_NONE && j->bound.value > 0 && isfinite(j->bound.value)) {
		format_quantity(value, sizeof(value), j->bound.value, 0, j->figure_unit);
		snprintf(row->expected, sizeof(row->expected), "%s %s", view_estimate(row) ? "≈" : "≤",
			 value);
	}
}

static void conditions_text(struct view_row *row)
{
	double value;

	if (!row->j->clock_recovered && view_number(row, "clock_hz", &value))
		snprintf(row->clock, sizeof(row->clock), "%.0f MHz", value / 1e6);
	else if (view_number(row, "clock_nvml_hz", &value))
		snprintf(row->clock, sizeof(row->clock), "~%.0f MHz", value / 1e6);
	if (view_number(row, "power_w", &value))
		snprintf(row->power, sizeof(row->power), "%.0f W", value);
	else if (view_number(row, "power_integral_w", &value))
		snprintf(row->power, sizeof(row->power), "~%.0f W", value);
	if (view_number(row, "temperature_c", &value))
		snprintf(row->temperature, sizeof(row->temperature), "%.0f °C", value);
}

static bool any_begins(const struct view *v, size_t column, const char *sign)
{
	for (size_t i = 0; i < v->row_count; i++)
		if (view_tabled(&v->rows[i]) &&
		    !strncmp((const char *)&v->rows[i] + column, sign, strlen(sign)))
			return true;
	return false;
}

void view_signs(struct text *out, const struct view *v)
{
	static const struct {
		const char *sign, *means;
		size_t column;
	} signs[] = {
		{"≤", "upper bound, from the hardware or from a ceiling measured on this machine",
		 offsetof(struct view_row, expected)},
		{"≈", "rate of a plain loop with the same traffic, an estimate that a case may exceed",
		 offsetof(struct view_row, expected)},
		{"~", "reported by the driver, not measured in the window", offsetof(struct view_row, clock)},
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (any_begins(v, signs[i].column, signs[i].sign))
			text_addf(out, "%s%s: %s", out->size ? "; " : "", signs[i].sign, signs[i].means);
}

/* The phase to show: the judged phase, else the first phase with values. */
static const struct record_phase *judged_phase(const struct record_case *c, const struct judgement *j)
{
	static const char *const order[] = {"sustained", "burst", "once", "cold"};
	const struct record_phase *p = j->phase[0] ? record_phase(c, j->phase) : NULL;

	for (size_t i = 0; !p && i < sizeof(order) / sizeof(order[0]); i++) {
		p = record_phase(c, order[i]);
		if (p && !p->values)
			p = NULL;
	}
	return p;
}

const char *view_low_confidence(const struct view *v)
{
	const char *text = "";

	for (size_t i = 0; i < v->row_count; i++) {
		if (v->rows[i].j->cause != CAUSE_LOW_CONFIDENCE && !v->rows[i].j->low_confidence)
			continue;
		if (strcmp(v->rows[i].c->target, "cpu"))
			return " Low confidence: the expected range comes from few GPUs.";
		text = " Low confidence: the expectation comes from few machines.";
	}
	return text;
}

/* A ceiling measured in this run is no bound if the figure is above it. Then no share is shown. */
static bool no_bound(const struct view_row *row)
{
	return row->j->bound.from == BOUND_CEILING && row->j->share_of_bound > 1.0005;
}

/* A share above 100 % is always explained. The judge marks physically impossible figures as untrusted. */
static const char *over_bound(const struct view_row *row)
{
	const struct judgement *j = row->j;
	double efficiency = j->efficiency_held;

	if (!(j->share_of_bound > 1.0005) || (no_bound(row) && j->verdict != VERDICT_UNTRUSTED))
		return "";
	if (j->verdict == VERDICT_UNTRUSTED || j->verdict == VERDICT_ERROR)
		return "do not use the figure";
	if (efficiency > 0 && efficiency < j->share_of_bound)
		return "the clock was above its reported maximum";
	return "within the bound's tolerance";
}

/* Appends the kernels that the library chose: "FP32 GEMM 2048, OpenBLAS (SkylakeX)". */
static void add_kernels(struct view_row *row, const struct record_case *c)
{
	const struct record_phase *once = record_phase(c, "once");
	const char *kernels = once && !strcmp(c->probe, "gemm") ? record_text(once, "kernels") : NULL;
	size_t used = strlen(row->base);

	if (kernels && *kernels)
		snprintf(row->base + used, sizeof(row->base) - used, " (%.31s)", kernels);
}

enum status view_row_build(struct view_row *row, struct view *v, const struct record_case *c,
			   const struct judgement *j, struct error *err)
{
	const char *reason = j->reason[0] ? j->reason : c->skip_reason ? c->skip_reason : "";
	struct text t = {0};

	row->c = c;
	row->j = j;
	pseudonym_map_copy(&v->names, row->where, sizeof(row->where), c->where);
	row->phase = c->skipped ? NULL : judged_phase(c, j);
	row->aside = c->skipped && j->verdict == VERDICT_SKIP && c->skip_cause == CAUSE_NOT_ASKED;
	row->headline = row->phase && j->has_figure && isfinite(j->figure) && !c->reading &&
			!strcmp(c->phases, "headline");
	format_title(row->base, sizeof(row->base), c);
	add_kernels(row, c);
	if (json_object_get(c->plan, "again"))
		text_copy(row->base + strlen(row->base), sizeof(row->base) - strlen(row->base),
			  ", second round");
	if (record_tries(c))
		text_copy(row->base + strlen(row->base), sizeof(row->base) - strlen(row->base),
			  ", other kernels");
	else if (record_is_isolation(c))
		text_copy(row->base + strlen(row->base), sizeof(row->base) - strlen(row->base),
			  ", isolation search");
	text_copy(row->title, sizeof(row->title), row->base);
	if (j->has_figure && isfinite(j->figure))
		format_quantity(row->figure, sizeof(row->figure), j->figure, 0, j->figure_unit);
	expected_text(row);
	if (j->share_of_bound > 0 && isfinite(j->share_of_bound) && !no_bound(row))
		format_share(row->share, sizeof(row->share), j->share_of_bound);
	row->over = over_bound(row);
	conditions_text(row);
	pseudonym_map_add(&v->names, &t, reason[0] ? reason : c->text);
	if (t.failed)
		goto out;
	row->reason = t.data ? t.data : strdup("");
out:
	if (t.failed)
		text_release(&t);
	return row->reason ? STATUS_OK
			   : error_set(err, STATUS_NO_RESOURCE, "no memory for the report's rows");
}

/* True if another case of this target has the same title and another value of this option. */
static bool differs(const struct view *v, const struct view_row *row, const char *key, const char *value)
{
	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *other = &v->rows[i];
		const char *theirs;

		if (other == row || strcmp(other->base, row->base) || strcmp(other->c->where, row->c->where))
			continue;
		theirs = record_option(other->c, key);
		if (theirs && strcmp(theirs, value))
			return true;
	}
	return false;
}

void view_distinguish(struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++) {
		struct view_row *row = &v->rows[i];
		const char *key;
		json_t *value;

		json_object_foreach(json_object_get(row->c->plan, "options"), key, value)
		{
			const char *mine = json_string_value(value);
			size_t used = strlen(row->title);
			bool more = used > strlen(row->base); /* one bracket for all options */

			if (mine && differs(v, row, key, mine))
				snprintf(row->title + used - more, sizeof(row->title) - used + more,
					 more ? ", %s %s)" : " (%s %s)", key, mine);
		}
	}
}
