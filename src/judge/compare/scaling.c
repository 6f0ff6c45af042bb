/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/compare/scaling.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"

/* A loss below this is not explained; a rank has clearly fewer tokens below this ratio. */
static const double worth_share = 0.02, fewer = 0.75;

static const struct {
	const char *text, *setting;
} parts[] = {
#define X(name, text, setting) {text, setting},
	SCALED_PARTS(X)
#undef X
};

const char *scaled_part_text(enum scaled_part part)
{
	return parts[part].text;
}

/* -- reading -- */

static double share_of(const struct record_phase *p, const char *field)
{
	double value;

	return record_number(p, field, &value) && isfinite(value) ? value : 0;
}

/* One rank has no account; its parts are those of its own step. */
static void take_parts(struct scaled_run *r, const struct record_phase *p)
{
	double account, *s = r->share;

	if (record_number(p, "mean_compute_share", &account)) {
		s[SCALED_COMPUTE] = account;
		s[SCALED_COMMUNICATION] = share_of(p, "exposed_share");
		s[SCALED_WAITING] = share_of(p, "waiting_share");
		s[SCALED_ROWS] = share_of(p, "mean_rows_share");
		s[SCALED_SAVE] = share_of(p, "mean_save_share");
		s[SCALED_HOST] = share_of(p, "mean_host_share");
		return;
	}
	s[SCALED_COMPUTE] =
		share_of(p, "forward_share") + share_of(p, "backward_share") + share_of(p, "optimiser_share");
	s[SCALED_ROWS] = share_of(p, "wait_share");
	s[SCALED_SAVE] = share_of(p, "save_share");
	s[SCALED_HOST] = fmax(0, 1 - s[SCALED_COMPUTE] - s[SCALED_ROWS] - s[SCALED_SAVE]);
}

static bool take_training(struct scaled_run *r, const struct record_case *c)
{
	const struct record_phase *p = record_phase(c, "once");
	double ranks = 1, tokens = 0, steps = 0;

	if (strcmp(c->probe, "train") || !p || !record_number(p, "tokens_per_s", &r->rate) || !(r->rate > 0))
		return false;
	record_number(p, "ranks", &ranks);
	record_number(p, "tokens", &tokens);
	record_number(p, "steps", &steps);
	r->ranks = ranks > 0 ? (unsigned)ranks : 1;
	r->tokens = steps > 0 ? tokens / steps / r->ranks : 0;
	take_parts(r, p);
	text_copy(r->late, sizeof(r->late), record_text(p, "late_rank") ? record_text(p, "late_rank") : "");
	return true;
}

static bool take_probe(struct scaled_run *r, const struct record_case *c)
{
	const struct record_phase *p = record_phase(c, "once");
	const char *m = record_option(c, "m"), *slowest = record_text(p, "slowest_rank");
	double step_ns = 0;

	if (strcmp(c->probe, "scaling") || !p || !record_number(p, "tokens_rate", &r->rate) ||
	    !record_number(p, "step_ns", &step_ns) || !(r->rate > 0) || !(step_ns > 0) || !m)
		return false;
	r->tokens = strtod(m, NULL);
	r->ranks = r->tokens > 0 ? (unsigned)(r->rate * step_ns * 1e-9 / r->tokens + 0.5) : 0;
	r->share[SCALED_COMPUTE] = share_of(p, "compute_share");
	r->share[SCALED_COMMUNICATION] = share_of(p, "exposed_share");
	r->share[SCALED_WAITING] = share_of(p, "waiting_share");
	if (slowest)
		snprintf(r->late, sizeof(r->late), "rank %s", slowest);
	return r->ranks > 0;
}

/* Runs of a model are comparable whatever their batch: "train MODEL WHAT" of the key. */
static bool same_model(const char *a, const char *b)
{
	const char *end_a = strstr(a, " batch="), *end_b = strstr(b, " batch=");

	if (!end_a || !end_b)
		return !strcmp(a, b);
	return end_a - a == end_b - b && !strncmp(a, b, (size_t)(end_a - a));
}

