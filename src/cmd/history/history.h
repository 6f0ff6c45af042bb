/* SPDX-License-Identifier: Apache-2.0 */
/* `assay history`: one machine's figures over its runs. docs/explanation/design/health.md, "assay history".
 */
#ifndef CMD_HISTORY_HISTORY_H
#define CMD_HISTORY_HISTORY_H
#include <jansson.h>
#include "core/text/text.h"
#include "judge/compare/compare.h"

struct history_point {
	size_t run; /* index of the run */
	double value;
	enum compare_change change; /* from the level before; NOT_COMPARABLE: there was none */
	double before, raw, noise;  /* median of that level; value / before - 1; the share that is noise */
	unsigned baselines;	    /* figures of that level */
	bool marked;		    /* a significant change: a new level begins here */
	bool judged;		    /* a reference judged the case */
};

/* The figures of one case on one target, oldest first. */
struct history_series {
	const struct record_case *c; /* the case in the last run that has it */
	char unit[16];
	bool lower_is_better;
	struct history_point *point; /* owned */
	size_t count;
};

struct history {
	const struct compare_run *run; /* lent, oldest first */
	size_t run_count;
	struct history_series *series; /* owned */
	size_t count;
	size_t marks;
	int exit_code; /* 0; 1: the last change of a judged case is for the worse; 2: nothing to compare */
};

/* Collects the series of the headline cases, or with `all` of every timed case, and marks their changes. All
 * runs come from one machine. The caller calls history_release. NO_RESOURCE: out of memory. */
enum status history_collect(struct history *h, const struct compare_run *runs, size_t count, bool all,
			    struct error *err);
void history_release(struct history *h);
/* The start of a run as its journal has it, "2026-11-21T12:00:00Z"; "" if it has none. Lent. */
const char *history_wall(const struct compare_run *run);
/* True if the change is for the worse. */
bool history_worse(const struct history_series *s, const struct history_point *p);

/* Appends the runs, one line per series with a sparkline, and the marked changes. */
void history_show(struct text *out, const struct history *h);
/* NULL: out of memory. The caller decrefs it. */
json_t *history_json(const struct history *h);
/* Writes the plot to a file .svg, .png or .pdf: each series relative to the median of its first level.
 * *left_out: series without room. BAD_INPUT: another ending, or nothing to draw. */
enum status history_plot(const char *path, const struct history *h, size_t *left_out, struct error *err);
#endif
