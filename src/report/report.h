/* SPDX-License-Identifier: Apache-2.0 */
/* Renders a run's report. Every renderer is a pure function of the record and its judgements: the same run
 * directory and expectations give the same bytes. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H
#include <stdbool.h>
#include "core/text/text.h"
#include "journal/record/record.h"
#include "judge/judge.h"
#include "report/plot/plot.h"

/* A node's name in the record, and the name to show instead. */
struct report_called {
	char shown[64], name[80];
};
struct report_input {
	const struct record *record;
	const struct machine *machine; /* from the record */
	const struct machine *const
		*nodes; /* runs of several nodes: one entry per node; NULL entry: facts unknown */
	const struct judgements *judged;
	const struct expectations *expectations;
	const struct prices *prices; /* NULL: no price but the one stated with the run */
	bool real_names;	     /* show serial numbers and addresses; false: pseudonyms */
	/* Node names to show in spite of pseudonyms. Used for output on a terminal, never for files. */
	const struct report_called *called;
	size_t called_count;
};

/* Columns of the tables on a terminal, after verdict and case: name for --columns, heading. */
#define REPORT_COLUMNS(X)                                                                                    \
	X(FIGURE, "figure", "figure")                                                                        \
	X(EXPECTED, "expected", "expected")                                                                  \
	X(SHARE, "bound", "of bound")                                                                        \
	X(CLOCK, "clock", "clock")                                                                           \
	X(POWER, "power", "power")                                                                           \
	X(TEMPERATURE, "temperature", "temp.")                                                               \
	X(REASON, "reason", "reason")
#define X(column, ...) REPORT_COLUMN_##column,
enum report_column { REPORT_COLUMNS(X) REPORT_COLUMN_COUNT };
#undef X

struct report_style {
	bool colour;
	unsigned columns; /* width of the terminal */
	unsigned shown; /* bits 1 << enum report_column of the columns to show; 0: all but the temperature */
};
/* Reads a list of column names such as "figure,bound,reason" into bits for report_style.shown; NULL gives 0,
 * the default columns. BAD_INPUT: an unknown name, with the nearest one, or an empty list. */
enum status report_columns_parse(unsigned *shown, const char *list, struct error *err);
/* The values of `--format`, an option of every command that shows a report. */
enum report_format { REPORT_TEXT, REPORT_MARKDOWN, REPORT_HTML, REPORT_JSON, REPORT_CSV };
extern const char *const report_formats[]; /* "text", "markdown", "html", "json", "csv"; ends with NULL */
enum status report_render(struct text *out, enum report_format format, const struct report_input *in,
			  const struct report_style *style, struct error *err);
/* Appends the report for a terminal: one table per target with verdict, figure, expected range, share of the
 * bound, clock, power and a short reason; then what to do. */
void report_terminal(struct text *out, const struct report_input *in, const struct report_style *style);
void report_markdown(struct text *out, const struct report_input *in);
void report_html(struct text *out, const struct report_input *in);
void report_csv(struct text *out, const struct report_input *in);
/* results.json, versioned schema docs/schema/results.schema.json. */
enum status report_json(struct text *out, const struct report_input *in, struct error *err);
/* Writes all report files of the run directory `dir`: manifest.json, results.csv, results.json, REPORT.md,
 * report.html, roofline.svg and roofline.png; for a load test SUMMARY.md, load.json, load.csv and its charts.
 * Each file is written under a temporary name and then renamed. Without the plot module roofline.png is left
 * out, and *note says so. */
enum status report_write(const char *dir, const struct report_input *in, struct text *note,
			 struct error *err);
/* Writes one roofline of `count` runs into `dir`: manifest.json, results.csv, REPORT.md, roofline.svg, and
 * one more picture. For PLOT_SVG that picture is the PNG; without the plot module it is left out, and *note
 * says so. For PLOT_PNG and PLOT_PDF a missing module is an error. */
enum status report_write_merged(const char *dir, const struct report_input *in, size_t count,
				enum plot_format format, struct text *note, struct error *err);
#endif
