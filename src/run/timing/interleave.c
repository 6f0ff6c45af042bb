/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interleaved measurement of a CPU case and its ceiling: ceiling, case, ceiling, case, .., ceiling. Each turn
 * gives the ratio of the case to the ceiling windows around it. So a slowdown of both (clock, steal time, a
 * neighbour on the core) cancels out. A disturbed turn is repeated, up to a limit. Design:
 * docs/explanation/design/interleave.md.
 */
#include "run/timing/phases.h"
#include <errno.h>
#include <math.h>
#include <sched.h>
#include "core/math/stats.h"

#define LEAD_S 0.002 /* untimed lead of the ceiling before its windows: its threads wake up */
/* Lead after a library whose threads spin for up to 27 ms (OpenBLAS, 2^26 cycles). */
#define LEAD_LIBRARY_S 0.04
/* After twice the requested time plus this, no disturbed turn is repeated: slow GEMMs would take long. */
#define RETAKE_S 0.5
#define CASE_S 1.0 /* total time of the case in all turns by default */

/* One window, of the case or of its ceiling. */
struct stretch {
	double ns; /* mean of an iteration */
	double rate, wall_ns, cpu_ns, clock_hz;
	uint64_t steal_ns;
	bool has_cpu, has_clock, has_steal;
};

struct turn {
	struct stretch before, own, after; /* before and after: of the ceiling */
	size_t first, last;		   /* samples of the case: [first, last) */
	double ratio;
	bool disturbed;
};

struct turns {
	struct timing *t;      /* the case */
	struct timing ceiling; /* the ceiling */
	struct ceiling spec;
	struct bench bench;
	void *state;
	bool prepared, bound;
	/* CPUs of the calling thread: own in the case's windows, theirs in the ceiling's */
	cpu_set_t own, theirs;
	struct turn turn[PHASE_TURNS_MOST];
	size_t count, clean;
	uint64_t t0_ns, t1_ns;
};

static bool find(const struct bench_case *c, const struct machine *m, struct ceiling *out)
{
	struct error why = {0};

	return c->target.kind == TARGET_CPU && c->order == STEP_IN_ORDER && c->probe->ceiling &&
	       c->probe->ceiling(m, &c->target, c->opts, out) &&
	       (!out->engine->supports || !out->engine->supports(m, &c->target, out->opts, &why));
}

bool phase_interleave_applies(const struct bench_case *c, const struct machine *m)
{
	struct ceiling spec = {0};

	return find(c, m, &spec);
}

/* -- start and end of the ceiling's engine -- */

/* Prepares the ceiling's engine. It may pin the calling thread, so the case's CPUs are saved and restored. */
static enum status prepare(struct turns *s, const struct bench *b, struct error *err)
{
	struct meter_spec spec = {.engine = s->spec.engine, .bench = &s->bench, .clock = s->t->w->clock};
	enum status st;

	s->bench = *b;
	s->bench.out = result_create();
	s->state = calloc(1, spec.engine->state_size ? spec.engine->state_size : 1);
	if (!s->state || !s->bench.out)
		return error_errno(err, ENOMEM, "%s: the state of its ceiling", s->t->c->key);
	s->bound = !sched_getaffinity(0, sizeof(s->own), &s->own);
	s->prepared = true;
	st = spec.engine->prepare(s->state, &s->bench, s->spec.opts, err);
	if (st)
		return st;
	s->bound = s->bound && !sched_getaffinity(0, sizeof(s->theirs), &s->theirs);
	spec.state = s->state;
	s->ceiling = (struct timing){
		.c = s->t->c,
		.w = s->t->w,
		.work = s->spec.probe->work(s->t->w->machine, &s->t->c->target, s->spec.opts),
		.threads = (unsigned)result_get(s->bench.out, &field_threads, s->bench.threads),
	};
	st = timing_init(&s->ceiling, err);
	return st ? st : meter_cpu_create(&s->ceiling.meter, &spec, err);
}

