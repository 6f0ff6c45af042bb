/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run/rank_account.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/stats.h"
#include "core/text/text.h"

/* A clock or a link counts as lower from this share on. */
static const double lower_share = 0.02;
/* A late rank's own figures explain at least this share of its delay. */
static const double explained_share = 0.5;

const char *rank_cause_text(enum rank_cause cause)
{
#define X(name, text) text,
	static const char *const texts[] = {RANK_CAUSES(X)};
#undef X

	return texts[cause];
}

/* A rank's own time: what is neither computation nor waiting. */
static double host_of(const struct rank_figures *f)
{
	return fmax(0, f->step_s - f->drain_s - f->compute_s - f->rows_s - f->save_s);
}

enum status rank_window_make(struct rank_window *w, unsigned ranks, struct error *err)
{
	*w = (struct rank_window){.ranks = ranks,
				  .figures = calloc((size_t)ranks * RANK_WINDOW, sizeof(*w->figures))};
	return w->figures ? STATUS_OK : error_errno(err, ENOMEM, "the figures of %u ranks", ranks);
}

void rank_window_release(struct rank_window *w)
{
	free(w->figures);
	*w = (struct rank_window){0};
}

static struct rank_figures *at(const struct rank_window *w, unsigned rank, uint64_t step)
{
	return &w->figures[(size_t)rank * RANK_WINDOW + step % RANK_WINDOW];
}

double rank_parts_all_s(const struct rank_parts *p)
{
	return p->compute_s + p->exposed_s + p->waiting_s + p->rows_s + p->save_s + p->host_s;
}

/* The rank that waits the least has come last: the time of all ranks beyond that is waiting. */
static void add_parts(struct rank_parts *sum, const struct rank_figures *all, unsigned ranks)
{
	double least = all[0].drain_s;

	for (unsigned r = 1; r < ranks; r++)
		least = fmin(least, all[r].drain_s);
	sum->exposed_s += fmax(0, least);
	for (unsigned r = 0; r < ranks; r++) {
		sum->compute_s += all[r].compute_s / ranks;
		sum->waiting_s += (all[r].drain_s - least) / ranks;
		sum->rows_s += all[r].rows_s / ranks;
		sum->save_s += all[r].save_s / ranks;
		sum->host_s += host_of(&all[r]) / ranks;
	}
}

void rank_window_add(struct rank_window *w, const struct rank_figures *all)
{
	if (w->steps)
		add_parts(&w->sum, all, w->ranks);
	for (unsigned r = 0; r < w->ranks; r++)
		*at(w, r, w->steps) = all[r];
	w->steps++;
}

static unsigned kept(const struct rank_window *w)
{
	return w->steps < RANK_WINDOW ? (unsigned)w->steps : RANK_WINDOW;
}

/* Whether the figures of the rank's GPU were known in this step. */
static bool knows_gpu(const double *figures)
{
	for (int i = RANK_GPU_FIGURES; i < RANK_FIGURES; i++)
		if (figures[i] > 0)
			return true;
	return false;
}

/* Mean over the steps of one rank. Telemetry begins later than the first step, so the figures of the GPU are
 * means over the steps in which they were known. */
static struct rank_figures mean_of(const struct rank_window *w, unsigned rank)
{
	const unsigned n = kept(w);
	double sum[RANK_FIGURES] = {0}, one[RANK_FIGURES];
	unsigned known = 0;
	struct rank_figures mean;

	for (unsigned s = 0; s < n; s++) {
		memcpy(one, at(w, rank, s), sizeof(one));
		known += knows_gpu(one);
		for (int i = 0; i < RANK_FIGURES; i++)
			sum[i] += one[i];
	}
	for (int i = 0; i < RANK_FIGURES; i++)
		sum[i] /= i < RANK_GPU_FIGURES ? n : known ? known : 1;
	memcpy(&mean, sum, sizeof(mean));
	return mean;
}

static double ready_of(const struct rank_figures *f)
{
	return fmax(0, f->step_s - f->drain_s);
}

/* The median over all ranks but one, of one figure. `values`: room for all ranks. */
static double others(double *values, const struct rank_figures *means, unsigned ranks, unsigned but,
		     double (*figure)(const struct rank_figures *))
{
	unsigned n = 0;

	for (unsigned r = 0; r < ranks; r++)
		if (r != but)
			values[n++] = figure(&means[r]);
	return stats_median(values, n);
}

#define FIGURE(name)                                                                                         \
	static double figure_##name(const struct rank_figures *f)                                            \
	{                                                                                                    \
		return f->name;                                                                              \
	}
FIGURE(compute_s)
FIGURE(rows_s)
FIGURE(save_s)
FIGURE(cpu_wait_s)
FIGURE(tokens)
FIGURE(clock_hz)
FIGURE(slowed_share)
FIGURE(link_rate)
#undef FIGURE

