/* SPDX-License-Identifier: Apache-2.0 */
/* Changes on the GPUs of a case during the run: counters that rose, NVML that stopped answering, missing
 * telemetry, Xids, a reboot. Each finding belongs to the case in which the change happened
 * (docs/explanation/design/readings.md). */
#include "judge/case/gpu_changes.h"
#include "core/math/plausible_range.h"
#include <math.h>
#include <stdlib.h>
#include "judge/case/verdict.h"

#define LONG_BEFORE_S 0.5 /* the driver may delay the sampler this long */

/* Signals that show whether a GPU was healthy in a window, and how often they are read. */
static const struct {
	const char *name;
	double period_s;
} watched[] = {{"sm_clock_mhz", 0.02}, {"temperature_c", 1}, {"clock_reasons", 0.02}};

static const struct record_case *by_id(const struct record *r, json_int_t id)
{
	for (size_t i = 0; i < r->case_count; i++)
		if (r->cases[i].id == (unsigned)id)
			return &r->cases[i];
	return NULL;
}

/* The case of a search is evidence for another case, which is judged. */
static const struct record_case *judged_case(const struct record *r, const struct record_case *c)
{
	for (unsigned depth = 0; c && record_is_isolation(c) && depth < 8; depth++)
		c = by_id(r,
			  json_integer_value(json_object_get(json_object_get(c->plan, "follows"), "case")));
	return c;
}

static bool fell(const struct record_case *c)
{
	return c->ended && (c->ending != ENDING_DONE || c->status != STATUS_OK);
}

/* The case to which a change in [t0, t1] belongs. */
struct where {
	const struct record_case *c; /* NULL: no case of the run uses the GPU */
	unsigned cases, first, last; /* number of cases that ran in that time, and ids of the first and last;
					cases 0: none */
};

/* Finds the case that ran at that time. Among several cases it takes one that did not end normally, else the
 * last. If none ran, it takes the case before, else the first. */
static void find_case(struct where *w, const struct record *r, const char *pci, uint64_t t0_ns,
		      uint64_t t1_ns)
{
	const struct record_case *within = NULL, *before = NULL, *any = NULL;

	*w = (struct where){0};
	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];
		uint64_t end_ns = c->ended ? c->t1_ns : UINT64_MAX;

		if (c->skipped || !case_uses(c, pci))
			continue;
		any = any ? any : c;
		if (!c->begun || c->t0_ns > t1_ns)
			continue;
		if (!before || c->t0_ns >= before->t0_ns)
			before = c;
		if (end_ns < t0_ns)
			continue;
		w->first = w->cases++ ? w->first : c->id;
		w->last = c->id;
		if (!within || fell(c) > fell(within) ||
		    (fell(c) == fell(within) && c->t0_ns >= within->t0_ns))
			within = c;
	}
	w->c = judged_case(r, within ? within : before ? before : any);
}

/* Time at which the sampler saw the change, between the two readings; 0: it did not see it. */
static uint64_t moment(const struct record *r, const struct health_change *c)
{
	bool brake = !strcmp(c->name, "violation_power_brake_s");
	bool heat = !strcmp(c->name, "violation_hw_thermal_s");
	bool replays = !strcmp(c->name, "pcie_replays");
	bool memory = !strncmp(c->name, "ecc_", 4) || !strncmp(c->name, "remap", 5) || c->state;
	const char *signal = brake || heat ? "clock_reasons" : replays ? c->name : memory ? "xid" : "";
	unsigned bits = brake ? 0x80 : 0x48;
	const struct series *s = *signal ? gpu_series(r, c->pci, signal) : NULL;

	for (size_t i = s ? series_lower_bound(s, c->t0_ns) : 0; s && i < s->count && s->t_ns[i] <= c->t1_ns;
	     i++)
		if (memory || (replays && s->value[i] > c->before) ||
		    (!replays && s->value[i] >= 0 && s->value[i] < 0x1p32 && ((unsigned)s->value[i] & bits)))
			return s->t_ns[i];
	return 0;
}

static void where_of(struct where *w, const struct record *r, const struct health_change *c)
{
	uint64_t t_ns = moment(r, c);

	find_case(w, r, c->pci, t_ns ? t_ns : c->t0_ns, t_ns ? t_ns : c->t1_ns);
}