static void release(struct turns *s)
{
	meter_destroy(&s->ceiling.meter);
	timing_release(&s->ceiling);
	if (s->prepared)
		s->spec.engine->release(s->state);
	if (s->bound)
		sched_setaffinity(0, sizeof(s->own), &s->own);
	free(s->state);
	result_destroy(s->bench.out);
	free(s);
}

/* A ceiling with wrong results must not be used as a measure. */
static enum status check(struct turns *s, struct error *err)
{
	const struct probe *p = s->spec.probe;
	struct wrong wrong = {0};
	enum status st = p->verify ? p->verify(s->state, &wrong, err) : STATUS_OK;

	if (st || !wrong.count)
		return st;
	return error_set_cause(err, STATUS_MISMATCH, wrong.nan ? CAUSE_NAN : CAUSE_WRONG_RESULT,
			       "%s, the ceiling of %s: %llu of %llu values are wrong, the first at %s",
			       p->name, s->t->c->probe->name, (unsigned long long)wrong.count,
			       (unsigned long long)wrong.total, wrong.place);
}

/* -- windows -- */

/* The amount of work that both count: bytes if memory limits the case, otherwise operations. */
static double amount(const struct turns *s, const struct work *w)
{
	if (!strncmp(s->t->work.limit, "memory", 6))
		return w->read_bytes + w->write_bytes;
	return w->flop;
}

static struct stretch stretch_of(const struct turns *s, const struct timing *t, const struct window *w,
				 size_t first)
{
	struct stretch x = {
		.ns = window_mean_ns(w, first, w->count),
		.wall_ns = (double)(w->t1_ns - w->t0_ns),
		.has_cpu = t->threads && w->has_cpu_time,
		.has_clock = w->has_clock,
		.clock_hz = w->clock_hz,
		.has_steal = w->has_steal,
		.steal_ns = w->steal_ns,
	};

	if (x.ns > 0)
		x.rate = amount(s, &t->work) / (x.ns * 1e-9);
	if (x.has_cpu)
		x.cpu_ns = (double)w->cpu_time_ns;
	return x;
}

static enum status bind(const struct turns *s, const cpu_set_t *set, struct error *err)
{
	if (!s->bound || CPU_EQUAL(&s->own, &s->theirs) || !sched_setaffinity(0, sizeof(*set), set))
		return STATUS_OK;
	return error_errno(err, errno, "%s: its thread could not be bound to its CPUs again", s->t->c->key);
}

static enum status time_ceiling(struct turns *s, struct stretch *out, struct error *err)
{
	struct timing *c = &s->ceiling;
	struct window lead = timing_window(c), w = timing_window(c);
	enum status st = bind(s, &s->theirs, err);

	w.stamp = true;
	if (!st)
		st = timing_run(c, &lead, s->t->meter->engine->cpu_time_ns ? LEAD_S : LEAD_LIBRARY_S, 1, err);
	if (!st)
		st = timing_run(c, &w, PHASE_TURN_CEILING_S, 3, err);
	if (st)
		return st;
	*out = stretch_of(s, c, &w, 0);
	return bind(s, &s->own, err);
}

/* All windows of the case append to one array of samples, because they are reported as one phase. */
static enum status time_own(struct turns *s, struct window *all, double seconds, struct turn *turn,
			    struct error *err)
{
	struct window w = {.stamp = true, .sample = all->sample + all->count, .room = all->room - all->count};
	enum status st = timing_run(s->t, &w, seconds, 1, err);

	if (st)
		return st;
	turn->first = all->count;
	all->count += w.count;
	turn->last = all->count;
	turn->own = stretch_of(s, s->t, &w, 0);
	return STATUS_OK;
}

/* -- evaluation of a turn -- */

static bool starved(const struct timing *t, const struct stretch *x)
{
	return x->has_cpu && x->wall_ns > 0 &&
	       x->cpu_ns < PHASE_CPU_SHARE * timing_granted(t) * t->threads * x->wall_ns;
}

static void weigh(struct turns *s, struct turn *turn)
{
	double mean = 0.5 * (turn->before.rate + turn->after.rate);

	turn->ratio = mean > 0 ? turn->own.rate / mean : 0;
	turn->disturbed = fabs(turn->before.rate - turn->after.rate) > PHASE_TURN_AGREE * mean ||
			  starved(s->t, &turn->own) || starved(&s->ceiling, &turn->before) ||
			  starved(&s->ceiling, &turn->after);
	s->clean += !turn->disturbed;
}

