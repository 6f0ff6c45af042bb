/* SPDX-License-Identifier: Apache-2.0 */
#include "run/timing/phases.h"
#include <errno.h>
#include <math.h>
#include "core/math/stats.h"

/* Progress of a window, in seconds on the window's own time axis. */
struct standing {
	const struct window *w;
	uint64_t asked; /* samples enqueued, measured or not */
	double known_s; /* end of the last measured sample */
	double ahead_s; /* estimated end when all enqueued samples are done */
};

/* Whether a window ends now. Called between samples. */
typedef bool enough(void *arg, const struct standing *s);

static struct standing stand(const struct timing *t, const struct window *w, uint64_t asked)
{
	double known = w->count ? w->sample[w->count - 1].end_ns * 1e-9 : 0;
	double one_ns = w->count ? w->sample[w->count - 1].ns : t->iteration_ns;
	double in_flight = (double)(asked - w->count);

	return (struct standing){
		.w = w,
		.asked = asked,
		.known_s = known,
		.ahead_s = known + in_flight * one_ns * (double)t->batch * 1e-9,
	};
}

/* Runs samples of t->batch iterations until `done` returns true or the array of samples is full. */
static enum status run_window(struct timing *t, struct window *w, enough *done, void *arg, struct error *err)
{
	struct meter *m = t->meter;
	enum status st = m->ops->begin(m, w, err);

	for (uint64_t asked = 0; !st && asked < w->room; asked++) {
		struct standing s = stand(t, w, asked);

		if (timing_stopped(t))
			return timing_cancelled(err);
		if (asked && done(arg, &s))
			break;
		st = m->ops->sample(m, t->batch, err);
	}
	return st ? st : m->ops->end(m, err);
}

static enum status report_window(struct timing *t, const char *phase, const struct window *w,
				 bool tell_settled, struct error *err)
{
	struct result *r = result_create();
	enum status st;

	if (!r)
		return error_errno(err, ENOMEM, "the values of %s", phase);
	timing_values(t, w, r);
	timing_single_values(t, phase, w, r);
	if (tell_settled)
		result_u64(r, &field_settled, t->settled);
	if (t->repeats && !strcmp(phase, "burst"))
		result_u64(r, &field_repeats, t->repeats);
	st = timing_phase(t, phase, w->t0_ns, w->t1_ns, err);
	if (!st)
		st = timing_samples(t, phase, w, err);
	if (!st)
		st = timing_result(t, phase, r, err);
	result_destroy(r);
	if (w->count)
		t->iteration_ns = window_mean_ns(w, 0, w->count);
	return st;
}

enum status phase_cold(struct timing *t, struct error *err)
{
	struct sample one = {.batch = 1};
	struct window w = {.sample = &one, .count = 1, .room = 1, .t0_ns = clock_now_ns(t->w->clock)};
	enum status st = timing_at(t, "cold", err);

	if (!st)
		st = t->meter->ops->once(t->meter, &one.ns, err);
	if (st)
		return st;
	one.end_ns = one.ns;
	w.t1_ns = clock_now_ns(t->w->clock);
	return report_window(t, "cold", &w, false, err);
}

/* Runs one window of a few samples. *ns is the smallest time of an iteration, because another process may
 * have used the CPU meanwhile. */
static enum status least_of(struct timing *t, unsigned samples, double *ns, struct error *err)
{
	struct window w = timing_window(t);
	struct meter *m = t->meter;
	enum status st = m->ops->begin(m, &w, err);

	for (unsigned i = 0; !st && i < samples; i++)
		st = m->ops->sample(m, t->batch, err);
	if (!st)
		st = m->ops->end(m, err);
	if (st)
		return st;
	*ns = INFINITY;
	for (size_t i = 0; i < w.count; i++)
		*ns = fmin(*ns, w.sample[i].ns);
	return timing_stopped(t) ? timing_cancelled(err) : STATUS_OK;
}

/* Finds the smallest batch whose sample is long enough. It starts with one iteration, so the batches also
 * warm up the device. */
enum status timing_batch(struct timing *t, struct error *err)
{
	const uint64_t batch_max = 1u << 24;
	const double wish_ns = 1.2 * METER_SAMPLE_NS; /* the clock may still rise */
	double took, next, again;

