/* SPDX-License-Identifier: Apache-2.0 */
/* What to do: one entry per cause, target and action, worst first. */
#include <math.h>
#include "report/view/build.h"

static void add_todo(struct view *v, const struct view_row *row, const char *action)
{
	struct view_todo *t = NULL;

	for (size_t i = 0; i < v->todo_count && !t; i++)
		if (v->todos[i].cause == row->j->cause && v->todos[i].verdict == row->j->verdict &&
		    !strcmp(v->todos[i].spread.target, row->where) && !strcmp(v->todos[i].action, action))
			t = &v->todos[i];
	if (!t) {
		t = &v->todos[v->todo_count++];
		*t = (struct view_todo){.verdict = row->j->verdict,
					.cause = row->j->cause,
					.action = action,
					.reason = row->reason};
		text_copy(t->spread.target, sizeof(t->spread.target), row->where);
		t->spread.node = row->c->node;
		t->residual_low = t->residual_high = row->j->unexplained;
	}
	t->residual_low = fmin(t->residual_low, row->j->unexplained);
	t->residual_high = fmax(t->residual_high, row->j->unexplained);
	text_addf(&t->cases, "%s%s", t->count ? "; " : "", row->title);
	if (t->count < VIEW_TODO_CASES) {
		text_addf(&t->some, "%s%s", t->count ? "; " : "", row->title);
		t->named[t->count] = row;
	}
	t->count++;
}

/* For several cases: the range of their unexplained factors, because the reason of the first case has only
 * its own. */
static void name_range(struct view_todo *t)
{
	if (t->cause != CAUSE_UNEXPLAINED || t->count < 2 || !isfinite(t->residual_low) ||
	    !isfinite(t->residual_high))
		return;
	snprintf(t->range, sizeof(t->range),
		 "the factors do not reproduce the figures: residual %.3f .. %.3f", t->residual_low,
		 t->residual_high);
	t->reason = t->range;
}

bool view_asks(const struct view_row *row)
{
	const struct judgement *j = row->j;

	if (j->verdict == VERDICT_MEASURED)
		return false;
	return j->verdict != VERDICT_UNKNOWN || record_asks_judgement(row->c) ||
	       (j->cause != CAUSE_NONE && j->cause != CAUSE_NO_REFERENCE);
}

/* True for the jobs whose commands have no --resume. */
static bool cannot_resume(const struct view_row *row)
{
	return row->c->job && (!strcmp(row->c->probe, "serve") || !strcmp(row->c->probe, "load"));
}

/* Only a run of one process can be resumed; a run of several ranks must start again. */
static const char *action_of(const struct view *v, const struct view_row *row)
{
	enum cause cause = row->j->cause;
	bool stopped = cause == CAUSE_INTERRUPTED || cause == CAUSE_CUT;

	if (cause == CAUSE_BLAS_KERNEL && row->j->advice_count) /* this run measured that the command helps */
		return row->j->advice[0].knob;

	if (stopped && json_object_get(v->in->record->open, "team"))
		return "start a new run: a run of several ranks cannot be resumed";
	if (stopped && cannot_resume(row))
		return "start a new run: the command has no --resume";
	return cause_action(cause);
}

/* Worst first; within one verdict the order of the rows. */
void view_todos_build(struct view *v)
{
	for (unsigned badness = 0; badness <= view_badness(VERDICT_WARN); badness++)
		for (size_t i = 0; i < v->row_count; i++) {
			const struct view_row *row = &v->rows[i];

			if (view_badness(row->j->verdict) != badness || !view_asks(row))
				continue;
			add_todo(v, row, action_of(v, row));
		}
	for (size_t i = 0; i < v->todo_count; i++) {
		if (v->todos[i].count > VIEW_TODO_CASES)
			text_addf(&v->todos[i].some, "; and %u more", v->todos[i].count - VIEW_TODO_CASES);
		name_range(&v->todos[i]);
	}
}
