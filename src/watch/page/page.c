/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/page/page.h"

#include <math.h>

#include "watch/page/listing.h"

#define AGE_LEAST_S 3.0 /* a loaded machine may delay a reading by seconds */
#define SLOW_S 5.0	/* interval of SLOW rows */

const char *const page_names_words[] = {"assay", "dcgm", "both", NULL};

struct page {
	struct text *out;
	enum page_format format;
	const struct watch_state *state;
	const struct page_spec *spec;
	struct page_own *own;
	struct listing list;
	size_t series;
};

double page_age_limit(double interval, enum metric_pace pace)
{
	double slow = fmax(interval, SLOW_S);
	const double every[] = {interval, slow, METRIC_RARE_SLOW * slow};

	return fmax(3 * every[pace], AGE_LEAST_S);
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

/* Age of the last reading with rows of this pace; negative: there was none. */
static double age_of(const struct listed *x, enum metric_pace pace)
{
	const uint64_t *heard = x->entity->heard_ns;

	if (x->age < 0 || !heard[pace])
		return -1;
	return x->age + 1e-9 * (double)(heard[METRIC_FAST] - heard[pace]);
}

static bool is_fresh(const struct page *p, const struct listed *x, enum metric_pace pace)
{
	double age = age_of(x, pace);

	return age >= 0 && age <= page_age_limit(p->state->interval, pace);
}

/* It answered once and no longer does, or it has not answered since the feed began. */
static bool is_silent(const struct page *p, const struct listed *x)
{
	double limit = page_age_limit(p->state->interval, METRIC_FAST);
	uint64_t begun = p->spec->begun_ns, now = p->spec->local_ns;

	if (x->age >= 0)
		return x->age > limit;
	return now > begun && 1e-9 * (double)(now - begun) > limit;
}

/* The value of a row now. A GPU that does not answer is down; its other values are absent. */
static bool value_now(const struct page *p, const struct listed *x, enum catalogue row, double *value)
{
	const struct watch_value *v = watch_get(x->entity, row);

	if (row == CATALOGUE_GPU_INFO || (row == CATALOGUE_GPU_UP && is_silent(p, x))) {
		*value = row == CATALOGUE_GPU_INFO;
		return true;
	}
	if (!v || !isfinite(v->value) || !is_fresh(p, x, catalogue_row(row)->pace))
		return false;
	*value = v->value;
	return true;
}

static size_t labels_at(const struct listed *x, enum catalogue row, bool dcgm)
{
	return dcgm ? x->dcgm_labels : row == CATALOGUE_GPU_INFO ? x->info_labels : x->labels;
}

/* Adds all series of a row. The first one of a family is preceded by its head. */
static void add_row(struct page *p, enum catalogue row, bool dcgm, bool *headed)
{
	const struct catalogue_row *r = catalogue_row(row);
	const char *name = dcgm ? r->dcgm.name : r->name, *fixed = !dcgm && r->fixed ? r->fixed : "";
	double value;

	for (size_t i = p->list.begin[r->scope]; i < p->list.begin[r->scope + 1]; i++) {
		const struct listed *x = &p->list.item[i];

		if (!value_now(p, x, row, &value))
			continue;
		if (!*headed)
			add_head(p, name, dcgm ? r->dcgm.type : r->type, dcgm ? "" : r->unit, r->help);
		*headed = true;
		add_series(p, name, listing_labels(&p->list, labels_at(x, row, dcgm)), fixed,
			   dcgm ? value * r->dcgm.scale : value);
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

		if (catalogue_row((enum catalogue)row)->dcgm.name)
			add_row(p, (enum catalogue)row, true, &headed);
	}
}

/* ---- sources ---- */

/* It answers that there is nothing for it here, as source gpu does on a machine without GPUs and driver. That
 * is not a fault, so nothing is said. */
static bool has_nothing(const struct page *p, unsigned source, double age, double limit)
{
	const struct watch_state *s = p->state;

	if (!s->source[source].why || age < 0 || age > limit)
		return false;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->entity[i].scope < METRIC_SCOPE_COUNT && s->entity[i].scope != METRIC_SCOPE_READER &&
		    s->entity[i].source == source)
			return false;
	return true;
}

