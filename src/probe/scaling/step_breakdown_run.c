/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured steps of the breakdown. They run after the timed phases, in four segments that all ranks run
 * together: the step on one rank after the other; the computation of all ranks at once; the collectives
 * alone; and the step with events after its first bucket's gradients, its last gradient and its last bucket.
 * See docs/explanation/methods/scaling.md, "Where the time of a step goes".
 */
#include <math.h>
#include <stdlib.h>
#include "core/math/bus_bandwidth.h"
#include "core/math/stats.h"
#include "probe/scaling/scaling.h"

#define FIELD(name) (&scaling_fields[SCALING_FIELD_##name])

enum {
	STEPS_LEAST = 8,
	WARM = 2,
	LAUNCHES = 900 /* launches that the driver queues without blocking the host */
};
#define SEGMENT_NS 0.5e9

enum { MARK_FIRST, MARK_READY, MARK_END };

/* Times of one rank, in the form in which the ranks exchange them. */
struct segment_times {
	double one, together, collective, first, wall;
	double ready[SCALING_TRACE_MAX], drain[SCALING_TRACE_MAX];
	char name[48]; /* name of the rank, without the word "rank" */
};

typedef enum status segment_work(struct scaling_state *s, struct error *err);

static enum status meet(struct scaling_state *s, enum status st, struct error *err)
{
	return team_agree(s->team, st, err);
}

static enum status put_timed(struct scaling_state *s, segment_work *work, struct gpu_stream *on,
			     unsigned count, struct error *err)
{
	enum status st = work(s, err);

	if (!st)
		st = gpu_event_record(s->mark[MARK_FIRST][0], on, err);
	for (unsigned i = 0; i < count && !st; i++)
		st = work(s, err);
	return st ? st : gpu_event_record(s->mark[MARK_END][0], on, err);
}

static enum status read_timed(struct scaling_state *s, unsigned count, double *ns, struct error *err)
{
	enum status st = scaling_wait(s, err);

	if (!st)
		st = gpu_event_elapsed_ns(s->mark[MARK_FIRST][0], s->mark[MARK_END][0], ns, err);
	*ns /= count;
	return st;
}

/* Runs the computation `count` times; *ns is the time of one, by the device's events. */
static enum status time_compute(struct scaling_state *s, unsigned count, double *ns, struct error *err)
{
	enum status st = put_timed(s, scaling_compute, s->bench->stream[0], count, err);

	return st ? st : read_timed(s, count, ns, err);
}

/* The delay is derived from a measured step, after the clock has risen. */
enum status scaling_plant_late(struct scaling_state *s, struct error *err)
{
	double ns = 0;
	enum status st = fault_injection_late_find(&s->late, s->bench->device, s->bench->gpu, err);

	if (st || !s->late.spin)
		return st;
	st = time_compute(s, STEPS_LEAST, &ns, err);
	if (!st)
		st = time_compute(s, STEPS_LEAST, &ns, err);
	s->late.ns = st ? 0 : (uint64_t)(FAULT_INJECTION_LATE_SHARE * ns);
	return st;
}

/* Times the collectives. A rank that cannot enqueue its own would block the others forever. So no rank waits
 * for its device before all have enqueued theirs. */
static enum status time_collectives(struct scaling_state *s, unsigned count, double *ns, struct error *err)
{
	enum status st = meet(s, put_timed(s, scaling_communicate, scaling_wire(s), count, err), err);

	return st ? st : meet(s, read_timed(s, count, ns, err), err);
}

/* Number of steps that fit into a segment; rank 0 decides for all. */
static enum status count_steps(struct scaling_state *s, unsigned *steps, struct error *err)
{
	double ns = 0, fit = SCALING_TRACE_MAX, held = LAUNCHES;
	uint32_t count;
	enum status st = time_compute(s, WARM, &ns, err);

	held /= SCALING_PRODUCTS * s->opts.layers + 3 * s->opts.buckets + 8;
	fit = ns > 0 ? fmin(fit, SEGMENT_NS / ns) : fit;
	count = (uint32_t)fmax(STEPS_LEAST, fmin(fit, held));
	st = meet(s, st, err);
	if (!st)
		st = team_share(s->team, &count, sizeof(count), err);
	*steps = count;
	return st;
}

/* One rank computes while the others wait for it. */
static enum status alone(struct scaling_state *s, struct segment_times *t, unsigned steps, struct error *err)
{
	enum status st = STATUS_OK;

	for (unsigned r = 0; r < s->team->size && !st; r++) {
		if (r == s->team->rank)
			st = time_compute(s, steps / 2, &t->one, err);
		st = meet(s, st, err);
	}
	return st;
}

static enum status enqueue_marked(struct scaling_state *s, unsigned steps, struct error *err)
{
	enum status st = gpu_event_record(s->mark[MARK_END][0], s->bench->stream[0], err);

	for (unsigned i = 1; i <= steps && !st; i++)
		st = scaling_step(s,
				  &(struct scaling_marks){s->mark[MARK_FIRST][i], s->mark[MARK_READY][i],
							  s->mark[MARK_END][i]},
				  err);
	return st;
}

static enum status read_marks(struct scaling_state *s, struct segment_times *t, unsigned steps,
			      struct error *err)
{
	enum status st = STATUS_OK;
	double first;

	t->first = 0;
	for (unsigned i = 1; i <= steps && !st; i++) {
		struct gpu_event *begin = s->mark[MARK_END][i - 1], *ready = s->mark[MARK_READY][i];

		st = gpu_event_elapsed_ns(begin, s->mark[MARK_FIRST][i], &first, err);
		if (!st)
			st = gpu_event_elapsed_ns(begin, ready, &t->ready[i - 1], err);
		if (!st)
			st = gpu_event_elapsed_ns(ready, s->mark[MARK_END][i], &t->drain[i - 1], err);
		t->first += first / steps;
	}
	return st;
}

