/* SPDX-License-Identifier: Apache-2.0 */
/* Groups rows for the layout: table columns, folds, cases without a verdict, settings to try. */
#include "report/view/build.h"
#include <inttypes.h>
#include <math.h>
#include "report/text/format.h"

enum { UNJUDGED_CASES = 3 }; /* cases that one entry names; the others are counted */

bool view_tabled(const struct view_row *row)
{
	return !row->aside && !row->in_curve && row->figure[0] && (!row->in_matrix || view_matrix_asks(row));
}

bool view_matrix_asks(const struct view_row *row)
{
	return view_badness(row->j->verdict) <= view_badness(VERDICT_WARN) &&
	       row->j->verdict != VERDICT_UNKNOWN;
}

const char *view_why(const struct view_row *row)
{
	return row->why[0] ? row->why : row->j->verdict == VERDICT_PASS ? "" : row->reason;
}

bool view_group_any(const struct view *v, size_t group)
{
	bool any = v->groups[group].tabled > 0;

	for (size_t i = 0; i < v->fold_count && !any; i++)
		any = v->folds[i].group == group;
	for (size_t i = 0; i < v->curve_count && !any; i++)
		any = v->curves[i].group == group;
	return any;
}

bool view_group_quiet(const struct view_group *g)
{
	return g->verdicts[VERDICT_PASS] + g->verdicts[VERDICT_MEASURED] + g->verdicts[VERDICT_SKIP] ==
	       g->asked;
}

bool view_fold_above(const struct view_fold *f)
{
	return view_badness(f->verdict) <= view_badness(VERDICT_WARN) && f->verdict != VERDICT_UNKNOWN;
}

/* True if an earlier row of the table has the same reason. For a failure the numbers in the reason must be
 * equal too. */
static bool repeats_reason(const struct view *v, const struct view_group *g, const struct view_row *row)
{
	for (const struct view_row *r = &v->rows[g->first]; r < row; r++)
		if (view_tabled(r) && r->j->verdict == row->j->verdict &&
		    (row->j->verdict == VERDICT_FAIL ? !strcmp(r->reason, row->reason)
						     : text_alike(r->reason, row->reason)))
			return true;
	return false;
}

/* Chooses each table's columns and shortens reasons that the reader finds elsewhere: the other columns
 * explain a pass, and the list of cases without a verdict explains a missing reference. */
static void shape_table(struct view *v)
{
	for (size_t g = 0; g < v->group_count; g++) {
		struct view_group *group = &v->groups[g];

		for (size_t i = group->first; i < group->first + group->count; i++) {
			struct view_row *row = &v->rows[i];
			const char *cause = cause_name(row->j->cause);

			if (view_tabled(row)) {
				group->tabled++;
				group->clock |= row->clock[0] != '\0';
				group->power |= row->power[0] != '\0';
				group->temperature |= row->temperature[0] != '\0';
			}
			if (!view_tabled(row) || (!cause[0] && !row->over[0]) ||
			    (row->j->verdict != VERDICT_PASS && view_asks(row) &&
			     !repeats_reason(v, group, row)))
				continue;
			snprintf(row->why, sizeof(row->why), "%s%s%s", cause,
				 cause[0] && row->over[0] ? "; " : "", row->over);
			for (char *c = row->why; *c; c++)
				*c = *c == '_' ? ' ' : *c;
		}
	}
}

/* True for cases without a verdict that "What to do" does not name. Cases that the suite does not ask to
 * judge are counted separately. */
static bool is_unjudged(const struct view_row *row)
{
	return !row->aside && row->j->verdict != VERDICT_MEASURED &&
	       (row->j->verdict == VERDICT_SKIP || !view_asks(row));
}

static bool passing_reading(const struct view_row *row)
{
	return row->c->reading && row->j->verdict == VERDICT_PASS && row->j->cause == CAUSE_NONE;
}

static void name_one(struct text *out, unsigned *count, unsigned most, const char *title)
{
	if (*count < most)
		text_addf(out, "%s%s", *count ? "; " : "", title);
	++*count;
}