	for (t->batch = 1;;) {
		enum status st = least_of(t, 1, &t->iteration_ns, err);

		took = t->iteration_ns * (double)t->batch;
		if (!st && took >= METER_SAMPLE_NS && took < 20.0 * METER_SAMPLE_NS) {
			/* checks whether the sample is long or was only interrupted */
			st = least_of(t, 2, &again, err);
			t->iteration_ns = fmin(t->iteration_ns, again);
			took = t->iteration_ns * (double)t->batch;
		}
		if (st || took >= METER_SAMPLE_NS || t->batch >= batch_max)
			return st;
		/* at most a factor of 100: if the first iteration is too short to be timed, it predicts
		 * little */
		next = took > 0 ? ceil((double)t->batch * wish_ns / took) : INFINITY;
		next = fmin(fmin(next, 100.0 * (double)t->batch), (double)batch_max);
		t->batch = (uint64_t)fmax(next, (double)t->batch + 1);
	}
}

enum status phase_ramp(struct timing *t, struct error *err)
{
	uint64_t t0 = clock_now_ns(t->w->clock);
	bool reached;
	enum status st = timing_at(t, "ramp", err);

	if (!st)
		st = t->meter->ops->ramp(t->meter, PHASE_RAMP_NS, &reached, err);
	if (!st)
		st = timing_batch(t, err);
	return st ? st : timing_phase(t, "ramp", t0, clock_now_ns(t->w->clock), err);
}

struct least {
	double seconds;
	unsigned samples;
};

static bool least_reached(void *arg, const struct standing *s)
{
	const struct least *l = arg;

	return s->ahead_s >= l->seconds && s->asked >= l->samples;
}

enum status timing_run(struct timing *t, struct window *w, double seconds, unsigned samples,
		       struct error *err)
{
	struct least least = {seconds, samples};

	return run_window(t, w, least_reached, &least, err);
}

/* True after the requested time and three samples. Slow samples need not be three. */
static bool burst_enough(void *arg, const struct standing *s)
{
	const double *least_s = arg;

	return s->ahead_s >= *least_s && (s->asked >= 3 || s->ahead_s >= PHASE_SUSTAINED_MIN_S);
}

/* Half-width of the mean over the measured samples, as a share of the mean. */
static double half_width(const struct window *w)
{
	double *ns = malloc(w->count * sizeof(*ns)), width = INFINITY;

	if (ns && w->count >= 2 * PHASE_BATCHES) {
		for (size_t i = 0; i < w->count; i++)
			ns[i] = w->sample[i].ns;
		width = stats_batch_half_width(ns, w->count, PHASE_BATCHES) / stats_of(ns, w->count).mean;
	}
	free(ns);
	return width;
}

/* How much other work disturbed a window: missing CPU time plus scatter. 0: no sign of it. */
static double disturbance(const struct timing *t, const struct window *w)
{
	double width = half_width(w), wall = (double)(w->t1_ns - w->t0_ns), lost = 0;

	if (w->has_cpu_time && wall > 0)
		lost = 1 - (double)w->cpu_time_ns / (timing_granted(t) * t->threads * wall);
	return (lost > 1 - PHASE_CPU_SHARE ? lost : 0) + (isfinite(width) && width > PHASE_WIDE ? width : 0);
}

/* Whether the host determines the pace: a CPU case, or short operations of several ranks, each launched by a
 * thread. */
static bool paced_by_host(const struct timing *t)
{
	return t->threads || (t->c->target.ranks > 1 && t->iteration_ns < PHASE_SINGLE_FROM_NS);
}

/* Such a point of a curve repeats its window at most twice while it is disturbed. The least disturbed window
 * counts. */
static enum status burst_windows(struct timing *t, struct window *best, double least_s, struct error *err)
{
	bool point = paced_by_host(t) && t->c->phases == PHASES_BURST;
	double least = INFINITY;

	for (t->repeats = 0;; t->repeats++) {
		struct window w = timing_window(t);
		size_t used = t->repeats ? best->count : 0;
		enum status st;
		double now;

		w.sample += used;
		w.room = used < w.room / 2 ? w.room / 2 : w.room - used;
		w.stamp = true;
		timing_wants_links(t, &w);
		st = run_window(t, &w, burst_enough, &least_s, err);
		if (st)
			return st;
		now = disturbance(t, &w);
		if (now < least) {
			memmove(t->sample, w.sample, w.count * sizeof(*w.sample));
			*best = w;
			best->sample = t->sample;
			least = now;
		}
		if (!point || least <= 0 || t->repeats + 1 >= PHASE_BURST_MOST)
			return STATUS_OK;
	}
}

