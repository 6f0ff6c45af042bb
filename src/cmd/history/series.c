/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/history/history.h"
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 32 }; /* earlier runs of a level that count */

void history_release(struct history *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->series[i].point);
	free(h->series);
	*h = (struct history){0};
}

const char *history_wall(const struct compare_run *run)
{
	const char *wall = json_string_value(json_object_get(run->record->open, "wall"));

	return wall ? wall : "";
}

bool history_worse(const struct history_series *s, const struct history_point *p)
{
	return s->lower_is_better ? p->raw > 0 : p->raw < 0;
}

/* True if the case has a sound figure that a history can follow. */
static bool follows(const struct compare_run *run, size_t i, bool all)
{
	const struct record_case *c = &run->record->cases[i];
	const struct judgement *j = &run->judged->of_case[i];

	return !c->reading && !c->job && !c->skipped && !j->superseded && compare_fit(j) &&
	       !record_is_isolation(c) && !record_tries(c) && (all || !strcmp(c->phases, "headline"));
}

/* The first sound figure of the same measurement in this run; NULL: none. */
static const struct judgement *figure_of(const struct compare_run *run, const struct history_series *s,
					 bool all)
{
	for (size_t i = 0; i < run->record->case_count; i++)
		if (compare_same_measurement(&run->record->cases[i], s->c) && follows(run, i, all) &&
		    !strcmp(run->judged->of_case[i].figure_unit, s->unit))
			return &run->judged->of_case[i];
	return NULL;
}

static bool known(const struct history *h, const struct record_case *c)
{
	for (size_t i = 0; i < h->count; i++)
		if (compare_same_measurement(h->series[i].c, c))
			return true;
	return false;
}

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "out of memory for the history");
}

/* Compares the newest point with those of its level. The runs of the level are those from `first` on that
 * have the case. */
static enum status mark(struct history *h, struct history_series *s, size_t first, struct error *err)
{
	struct history_point *p = &s->point[s->count - 1];
	struct compare_run level[WINDOW + 1];
	const struct record_case *same = NULL;
	struct compare_row row;
	size_t n = 0;
	enum status st;

	if (s->count - 1 - first > WINDOW)
		first = s->count - 1 - WINDOW;
	for (size_t i = first; i < s->count; i++)
		level[n++] = h->run[s->point[i].run];
	for (size_t i = 0; i < level[n - 1].record->case_count && !same; i++)
		if (compare_same_measurement(&level[n - 1].record->cases[i], s->c))
			same = &level[n - 1].record->cases[i];
	st = n > 1 ? compare_case(&row, level, n, same, err) : STATUS_OK;
	if (st || n < 2)
		return st;
	p->change = row.change;
	p->before = row.before;
	p->raw = row.raw;
	p->noise = row.has_normalised ? row.noise : row.noise_raw;
	p->baselines = row.baselines;
	p->judged = row.judged;
	p->marked = row.change == COMPARE_FASTER || row.change == COMPARE_SLOWER ||
		    row.change == COMPARE_FASTER_CLOCK || row.change == COMPARE_SLOWER_CLOCK;
	return STATUS_OK;
}

static enum status fill(struct history *h, struct history_series *s, bool all, struct error *err)
{
	size_t first = 0;
	enum status st = STATUS_OK;

	s->point = calloc(h->run_count, sizeof(*s->point));
	if (!s->point)
		return no_memory(err);
	for (size_t i = 0; i < h->run_count && !st; i++) {
		const struct judgement *j = figure_of(&h->run[i], s, all);

		if (!j)
			continue;
		s->point[s->count++] = (struct history_point){
			.run = i, .value = j->figure, .change = COMPARE_NOT_COMPARABLE};
		st = mark(h, s, first, err);
		if (s->point[s->count - 1].marked) {
			first = s->count - 1;
			h->marks++;
		}
	}
	return st;
}

/* The exit code: what the last change of each series says. */
static int code_of(const struct history *h)
{
	bool compared = false, worse = false;

	for (size_t i = 0; i < h->count; i++) {
		const struct history_series *s = &h->series[i];
		const struct history_point *last = NULL;

		compared = compared || s->count > 1;
		for (size_t k = 0; k < s->count; k++)
			last = s->point[k].marked ? &s->point[k] : last;
		worse = worse || (last && last->judged && history_worse(s, last));
	}
	return worse ? 1 : compared ? 0 : 2;
}

enum status history_collect(struct history *h, const struct compare_run *runs, size_t count, bool all,
			    struct error *err)
{
	enum status st = STATUS_OK;

	*h = (struct history){.run = runs, .run_count = count};
	for (size_t r = count; r-- && !st;) { /* the newest run names the cases first */
		for (size_t i = 0; i < runs[r].record->case_count && !st; i++) {
			const struct record_case *c = &runs[r].record->cases[i];
			struct history_series *grown;

			if (!follows(&runs[r], i, all) || known(h, c))
				continue;
			grown = realloc(h->series, (h->count + 1) * sizeof(*grown));
			if (!grown)
				return no_memory(err);
			h->series = grown;
			grown += h->count++;
			*grown = (struct history_series){.c = c};
			text_copy(grown->unit, sizeof(grown->unit), runs[r].judged->of_case[i].figure_unit);
			grown->lower_is_better = !strcmp(grown->unit, "ns");
			st = fill(h, grown, all, err);
		}
	}
	h->exit_code = code_of(h);
	return st;
}
