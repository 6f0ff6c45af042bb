/* SPDX-License-Identifier: Apache-2.0 */
/* Rendering: pure functions of a record and its judgements. The same directory and expectations give the same
 * bytes. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H
#include <stdbool.h>
#include "core/text/text.h"
#include "journal/record/record.h"
#include "judge/judge.h"
#include "report/plot/plot.h"

/* What the record calls a node, and its name. */
struct report_called {
	char shown[64], name[80];
};
struct report_input {
	const struct record *record;
	const struct machine *machine;	    /* from the record */
	const struct machine *const *nodes; /* of several: by node, NULL where its facts are not known */
	const struct judgements *judged;
	const struct expectations *expectations;
	bool real_names; /* serials and addresses as they are; else pseudonyms */
	/* Nodes whose names are told for all that, where a person reads who is there: in no file. */
	const struct report_called *called;
	size_t called_count;
};

struct report_style {
	bool colour;
	unsigned columns;
};
/* `--format` of every command that shows a report. */
enum report_format { REPORT_TEXT, REPORT_MARKDOWN, REPORT_HTML, REPORT_JSON, REPORT_CSV };
extern const char *const report_formats[]; /* "text", "markdown", "html", "json", "csv"; NULL ends */
enum status report_render(struct text *out, enum report_format format, const struct report_input *in,
			  const struct report_style *style, struct error *err);
/* Terminal table: verdict, figure, expected, share of bound, held clock, watts, the one-line reason. */
void report_terminal(struct text *out, const struct report_input *in, const struct report_style *style);
void report_markdown(struct text *out, const struct report_input *in);
void report_html(struct text *out, const struct report_input *in);
void report_csv(struct text *out, const struct report_input *in);
/* results.json, versioned schema docs/schema/results.schema.json. */
enum status report_json(struct text *out, const struct report_input *in, struct error *err);
/* All files of the run directory: manifest.json results.csv results.json REPORT.md report.html roofline.svg
 * roofline.png. Written beside and renamed. A missing plot module leaves out the PNG and says so in *note. */
enum status report_write(const char *dir, const struct report_input *in, struct text *note,
			 struct error *err);
/* One roofline over several runs: manifest.json results.csv REPORT.md roofline.svg, and the PNG (left out
 * with a note where its module is missing) or, where a format is asked for by name, exactly that (a missing
 * module is then the error). */
enum status report_write_merged(const char *dir, const struct report_input *in, size_t count,
				enum plot_format format, struct text *note, struct error *err);
#endif
