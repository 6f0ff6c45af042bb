/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run/diagnose.h"
#include <math.h>
#include <stdio.h>
#include "core/math/stats.h"

enum { STEPS_BEFORE = 8 /* minimum history for a comparison */, STEPS_WAITED = 5 };
static const double spike_mads = 8, spike_share = 0.5, exploding_times = 20, waited_share = 0.1,
		    faint_share = 0.5, exposed_share = 0.15, memory_bound_share = 0.7,
		    tensor_idle_share = 0.3, sm_idle_share = 0.6;

static const struct {
	const char *word, *knob;
	bool ends;
} rows[] = {
#define X(name, word, ends, knob) {word, knob, ends},
	FINDINGS(X)
#undef X
};

const char *finding_word(enum finding f)
{
	return rows[f].word;
}

const char *finding_knob(enum finding f)
{
	return rows[f].knob;
}

bool finding_ends(enum finding f)
{
	return rows[f].ends;
}

#define ADD(out, f, ...)                                                                                     \
	do {                                                                                                 \
		(out)->found[(out)->count].what = (f);                                                       \
		snprintf((out)->found[(out)->count].text, sizeof((out)->found[0].text), __VA_ARGS__);        \
		(out)->count++;                                                                              \
	} while (0)

void diagnose_before(struct findings *out, const struct diagnose_before *b)
{
	out->count = 0;
	if (!(b->rate > 0))
		ADD(out, FINDING_RATE_ZERO, "the learning rate is 0 in every step");
	if (!b->targets)
		ADD(out, FINDING_ALL_MASKED, "none of the %llu rows has a target token",
		    (unsigned long long)b->rows);
	if (!b->end_trained && b->median_norm > 0 && b->end_norm < faint_share * b->median_norm)
		ADD(out, FINDING_END_UNTRAINED,
		    "the model never learned %s, its end-of-turn token (norm of its row %.3g, median row "
		    "%.3g), and this run does not train it; generated text would not end",
		    b->end_token, b->end_norm, b->median_norm);
}

static void look_at_loss(const struct diagnose *d, struct findings *out, const struct diagnose_step *s,
			 unsigned n)
{
	struct stats before = stats_of(d->loss, n);
	double middle = before.median, over = s->loss - middle;

	if (over > spike_mads * before.mad && over > spike_share * middle)
		ADD(out, FINDING_LOSS_SPIKE, "step %llu: the loss is %.4g after a median of %.4g",
		    (unsigned long long)s->step, s->loss, middle);
}

static void look_at_norm(const struct diagnose *d, struct findings *out, const struct diagnose_step *s,
			 unsigned n)
{
	double middle = stats_median(d->norm, n);

	if (s->grad_norm > exploding_times * middle && s->grad_norm > 1)
		ADD(out, FINDING_EXPLODING, "step %llu: the gradient norm is %.4g after a median of %.4g",
		    (unsigned long long)s->step, s->grad_norm, middle);
}

static void look_at_wait(struct diagnose *d, struct findings *out, const struct diagnose_step *s)
{
	d->step_s += s->step_s;
	d->wait_s += s->wait_s;
	if (d->count + 1 >= STEPS_WAITED && d->wait_s > waited_share * d->step_s)
		ADD(out, FINDING_DATA_BOUND, "%.0f %% of the time is waiting for rows",
		    100 * d->wait_s / d->step_s);
}

static void look_at_late(struct findings *out, const struct rank_late *late)
{
	const bool unequal = late->cause == RANK_CAUSE_ROWS;

	if (late->rank >= 0 && late->cause == RANK_CAUSE_CPU)
		ADD(out, FINDING_NO_FREE_CPU,
		    "the node of rank %d has too few free CPUs: other programs run there, or more ranks than CPUs. A thread "
		    "of the rank waited %.1f ms of each step for a CPU. It came %.1f ms after the median of the others, "
		    "which wait for it in %.0f %% of each step. Candidates: %s",
		    late->rank, 1e3 * late->cpu_wait_s, 1e3 * late->behind_s, 100 * late->waited_share,
		    late->evidence);
	else if (late->rank >= 0)
		ADD(out, unequal ? FINDING_UNEQUAL_ROWS : FINDING_STRAGGLER,
		    "the others wait for rank %d in %.0f %% of each step; it came last in %.0f %% of the steps, %.1f ms "
		    "after the median of the others. The likeliest cause is: %s. Candidates: %s",
		    late->rank, 100 * late->waited_share, 100 * late->last_share, 1e3 * late->behind_s,
		    rank_cause_text(late->cause), late->evidence);
}

/* What bounds the steps of all ranks. */
static void look_at_ranks(struct findings *out, const struct rank_account *a)
{
	const double busy = a->compute;

	if (a->steps < RANK_WINDOW)
		return;
	look_at_late(out, &a->late);
	if (a->exposed > exposed_share)
		ADD(out, FINDING_COMMUNICATION_BOUND,
		    "%.0f %% of the time is communication that no computation hides, beside %.0f %% of computation",
		    100 * a->exposed, 100 * busy);
	if (a->memory_share > memory_bound_share && a->tensor_share < tensor_idle_share)
		ADD(out, FINDING_MEMORY_BOUND,
		    "GPU memory was active in %.0f %% of the time and the tensor pipes in %.0f %%",
		    100 * a->memory_share, 100 * a->tensor_share);
	/* Multiprocessors idle, although nothing but launches is waited for. */
	if (a->sm_share > 0 && a->sm_share < sm_idle_share * busy)
		ADD(out, FINDING_LAUNCH_BOUND,
		    "the GPUs' multiprocessors were active in %.0f %% of the time, although passes and optimizer took "
		    "%.0f %%",
		    100 * a->sm_share, 100 * busy);
}

/* Keeps only findings that were not reported before. */
static void keep_new(struct diagnose *d, struct findings *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < out->count; i++)
		if (!d->reported[out->found[i].what]) {
			d->reported[out->found[i].what] = true;
			out->found[kept++] = out->found[i];
		}
	out->count = kept;
}

void diagnose_step(struct diagnose *d, struct findings *out, const struct diagnose_step *s)
{
	unsigned n = d->count < DIAGNOSE_WINDOW ? d->count : DIAGNOSE_WINDOW;

	out->count = 0;
	if (s->overflows)
		ADD(out, FINDING_FP8_SATURATES,
		    "step %llu: %lld scales of FP8 are not finite, because numbers are not; the first are of %s",
		    (unsigned long long)s->step, (long long)s->overflows, s->overflow_at);
	if (!s->targets)
		ADD(out, FINDING_ALL_MASKED, "step %llu: it has no target tokens",
		    (unsigned long long)s->step);
	else if (!isfinite(s->loss) || !isfinite(s->grad_norm))
		ADD(out, FINDING_NOT_FINITE, "step %llu: the %s is not a finite number",
		    (unsigned long long)s->step, isfinite(s->loss) ? "gradient" : "loss");
	else if (s->grad_norm == 0)
		ADD(out, FINDING_ZERO_GRADIENT,
		    "step %llu: every gradient is zero, so nothing is learned any more",
		    (unsigned long long)s->step);
	else {
		if (d->count >= STEPS_BEFORE) {
			look_at_loss(d, out, s, n);
			look_at_norm(d, out, s, n);
		}
		look_at_wait(d, out, s);
		if (s->ranks)
			look_at_ranks(out, s->ranks);
		d->loss[d->count % DIAGNOSE_WINDOW] = s->loss;
		d->norm[d->count % DIAGNOSE_WINDOW] = s->grad_norm;
		d->count++;
	}
	keep_new(d, out);
}