static void where_text(char *out, size_t size, const struct where *w, const struct health_change *c)
{
	if (w->cases == 1 || (w->cases && w->first == w->last))
		snprintf(out, size, "in this case");
	else if (w->cases)
		snprintf(out, size, "in one of %u cases, case %u to case %u", w->cases, w->first, w->last);
	else if (c->interrupted)
		snprintf(out, size, "while the run was interrupted");
	else
		snprintf(out, size, "while no case ran on it");
}

static bool in_seconds(const struct health_change *c)
{
	size_t n = strlen(c->name);

	return n > 2 && !strcmp(c->name + n - 2, "_s");
}

/* Time counters that grew while the run was interrupted belong to other programs. */
static double rise(const struct health_change *c)
{
	return c->interrupted && in_seconds(c) ? 0 : fmax(c->now - c->before, 0);
}

static bool is_of(const struct health_change *c, const char *pci, const struct rule *r)
{
	size_t n = strlen(c->name);

	return !strcmp(c->pci, pci) && !strncmp(r->field, c->name, n) && !strcmp(r->field + n, ".rise");
}

/* Returns how much of the rise happened in this case. *last: index of the case's last change of the counter.
 * *total: rise in the whole run. `at`: for each change of the record, the case it belongs to. */
static double rise_in(const struct record *r, const struct where *at, const struct record_case *c,
		      const char *pci, const struct rule *rule, double *total, size_t *last)
{
	const struct health *h = &r->health;
	double own = 0;

	*total = 0;
	*last = 0;
	for (size_t i = 0; i < h->change_count; i++) {
		if (!is_of(&h->change[i], pci, rule) || !(rise(&h->change[i]) > 0))
			continue;
		*total += rise(&h->change[i]);
		if (at[i].c != c)
			continue;
		own += rise(&h->change[i]);
		*last = i;
	}
	return own;
}

/* True if no other case has a larger share of the rise; of equal shares, the first case counts. */
static bool has_most(const struct record *r, const struct where *at, const struct record_case *c,
		     const char *pci, const struct rule *rule, double own)
{
	const struct health *h = &r->health;
	double *rose = calloc(r->case_count + 1, sizeof(*rose));
	bool most = true;

	for (size_t i = 0; rose && i < h->change_count; i++) {
		if (at[i].c && is_of(&h->change[i], pci, rule) && rise(&h->change[i]) > 0)
			rose[at[i].c - r->cases] += rise(&h->change[i]);
	}
	for (size_t i = 0; rose && i < r->case_count; i++)
		most = most && (&r->cases[i] == c || rose[i] < own || (rose[i] == own && &r->cases[i] > c));
	free(rose);
	return most;
}

static void rise_of(struct judgement *out, const struct subject *s, const struct where *at, const char *pci,
		    const struct rule *rule)
{
	const struct record *r = s->ctx->record;
	const struct health_change *last;
	size_t number;
	double total, own = rise_in(r, at, s->c, pci, rule, &total, &number);
	char place[64];

	if (!(own > 0) || !rule_compare(rule, total, rule->than) ||
	    (!rule_compare(rule, own, rule->than) && !has_most(r, at, s->c, pci, rule, own)))
		return;
	if (rule->verdict == VERDICT_PASS) {
		remark(out, rule->cause);
		return;
	}
	last = &r->health.change[number];
	where_text(place, sizeof(place), &at[number], last);
	finding(out, rule->verdict, rule->cause, "%s (%.*s rose by %g to %g on %s %s%s%.60s): %s", rule->text,
		(int)(strlen(rule->field) - strlen(".rise")), rule->field, own, last->now, pci, place,
		*last->parts ? "; " : "", last->parts, rule->action);
}

/* A counter that only grows now reports less than before, so the events since the last reading are not known.
 */
static void reset_of(struct judgement *out, const struct subject *s, const struct where *at, const char *pci,
		     const struct rule *rule)
{
	const struct health *h = &s->ctx->record->health;

	for (size_t i = 0; i < h->change_count; i++) {
		const struct health_change *c = &h->change[i];
		char place[64];

		if (at[i].c != s->c || !is_of(c, pci, rule) || c->state || c->interrupted ||
		    c->now >= c->before)
			continue;
		where_text(place, sizeof(place), &at[i], c);
		finding(out, rule->verdict == VERDICT_FAIL ? VERDICT_UNKNOWN : VERDICT_WARN,
			CAUSE_COUNTER_RESET,
			"%s fell from %g to %g on %s %s, so events in between are not known; find out "
			"who reset it, and repeat the run",
			c->name, c->before, c->now, pci, place);
	}
}

