/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a whole record: every case by itself, then siblings, gap and advice, then the run as a whole. */
#include "judge/judge.h"
#include "judge/advice/advice.h"
#include "judge/advice/attention_engines.h"
#include "judge/case/gpu_changes.h"
#include "judge/case/collective_choice.h"
#include "judge/case/context.h"
#include "judge/peers/contradictions.h"
#include "judge/exit.h"
#include "judge/peers/fleet.h"
#include "judge/gap/gap.h"
#include "judge/peers/isolation.h"
#include "judge/advice/blas_kernels.h"
#include "judge/peers/gpu_pairs.h"
#include "judge/advice/unit_use.h"
#include "judge/peers/nodes.h"
#include "judge/judge_run.h"
#include "judge/peers/siblings.h"
#include "judge/expect/site.h"
#include "judge/case/verdict.h"
#include "judge/advice/collective_ways.h"
#include "core/text/text.h"

enum { LINES_MAX = 64, LINE_SIZE = 200 };

static bool line_add(char (**lines)[LINE_SIZE], size_t *count, const char *text)
{
	char(*grown)[LINE_SIZE];
	size_t i;

	for (i = 0; i < *count; i++)
		if (!strncmp((*lines)[i], text, LINE_SIZE - 1))
			return true;
	if (*count == LINES_MAX)
		return true;
	grown = realloc(*lines, (*count + 1) * sizeof(*grown));
	if (!grown)
		return false;
	*lines = grown;
	text_copy(grown[(*count)++], LINE_SIZE, text);
	return true;
}

/* Collects what assay could not read, for lack of rights, libraries or a free device. */
static bool could_not_look(struct judgements *out, const struct judge_context *ctx)
{
	char line[LINE_SIZE], prefix[48];
	size_t i;

	for (i = 0; i < out->count; i++) {
		const struct judgement *j = &out->of_case[i];
		const char *action = cause_action(j->cause);

		if (j->cause != CAUSE_PERMISSION && j->cause != CAUSE_NO_LOG &&
		    j->cause != CAUSE_DRIVER_MISSING && j->cause != CAUSE_LIBRARY_MISSING &&
		    j->cause != CAUSE_BUSY && j->cause != CAUSE_NOT_GRANTED)
			continue;
		if (ctx->record->cases[i].reading && j->verdict != VERDICT_PASS)
			action = ""; /* its reason already ends with what to do */
		snprintf(prefix, sizeof(prefix), "%.40s: ", ctx->record->cases[i].probe);
		if (!strncmp(j->reason, prefix,
			     strlen(prefix))) /* the reason already begins with the probe's name */
			*prefix = '\0';
		snprintf(line, sizeof(line), "%s%.*s%s%.70s", prefix, *action ? 110 : 190,
			 j->verdict == VERDICT_PASS ? cause_text(j->cause) : j->reason, *action ? "; " : "",
			 action);
		if (!line_add(&out->could_not_look, &out->could_not_look_count, line))
			return false;
	}
	for (i = 0; i < ctx->gpu_count; i++) {
		const struct gpu *g = ctx->gpu[i];

		if (g->status == STATUS_OK)
			continue;
		snprintf(line, sizeof(line), "GPU %s: %.120s", g->pci,
			 *g->reason ? g->reason : cause_text(g->cause));
		if (!line_add(&out->could_not_look, &out->could_not_look_count, line))
			return false;
	}
	return true;
}

static bool operator_input(struct judgements *out, const struct judge_context *ctx, const struct site *site)
{
	static const struct record_case no_case = {
		.probe = "", .engine = "", .target = "", .limit = "", .phases = "", .key = "", .group = ""};
	const struct subject s = {.ctx = ctx, .c = &no_case, .kind = "", .type = "", .phase_name = ""};
	size_t i;

	if (ctx->record->case_count && ctx->record->cases[0].job)
		return true; /* a job asks nothing about the machine */
	for (i = 0; i < ctx->e->operator_count; i++) {
		const struct operator_row *o = &ctx->e->operator_[i];

		if ((site->stated && strstr(o->text, "--expect")) ||
		    !when_matches(&o->when, subject_word, &s))
			continue;
		if (!line_add(&out->operator_input, &out->operator_input_count, o->text))
			return false;
	}
	return true;
}

/* Fills in the reference that would judge a case that has not run. */
static void ahead_of(struct judgement *out, const struct subject *s)
{
	const struct unknown_row *u = expect_unknown(s->ctx->e, subject_word, s);
	const struct ceiling_row *c = s->gpu ? NULL : expect_ceiling(s->ctx->e, subject_word, s);
	const struct rule *rule = subject_judging_rule(s);
	const struct band_row *b = NULL;
	char terms[240];
	int slot;

	*out = (struct judgement){.verdict = VERDICT_PASS};
	text_copy(out->figure_field, sizeof(out->figure_field), s->field);
	text_copy(out->figure_unit, sizeof(out->figure_unit), s->unit);
	text_copy(out->phase, sizeof(out->phase), s->phase_name);
	if (s->c->skipped &&
	    s->c->skip_cause !=
		    CAUSE_RECORDED) { /* for a recorded case, show what would judge it on a live machine */
		verdict_ending(out, s);
		return;
	}
	bound_of(s, &out->bound);
	if (!u && !s->c->reading)
		choice_reference_of_plan(out, s);
	for (slot = BAND_RATE; !u && !b && slot <= BAND_EFFICIENCY; slot++)
		b = choice_band(s, (enum band_slot)slot, NULL);
	if (s->c->reading) {
		out->judged_by = JUDGED_RULE;
		text_copy(out->reason, sizeof(out->reason),
			  "judged by the rules of health.yaml for the fields it reads");
	} else if (u) {
		verdict_unreferenced(out, s, u->why);
	} else if (b) {
		out->least = (struct fallback_expectation){0};
		verdict_band(out, s, b);
		out->has_band =
			b->slot <= BAND_TIME; /* a range of shares has no rate until a clock is held */
		band_terms(b, terms, sizeof(terms));
		snprintf(out->reason, sizeof(out->reason), "range %.40s: %.90s%s%.60s; %.110s", b->name,
			 terms, *terms ? "; " : "", out->band.basis, b->source.text);
	} else if (c && strcmp(s->c->probe, "peak")) {
		out->judged_by = JUDGED_CEILING;
		out->bound.from = BOUND_CEILING;
		out->ahead.ceiling_pass = c->pass * c->traffic;
		out->ahead.ceiling_above = c->above * c->traffic;
		snprintf(out->reason, sizeof(out->reason),
			 "judged by this run's own ceiling: passes from %.2f, fails below %.2f", c->pass,
			 c->fail);
	} else if (rule) {
		out->judged_by = JUDGED_RULE;
		snprintf(out->reason, sizeof(out->reason), "rule %.60s: %.160s", rule->name,
			 rule->source.text);
	} else {
		verdict_unjudged(out, s, terms, sizeof(terms));
		verdict_unreferenced(out, s, terms);
	}
}

