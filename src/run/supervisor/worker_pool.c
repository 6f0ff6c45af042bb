/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of a step: one for ordered cases, one per case for simultaneous cases, and one per GPU for
 * lockstep cases. The loop waits for the next event of any kind (a message, output, an exit, a limit, a
 * request to stop).
 */
#include <errno.h>
#include <poll.h>
#include "machine/machine.h"
#include "run/supervisor/worker_pool.h"
#include "run/worker/device.h"
#include "team/control/control.h"

enum { TICK_MS = 50, WORKER_POOL_MAX = 256, TEAM_FDS = CONTROL_RANKS };

void worker_pool_quarantine(struct run *r, const struct bench_case *c, enum lost why)
{
	for (unsigned i = 0; i < c->target.gpu_count; i++)
		if (c->target.gpu[i] < RUN_GPUS && !r->lost[c->target.gpu[i]]) {
			r->lost[c->target.gpu[i]] = why;
			r->lost_by[c->target.gpu[i]] = c->id;
		}
}

/* The thermal guard of the case's GPUs that demands an end; NULL: none. */
static const struct thermal_guard *alarm_of(const struct run *r, const struct bench_case *c)
{
	for (unsigned i = 0; i < c->target.gpu_count; i++)
		if (c->target.gpu[i] < RUN_GPUS && r->watch.guard[c->target.gpu[i]].cause)
			return &r->watch.guard[c->target.gpu[i]];
	return NULL;
}

/* Checks limits, thermal guards and requests to stop. */
static void watch_time(struct run *r, struct worker *w)
{
	const struct thermal_guard *alarm;
	uint64_t t = clock_now_ns(r->o->clock);

	if (!w->alive || !w->c)
		return;
	alarm = alarm_of(r, w->c);
	if (run_stopping(r) && w->forced_cause != CAUSE_INTERRUPTED) {
		worker_terminate(r, w, ENDING_CANCELLED, CAUSE_INTERRUPTED, "stopped on request",
				 *r->o->stop > 1 ? 0 : RUN_STOP_NS);
	} else if (!w->kill_ns && alarm) {
		worker_pool_quarantine(r, w->c, LOST_HOT);
		worker_terminate(r, w, ENDING_CANCELLED, alarm->cause, alarm->text, RUN_TERM_NS);
	} else if (!w->kill_ns && t >= w->limit_ns) {
		worker_terminate(r, w, ENDING_TIMED_OUT, CAUSE_TIMED_OUT, "over its limit", RUN_TERM_NS);
	}
	if (w->kill_ns && (t >= w->kill_ns || (run_stopping(r) && *r->o->stop > 1)))
		worker_force(r, w);
}

void worker_pool_attend(struct run *r, struct worker *pool, size_t count)
{
	struct pollfd fds[2 * WORKER_POOL_MAX + 1 + TEAM_FDS];
	nfds_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (pool[i].alive) {
			fds[n++] = (struct pollfd){.fd = pool[i].p.channel, .events = POLLIN};
			fds[n++] = (struct pollfd){.fd = pool[i].p.output, .events = POLLIN};
		}
	if (r->watch.alive)
		fds[n++] = (struct pollfd){.fd = r->watch.sampler.channel, .events = POLLIN};
	n += control_fds(r->o->control, fds + n, TEAM_FDS);
	poll(fds, n, TICK_MS);
	for (size_t i = 0; i < count; i++)
		if (pool[i].alive)
			worker_receive(r, &pool[i]);
	for (size_t i = 0; i < count; i++)
		watch_time(r, &pool[i]);
	team_attend(r, pool);
	telemetry_reader_read(r);
}

static bool any_at_work(const struct worker *pool, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (pool[i].c)
			return true;
	return false;
}

/* Sends the start signal once every worker is ready or dead. */
static void start_together(struct worker *pool, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (pool[i].c && !pool[i].ready)
			return;
	for (size_t i = 0; i < count; i++)
		if (pool[i].c && !pool[i].told_to_go) {
			pool[i].told_to_go = true;
			/* if the message fails, the worker is dying, and the next turn of the loop sees its
			 * exit */
			worker_send(&pool[i], json_pack("{s:b}", "go", 1), NULL);
		}
}

/* False: the case must not run, and its end is in the journal. */
static bool may_run(struct run *r, const struct bench_case *c)
{
	char text[160];

	if (c->skip || r->done[c->id])
		return false;
	for (unsigned i = 0; i < c->target.gpu_count; i++)
		if (c->target.gpu[i] < RUN_GPUS && r->lost[c->target.gpu[i]]) {
			snprintf(text, sizeof(text), "GPU %s was %s in case %u",
				 machine_gpu(r->machine, c->target.gpu[i])->pci,
				 r->lost[c->target.gpu[i]] == LOST_HOT ? "stopped for heat or a brake"
								       : "lost or stuck",
				 r->lost_by[c->target.gpu[i]]);
			run_end(r, c, ENDING_NOT_RUN, STATUS_UNAVAILABLE, CAUSE_QUARANTINED, text, "");
			return false;
		}
	return true;
}

static bool over(const struct run *r)
{
	return run_stopping(r) || r->status;
}