static void add_source_row(struct page *p, enum catalogue row)
{
	const struct catalogue_row *r = catalogue_row(row);
	double limit = page_age_limit(p->state->interval, METRIC_FAST);
	bool headed = false;

	for (unsigned i = 0; i < p->state->source_count; i++) {
		const struct watch_source *source = &p->state->source[i];
		double age = watch_source_age(p->state, i, p->spec->local_ns);
		struct text label = {0};

		if ((row == CATALOGUE_SOURCE_AGE && age < 0) || has_nothing(p, i, age, limit))
			continue;
		if (!headed)
			add_head(p, r->name, r->type, r->unit, r->help);
		headed = true;
		listing_add_label(&label, "source", source->name);
		add_series(p, r->name, text_str(&label), "",
			   row == CATALOGUE_SOURCE_AGE ? age : !source->why && age >= 0 && age <= limit);
		text_release(&label);
	}
}

/* ---- the exporter itself ---- */

static void add_own_series(struct page *p, enum catalogue row, const char *labels, double value)
{
	add_series(p, catalogue_row(row)->name, labels, "", value);
}

static void add_left_out(struct page *p, enum catalogue row)
{
	for (unsigned scope = 0; scope < METRIC_SCOPE_COUNT; scope++) {
		struct text label = {0};

		if (!p->list.left_out[scope] && scope != METRIC_SCOPE_PROCESS)
			continue; /* one scope is always there, so that an alert can tell 0 from nothing */
		listing_add_label(&label, "scope", metric_scope_row((enum metric_scope)scope)->name);
		add_own_series(p, row, text_str(&label), (double)p->list.left_out[scope]);
		text_release(&label);
	}
}

static void add_build(struct page *p, enum catalogue row)
{
	struct text labels = {0};

	listing_add_label(&labels, "version", ASSAY_VERSION);
	listing_add_label(&labels, "hostname", p->state->node);
	add_own_series(p, row, text_str(&labels), 1);
	text_release(&labels);
}

static void add_own_row(struct page *p, enum catalogue row)
{
	const struct catalogue_row *r = catalogue_row(row);
	bool labelled = row == CATALOGUE_BUILD_INFO || row == CATALOGUE_EXPORTER_LEFT_OUT;

	if (!labelled && !page_own_get(p->own, row))
		return;
	add_head(p, r->name, r->type, r->unit, r->help);
	if (row == CATALOGUE_BUILD_INFO)
		add_build(p, row);
	else if (row == CATALOGUE_EXPORTER_LEFT_OUT)
		add_left_out(p, row);
	else
		add_own_series(p, row, "", *page_own_get(p->own, row));
}

static void add_own(struct page *p)
{
	for (int row = PAGE_OWN_FIRST; row < CATALOGUE_COUNT; row++)
		if (row != CATALOGUE_EXPORTER_SERIES)
			add_own_row(p, (enum catalogue)row);
	page_own_set(p->own, CATALOGUE_EXPORTER_SERIES, (double)p->series + 1); /* with itself */
	add_own_row(p, CATALOGUE_EXPORTER_SERIES);
}

void page_write(struct text *out, enum page_format format, const struct watch_state *s,
		const struct page_spec *spec, struct page_own *own)
{
	struct page p = {.out = out, .format = format, .state = s, .spec = spec, .own = own};

	if (listing_make(&p.list, s, spec)) {
		if (spec->names != PAGE_NAMES_DCGM)
			add_assay_rows(&p);
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
	size_t most = METRIC_SCOPE_COUNT; /* what was left out has a series for each scope */
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

		most += entities[r->scope] * (r->dcgm.name ? 2 : 1);
	}
	return most;
}