/* A step without events first brings all ranks to the same point. */
static enum status marked(struct scaling_state *s, struct segment_times *t, unsigned steps, struct error *err)
{
	uint64_t t0;
	enum status st = meet(s, scaling_step(s, NULL, err), err);

	if (!st)
		st = meet(s, scaling_wait(s, err), err);
	if (st)
		return st;
	t0 = clock_now_ns(s->bench->clock);
	st = meet(s, enqueue_marked(s, steps, err), err);
	if (st)
		return st;
	st = scaling_wait(s, err);
	t->wall = (double)(clock_now_ns(s->bench->clock) - t0) / steps;
	if (!st)
		st = read_marks(s, t, steps, err);
	return meet(s, st, err);
}

static enum status run_segments(struct scaling_state *s, struct segment_times *t, unsigned *steps,
				struct error *err)
{
	enum status st = count_steps(s, steps, err);

	if (!st)
		st = alone(s, t, *steps, err);
	if (!st)
		st = meet(s, time_compute(s, *steps, &t->together, err), err);
	if (!st)
		st = time_collectives(s, *steps, &t->collective, err);
	return st ? st : marked(s, t, *steps, err);
}

/* Builds one trace from the times of all ranks. `room` is its memory: ready, drain, and one value per
 * rank. */
static void make_trace(struct scaling_trace *t, double *room, const struct segment_times *all, unsigned ranks,
		       unsigned steps)
{
	double *ready = room, *drain = room + (size_t)ranks * steps, *one = drain + (size_t)ranks * steps;

	*t = (struct scaling_trace){.ranks = ranks, .steps = steps, .ready = ready, .drain = drain};
	for (unsigned r = 0; r < ranks; r++) {
		memcpy(ready + (size_t)r * steps, all[r].ready, steps * sizeof(*ready));
		memcpy(drain + (size_t)r * steps, all[r].drain, steps * sizeof(*drain));
		one[r] = all[r].one;
		t->wall = fmax(t->wall, all[r].wall);
		t->together += all[r].together / ranks;
		t->collective += all[r].collective / ranks;
		t->first_ready += all[r].first / ranks;
	}
	t->one = stats_median(one, ranks);
}

/* Reports the slowest rank as its team names it: "2 (gpu2)" or "2 on node-b". */
static void report_slowest(const struct segment_times *all, const struct scaling_account *a,
			   struct result *out)
{
	if (a->slowest >= 0)
		result_text(out, FIELD(slowest_rank), all[a->slowest].name);
	result_f64(out, FIELD(slowest_share), a->slowest_share);
}

static void report(const struct scaling_state *s, const struct segment_times *all,
		   const struct scaling_account *a, const struct scaling_trace *t, struct result *out)
{
	double n = t->ranks, bucket = 2.0 * (double)scaling_bucket_count(&s->opts);
	char version[24];

	nccl_version_text(s->nccl, version, sizeof(version));
	result_f64(out, FIELD(step_ns), a->step);
	result_f64(out, FIELD(efficiency), a->efficiency);
	result_f64(out, FIELD(tokens_rate), n * s->opts.m / (a->step * 1e-9));
	result_f64(out, FIELD(compute_share), a->compute / a->step);
	result_f64(out, FIELD(exposed_share), a->exposed / a->step);
	result_f64(out, FIELD(waiting_share), a->waiting / a->step);
	result_f64(out, FIELD(waiting_others_share), a->waiting_others / a->step);
	result_f64(out, FIELD(contention_ratio), a->compute / t->together);
	report_slowest(all, a, out);
	result_text(out, FIELD(largest_loss), scaling_loss_text(a->largest));
	result_f64(out, FIELD(largest_loss_share), a->lost[a->largest] / a->step);
	result_f64(out, FIELD(unexplained_share), a->unexplained_share);
	result_f64(out, FIELD(one_ns), t->one);
	result_f64(out, FIELD(together_ns), t->together);
	result_f64(out, FIELD(collective_ns), t->collective);
	result_f64(out, FIELD(bus_rate),
		   bucket * s->opts.buckets * bus_factor(BUS_OTHERS_TWICE, t->ranks) /
			   (t->collective * 1e-9));
	result_f64(out, FIELD(exposed_model_share), a->exposed_model / a->step);
	result_u64(out, FIELD(bucket_bytes), (uint64_t)bucket);
	result_u64(out, FIELD(account_steps), t->steps);
	result_text(out, FIELD(nccl_version), version);
}

enum status scaling_finish(void *state, struct result *out, struct error *err)
{
	struct scaling_state *s = state;
	unsigned ranks = s->team->size, steps = 0;
	struct segment_times mine = {0}, *all = calloc(ranks, sizeof(*all));
	double *room = calloc((size_t)ranks * (2 * SCALING_TRACE_MAX + 1), sizeof(*room));
	struct scaling_trace t;
	struct scaling_account a;
	enum status st =
		all && room ? STATUS_OK
			    : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					      "scaling: not enough memory for the breakdown of the step");

	st = meet(s, st, err);
	if (!st)
		st = run_segments(s, &mine, &steps, err);
	snprintf(mine.name, sizeof(mine.name), "%s",
		 s->team->name + (strncmp(s->team->name, "rank ", 5) ? 0 : 5));
	if (!st)
		st = team_gather(s->team, &mine, sizeof(mine), all, err);
	if (!st) {
		make_trace(&t, room, all, ranks, steps);
		st = scaling_account(&a, &t, err);
	}
	if (!st)
		report(s, all, &a, &t, out);
	free(all);
	free(room);
	return st;
}
