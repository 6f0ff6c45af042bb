/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/peers/fleet.h"
#include <math.h>
#include "core/text/text.h"
#include "judge/bound/bound.h"
#include "judge/case/range.h"

/* A factor explains a loss only if it is at most this many times the share of the range's end that was
 * reached; a larger factor lost too little. */
#define EXPLAINS 1.1

/* GPUs of one node: which of them the run used, and which failed by their range, by class. */
struct fleet {
	unsigned node;
	const struct judge_context *ctx; /* of the whole record */
	const struct judge_context *own; /* of the node */
	struct fleet_gpu {
		bool used, low[RANGE_CLASS_COUNT];
	} * gpu;
	bool low[RANGE_CLASS_COUNT]; /* every GPU that the run used was judged in this class and failed */
	size_t used, classes;
};

/* Finds the i-th GPU of the case among the node's GPUs; NULL past the last. */
static struct fleet_gpu *gpu_at(const struct fleet *f, const struct subject *s, size_t i)
{
	const struct gpu *g = subject_gpu(s, i);

	for (size_t k = 0; g && k < f->own->gpu_count; k++)
		if (f->own->gpu[k] == g)
			return &f->gpu[k];
	return NULL;
}

static bool of_fleet(const struct fleet *f, const struct judgement *j, struct subject *s, size_t i)
{
	const struct record_case *c = &f->ctx->record->cases[i];

	if (c->node != f->node || c->reading || c->job || record_is_isolation(c))
		return false;
	subject_of(s, f->ctx, c);
	return range_class_of(s) && j->has_band;
}

/* Marks the GPUs of all cases that measure, however the cases ended. A GPU that crashed was not judged, so it
 * is not one of the low ones. */
static void mark_used(struct fleet *f)
{
	const struct record *r = f->ctx->record;

	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];

		if (c->node != f->node || c->reading || c->job || c->skipped)
			continue;
		for (size_t k = 0; k < f->own->gpu_count; k++)
			f->gpu[k].used |= case_uses(c, f->own->gpu[k]->pci);
	}
	for (size_t k = 0; k < f->own->gpu_count; k++)
		f->used += f->gpu[k].used;
}

static void survey(struct fleet *f, const struct judgement *of_case)
{
	const struct record *r = f->ctx->record;
	struct subject s;

	mark_used(f);
	for (size_t i = 0; i < r->case_count; i++) {
		if (!of_fleet(f, &of_case[i], &s, i))
			continue;
		for (size_t k = 0; k < s.gpu_count; k++) {
			struct fleet_gpu *g = gpu_at(f, &s, k);

			if (!g)
				continue;
			g->low[range_class_of(&s)] |= of_case[i].below_range;
		}
	}
	for (int c = RANGE_COMPUTE; c < RANGE_CLASS_COUNT; c++) {
		bool all = true;

		for (size_t k = 0; k < f->own->gpu_count; k++)
			all = all && (!f->gpu[k].used || f->gpu[k].low[c]);
		f->low[c] = all && f->used >= 2;
		f->classes += f->low[c];
	}
}

/* The figure over the end of the range that it missed; above 1: better than the range. */
static double over_edge(const struct judgement *j)
{
	return !strcmp(j->figure_unit, "ns") ? j->band.high / j->figure : j->figure / j->band.low;
}

/* Finds the smallest factor other than `but`, if it is small enough to explain the loss. DRAM, for example,
 * is never busy all the time, even on a healthy card. */
static const struct factor *least_factor(const struct judgement *j, const char *but)
{
	const struct factor *least = NULL;

	for (size_t i = 0; i < j->gap_count; i++) {
		const struct factor *f = &j->gap[i];

		if (f->present && !f->shown_only && !f->assumed && strcmp(f->name, but) &&
		    (!least || f->value < least->value))
			least = f;
	}
	return least && least->value <= EXPLAINS * over_edge(j) ? least : NULL;
}

/* Finds the factor that lost more than the range allows for. The range of a GEMM is a clock times a share of
 * the bound at that clock. The clock of a healthy card is also far below its maximum, so both are compared
 * with the values that the range implies. */
static const struct factor *explains(const struct judgement *j, const struct subject *s)
{
	const struct band_row *tie, *held = expect_band(s->ctx->e, BAND_EFFICIENCY, subject_word, s, &tie);
	const struct factor *clock = NULL, *least;
	double bound = bound_flop_per_clock(s), hz, expected, busy;

	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, "clock") && j->gap[i].present)
			clock = &j->gap[i];
	least = least_factor(j, "");
	/* GPM's reading is calibrated by the other figures of the run, which are just as low here, so the raw
	 * reading counts. */
	if (least && !strcmp(least->name, "busy") && subject_gpm(s, "dram", &busy) &&
	    busy > EXPLAINS * over_edge(j))
		return NULL;
	if (range_class_of(s) != RANGE_COMPUTE || !clock || !held || tie || !(bound > 0) ||
	    !(j->efficiency_held > 0) || !record_number(s->phase, "clock_hz", &hz))
		return least;
	expected = j->band.low / (bound * held->low);
	if (hz / expected < j->efficiency_held / held->low)
		return clock;
	least = least_factor(j, "clock");
	return least && least->value < held->low ? least : NULL;
}