/* Of two rounds of a case the better one counts, but it never replaces a failure or an error. */
static void second_rounds(struct judgements *out, const struct record *r)
{
	for (size_t i = 0; i < r->case_count; i++) {
		const json_t *again = json_object_get(r->cases[i].plan, "again");
		size_t first = json_is_integer(again) ? (size_t)json_integer_value(again) : i;
		struct judgement *a, *b;

		if (first >= i || strcmp(r->cases[first].key, r->cases[i].key) ||
		    strcmp(r->cases[first].target, r->cases[i].target))
			continue;
		a = &out->of_case[first];
		b = &out->of_case[i];
		if (verdict_weight(a->verdict) < verdict_weight(b->verdict)) {
			struct judgement *better = a;

			a = b;
			b = better;
		}
		a->superseded = a->verdict == b->verdict ||
				(a->verdict != VERDICT_FAIL && a->verdict != VERDICT_ERROR);
		if (a->superseded) {
			size_t used = strlen(a->reason);

			text_copy(a->reason + used, sizeof(a->reason) - used,
				  "; the other round of this case counts");
		}
	}
}

const char *judged_by_name(enum judged_by by)
{
	static const char *const names[] = {
#define X(name, text) text,
		JUDGED_LIST(X)
#undef X
	};

	return by >= 0 && by < JUDGED_COUNT ? names[by] : "";
}

enum status judge_run(struct judgements *out, const struct judge_context *of, const struct judge_site *from,
		      struct error *err)
{
	struct judge_context with = *of;
	const struct judge_context *ctx = &with;
	const struct record *r = ctx->record;
	struct site site;
	struct subject s;
	enum status status;
	size_t i;

	*out = (struct judgements){0};
	status = site_read(&site, from, ctx->e, err);
	if (status)
		return status;
	with.site = site.stated ? &site : NULL;
	out->of_case = calloc(r->case_count + 1, sizeof(*out->of_case));
	if (!out->of_case)
		goto no_memory;
	out->count = r->case_count;
	text_copy(out->expectations_hash, sizeof(out->expectations_hash), ctx->e->hash);
	for (i = 0; i < r->case_count; i++) {
		subject_of(&s, ctx, &r->cases[i]);
		if (ctx->ahead) {
			ahead_of(&out->of_case[i], &s);
			continue;
		}
		verdict_of(&out->of_case[i], &s);
	}
	if (!ctx->ahead) {
		if (!changes_judge(out->of_case, ctx) || !contradictions_judge(out->of_case, ctx))
			goto no_memory;
		siblings_judge(out->of_case, ctx);
		links_judge(out->of_case, ctx);
	}
	/* Again, because siblings may have passed an undecided case, and changes weigh more. */
	if (!ctx->ahead && !changes_judge(out->of_case, ctx))
		goto no_memory;
	for (i = 0; i < r->case_count && !ctx->ahead; i++) {
		subject_of(&s, ctx, &r->cases[i]);
		isolated_explain(&out->of_case[i], &s);
		blas_retry_explain(&out->of_case[i], &s);
	}
	for (i = 0; i < r->case_count && !ctx->ahead; i++) {
		subject_of(&s, ctx, &r->cases[i]);
		attention_accuracy(&out->of_case[i], &s);
		gap_of(&out->of_case[i], &s);
		unit_use_of(&out->of_case[i], &s);
		advice_of(&out->of_case[i], &s);
		verdict_left_out(&out->of_case[i], &s);
	}
	if (!ctx->ahead && !fleet_judge(out->of_case, ctx))
		goto no_memory;
	if (site.stated) {
		out->has_stated = true;
		site_judge(&out->stated, &site, ctx);
	}
	second_rounds(out, r);
	status = nodes_judge(out, ctx, err);
	if (!status && !ctx->ahead)
		status = ways_judge(out, r, err);
	if (status) {
		judgements_release(out);
		return status;
	}
	exit_judge(out, ctx);
	if (could_not_look(out, ctx) && operator_input(out, ctx, &site))
		return STATUS_OK;
no_memory:
	judgements_release(out);
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory to judge %zu cases",
			       r->case_count);
}

void judgements_release(struct judgements *j)
{
	nodes_release(j);
	ways_release(j);
	free(j->of_case);
	free(j->could_not_look);
	free(j->operator_input);
	*j = (struct judgements){0};
}
