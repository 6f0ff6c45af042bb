/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/exit.h"

/* True if the case ran or was read, and only a reference was missing. */
static bool looked_at(const struct judgement *j)
{
	return j->cause == CAUSE_NO_REFERENCE;
}

int exit_of_case(const struct judgement *j, enum require require, bool said)
{
	switch (j->verdict) {
	case VERDICT_FAIL: /* something is wrong, even if nothing was required */
		return 1;
	case VERDICT_PASS:
	case VERDICT_MEASURED:
	case VERDICT_WARN:
	case VERDICT_SKIP:
		return 0;
	case VERDICT_UNKNOWN:
		if (require == REQUIRE_NOTHING || (j->cause == CAUSE_NO_LOG && !said))
			return 0;
		return require == REQUIRE_MEASURED && looked_at(j) ? 0 : 2;
	case VERDICT_UNTRUSTED:
	case VERDICT_ERROR:
		return require == REQUIRE_NOTHING ? 0 : 2;
	case VERDICT_COUNT:
		break;
	}
	return 2;
}

struct tally {
	size_t of[VERDICT_COUNT], asked, required, measured, open;
	const struct judgement *first_fail, *first_open;
	bool other_fail, other_open; /* true if another case has a different cause than the first */
	const char *fail_target, *open_target;
	const struct record_node *lost; /* the first node whose journals are incomplete */
	size_t differ;			/* facts that differ between nodes and hurt the run */
};

static bool of_gpu(const struct record_case *c)
{
	return strstr(c->target, "gpu") != NULL;
}

/* Counts the cases and finds the first failure and the first undecided case. For undecided cases a GPU comes
 * before a CPU. */
static void count(struct tally *t, const struct judgements *out, const struct judge_context *ctx)
{
	const struct record *r = ctx->record;
	bool open_gpu = false;
	struct subject s;
	size_t i;

	for (i = 0; i < r->node_count && !t->lost; i++)
		if (r->node[i].state != NODE_WHOLE)
			t->lost = &r->node[i];
	for (i = 0; i < out->difference_count; i++)
		t->differ += out->difference[i].hurts != NULL;

	for (i = 0; i < out->count; i++) {
		const struct judgement *j = &out->of_case[i];
		const struct record_case *c = &ctx->record->cases[i];

		if (j->superseded)
			continue;
		t->of[j->verdict]++;
		t->asked += j->verdict != VERDICT_SKIP || j->cause != CAUSE_NOT_ASKED;
		subject_of(&s, ctx, c);
		t->required += s.require != REQUIRE_NOTHING;
		t->measured += j->has_figure ||
			       ((c->reading || c->job) && case_sound(c) && j->verdict != VERDICT_SKIP);
		if (exit_of_case(j, s.require, c->require_said) == 1 && !t->first_fail) {
			t->first_fail = j;
			t->fail_target = c->key;
		}
		t->other_fail |=
			exit_of_case(j, s.require, c->require_said) == 1 && j->cause != t->first_fail->cause;
		if (exit_of_case(j, s.require, c->require_said) != 2)
			continue;
		t->open++;
		t->other_open |= t->first_open && j->cause != t->first_open->cause;
		if (!t->first_open || (!open_gpu && of_gpu(c))) {
			t->first_open = j;
			t->open_target = c->key;
			open_gpu = of_gpu(c);
		}
	}
}

static const char *by_own_ceilings(const struct judge_context *ctx, const struct tally *t)
{
	return ctx->gpu_count || !(t->of[VERDICT_PASS] + t->of[VERDICT_WARN])
		       ? ""
		       : "; judged by this machine's own ceilings, since there is no reference for this CPU model";
}

static void begin_with(char *line, size_t size, const char *words)
{
	size_t more = strlen(words), used = strnlen(line, size - 1 - more);

	memmove(line + more, line, used);
	memcpy(line, words, more);
	line[more + used] = '\0';
}

static void add_difference(struct judgements *out, size_t facts)
{
	size_t used = strlen(out->headline);

	snprintf(out->headline + used, sizeof(out->headline) - used,
		 "; nodes differ in %zu fact%s that hurt%s", facts, facts == 1 ? "" : "s",
		 facts == 1 ? "s" : "");
}