static void add_to_fold(struct view *v, size_t group, struct view_row *row)
{
	static const char held[] = "all checks passed";
	const char *reason = passing_reading(row) ? held : row->reason;
	struct view_fold *f = NULL;

	for (size_t i = 0; i < v->fold_count && !f; i++)
		if (v->folds[i].group == group && v->folds[i].verdict == row->j->verdict &&
		    !strcmp(v->folds[i].reason, reason))
			f = &v->folds[i];
	if (!f) {
		f = &v->folds[v->fold_count++];
		*f = (struct view_fold){.group = group, .verdict = row->j->verdict, .reason = reason};
	}
	row->fold = 1 + (size_t)(f - v->folds);
	name_one(&f->cases, &f->count, VIEW_FOLD_CASES, row->title);
}

static void build_folds(struct view *v)
{
	for (size_t g = 0; g < v->group_count; g++)
		for (unsigned badness = 0; badness <= view_badness(VERDICT_SKIP); badness++)
			for (size_t i = v->groups[g].first; i < v->groups[g].first + v->groups[g].count;
			     i++) {
				struct view_row *row = &v->rows[i];

				if (!row->aside && !row->figure[0] && !is_unjudged(row) &&
				    view_badness(row->j->verdict) == badness)
					add_to_fold(v, g, row);
			}
	for (size_t i = 0; i < v->fold_count; i++)
		if (v->folds[i].count > VIEW_FOLD_CASES)
			text_addf(&v->folds[i].cases, "; and %u more", v->folds[i].count - VIEW_FOLD_CASES);
}

static struct view_unjudged *unjudged_of(struct view *v, enum verdict verdict, const char *reason)
{
	struct view_unjudged *u;

	for (size_t i = 0; i < v->unjudged_count; i++)
		if (v->unjudged[i].verdict == verdict && !strcmp(v->unjudged[i].reason, reason))
			return &v->unjudged[i];
	u = &v->unjudged[v->unjudged_count++];
	*u = (struct view_unjudged){.verdict = verdict, .reason = reason};
	return u;
}

static const char *measured_why(const struct view_row *row)
{
	if (row->aside || row->j->verdict != VERDICT_MEASURED || record_is_isolation(row->c))
		return NULL;
	if (row->in_curve)
		return "points of a curve";
	return row->reason && row->reason[0] ? row->reason : "a job, for which there is no reference";
}

/* The number of rows that were measured without a verdict for the same reason as this row; 0 if an earlier
 * row counts them. */
static unsigned measured_alike(const struct view *v, size_t row)
{
	const char *why = measured_why(&v->rows[row]);
	unsigned count = 0;

	for (size_t i = 0; why && i < v->row_count; i++) {
		const char *other = measured_why(&v->rows[i]);

		if (!other || strcmp(other, why))
			continue;
		if (i < row)
			return 0;
		count++;
	}
	return count;
}

/* Adds one last line for valid figures without a verdict. */
static void count_measured(struct view *v)
{
	static const char reason[] = "valid figures for which no verdict was requested";
	struct view_unjudged *u = NULL;

	for (size_t i = 0; i < v->row_count; i++) {
		unsigned count = measured_alike(v, i);

		if (!count)
			continue;
		if (!u)
			u = unjudged_of(v, VERDICT_MEASURED, reason);
		text_addf(&u->some, "%s%s: %u", u->count ? "; " : "", measured_why(&v->rows[i]), count);
		u->count += count;
	}
}

static bool is_absent(const struct view_row *row)
{
	return row->j->verdict == VERDICT_SKIP &&
	       (row->j->cause == CAUSE_NO_HARDWARE || row->j->cause == CAUSE_UNSUPPORTED);
}

enum { LACKS_MAX = 8, LACK = 120 };

/* The part of the reason that says what the machine lacks: without the reading's name before it and the
 * advice after it. */
static void lack_text(char out[LACK], const struct view_row *row)
{
	const char *why = row->reason, *colon = strstr(why, ": ");

	if (row->c->reading && colon)
		why = colon + 2;
	snprintf(out, LACK, "%.*s", (int)strcspn(why, ":"), why);
}

/* Appends the reasons with their counts. */
static void add_lacks(struct text *out, const struct view *v)
{
	char lack[LACKS_MAX][LACK], one[LACK];
	unsigned count[LACKS_MAX] = {0}, other = 0;
	size_t lacks = 0, k;

	for (size_t i = 0; i < v->row_count; i++) {
		if (v->rows[i].in_curve || !is_unjudged(&v->rows[i]) || !is_absent(&v->rows[i]))
			continue;
		lack_text(one, &v->rows[i]);
		for (k = 0; k < lacks && strcmp(lack[k], one); k++)
			;
		if (k == LACKS_MAX) {
			other++;
			continue;
		}
		if (k == lacks)
			text_copy(lack[lacks++], LACK, one);
		count[k]++;
	}
	for (k = 0; k < lacks; k++)
		text_addf(out, "%s%s: %u", k ? "; " : "", lack[k], count[k]);
	if (other)
		text_addf(out, "; other reasons: %u", other);
}