/* Writes "compute 0.71 .. 0.74 of it (clock 0.530: 1050 of 1980 MHz by stamps)". */
static void class_text(const struct fleet *f, const struct judgement *of_case, enum range_class which,
		       char *out, size_t size)
{
	const struct record *r = f->ctx->record;
	const struct factor *factor = NULL;
	double low = INFINITY, high = 0;
	struct subject s;
	size_t n;

	for (size_t i = 0; i < r->case_count; i++) {
		const struct judgement *j = &of_case[i];

		if (!of_fleet(f, j, &s, i) || range_class_of(&s) != which || !j->below_range)
			continue;
		low = fmin(low, over_edge(j));
		high = fmax(high, over_edge(j));
		if (!factor)
			factor = explains(j, &s);
	}
	n = (size_t)snprintf(out, size, "%s %.2f .. %.2f of it", range_class_name(which), low, high);
	if (factor && n < size)
		snprintf(out + n, size - n, " (%.20s %.3f: %.*s)", factor->name, factor->value,
			 (int)strcspn(factor->signal, which == RANGE_COMPUTE ? "" : ";"), factor->signal);
	else if (n < size)
		snprintf(out + n, size - n, " (no factor explains it)");
}

static bool replaced(const struct judgement *j)
{
	if (j->verdict != VERDICT_FAIL && j->verdict != VERDICT_WARN)
		return false;
	switch (j->cause) {
	case CAUSE_BELOW_BAND:
	case CAUSE_LOW_EFFICIENCY:
	case CAUSE_LOW_CLOCK:
	case CAUSE_NUMA_FAR:
		return true;
	case CAUSE_LINK_SLOW:
		return j->below_range;
	default:
		return false;
	}
}

static const char *node_name(const struct fleet *f)
{
	const struct record *r = f->ctx->record;

	return r->node_count > 1 ? r->node[f->node].name : "the node";
}

/* The first failing case carries the finding; the other cases of these classes refer to it. */
static void judge_node(struct judgement *of_case, const struct fleet *f)
{
	const struct record *r = f->ctx->record;
	char reason[sizeof(of_case->reason)], part[140], which[112];
	struct judgement *carrier = NULL;
	const struct record_case *first = NULL;
	struct subject s;
	size_t n;

	if (f->used < f->own->gpu_count)
		snprintf(which, sizeof(which), "that this run used, of %zu in %.40s,", f->own->gpu_count,
			 node_name(f));
	else
		snprintf(which, sizeof(which), "of %.40s", node_name(f));
	n = (size_t)snprintf(reason, sizeof(reason),
			     "all %zu GPUs %s are below the low end of their expected ranges: ", f->used,
			     which);
	for (int c = RANGE_COMPUTE, told = 0; c < RANGE_CLASS_COUNT; c++) {
		if (!f->low[c] || n >= sizeof(reason))
			continue;
		class_text(f, of_case, (enum range_class)c, part, sizeof(part));
		n += (size_t)snprintf(reason + n, sizeof(reason) - n, "%s%s", told++ ? "; " : "", part);
	}
	for (size_t i = 0; i < r->case_count; i++) {
		struct judgement *j = &of_case[i];

		if (!of_fleet(f, j, &s, i) || !f->low[range_class_of(&s)] || !replaced(j))
			continue;
		if (!carrier && j->below_range) {
			carrier = j;
			first = s.c;
			continue;
		}
		j->verdict = VERDICT_MEASURED;
		j->cause = CAUSE_FLEET_LOW;
		*j->part = '\0';
	}
	if (!carrier)
		return;
	carrier->verdict = VERDICT_FAIL;
	carrier->cause = CAUSE_FLEET_LOW;
	*carrier->part = '\0';
	text_copy(carrier->reason, sizeof(carrier->reason), reason);
	for (size_t i = 0; i < r->case_count; i++)
		if (of_case[i].cause == CAUSE_FLEET_LOW && &of_case[i] != carrier &&
		    r->cases[i].node == f->node)
			snprintf(of_case[i].reason, sizeof(of_case[i].reason),
				 "%.2f of the low end of its range, like all GPUs here: see case %u",
				 over_edge(&of_case[i]), first->id);
}

bool fleet_judge(struct judgement *out, const struct judge_context *ctx)
{
	size_t nodes = ctx->of_node ? ctx->record->node_count : 1;

	for (unsigned n = 0; n < nodes; n++) {
		struct fleet f = {.node = n, .ctx = ctx, .own = ctx->of_node ? &ctx->of_node[n] : ctx};

		if (f.own->gpu_count < 2)
			continue;
		f.gpu = calloc(f.own->gpu_count, sizeof(*f.gpu));
		if (!f.gpu)
			return false;
		survey(&f, out);
		if (f.classes >= 2)
			judge_node(out, &f);
		free(f.gpu);
	}
	return true;
}