enum status phase_burst(struct timing *t, struct error *err)
{
	double least_s = PHASE_BURST_NS * 1e-9;
	struct window w = timing_window(t);
	enum status st;

	if (t->c->seconds > 0 && t->c->phases == PHASES_BURST)
		least_s = t->c->seconds;
	st = timing_at(t, "burst", err);
	if (!st)
		st = burst_windows(t, &w, least_s, err);
	return st ? st : report_window(t, "burst", &w, false, err);
}

/* Means of one block of the settle phase. NAN: the signal could not be read. */
struct block {
	double middle_s, rate, clock_hz, power_w;
};

struct settling {
	struct timing *t;
	double limit_s, block_s, capped_s;
	bool fixed; /* runs to its limit, as the other cases of a simultaneous step do */
	bool settled;
	bool held;   /* the power limit has lowered the clock for long enough */
	size_t from; /* first sample of the current block */
	double from_s;
	struct block last[PHASE_SETTLE_BLOCKS];
	unsigned blocks; /* number of complete blocks */
	/* state of the device, read at most every 100 ms of the window */
	double looked_s, clock_sum, power_sum;
	unsigned clock_count, power_count;
	bool capped;
	double capped_since_s, capped_power_sum;
	unsigned capped_count;
	double limit_w;
	enum status status; /* status of reading the device's state; an error ends the window */
	struct error *err;
};

static bool steady(const struct settling *s, size_t offset)
{
	double at[PHASE_SETTLE_BLOCKS], y[PHASE_SETTLE_BLOCKS], mean = 0;

	for (unsigned i = 0; i < PHASE_SETTLE_BLOCKS; i++) {
		const struct block *b = &s->last[i];

		at[i] = b->middle_s;
		memcpy(&y[i], (const char *)b + offset, sizeof(y[i]));
		mean += y[i] / PHASE_SETTLE_BLOCKS;
	}
	if (isnan(mean)) /* not read: the other signals decide */
		return true;
	return mean > 0 && fabs(stats_slope(at, y, PHASE_SETTLE_BLOCKS)) < PHASE_SETTLE_SLOPE * mean;
}

static void close_block(struct settling *s, const struct standing *now)
{
	double mean_ns = window_mean_ns(now->w, s->from, now->w->count);

	memmove(s->last, s->last + 1, sizeof(s->last) - sizeof(s->last[0]));
	s->last[PHASE_SETTLE_BLOCKS - 1] = (struct block){
		.middle_s = 0.5 * (s->from_s + now->known_s),
		.rate = mean_ns > 0 ? 1 / mean_ns : 0,
		.clock_hz = s->clock_count ? s->clock_sum / s->clock_count : NAN,
		.power_w = s->power_count ? s->power_sum / s->power_count : NAN,
	};
	s->clock_sum = s->power_sum = 0;
	s->clock_count = s->power_count = 0;
	s->from = now->w->count;
	s->from_s = now->known_s;
	if (++s->blocks >= PHASE_SETTLE_BLOCKS)
		s->settled = steady(s, offsetof(struct block, rate)) &&
			     steady(s, offsetof(struct block, clock_hz)) &&
			     steady(s, offsetof(struct block, power_w));
}

static void look_at_cap(struct settling *s, const struct meter_state *state, double now_s)
{
	if (!state->has_capped || !state->capped) {
		s->capped = false;
		return;
	}
	if (!s->capped) {
		s->capped_since_s = now_s;
		s->capped_power_sum = 0;
		s->capped_count = 0;
	}
	s->capped = true;
	s->limit_w = state->has_power ? state->limit_w : 0;
	s->capped_power_sum += state->power_w;
	s->capped_count++;
}

static void look(struct settling *s, const struct standing *now)
{
	struct meter *m = s->t->meter;
	struct meter_state state = {0};

	if (!m->ops->state || s->t->iteration_ns < 20e3 || now->known_s < s->looked_s + 0.1)
		return;
	s->looked_s = now->known_s;
	s->status = m->ops->state(m, &state, s->err);
	if (s->status)
		return;
	if (state.has_clock) {
		s->clock_sum += state.clock_hz;
		s->clock_count++;
	}
	if (state.has_power) {
		s->power_sum += state.power_w;
		s->power_count++;
	}
	look_at_cap(s, &state, now->known_s);
}