static bool collect(struct scaled_runs *out, const struct compare_run *runs, size_t count,
		    bool (*take)(struct scaled_run *r, const struct record_case *c))
{
	const char *key = NULL;

	out->count = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < runs[i].record->case_count && out->count < SCALED_RUNS; k++) {
			const struct record_case *c = &runs[i].record->cases[k];
			struct scaled_run *r = &out->run[out->count];

			*r = (struct scaled_run){.run = runs[i].name};
			if (!take(r, c))
				continue;
			if (key && !same_model(key, c->key))
				return false;
			key = c->key;
			out->count++;
		}
	return out->count > 1;
}

static int by_ranks(const void *a, const void *b)
{
	const struct scaled_run *x = a, *y = b;

	return x->ranks < y->ranks ? -1 : x->ranks > y->ranks;
}

bool compare_scaling(struct scaled_runs *out, const struct compare_run *runs, size_t count)
{
	if (!collect(out, runs, count, take_training) && !collect(out, runs, count, take_probe))
		return false;
	qsort(out->run, out->count, sizeof(out->run[0]), by_ranks);
	if (out->run[0].ranks == out->run[out->count - 1].ranks)
		return false;
	compare_scaling_explain(out);
	return true;
}

/* -- explaining -- */

/* Seconds of a rank's time per token, in which the parts are compared. */
static double per_token(const struct scaled_run *r, double share)
{
	return share * r->ranks / r->rate;
}

static void explain_batch(struct text *out, const struct scaled_run *r, const struct scaled_run *first)
{
	if (r->small_batch)
		text_addf(out,
			  ". A rank has %.0f tokens per step instead of %.0f, so the fixed cost of a step is "
			  "spread over fewer tokens. Use a larger global_batch_size or "
			  "per_device_train_batch_size",
			  r->tokens, first->tokens);
}

static void explain_loss(struct text *out, const struct scaled_run *r, const struct scaled_run *first)
{
	text_addf(
		out,
		". The largest loss is %s: %.1f %% of the time (%.3g us of a rank's time per token; with %u "
		"rank%s %.3g us). It depends on %s",
		parts[r->largest].text, 100 * r->lost[r->largest], 1e6 * per_token(r, r->share[r->largest]),
		first->ranks, first->ranks == 1 ? "" : "s", 1e6 * per_token(first, first->share[r->largest]),
		parts[r->largest].setting);
	explain_batch(out, r, first);
	if (r->largest == SCALED_WAITING && *r->late)
		text_addf(out, ". Late: %s", r->late);
}

static void explain(struct scaled_run *r, const struct scaled_run *first)
{
	struct text out = {0};

	text_addf(&out, "%u ranks reach %.1f %% of the ideal rate, which is %.3g times the rate of %u rank%s",
		  r->ranks, 100 * r->efficiency, (double)r->ranks / first->ranks, first->ranks,
		  first->ranks == 1 ? "" : "s");
	if (r->lost[r->largest] < worth_share)
		text_add(&out, ". No part loses more than 2 % of the time");
	else
		explain_loss(&out, r, first);
	text_copy(r->text, sizeof(r->text), text_str(&out));
	text_release(&out);
}

void compare_scaling_explain(struct scaled_runs *s)
{
	const struct scaled_run *first = &s->run[0];

	for (size_t i = 0; i < s->count; i++) {
		struct scaled_run *r = &s->run[i];
		const double whole = per_token(r, 1);

		r->efficiency = per_token(first, 1) / whole;
		r->largest = SCALED_COMPUTE;
		for (int p = 0; p < SCALED_COUNT; p++) {
			r->lost[p] = (per_token(r, r->share[p]) - per_token(first, first->share[p])) / whole;
			if (r->lost[p] > r->lost[r->largest])
				r->largest = (enum scaled_part)p;
		}
		r->small_batch = r->tokens > 0 && r->tokens < fewer * first->tokens &&
				 (r->largest == SCALED_COMPUTE || r->largest == SCALED_COMMUNICATION ||
				  r->largest == SCALED_HOST);
		*r->text = '\0';
		if (r->ranks > first->ranks)
			explain(r, first);
	}
}