/* A counter whose rise fails a run, and that the GPU no longer reported at the end. */
static void missing_of(struct judgement *out, const struct subject *s, const struct where *at,
		       const char *pci, const struct rule *rule)
{
	const struct health *h = &s->ctx->record->health;

	for (size_t i = 0; rule->verdict == VERDICT_FAIL && i < h->change_count; i++) {
		const struct health_change *c = &h->change[i];

		if (at[i].c == s->c && c->missing && is_of(c, pci, rule))
			finding(out, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST,
				"NVML reported %s of %s at first and not at the end, so assay cannot tell "
				"whether it rose; read the kernel log, and repeat the run",
				c->name, pci);
	}
}

static bool is_rise(const struct rule *r)
{
	size_t n = strlen(r->field);

	return n > 5 && !strcmp(r->field + n - 5, ".rise") && !r->than_field && !r->than_text;
}

static void rises(struct judgement *out, const struct subject *s, const struct where *at)
{
	const struct expectations *e = s->ctx->e;
	const struct gpu *g;

	for (size_t i = 0; i < e->rule_count && s->ctx->record->health.change_count; i++) {
		const struct rule *rule = &e->rule[i];

		if (!is_rise(rule) || !when_matches(&rule->when, subject_word, s) ||
		    (rule->unless.count && when_matches(&rule->unless, subject_word, s)))
			continue;
		for (size_t k = 0; (g = subject_gpu(s, k)); k++) {
			rise_of(out, s, at, g->pci, rule);
			reset_of(out, s, at, g->pci, rule);
			missing_of(out, s, at, g->pci, rule);
		}
	}
}

/* The case that ran when NVML stopped answering. The sampler notices this before the next health reading. */
static const struct record_case *silence_case(const struct record *r, const struct health_silence *x)
{
	const struct series *s = gpu_series(r, x->pci, "nvml_error");
	size_t behind = s ? series_lower_bound(s, x->t_ns) : 0;
	uint64_t t_ns = behind ? s->t_ns[behind - 1] : x->t_ns;
	struct where w;

	find_case(&w, r, x->pci, t_ns, t_ns);
	return w.c;
}

static void silences(struct judgement *out, const struct subject *s, bool lost)
{
	const struct record *r = s->ctx->record;

	for (size_t i = 0; i < r->health.silence_count; i++) {
		const struct health_silence *x = &r->health.silence[i];

		if (!case_uses(s->c, x->pci) || lost != (x->cuda == CUDA_FAILS && x->lost) ||
		    silence_case(r, x) != s->c)
			continue;
		if (lost)
			finding(out, VERDICT_ERROR, CAUSE_GPU_LOST,
				"%s was lost: NVML says \"%s\", and CUDA does not reach it (%s)", x->pci,
				x->nvml, x->why);
		else
			finding(out, VERDICT_UNKNOWN,
				x->mismatch && x->cuda != CUDA_ANSWERS ? CAUSE_VERSION_MISMATCH
								       : CAUSE_TELEMETRY_LOST,
				"NVML stopped answering for %s (\"%s\"); CUDA %s%s%s: read the kernel log, "
				"then reload the driver",
				x->pci, x->nvml,
				x->cuda == CUDA_ANSWERS ? "still reaches it"
				: x->cuda == CUDA_FAILS ? "does not reach it"
							: "could not be queried",
				*x->why ? ": " : "", x->why);
	}
}

static bool came_before(const struct record *r, const char *pci, const char *signal, uint64_t t_ns)
{
	const struct series *s = gpu_series(r, pci, signal);

	for (size_t i = 0; s && i < s->count && s->t_ns[i] < t_ns; i++)
		if (plausible_under_load(s->signal, s->value[i]))
			return true;
	return json_is_true(json_object_get(json_object_get(r->open, "options"), "sample")) &&
	       health_supplied(&r->health, pci, signal);
}

/* True if the window has a reading that a working device can have. A window shorter than two periods may hold
 * no reading of a healthy sampler, so readings shortly before and after it also count. */