static void add_times(struct text *out, enum rank_cause cause, const struct rank_late *late, double own_s,
		      double other_s, const char *what)
{
	text_addf(out, "%s%s %.0f %% (%.1f ms of %s per step, others %.1f ms)", out->size ? "; " : "",
		  rank_cause_text(cause), 100 * late->share[cause], 1e3 * own_s, what, 1e3 * other_s);
}

/* Time without a CPU lies within the times of these candidates, so they explain the less. */
static void set_apart_cpu(double *share, double waited)
{
	static const enum rank_cause within[] = {RANK_CAUSE_HOST, RANK_CAUSE_DATA, RANK_CAUSE_SAVE,
						 RANK_CAUSE_COMPUTE};
	enum { COUNT = sizeof(within) / sizeof(within[0]) };
	double whole = 0;

	for (int i = 0; i < COUNT; i++)
		whole += share[within[i]];
	if (!(waited > 0) || !(whole > 0))
		return;
	share[RANK_CAUSE_CPU] = fmin(waited, whole);
	for (int i = 0; i < COUNT; i++)
		share[within[i]] *= 1 - share[RANK_CAUSE_CPU] / whole;
}

/* Whether a thread of the rank waited for a CPU at least as long as the rank was late. Then a delay of its
 * computation or its host may be nothing else: the ranks of a busy node get unequal shares of it. */
static bool lacks_cpu(const struct rank_late *late, const struct rank_figures *f)
{
	/* every other cause has evidence of its own, such as rows_s or the clock */
	const bool may_be_cpu = late->cause == RANK_CAUSE_HOST || late->cause == RANK_CAUSE_CPU ||
				late->cause == RANK_CAUSE_COMPUTE;

	/* a thread that waits for other ranks may lack a CPU, too, which delays nobody */
	return may_be_cpu && fmin(f->cpu_wait_s, f->compute_s) >= late->behind_s;
}

/* How much of the delay each candidate explains, with its evidence. */
static void explain(struct rank_late *late, const struct rank_figures *means, unsigned ranks, double *values)
{
	const unsigned slow = (unsigned)late->rank;
	const struct rank_figures *f = &means[slow];
	const double ready = others(values, means, ranks, slow, ready_of),
		     host = others(values, means, ranks, slow, host_of),
		     rows = others(values, means, ranks, slow, figure_rows_s),
		     save = others(values, means, ranks, slow, figure_save_s),
		     compute = others(values, means, ranks, slow, figure_compute_s),
		     cpu = others(values, means, ranks, slow, figure_cpu_wait_s),
		     tokens = others(values, means, ranks, slow, figure_tokens),
		     clock = others(values, means, ranks, slow, figure_clock_hz),
		     slowed = others(values, means, ranks, slow, figure_slowed_share),
		     link = others(values, means, ranks, slow, figure_link_rate);
	double *share = late->share, rest;
	struct text out = {0};

	late->cpu_wait_s = f->cpu_wait_s;
	late->behind_s = fmax(ready_of(f) - ready, 1e-9);
	share[RANK_CAUSE_HOST] = fmax(0, host_of(f) - host) / late->behind_s;
	share[RANK_CAUSE_DATA] = fmax(0, f->rows_s - rows) / late->behind_s;
	share[RANK_CAUSE_SAVE] = fmax(0, f->save_s - save) / late->behind_s;
	rest = fmax(0, f->compute_s - compute) / late->behind_s;
	if (tokens > 0 && f->tokens > tokens)
		share[RANK_CAUSE_ROWS] = fmin(rest, compute * (f->tokens / tokens - 1) / late->behind_s);
	rest -= share[RANK_CAUSE_ROWS];
	if (f->clock_hz > 0 && f->clock_hz < (1 - lower_share) * clock)
		share[f->slowed_share > slowed + lower_share ? RANK_CAUSE_THROTTLE : RANK_CAUSE_CLOCK] =
			fmin(rest, compute * (clock / f->clock_hz - 1) / late->behind_s);
	rest -= share[RANK_CAUSE_THROTTLE] + share[RANK_CAUSE_CLOCK];
	if (f->link_rate > 0 && f->link_rate < (1 - lower_share) * link) {
		share[RANK_CAUSE_LINK] = rest;
		rest = 0;
	}
	share[RANK_CAUSE_COMPUTE] = rest;
	set_apart_cpu(share, (f->cpu_wait_s - cpu) / late->behind_s);
	for (int c = 0; c < RANK_CAUSE_COUNT; c++)
		if (share[c] > share[late->cause])
			late->cause = (enum rank_cause)c;
	if (lacks_cpu(late, f))
		late->cause = RANK_CAUSE_CPU;
	add_times(&out, RANK_CAUSE_HOST, late, host_of(f), host, "the host");
	add_times(&out, RANK_CAUSE_CPU, late, f->cpu_wait_s, cpu, "waiting for a CPU");
	add_times(&out, RANK_CAUSE_DATA, late, f->rows_s, rows, "waiting for rows");
	add_times(&out, RANK_CAUSE_COMPUTE, late, f->compute_s, compute, "computation");
	if (tokens > 0)
		text_addf(&out, "; unequal rows %.0f %% (%.0f tokens, others %.0f)",
			  100 * share[RANK_CAUSE_ROWS], f->tokens, tokens);
	if (share[RANK_CAUSE_SAVE] > 0)
		add_times(&out, RANK_CAUSE_SAVE, late, f->save_s, save, "saving");
	if (f->clock_hz > 0)
		text_addf(
			&out,
			"; clock %.0f %% (%.0f MHz, others %.0f); throttle %.0f %% (%.0f %% of the time, others %.0f %%)",
			100 * share[RANK_CAUSE_CLOCK], 1e-6 * f->clock_hz, 1e-6 * clock,
			100 * share[RANK_CAUSE_THROTTLE], 100 * f->slowed_share, 100 * slowed);
	else
		text_add(&out, "; clock and throttle: not known on this rank");
	if (f->link_rate > 0)
		text_addf(&out, "; link %.0f %% (PCIe generation x lanes %.0f, others %.0f)",
			  100 * share[RANK_CAUSE_LINK], f->link_rate, link);
	else
		text_add(&out, "; link: not known on this rank");
	text_copy(late->evidence, sizeof(late->evidence), text_str(&out));
	text_release(&out);
}