static void in_order(struct run *r, const struct step *step)
{
	struct worker *w = &r->keeper;

	w->run = r;
	for (size_t i = 0; i < step->count && !over(r); i++) {
		team_line(r, &step->cases[i]);
		if (step->cases[i].team) {
			team_case(r, &step->cases[i]);
			health_between(r, &step->cases[i], w, 0);
			continue;
		}
		if (!may_run(r, &step->cases[i]))
			continue;
		worker_give(r, w, &step->cases[i]);
		while (w->c && !r->status)
			worker_pool_attend(r, w, 1);
		if (w->alive && r->status)
			worker_end(r, w, 500);
		health_between(r, &step->cases[i], w, 1);
		/* a worker that lost its device is of no further use */
		for (unsigned g = 0; w->alive && g < step->cases[i].target.gpu_count; g++)
			if (r->lost[step->cases[i].target.gpu[g] % RUN_GPUS])
				worker_pool_dismiss(r, w);
	}
}

static void all_together(struct run *r, const struct step *step)
{
	size_t room = step->count < WORKER_POOL_MAX ? step->count : WORKER_POOL_MAX, count = 0;
	struct worker *pool = calloc(room, sizeof(*pool));

	if (!pool) {
		r->status = error_errno(r->err, ENOMEM, "%zu workers", room);
		return;
	}
	worker_pool_dismiss(r, &r->keeper);
	for (size_t i = 0; i < step->count && count < room && !over(r); i++) {
		if (!may_run(r, &step->cases[i]))
			continue;
		if (count && device_wanted(&step->cases[i]))
			clock_sleep_ns(r->o->clock, RUN_STAGGER_NS);
		pool[count] = (struct worker){.run = r, .p = {.channel = -1, .output = -1}};
		worker_give(r, &pool[count++], &step->cases[i]);
	}
	while (any_at_work(pool, count) && !r->status) {
		worker_pool_attend(r, pool, count);
		start_together(pool, count);
	}
	for (size_t i = 0; i < count; i++) {
		if (r->status)
			worker_end(r, &pool[i], 500);
		worker_pool_dismiss(r, &pool[i]);
	}
	free(pool);
	for (size_t i = 0; i < step->count && i < room; i++)
		health_between(r, &step->cases[i], NULL, 0);
}

/* The worker of the case's GPU. It stays with the GPU from row to row. */
static struct worker *lane_of(struct worker *lane, const struct bench_case *c)
{
	return &lane[c->target.gpu[0] % RUN_GPUS];
}

/* Workers that cannot run their case of the row that starts at `first` exit simultaneously, because closing a
 * device takes time. */
static void change_lanes(struct run *r, const struct step *step, size_t first, const bool *begun,
			 struct worker *lane)
{
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = first; i < step->count; i++) {
			const struct bench_case *c = &step->cases[i];
			struct worker *w = lane_of(lane, c);

			if (begun[i] || strcmp(c->key, step->cases[first].key) || !w->alive ||
			    worker_fits(w, c))
				continue;
			if (pass)
				worker_pool_dismiss(r, w);
			else
				worker_hang_up(w);
		}
}

/* Runs the cases of one key simultaneously on all GPUs. The next row begins when the last of them has ended.
 */
static void run_row(struct run *r, const struct step *step, size_t first, bool *begun, struct worker *lane,
		    size_t lanes)
{
	unsigned hired = 0;

	change_lanes(r, step, first, begun, lane);
	for (size_t i = first; i < step->count && !over(r); i++) {
		const struct bench_case *c = &step->cases[i];
		struct worker *w = lane_of(lane, c);

		if (begun[i] || w->c || strcmp(c->key, step->cases[first].key))
			continue;
		begun[i] = true;
		if (!may_run(r, c))
			continue;
		if (!w->alive && hired++ && device_wanted(c))
			clock_sleep_ns(r->o->clock, RUN_STAGGER_NS);
		worker_give(r, w, c);
	}
	while (any_at_work(lane, lanes) && !r->status) {
		worker_pool_attend(r, lane, lanes);
		start_together(lane, lanes);
	}
	for (size_t i = first; i < step->count; i++)
		if (!strcmp(step->cases[i].key, step->cases[first].key))
			health_between(r, &step->cases[i], lane, lanes);
	for (size_t i = 0; i < lanes; i++) /* a worker that lost its device is of no further use */
		if (lane[i].alive && r->lost[i])
			worker_pool_dismiss(r, &lane[i]);
}

static void in_lockstep(struct run *r, const struct step *step)
{
	size_t lanes = machine_gpu_count(r->machine);
	struct worker *lane = calloc(RUN_GPUS, sizeof(*lane));
	bool *begun = calloc(step->count, sizeof(*begun));

	if (!lane || !begun) {
		r->status = error_errno(r->err, ENOMEM, "%zu workers", lanes);
		goto out;
	}
	lanes = lanes < RUN_GPUS ? lanes : RUN_GPUS;
	worker_pool_dismiss(r, &r->keeper);
	for (size_t i = 0; i < lanes; i++)
		lane[i] = (struct worker){.run = r, .p = {.channel = -1, .output = -1}};
	for (size_t i = 0; i < step->count && !over(r); i++)
		if (!begun[i])
			run_row(r, step, i, begun, lane, lanes);
	for (size_t i = 0; i < lanes; i++)
		if (r->status)
			worker_end(r, &lane[i], 500);
		else if (lane[i].alive)
			worker_hang_up(&lane[i]);
	for (size_t i = 0; i < lanes; i++)
		worker_pool_dismiss(r, &lane[i]);
out:
	free(begun);
	free(lane);
}

void worker_pool_step(struct run *r, const struct step *step)
{
	if (step->count)
		team_line(r, step->cases);
	if (step->order == STEP_LOCKSTEP)
		in_lockstep(r, step);
	else if (step->order == STEP_TOGETHER)
		all_together(r, step);
	else
		in_order(r, step);
}