static bool came_in(const struct record *r, const char *pci, size_t signal, uint64_t t0_ns, uint64_t t1_ns)
{
	const struct series *s = gpu_series(r, pci, watched[signal].name);
	double least_s = 2 * watched[signal].period_s + LONG_BEFORE_S;
	double short_s = least_s - (double)(t1_ns - t0_ns) * 1e-9;
	uint64_t more_ns = short_s > 0 ? (uint64_t)(short_s * 1e9) : 0;
	size_t at;

	if (!s)
		return false;
	at = series_lower_bound(s, t0_ns > more_ns ? t0_ns - more_ns : 0);
	for (; at < s->count && s->t_ns[at] <= t1_ns + more_ns; at++)
		if (plausible_under_load(s->signal, s->value[at]))
			return true;
	return false;
}

static void dark(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	uint64_t t0_ns = s->phase && s->phase->has_window ? s->phase->t0_ns : s->c->t0_ns;
	uint64_t t1_ns = s->phase && s->phase->has_window ? s->phase->t1_ns : s->c->t1_ns;
	const struct gpu *g;

	for (size_t i = 0; (g = subject_gpu(s, i)); i++)
		for (size_t k = 0; k < sizeof(watched) / sizeof(watched[0]); k++)
			if (came_before(r, g->pci, watched[k].name, t0_ns) &&
			    !came_in(r, g->pci, k, t0_ns, t1_ns))
				finding(out, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST,
					"readings of %s of %s stopped before this window, so assay cannot tell whether "
					"the GPU was healthy in it",
					watched[k].name, g->pci);
}

void changes_lost(struct judgement *out, const struct subject *s)
{
	if (s->c->begun)
		silences(out, s, true);
}

void changes_xids(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	const struct gpu *g;

	for (size_t k = 0; !s->c->skipped && (g = subject_gpu(s, k)); k++) {
		const struct series *series = gpu_series(r, g->pci, "xid");
		const struct xid_row *row;
		unsigned count = 0;
		int first = 0;

		for (size_t i = 0; series && i < series->count; i++) {
			struct where w;

			find_case(&w, r, g->pci, series->t_ns[i], series->t_ns[i]);
			if (w.c == s->c && !count++)
				first = (int)series->value[i];
		}
		if (!count)
			continue;
		row = expect_xid(s->ctx->e, first);
		finding(out, row ? row->during : VERDICT_WARN, CAUSE_XID,
			"Xid %d (%s) of %s during the case, %u in its burst: %s", first,
			row ? row->name : "not in the catalogue", g->pci, count,
			row ? row->action : "look it up in NVIDIA's catalogue");
	}
}

static void judge_case(struct judgement *out, const struct subject *s, const struct where *at)
{
	const struct record_case *c = s->c;
	const struct gpu *g;

	if (c->skipped || record_is_isolation(c))
		return;
	rises(out, s, at);
	silences(out, s, false);
	for (size_t k = 0; (g = subject_gpu(s, k)); k++)
		if (gpu_series(s->ctx->record, g->pci, "xid_unwatched"))
			remark(out, CAUSE_NO_LOG);
	if (!c->reading && !c->job && c->ended && c->ending == ENDING_DONE && c->status == STATUS_OK)
		dark(out, s);
	if (c->reboot == REBOOT_WITHIN)
		finding(out, VERDICT_WARN, CAUSE_REBOOTED,
			"the machine rebooted while this case ran, and the case then ran again: %s",
			cause_action(CAUSE_REBOOTED));
	else if (c->reboot == REBOOT_BEHIND)
		finding(out, VERDICT_WARN, CAUSE_REBOOTED,
			"the machine rebooted after this case and before the next: %s",
			cause_action(CAUSE_REBOOTED));
}

bool changes_judge(struct judgement *of_case, const struct judge_context *ctx)
{
	size_t nodes = ctx->of_node ? ctx->record->node_count : 1;

	for (size_t n = 0; n < nodes; n++) {
		const struct record *r = ctx->of_node ? ctx->of_node[n].record : ctx->record;
		struct where *at = calloc(r->health.change_count + 1, sizeof(*at));
		struct subject s;

		if (!at)
			return false;
		for (size_t i = 0; i < r->health.change_count; i++)
			where_of(&at[i], r, &r->health.change[i]);
		for (size_t i = 0; i < r->case_count; i++) {
			subject_of(&s, ctx, &r->cases[i]);
			judge_case(&of_case[&r->cases[i] - ctx->record->cases], &s, at);
		}
		free(at);
	}
	return true;
}