/* At least six turns. More turns replace disturbed ones while their number and the time allow it. */
static bool more_turns(const struct turns *s, uint64_t t0, double wish)
{
	double spent = 1e-9 * (double)(clock_now_ns(s->t->w->clock) - t0);

	if (s->count < PHASE_TURNS)
		return true;
	return s->clean < PHASE_TURNS && s->count < PHASE_TURNS_MOST && spent < 2 * wish + RETAKE_S;
}

static enum status take_turns(struct turns *s, struct window *all, struct error *err)
{
	double wish = s->t->c->seconds > 0 ? s->t->c->seconds : CASE_S;
	struct stretch before;
	uint64_t t0 = clock_now_ns(s->t->w->clock);
	enum status st = time_ceiling(s, &before, err);

	while (!st && more_turns(s, t0, wish) && all->count < all->room) {
		struct turn *turn = &s->turn[s->count];

		turn->before = before;
		st = time_own(s, all, wish / PHASE_TURNS, turn, err);
		if (!st)
			st = time_ceiling(s, &turn->after, err);
		if (st)
			break;
		before = turn->after;
		s->count++;
		weigh(s, turn);
	}
	return st;
}

/* -- reporting -- */

/* Only undisturbed turns count, if at least half of the required number are undisturbed. Otherwise all count,
 * and the interval shows their scatter. */
static bool counts(const struct turns *s, const struct turn *turn)
{
	return !turn->disturbed || s->clean < PHASE_TURNS / 2;
}

/* Sums for CPU share, clock and steal time over windows of one kind. */
struct sums {
	double wall_ns, cpu_ns, clock[2 * PHASE_TURNS_MOST];
	uint64_t steal_ns;
	size_t clocks, shares, steals, count;
};

static void add(struct sums *sum, const struct stretch *x)
{
	sum->count++;
	sum->wall_ns += x->wall_ns;
	sum->cpu_ns += x->cpu_ns;
	sum->steal_ns += x->steal_ns;
	sum->shares += x->has_cpu;
	sum->steals += x->has_steal;
	if (x->has_clock)
		sum->clock[sum->clocks++] = x->clock_hz;
}

static void tell_sums(const struct sums *sum, unsigned threads, struct result *r)
{
	if (sum->shares == sum->count && threads && sum->wall_ns > 0)
		result_f64(r, &field_cpu_share, sum->cpu_ns / (threads * sum->wall_ns));
	if (sum->steals == sum->count && threads && sum->wall_ns > 0)
		result_f64(r, &field_steal_share, (double)sum->steal_ns / (threads * sum->wall_ns));
	if (sum->clocks)
		result_f64(r, &field_clock_hz, stats_median(sum->clock, sum->clocks));
}

static void tell_ratio(const struct turns *s, struct result *r)
{
	double ratio[PHASE_TURNS_MOST], low, high;
	size_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		if (counts(s, &s->turn[i]))
			ratio[n++] = s->turn[i].ratio;
	stats_median_interval(ratio, n, &low, &high);
	result_f64(r, &field_ceiling_ratio, stats_median(ratio, n));
	result_f64(r, &field_ceiling_ratio_low, low);
	result_f64(r, &field_ceiling_ratio_high, high);
	result_u64(r, &field_turns, n);
	result_u64(r, &field_turns_disturbed, s->count - s->clean);
}

/* Reports the case's own figures over the turns that count. Its samples are those of all turns. */
static enum status tell_own(struct turns *s, const struct window *all, struct error *err)
{
	struct window kept = {.t0_ns = s->t0_ns, .t1_ns = s->t1_ns};
	struct result *r = result_create();
	struct sums sum = {0};
	double end_ns = 0;
	enum status st;