/* Entry `from` of the list of cases without a verdict is now entry `to`. */
static void move_unjudged(struct view *v, size_t from, size_t to)
{
	for (size_t i = 0; i < v->row_count && from != to; i++)
		if (v->rows[i].unjudged == from + 1)
			v->rows[i].unjudged = to + 1;
}

/* Joins all cases that cannot run on this machine into one entry. If all have the same reason, the entry
 * keeps its cases. */
static void join_absent(struct view *v)
{
	struct view_unjudged *first = NULL;
	size_t kept = 0, reasons = 0;

	for (size_t i = 0; i < v->unjudged_count; i++)
		reasons += v->unjudged[i].absent;
	if (reasons < 2)
		return;
	for (size_t i = 0; i < v->unjudged_count; i++) {
		struct view_unjudged *u = &v->unjudged[i];

		if (u->absent && first) {
			first->count += u->count;
			move_unjudged(v, i, (size_t)(first - v->unjudged));
			text_release(&u->some);
			continue;
		}
		v->unjudged[kept] = *u;
		move_unjudged(v, i, kept);
		if (u->absent)
			first = &v->unjudged[kept];
		kept++;
	}
	v->unjudged_count = kept;
	first->reason = "this machine cannot run them";
	text_release(&first->some);
	add_lacks(&first->some, v);
}

static void build_unjudged(struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++) {
		struct view_row *row = &v->rows[i];
		struct view_unjudged *u;

		if (row->in_curve || !is_unjudged(row))
			continue;
		u = unjudged_of(v, row->j->verdict, row->reason);
		row->unjudged = 1 + (size_t)(u - v->unjudged);
		u->absent = u->absent || is_absent(row);
		name_one(&u->some, &u->count, UNJUDGED_CASES, row->title);
	}
	for (size_t i = 0; i < v->unjudged_count; i++)
		if (v->unjudged[i].count > UNJUDGED_CASES)
			text_addf(&v->unjudged[i].some, "; and %u more",
				  v->unjudged[i].count - UNJUDGED_CASES);
	join_absent(v);
	count_measured(v);
}

static const struct advice *advice_of(const struct view_row *row, const struct view_knob *knob)
{
	for (size_t i = 0; i < row->j->advice_count; i++)
		if (!strcmp(row->where, knob->spread.target) && !strcmp(row->j->advice[i].knob, knob->knob))
			return &row->j->advice[i];
	return NULL;
}

static double share_of(const struct view_row *row)
{
	return isfinite(row->j->share_of_bound) ? row->j->share_of_bound : 0;
}

/* The next case of a setting in ascending order of (share of the bound, index), after `before`. */
static const struct view_row *next_case(const struct view *v, const struct view_knob *knob,
					const struct view_row *before)
{
	const struct view_row *next = NULL;

	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *row = &v->rows[i];
		double share = share_of(row);

		if (!advice_of(row, knob) ||
		    (before && (share < share_of(before) || (share == share_of(before) && row <= before))))
			continue;
		if (!next || share < share_of(next))
			next = row;
	}
	return next;
}

static void name_cases(const struct view *v, struct view_knob *knob)
{
	const struct view_row *row = NULL;

	for (size_t i = 0; i < v->row_count; i++)
		knob->count += advice_of(&v->rows[i], knob) != NULL;
	for (unsigned i = 0; i < VIEW_KNOB_CASES && (row = next_case(v, knob, row)); i++) {
		knob->named[i] = row;
		knob->gain[i] = advice_of(row, knob)->gain;
		text_addf(&knob->some, "%s%s (%s)", i ? "; " : "", row->title, knob->gain[i]);
	}
	if (knob->count > VIEW_KNOB_CASES)
		text_addf(&knob->some, "; and %u more", knob->count - VIEW_KNOB_CASES);
}