/* The share of the delay that the candidates explain together. */
static double explained(const struct rank_late *late)
{
	double sum = 0;

	for (int c = 0; c < RANK_CAUSE_COUNT; c++)
		sum += late->share[c];
	return sum;
}

static void add_means(struct rank_account *a, const struct rank_figures *means, unsigned ranks)
{
	for (unsigned r = 0; r < ranks; r++) {
		const struct rank_figures *f = &means[r];

		a->compute += f->compute_s / ranks;
		a->rows += f->rows_s / ranks;
		a->save += f->save_s / ranks;
		a->host += host_of(f) / ranks;
		a->tensor_share += f->tensor_share / ranks;
		a->memory_share += f->memory_share / ranks;
		a->sm_share += f->sm_share / ranks;
	}
}

/* Splits the time; times become shares, whose sum is 1. */
static enum status split(struct rank_account *a, const struct rank_window *w,
			 const struct rank_figures *means, double *ready, double *drain,
			 struct scaling_account *s, struct error *err)
{
	struct scaling_trace trace = {.ranks = w->ranks, .steps = kept(w), .ready = ready, .drain = drain};
	double whole;
	enum status st;

	for (unsigned r = 0; r < w->ranks; r++)
		for (unsigned i = 0; i < trace.steps; i++) {
			ready[r * trace.steps + i] = ready_of(at(w, r, i)) * 1e9;
			drain[r * trace.steps + i] = fmax(0, at(w, r, i)->drain_s) * 1e9;
		}
	st = scaling_account(s, &trace, err);
	if (st)
		return st;
	add_means(a, means, w->ranks);
	a->steps = trace.steps;
	a->step_s = s->step * 1e-9;
	a->exposed = s->exposed * 1e-9;
	a->waiting = s->waiting * 1e-9;
	whole = a->compute + a->rows + a->save + a->host + a->exposed + a->waiting;
	if (!(whole > 0))
		return STATUS_OK;
	a->compute /= whole;
	a->rows /= whole;
	a->save /= whole;
	a->host /= whole;
	a->exposed /= whole;
	a->waiting /= whole;
	return STATUS_OK;
}

enum status rank_account_make(struct rank_account *a, const struct rank_window *w, struct error *err)
{
	const size_t count = (size_t)w->ranks * RANK_WINDOW;
	double *numbers = calloc(2 * count + w->ranks, sizeof(*numbers));
	struct rank_figures *means = calloc(w->ranks, sizeof(*means));
	struct scaling_account s;
	enum status st = STATUS_OK;

	*a = (struct rank_account){.late = {.rank = -1}};
	if (!numbers || !means)
		st = error_errno(err, ENOMEM, "the account of %u ranks", w->ranks);
	for (unsigned r = 0; r < w->ranks && !st; r++)
		means[r] = mean_of(w, r);
	if (!st && w->steps)
		st = split(a, w, means, numbers, numbers + count, &s, err);
	/* Two equal ranks are last in most of 16 steps by chance too often. */
	if (!st && w->steps >= RANK_WINDOW && s.slowest >= 0 && s.step > 0 &&
	    s.slowest_share >= (w->ranks == 2 ? 1 : RANK_LAST_SHARE) &&
	    s.waiting_others >= RANK_LATE_SHARE * s.step) {
		a->late.rank = s.slowest;
		a->late.waited_share = s.waiting_others / s.step;
		a->late.last_share = s.slowest_share;
		explain(&a->late, means, w->ranks, numbers + 2 * count);
		if (explained(&a->late) < explained_share) /* its own figures are not those of a late rank */
			a->late = (struct rank_late){.rank = -1};
	}
	free(numbers);
	free(means);
	return st;
}
