/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's two pages: the metrics, and a page for people. */
#include "cmd/exporter/exporter.h"
#include "core/clock.h"

enum { REASONS_MOST = 200 };

static const struct watch_state *state_of(const struct exporter *x)
{
	static const struct watch_state empty;

	if (x->replay)
		return watch_replay_state(x->replay, 0);
	return x->feed ? watch_feed_state(x->feed) : &empty;
}

static bool has_reading(const struct watch_state *s)
{
	for (unsigned i = 0; i < s->source_count; i++)
		if (s->source[i].heard_ns)
			return true;
	return false;
}

void exporter_page(void *arg, struct text *out, enum page_format format)
{
	struct exporter *x = arg;
	const struct daemon_counts counts = daemon_counts(x->daemon);
	const struct page_spec spec = {.names = (enum page_names)x->o->names,
				       .processes = x->o->processes,
				       .local_ns = clock_now_ns(clock_monotonic()),
				       .begun_ns = x->begun_ns};

	page_own_read_process(&x->own);
	page_own_set(&x->own, CATALOGUE_EXPORTER_READER_UP, has_reading(state_of(x)));
	page_own_set(&x->own, CATALOGUE_EXPORTER_SCRAPES, (double)counts.scrapes);
	page_own_set(&x->own, CATALOGUE_EXPORTER_CONNECTIONS, (double)counts.connections);
	page_own_set(&x->own, CATALOGUE_EXPORTER_CLOSED, (double)counts.closed);
	page_own_set(&x->own, CATALOGUE_EXPORTER_REFUSED, (double)counts.refused);
	page_write(out, format, state_of(x), &spec, &x->own);
}

bool exporter_ready(void *arg, char *why, size_t size)
{
	const struct exporter *x = arg;

	if (has_reading(state_of(x)))
		return true;
	snprintf(why, size, "%s", *x->why && !x->feed ? x->why : "no source has answered yet");
	return false;
}

/* ---- the page for people ---- */

static void add_cell(struct text *out, const char *s)
{
	text_add(out, "<td>");
	text_add_html(out, s);
	text_add(out, "</td>");
}

static const char *source_state(const struct watch_state *s, const struct watch_source *source, double age)
{
	if (source->why)
		return source->why;
	return age >= 0 && age <= page_age_limit(s->interval, METRIC_FAST) ? "answers" : "does not answer";
}

static void add_sources(struct text *out, const struct exporter *x)
{
	const struct watch_state *s = state_of(x);
	uint64_t now = clock_now_ns(clock_monotonic());
	char age[64];

	text_add(out, "<h2>Sources</h2><table><tr><th>source</th><th>last reading</th><th>state</th></tr>\n");
	for (unsigned i = 0; i < s->source_count; i++) {
		const struct watch_source *source = &s->source[i];
		double seconds = watch_source_age(s, i, now);

		snprintf(age, sizeof(age), seconds < 0 ? "none yet" : "%.1f s ago", seconds);
		text_add(out, "<tr>");
		add_cell(out, source->name);
		add_cell(out, age);
		add_cell(out, source_state(s, source, seconds));
		text_add(out, "</tr>\n");
	}
	text_add(out, "</table>\n");
}

/* A table of reasons, whose head comes with the first row. */
struct reasons {
	struct text *out;
	unsigned shown;
};

static void add_reason(struct reasons *r, const struct watch_entity *e, const char *what, const char *why)
{
	const char *gpu = watch_label(e, "gpu");

	if (r->shown == REASONS_MOST)
		return;
	if (!r->shown++)
		text_add(r->out,
			 "<h2>Missing values</h2><table><tr><th>what</th><th>of</th><th>reason</th></tr>\n");
	text_add(r->out, "<tr>");
	add_cell(r->out, what);
	text_add(r->out, "<td>");
	text_addf(r->out, "%s ", metric_scope_row(e->scope)->name);
	text_add_html(r->out, gpu ? gpu : e->label_count ? e->label[0].value : "");
	text_add(r->out, "</td>");
	add_cell(r->out, why);
	text_add(r->out, "</tr>\n");
}

/* Missing values with their reasons: a suspended GPU, counters that another program uses. */
static void add_reasons(struct text *out, const struct exporter *x)
{
	const struct watch_state *s = state_of(x);
	struct reasons r = {.out = out};

	for (size_t i = 0; i < s->count; i++) {
		const struct watch_entity *e = &s->entity[i];

		if (e->scope == METRIC_SCOPE_COUNT || e->foreign)
			continue;
		if (e->why) {
			add_reason(&r, e, "all", e->why);
			continue;
		}
		for (unsigned row = 0; row < catalogue_scope_rows(e->scope); row++)
			if (!e->value[row].present && e->value[row].why)
				add_reason(&r, e, catalogue_row(catalogue_first(e->scope) + row)->name,
					   e->value[row].why);
	}
	if (r.shown)
		text_add(out, "</table>\n");
}

/* Why GPUs have no pods, as the reader says it. */
static void add_pods(struct text *out, const struct watch_state *s)
{
	const char *told = NULL;

	for (size_t i = 0; i < s->count && !told; i++)
		if (s->entity[i].scope == METRIC_SCOPE_NODE)
			told = watch_label(&s->entity[i], "pod_resources");
	if (told && !strcmp(told, "answers"))
		return;
	text_add(out, "<p>The labels <code>pod</code> and <code>namespace</code> are absent: ");
	text_add_html(out, told ? told : "this node has no pod-resources socket of a kubelet");
	text_add(out, "</p>\n");
}

void exporter_index(void *arg, struct text *out)
{
	const struct exporter *x = arg;
	const struct watch_state *s = state_of(x);

	text_add(
		out,
		"<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>assay exporter</title>"
		"</head><body><h1>assay exporter</h1>\n<p>");
	text_add_html(out, s->node);
	text_addf(out, ", version %s. <a href=\"/metrics\">Metrics</a></p>\n", ASSAY_VERSION);
	if (!x->feed && !x->replay) {
		text_add(out, "<p>No readings: ");
		text_add_html(out, x->why);
		text_add(out, "</p>\n");
	}
	add_sources(out, x);
	add_reasons(out, x);
	add_pods(out, s);
	text_add(out, "</body></html>\n");
}