/* Writes ", all of them cpu_contended" if several cases share one cause. */
static const char *shared(char *out, size_t size, size_t count, bool others, const struct judgement *first)
{
	*out = '\0';
	if (count > 1 && !others && first->cause)
		snprintf(out, size, ", %s of them %s", count == 2 ? "both" : "all", cause_name(first->cause));
	return out;
}

/* The judgement of a load test, whose reason says more than a count of cases. */
static const struct judgement *of_load(const struct judgements *out, const struct judge_context *ctx)
{
	const struct record *r = ctx->record;

	return r->case_count == 1 && r->cases[0].job && !strcmp(r->cases[0].probe, "load") && !ctx->ahead
		       ? &out->of_case[0]
		       : NULL;
}

static void headline(struct judgements *out, const struct judge_context *ctx, const struct tally *t)
{
	const struct judgement *load = of_load(out, ctx);
	size_t size = sizeof(out->headline);
	char cause[64];

	if (out->has_stated && out->stated.verdict == VERDICT_FAIL)
		snprintf(out->headline, size, "the machine is not as stated: %.280s", out->stated.reason);
	else if (load && *load->reason)
		snprintf(out->headline, size, "%s", load->reason);
	else if (t->first_fail)
		snprintf(out->headline, size, "%zu of %zu cases failed%s; first %.256s: %.160s",
			 t->of[VERDICT_FAIL], t->asked,
			 shared(cause, sizeof(cause), t->of[VERDICT_FAIL], t->other_fail, t->first_fail),
			 t->fail_target, t->first_fail->reason);
	else if (ctx->ahead)
		snprintf(out->headline, size, "%zu of %zu cases have a reference to judge them by",
			 t->of[VERDICT_PASS], out->count);
	else if (!t->measured && t->first_open && ctx->record->case_count == 1 && ctx->record->cases[0].job)
		snprintf(out->headline, size, "%s", t->first_open->reason); /* how far the job came */
	else if (!t->measured)
		snprintf(out->headline, size, "nothing was measured");
	else if (t->lost)
		snprintf(out->headline, size,
			 "inconclusive: node %s is %s (%.160s); %zu of %zu cases have no verdict",
			 t->lost->name, record_node_state_word(t->lost->state), t->lost->why, t->open,
			 t->asked);
	else if (t->first_open)
		snprintf(out->headline, size,
			 "inconclusive: %zu of %zu cases have no verdict%s; first %.256s: %.160s", t->open,
			 t->asked, shared(cause, sizeof(cause), t->open, t->other_open, t->first_open),
			 t->open_target, t->first_open->reason);
	else
		snprintf(out->headline, size,
			 "%zu passed, %zu with warnings, %zu measured without a reference%s",
			 t->of[VERDICT_PASS], t->of[VERDICT_WARN], t->of[VERDICT_MEASURED],
			 by_own_ceilings(ctx, t));
	if (t->differ && !t->lost)
		add_difference(out, t->differ);
	if (ctx->record->closed && ctx->record->close_ending == ENDING_CANCELLED &&
	    !strstr(out->headline, "stopped on request"))
		begin_with(out->headline, size, "stopped on request; ");
}

void exit_judge(struct judgements *out, const struct judge_context *ctx)
{
	struct tally t = {0};

	count(&t, out, ctx);
	if (t.first_fail || (out->has_stated && out->stated.verdict == VERDICT_FAIL)) {
		out->exit_code = 1;
		out->verdict = VERDICT_FAIL;
	} else if (t.first_open || t.lost || !t.measured) {
		out->exit_code = 2;
		out->verdict = t.first_open ? t.first_open->verdict : VERDICT_UNKNOWN;
	} else {
		out->exit_code = 0;
		out->verdict = t.of[VERDICT_WARN] || t.differ ? VERDICT_WARN
			       : t.of[VERDICT_PASS]	      ? VERDICT_PASS
							      : VERDICT_MEASURED;
	}
	headline(out, ctx, &t);
}