/* Builds the settings to try, in the order of their first case. */
static void build_knobs(struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++)
		for (size_t a = 0; a < v->rows[i].j->advice_count; a++) {
			struct view_knob *knob = &v->knobs[v->knob_count];
			bool known = false;

			*knob = (struct view_knob){.knob = v->rows[i].j->advice[a].knob};
			text_copy(knob->spread.target, sizeof(knob->spread.target), v->rows[i].where);
			knob->spread.node = v->rows[i].c->node;
			for (size_t k = 0; k < v->knob_count && !known; k++)
				known = !strcmp(v->knobs[k].spread.target, knob->spread.target) &&
					!strcmp(v->knobs[k].knob, knob->knob);
			if (known)
				continue;
			name_cases(v, knob);
			v->knob_count++;
		}
}

enum status view_shape(struct view *v, struct error *err)
{
	size_t room = v->row_count + 1, advice = 1;

	for (size_t i = 0; i < v->row_count; i++)
		advice += v->rows[i].j->advice_count;
	v->folds = calloc(room, sizeof(*v->folds));
	v->unjudged = calloc(room, sizeof(*v->unjudged));
	v->knobs = calloc(advice, sizeof(*v->knobs));
	if (!v->folds || !v->unjudged || !v->knobs || !curve_collect(&v->curves, &v->curve_count, v) ||
	    !matrix_collect(&v->matrices, &v->matrix_count, v))
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a report of %zu cases",
				 v->row_count);
	shape_table(v);
	build_folds(v);
	build_unjudged(v);
	build_knobs(v);
	return STATUS_OK;
}

void view_shape_release(struct view *v)
{
	for (size_t i = 0; i < v->fold_count; i++)
		text_release(&v->folds[i].cases);
	for (size_t i = 0; i < v->unjudged_count; i++)
		text_release(&v->unjudged[i].some);
	for (size_t i = 0; i < v->knob_count; i++)
		text_release(&v->knobs[i].some);
	free(v->folds);
	free(v->unjudged);
	free(v->knobs);
	free(v->curves);
	free(v->matrices);
}

void view_aside(struct text *out, const struct view *v, const char *before)
{
	size_t count = 0;
	bool first = true;

	for (size_t g = 0; g < v->group_count; g++)
		count += v->groups[g].aside;
	if (!count)
		return;
	text_addf(out, "%s%zu more %s of the suite %s for other targets (", before, count,
		  count == 1 ? "case" : "cases", count == 1 ? "is" : "are");
	for (size_t g = 0; g < v->group_count; g++) {
		if (!v->groups[g].aside)
			continue;
		text_addf(out, "%s%s", first ? "" : ", ", v->groups[g].target);
		first = false;
	}
	text_add(out, ")");
}

bool view_ends_early(struct text *out, const struct record *r)
{
	if (r->cut_bytes)
		text_addf(out,
			  "journal cannot be read from line %" PRIu64 " on (%" PRIu64
			  " bytes); this report shows the lines before it",
			  r->cut_line, r->cut_bytes);
	else if (!r->closed)
		text_add(
			out,
			"journal ends before the end of the run; this report shows what was written until then");
	return r->cut_bytes || !r->closed;
}

bool view_rebooted(struct text *out, const struct view *v)
{
	const struct record *r = v->in->record;
	bool any = false;

	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];

		if (c->reboot == REBOOT_NONE)
			continue;
		text_addf(out, "%s %s case %u, ",
			  any ? ", and"
			      : "the machine was restarted before the run was resumed; it had gone down",
			  c->reboot == REBOOT_WITHIN ? "in" : "after", c->id);
		pseudonym_map_add(&v->names, out, c->key);
		text_addf(out, " on %s", c->where);
		any = true;
	}
	return any;
}

bool view_stated(struct text *out, const struct view *v)
{
	if (!v->in->judged->has_stated)
		return false;
	text_add(out, "compared with the stated machine: ");
	pseudonym_map_add(&v->names, out, v->in->judged->stated.reason);
	return true;
}

const struct view_row *view_best(const struct view *v, const struct view_group *g, const char *limit)
{
	const struct view_row *best = NULL;

	for (size_t i = g->first; i < g->first + g->count; i++) {
		const struct view_row *row = &v->rows[i];

		if (row->headline && row->j->verdict != VERDICT_UNTRUSTED &&
		    row->j->verdict != VERDICT_ERROR && !strncmp(row->c->limit, limit, strlen(limit)) &&
		    (!best || row->j->figure > best->j->figure))
			best = row;
	}
	return best;
}
