/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/page/page.h"

#include <math.h>

#include "watch/page/listing.h"

#define AGE_LEAST_S 3.0 /* a loaded machine may delay a reading by seconds */

const char *const page_names_words[] = {"assay", "dcgm", "both", NULL};

struct page {
	struct text *out;
	enum page_format format;
	const struct watch_state *state;
	const struct page_spec *spec;
	struct page_own *own;
	struct listing list;
	double age_limit;
	size_t series;
};

double page_age_limit(double interval)
{
	return fmax(3 * interval, AGE_LEAST_S);
}

const char *page_content_type(enum page_format format)
{
	return format == PAGE_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
					  : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- families ---- */

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

static void add_help(struct page *p, const char *help)
{
	for (; *help; help++) {
		if (*help == '\\' || (*help == '"' && p->format == PAGE_OPENMETRICS))
			text_addf(p->out, "\\%c", *help);
		else
			text_add_bytes(p->out, help, 1);
	}
}

/* OpenMetrics names a family of counters without "_total". A counter without it (DCGM's) is of unknown type
 * there. */
static void add_head(struct page *p, const char *name, enum metric_type type, const char *unit,
		     const char *help)
{
	bool open = p->format == PAGE_OPENMETRICS, total = ends_with(name, "_total");
	int size = (int)(open && type == METRIC_COUNTER && total ? strlen(name) - strlen("_total")
								 : strlen(name));
	const char *word = type != METRIC_COUNTER ? "gauge" : !open || total ? "counter" : "unknown";
	size_t unit_size = strlen(unit);

	text_addf(p->out, "# HELP %.*s ", size, name);
	add_help(p, help);
	text_addf(p->out, "\n# TYPE %.*s %s\n", size, name, word);
	if (open && (size_t)size > unit_size + 1 && name[(size_t)size - unit_size - 1] == '_' &&
	    !strncmp(name + (size_t)size - unit_size, unit, unit_size))
		text_addf(p->out, "# UNIT %.*s %s\n", size, name, unit);
}

/* Adds a series. `labels` and `fixed` may be "". */
static void add_series(struct page *p, const char *name, const char *labels, const char *fixed, double value)
{
	text_add(p->out, name);
	if (*labels || *fixed)
		text_addf(p->out, "{%s%s%s}", labels, *labels && *fixed ? "," : "", fixed);
	text_addf(p->out, " %.15g\n", value);
	p->series++;
}

/* ---- the catalogue ---- */

static bool is_fresh(const struct page *p, const struct listed *x)
{
	return x->age >= 0 && x->age <= p->age_limit;
}

/* It answered once and no longer does, or it has not answered since the reader began. */
static bool is_silent(const struct page *p, const struct listed *x)
{
	uint64_t t0 = p->state->t0_ns, t = p->spec->t_ns;

	return x->age > p->age_limit || (x->age < 0 && t > t0 && 1e-9 * (double)(t - t0) > p->age_limit);
}

/* The value of a row now. A GPU that does not answer is down; its other values are absent. */
static bool value_now(const struct page *p, const struct listed *x, enum catalogue row, double *value)
{
	const struct watch_value *v = watch_get(x->entity, row);

	if (row == CATALOGUE_GPU_UP && is_silent(p, x)) {
		*value = 0;
		return true;
	}
	if (!v || !isfinite(v->value) || !is_fresh(p, x))
		return false;
	*value = v->value;
	return true;
}

/* Adds all series of a row. The first one of a family is preceded by its head. */
static void add_row(struct page *p, enum catalogue row, bool dcgm, bool *headed)
{
	const struct catalogue_row *r = catalogue_row(row);
	const char *name = dcgm ? r->dcgm : r->name, *fixed = !dcgm && r->fixed ? r->fixed : "";
	double value;

	for (size_t i = p->list.begin[r->scope]; i < p->list.begin[r->scope + 1]; i++) {
		const struct listed *x = &p->list.item[i];

		if (!value_now(p, x, row, &value))
			continue;
		if (!*headed)
			add_head(p, name, r->type, dcgm ? "" : r->unit, r->help);
		*headed = true;
		add_series(p, name, listing_labels(&p->list, dcgm ? x->all_labels : x->labels), fixed,
			   dcgm ? value * r->dcgm_scale : value);
	}
}

static void add_assay_rows(struct page *p)
{
	bool headed = false;

	for (int row = 0; row < CATALOGUE_COUNT; row++) {
		if (row && strcmp(catalogue_row((enum catalogue)row)->name,
				  catalogue_row((enum catalogue)(row - 1))->name))
			headed = false;
		add_row(p, (enum catalogue)row, false, &headed);
	}
}

static void add_dcgm_rows(struct page *p)
{
	for (int row = 0; row < CATALOGUE_COUNT; row++) {
		bool headed = false;

		if (catalogue_row((enum catalogue)row)->dcgm)
			add_row(p, (enum catalogue)row, true, &headed);
	}
}

static void add_gpu_info(struct page *p)
{
	size_t at = p->list.begin[METRIC_SCOPE_GPU], end = p->list.begin[METRIC_SCOPE_GPU + 1];

	if (at < end)
		add_head(p, "assay_gpu_info", METRIC_GAUGE, "", "Labels of a GPU; always 1");
	for (; at < end; at++)
		add_series(p, "assay_gpu_info", listing_labels(&p->list, p->list.item[at].all_labels), "", 1);
}

/* ---- sources ---- */

static double source_age(const struct page *p, const struct watch_source *source)
{
	if (!source->heard_ns)
		return -1;
	return p->spec->t_ns > source->heard_ns ? 1e-9 * (double)(p->spec->t_ns - source->heard_ns) : 0;
}

static void add_source_row(struct page *p, enum catalogue row)
{
	const struct catalogue_row *r = catalogue_row(row);
	bool headed = false;

	for (unsigned i = 0; i < p->state->source_count; i++) {
		const struct watch_source *source = &p->state->source[i];
		double age = source_age(p, source);
		struct text label = {0};

		if (row == CATALOGUE_SOURCE_AGE && age < 0)
			continue;
		if (!headed)
			add_head(p, r->name, r->type, r->unit, r->help);
		headed = true;
		listing_add_label(&label, "source", source->name);
		add_series(p, r->name, text_str(&label), "",
			   row == CATALOGUE_SOURCE_AGE ? age
						       : !source->why && age >= 0 && age <= p->age_limit);
		text_release(&label);
	}
}

/* ---- the exporter itself ---- */

static void add_left_out(struct page *p)
{
	const struct page_own_line *line = page_own_line(PAGE_OWN_LEFT_OUT);

	add_head(p, line->name, line->type, line->unit, line->help);
	for (unsigned scope = 0; scope < METRIC_SCOPE_COUNT; scope++) {
		struct text label = {0};

		p->own->left_out[scope] = p->list.left_out[scope];
		if (!p->list.left_out[scope] && scope != METRIC_SCOPE_PROCESS)
			continue; /* one scope is always there, so that an alert can tell 0 from nothing */
		listing_add_label(&label, "scope", metric_scope_row((enum metric_scope)scope)->name);
		add_series(p, line->name, text_str(&label), "", (double)p->list.left_out[scope]);
		text_release(&label);
	}
}

static void add_build(struct page *p)
{
	struct text labels = {0};

	listing_add_label(&labels, "version", ASSAY_VERSION);
	listing_add_label(&labels, "hostname", p->state->node);
	add_head(p, "assay_exporter_build_info", METRIC_GAUGE, "", "Version and host; always 1");
	add_series(p, "assay_exporter_build_info", text_str(&labels), "", 1);
	text_release(&labels);
}

static void add_own(struct page *p)
{
	add_build(p);
	add_left_out(p);
	page_own_set(p->own, PAGE_OWN_SERIES, 0);
	for (int i = 0; i < PAGE_OWN_COUNT; i++)
		if (i != PAGE_OWN_LEFT_OUT && i != PAGE_OWN_SERIES && p->own->present[i]) {
			const struct page_own_line *line = page_own_line((enum page_own_row)i);

			add_head(p, line->name, line->type, line->unit, line->help);
			add_series(p, line->name, "", "", p->own->value[i]);
		}
	page_own_set(p->own, PAGE_OWN_SERIES, (double)p->series + 1); /* with itself */
	add_head(p, page_own_line(PAGE_OWN_SERIES)->name, METRIC_GAUGE, "series",
		 page_own_line(PAGE_OWN_SERIES)->help);
	add_series(p, page_own_line(PAGE_OWN_SERIES)->name, "", "", p->own->value[PAGE_OWN_SERIES]);
}

void page_write(struct text *out, enum page_format format, const struct watch_state *s,
		const struct page_spec *spec, struct page_own *own)
{
	struct page p = {.out = out,
			 .format = format,
			 .state = s,
			 .spec = spec,
			 .own = own,
			 .age_limit = page_age_limit(s->interval)};

	if (listing_make(&p.list, s, spec)) {
		if (spec->names != PAGE_NAMES_DCGM) {
			add_gpu_info(&p);
			add_assay_rows(&p);
		}
		if (spec->names != PAGE_NAMES_ASSAY)
			add_dcgm_rows(&p);
		add_source_row(&p, CATALOGUE_SOURCE_UP);
		add_source_row(&p, CATALOGUE_SOURCE_AGE);
		add_own(&p);
		if (format == PAGE_OPENMETRICS)
			text_add(out, "# EOF\n");
	} else {
		out->failed = 1;
	}
	listing_release(&p.list);
}

size_t page_series_most(unsigned gpus)
{
	size_t most = PAGE_OWN_COUNT + METRIC_SCOPE_COUNT + 1;
	size_t entities[METRIC_SCOPE_COUNT];

	for (unsigned scope = 0; scope < METRIC_SCOPE_COUNT; scope++)
		entities[scope] = 1;
	entities[METRIC_SCOPE_SOURCE] = WATCH_SOURCES_MAX;
#define X(scope, limit, per_gpu) entities[METRIC_SCOPE_##scope] = (limit) * ((per_gpu) ? (size_t)gpus : 1u);
	PAGE_LIMITS(X)
#undef X
	entities[METRIC_SCOPE_GPU] = gpus;
	for (int row = 0; row < CATALOGUE_COUNT; row++) {
		const struct catalogue_row *r = catalogue_row((enum catalogue)row);

		most += entities[r->scope] * (r->dcgm ? 2 : 1);
	}
	return most + gpus; /* assay_gpu_info */
}
