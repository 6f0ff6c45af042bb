/* SPDX-License-Identifier: Apache-2.0 */
/* The reference page of the metrics, and the list. */
#include "watch/generate/generate.h"

#include "watch/page/page.h"

static const char *const types[] = {"counter", "gauge", "histogram"}; /* enum metric_type */

static const char *cell(const char *s)
{
	return s && *s ? s : "–";
}

static void add_code(struct text *out, const char *s)
{
	const char *quote = s && *s ? "`" : "";

	text_addf(out, "%s%s%s", quote, cell(s), quote);
}

/* ---- the catalogue ---- */

static void add_row(struct text *out, const struct catalogue_row *r)
{
	text_addf(out, "| `%s%s%s%s` | %s | %s | ", r->name, r->fixed ? "{" : "", r->fixed ? r->fixed : "",
		  r->fixed ? "}" : "", types[r->type], r->unit);
	add_code(out, r->dcgm.name);
	text_addf(out, " | %s | %s |\n", r->source, r->help);
}

static void add_scope(struct text *out, enum metric_scope scope)
{
	const struct scope_row *s = metric_scope_row(scope);
	bool any = false;

	for (int i = 0; i < CATALOGUE_COUNT; i++) {
		const struct catalogue_row *r = catalogue_row((enum catalogue)i);

		if (r->scope != scope)
			continue;
		if (!any)
			text_addf(
				out,
				"\n### %s: %s\n\n| metric | type | unit | name in dcgm-exporter | source | meaning "
				"|\n|---|---|---|---|---|---|\n",
				s->name, s->help);
		any = true;
		add_row(out, r);
	}
}

static void add_catalogue(struct text *out)
{
	text_add(out,
		 "\n## The machine\n\n`assay exporter` prints these at `/metrics`. Each scope has one series "
		 "for each of its entities. A value that was not read is absent.\n");
	for (int scope = 0; scope < METRIC_SCOPE_COUNT; scope++)
		add_scope(out, (enum metric_scope)scope);
}

static void add_own(struct text *out)
{
	text_add(out,
		 "\n### More of the exporter\n\n| metric | type | unit | meaning |\n|---|---|---|---|\n");
	for (int i = 0; i < PAGE_OWN_COUNT; i++) {
		const struct page_own_line *line = page_own_line((enum page_own_row)i);

		text_addf(out, "| `%s` | %s | %s | %s |\n", line->name, types[line->type], line->unit,
			  line->help);
	}
}

static bool is_default(const struct catalogue_row *r)
{
	return r->dcgm.name && r->dcgm.by_default;
}

static void add_dcgm(struct text *out)
{
	const char *name, *why;

	text_add(
		out,
		"\n## Metrics of dcgm-exporter\n\nThese are the metrics that dcgm-exporter exports by default, in the "
		"release of 2026-05-12. `--names dcgm` and `--names both` print them under its names, with its units and "
		"labels. The first column lists them.\n\n| dcgm-exporter | assay |\n|---|---|\n");
	for (int i = 0; i < CATALOGUE_COUNT; i++)
		if (is_default(catalogue_row((enum catalogue)i)))
			text_addf(out, "| `%s` | `%s` |\n", catalogue_row((enum catalogue)i)->dcgm.name,
				  catalogue_row((enum catalogue)i)->name);
	for (unsigned i = 0; (name = dcgm_without(i, &why)); i++)
		text_addf(out, "| `%s` | not given: %s |\n", name, why);
}

static void add_limits(struct text *out)
{
	text_addf(
		out,
		"\n## Limits\n\nThe number of series has a limit. A page shows at most this many entities. "
		"Processes and Xids with the highest values stay. `assay_exporter_series_left_out` counts the "
		"others.\n\n| scope | most entities |\n|---|---|\n");
#define X(scope, most, per_gpu)                                                                              \
	text_addf(out, "| %s | %d%s |\n", metric_scope_row(METRIC_SCOPE_##scope)->name, most,                \
		  (per_gpu) ? " for each GPU" : "");
	PAGE_LIMITS(X)
#undef X
	text_addf(
		out,
		"\nA node with 8 GPUs has at most %zu series, with both sets of names. `--processes` changes the "
		"number of processes, up to 64 for each GPU. A label's value has at most 128 bytes.\n",
		page_series_most(8));
}

static void add_server(struct text *out)
{
	text_add(
		out,
		"\n## Servers\n\n`assay serve` prints these at its own `/metrics`, with the label "
		"`model_name` ([Serving](serving.md)).\n\n| metric | type | unit | meaning |\n|---|---|---|---|\n");
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_row *r = metric_row((enum metric)i);

		text_addf(out, "| `%s` | %s | %s | %s |\n", r->name, types[r->type], r->unit, r->help);
	}
}

/* ---- what is made from it ---- */

static void add_rules(struct text *out)
{
	const struct generate_rule *r;

	text_add(out,
		 "\n## Recording rules\n\n`assay list metrics --as prometheus-rules`\n\n| rule | meaning "
		 "|\n|---|---|\n");
	for (size_t i = 0; (r = generate_rule_at(i)); i++)
		text_addf(out, "| `%s` | %s |\n", r->name, r->help);
}

static void add_alerts(struct text *out)
{
	const struct generate_alert *a;

	text_add(out,
		 "\n## Alerts\n\n`assay list metrics --as alerts`\n\n| alert | severity | lasts | what to do "
		 "|\n|---|---|---|---|\n");
	for (size_t i = 0; (a = generate_alert_at(i)); i++)
		text_addf(out, "| `%s` | %s | %s | %s |\n", a->name, a->severity, a->lasts, a->action);
}

static void add_dashboards(struct text *out)
{
	const struct generate_dashboard *d;

	text_add(out, "\n## Dashboards\n\n`assay list metrics NAME --as grafana`\n\n| name | panels | shows "
		      "|\n|---|---|---|\n");
	for (size_t i = 0; (d = generate_dashboard_at(i)); i++)
		text_addf(out, "| `%s` | %zu | %s |\n", d->name, d->count, d->help);
}

void generate_reference(struct text *out)
{
	text_add(out,
		 "# Metrics\n\nThis page is generated from the program's tables; `tests/docs.sh --update` "
		 "writes it again. [Scrape a node](../how-to/scrape-a-node.md) shows how to use it.\n");
	add_catalogue(out);
	add_own(out);
	add_dcgm(out);
	add_limits(out);
	add_server(out);
	add_rules(out);
	add_alerts(out);
	add_dashboards(out);
}

json_t *generate_list(void)
{
	json_t *rows = json_array();

	for (int i = 0; i < CATALOGUE_COUNT; i++) {
		const struct catalogue_row *r = catalogue_row((enum catalogue)i);

		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "metric", r->name,
						"label", r->fixed ? r->fixed : "", "type", types[r->type],
						"unit", r->unit, "scope", metric_scope_row(r->scope)->name,
						"dcgm", cell(r->dcgm.name), "meaning", r->help));
	}
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_row *r = metric_row((enum metric)i);

		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "metric", r->name,
						"label", "", "type", types[r->type], "unit", r->unit, "scope",
						"server", "dcgm", cell(NULL), "meaning", r->help));
	}
	for (int i = 0; i < PAGE_OWN_COUNT; i++) {
		const struct page_own_line *r = page_own_line((enum page_own_row)i);

		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "metric", r->name,
						"label", "", "type", types[r->type], "unit", r->unit, "scope",
						"exporter", "dcgm", cell(NULL), "meaning", r->help));
	}
	return rows;
}