/* The power limit lowers the clock if its bit stayed set and the mean power is at the limit. Power oscillates
 * around the limit, so single readings do not show it. */
static bool held_by_cap(const struct settling *s, double now_s)
{
	if (!s->capped || now_s - s->capped_since_s < s->capped_s)
		return false;
	return !(s->limit_w > 0) || s->capped_power_sum >= PHASE_CAPPED_SHARE * s->limit_w * s->capped_count;
}

static bool settle_enough(void *arg, const struct standing *now)
{
	struct settling *s = arg;

	look(s, now);
	if (s->status)
		return true;
	if (now->w->count > s->from && now->known_s - s->from_s >= s->block_s)
		close_block(s, now);
	if (held_by_cap(s, now->known_s))
		s->settled = s->held = true;
	return now->ahead_s >= s->limit_s || (s->settled && !s->fixed);
}

enum status phase_settle(struct timing *t, struct error *err)
{
	double wish = t->c->seconds;
	struct settling s = {
		.t = t, .err = err, .limit_s = PHASE_SETTLE_LIMIT_S, .fixed = t->c->order == STEP_TOGETHER};
	struct window w = timing_window(t);
	enum status st;

	/* A short case settles in proportion: a block is an eighth of its limit, and half of its window at
	 * the power limit is enough. */
	if (wish > 0 && 2 * wish < s.limit_s)
		s.limit_s = 2 * wish;
	s.block_s = fmin(PHASE_SETTLE_BLOCK_S, s.limit_s / 8);
	s.capped_s = PHASE_CAPPED_NS * 1e-9;
	if (wish > 0)
		s.capped_s = fmin(s.capped_s, 0.5 * wish);
	st = timing_at(t, "settle", err);
	if (!st)
		st = run_window(t, &w, settle_enough, &s, err);
	if (!st)
		st = s.status;
	t->settled = s.settled;
	t->capped = s.held && s.capped;
	return st ? st : report_window(t, "settle", &w, true, err);
}

struct sustaining {
	double wish_s;	 /* fixed length; 0: until the half-width is small enough */
	double least_s;	 /* shortest length before the half-width counts */
	double looked_s; /* time of the last look; the half-width is computed ten times a second */
};

static bool sustained_enough(void *arg, const struct standing *now)
{
	struct sustaining *s = arg;

	if (s->wish_s > 0)
		return now->ahead_s >= s->wish_s;
	if (now->ahead_s >= PHASE_SUSTAINED_MAX_S)
		return true;
	if (now->known_s < s->least_s || now->known_s < s->looked_s + 0.1)
		return false;
	s->looked_s = now->known_s;
	return half_width(now->w) <= PHASE_HALF_WIDTH;
}

/* For long windows of short iterations: makes samples longer, so that they fit into the array. */
static void widen_batch(struct timing *t, double window_s)
{
	double samples = window_s * 1e9 / (t->iteration_ns * (double)t->batch);
	double room = 0.5 * (double)t->room;

	if (t->iteration_ns > 0 && samples > room)
		t->batch = (uint64_t)ceil((double)t->batch * samples / room);
}

enum status phase_sustained(struct timing *t, struct error *err)
{
	struct sustaining s = {.wish_s = t->c->seconds, .least_s = PHASE_SUSTAINED_MIN_S};
	uint64_t batch = t->batch;
	struct window w = timing_window(t);
	enum status st = timing_at(t, "sustained", err);

	if (t->capped && s.wish_s > 0)
		s.wish_s = fmax(s.wish_s, t->c->seconds_capped);
	else if (t->capped)
		s.least_s = PHASE_CAPPED_MIN_S;
	w.stamp = true;
	timing_wants_links(t, &w);
	w.check = t->meter->engine->enqueue_check != NULL;
	widen_batch(t, s.wish_s > 0 ? s.wish_s : PHASE_SUSTAINED_MAX_S);
	if (!st)
		st = run_window(t, &w, sustained_enough, &s, err);
	t->batch = batch;
	return st ? st : report_window(t, "sustained", &w, true, err);
}