	kept.sample = calloc(all->count ? all->count : 1, sizeof(*kept.sample));
	if (!r || !kept.sample) {
		st = error_errno(err, ENOMEM, "%s: the values of its turns", s->t->c->key);
		goto out;
	}
	for (size_t i = 0; i < s->count; i++) {
		const struct turn *turn = &s->turn[i];

		if (!counts(s, turn))
			continue;
		add(&sum, &turn->own);
		for (size_t k = turn->first; k < turn->last; k++) {
			end_ns += all->sample[k].ns * (double)all->sample[k].batch;
			kept.sample[kept.count] = all->sample[k];
			kept.sample[kept.count++].end_ns = end_ns;
		}
	}
	timing_values(s->t, &kept, r);
	timing_single_values(s->t, "sustained", &kept, r);
	tell_sums(&sum, s->t->threads, r);
	tell_ratio(s, r);
	st = timing_phase(s->t, "sustained", s->t0_ns, s->t1_ns, err);
	if (!st)
		st = timing_samples(s->t, "sustained", all, err);
	if (!st)
		st = timing_result(s->t, "sustained", r, err);
out:
	free(kept.sample);
	result_destroy(r);
	return st;
}

/* Reports the mean iteration of every window in time order. The ceiling has one window more than the number
 * of turns; the case has one per turn. */
static enum status tell_windows(struct turns *s, const char *phase, bool ceiling, struct error *err)
{
	struct sample sample[PHASE_TURNS_MOST + 1];
	struct window w = {.sample = sample};

	if (ceiling)
		sample[w.count++] = (struct sample){.ns = s->turn[0].before.ns, .batch = 1};
	for (size_t i = 0; i < s->count; i++)
		sample[w.count++] =
			(struct sample){.ns = ceiling ? s->turn[i].after.ns : s->turn[i].own.ns, .batch = 1};
	return timing_samples(s->t, phase, &w, err);
}

static enum status tell_ceiling(struct turns *s, struct error *err)
{
	char by[512];
	int used = snprintf(by, sizeof(by), "%s engine=%s", s->spec.probe->name, s->spec.engine->name);
	struct result *r = result_create();
	double rate[PHASE_TURNS_MOST];
	struct sums sum = {0};
	size_t n = 0;
	enum status st;

	(void)used;
	if (!r)
		return error_errno(err, ENOMEM, "%s: the values of its ceiling", s->t->c->key);
	for (size_t i = 0; i < s->count; i++) {
		const struct turn *turn = &s->turn[i];

		if (!counts(s, turn))
			continue;
		add(&sum, &turn->before);
		add(&sum, &turn->after);
		rate[n++] = 0.5 * (turn->before.rate + turn->after.rate);
	}
	st = opt_canonical(&s->spec.probe->opts, s->spec.opts, by, sizeof(by), err);
	result_text(r, &field_ceiling_by, by);
	result_f64(r, strncmp(s->t->work.limit, "memory", 6) ? &field_flop_rate : &field_byte_rate,
		   stats_median(rate, n));
	result_u64(r, &field_threads, s->ceiling.threads);
	tell_sums(&sum, s->ceiling.threads, r);
	if (!st)
		st = timing_result(s->t, "ceiling", r, err);
	result_destroy(r);
	if (!st)
		st = tell_windows(s, "ceiling", true, err);
	return st ? st : tell_windows(s, "turns", false, err);
}

enum status phase_interleave(struct timing *t, const struct bench *b, struct error *err)
{
	struct turns *s = calloc(1, sizeof(*s));
	struct window all = timing_window(t);
	enum status st;

	if (!s)
		return error_errno(err, ENOMEM, "%s: its turns", t->c->key);
	s->t = t;
	find(t->c, t->w->machine, &s->spec);
	st = timing_at(t, "turns", err);
	if (!st)
		st = prepare(s, b, err);
	if (!st)
		st = check(s, err);
	if (!st)
		st = timing_batch(&s->ceiling, err);
	s->t0_ns = clock_now_ns(t->w->clock);
	if (!st)
		st = take_turns(s, &all, err);
	s->t1_ns = clock_now_ns(t->w->clock);
	if (!st)
		st = check(s, err);
	if (!st)
		st = tell_own(s, &all, err);
	if (!st)
		st = tell_ceiling(s, err);
	release(s);
	return st;
}
