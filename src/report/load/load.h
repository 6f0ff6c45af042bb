/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, charts and files of a load test. All come from the journal, so `assay report` makes them
 * again. */
#ifndef REPORT_LOAD_LOAD_H
#define REPORT_LOAD_LOAD_H
#include "report/plot/lines.h"
#include "report/tables/grid.h"
#include "report/view/view.h"

/* The case of a load test; NULL: the run has none. */
const struct record_case *load_case(const struct view *v);
/* The final values of the run; NULL: the run has no load test, or nothing was measured. */
const json_t *load_values(const struct view *v);
/* A duration, a share or a count in the form that all tables use; "–" for NaN. */
void load_value_text(char *out, size_t size, const char *unit, double value);
/* Times of the clock of telemetry to which `seconds` of the curves belong. False: the journal does not say.
 */
bool load_time_ns(const struct view *v, double seconds, uint64_t *t_ns);

/* Each fills one table. False: there is nothing to show. */
bool load_latency_grid(struct grid *g, const struct view *v);
bool load_slo_grid(struct grid *g, const struct view *v);
bool load_rates_grid(struct grid *g, const struct view *v);
bool load_errors_grid(struct grid *g, const struct view *v);
bool load_checks_grid(struct grid *g, const struct view *v);
bool load_stages_grid(struct grid *g, const struct view *v);
bool load_gpus_grid(struct grid *g, const struct view *v);
bool load_silences_grid(struct grid *g, const struct view *v);
/* Visits all of them. */
void load_grids(const struct view *v, grid_visit *visit, void *arg);

enum { LOAD_CHARTS = 10 };
struct load_chart {
	const char *file, *title; /* "load-ttft.svg" */
	char caption[280];	  /* what the lines show, in words; "" */
	struct lines lines;
};
/* Fills the charts that have data; returns their number. The caller frees each with load_chart_release. */
size_t load_charts(struct load_chart out[LOAD_CHARTS], const struct view *v);
void load_chart_release(struct load_chart *c);

/* SUMMARY.md: one page, the verdict first. */
void load_summary_page(struct text *out, const struct view *v);
/* load.json and load.csv: figures under the names that AIPerf uses, where they mean the same.
 * docs/reference/load-files.md. */
void load_export_json(struct text *out, const struct view *v);
void load_export_csv(struct text *out, const struct view *v);
#endif
