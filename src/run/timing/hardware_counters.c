/* SPDX-License-Identifier: Apache-2.0 */
/* Phase "counted": iterations under hardware counters, after the timed phases.
 * docs/explanation/methods/gpu-memory-and-links.md, "Hardware counters"; docs/explanation/design/counter.md.
 */
#include <errno.h>
#include <math.h>
#include "counter/counter.h"
#include "run/worker/device.h"
#include "run/worker/rank_case.h"
#include "run/timing/phases.h"

enum { HEAD, WHOLE, RANGES, PASSES_MOST = 8 };

/* Counters of one case. If they cannot be read, `refused` has the reason, and the case goes on without them.
 */
struct counting {
	struct counter_range *range;
	struct error refused;
};

/* ASSAY_COUNTERS: "on" counts after short windows too, "off" never counts. */
static bool asked(const char *word)
{
	const char *text = getenv("ASSAY_COUNTERS");

	return text && !strcmp(text, word);
}

bool phase_counted_may(const struct bench_case *c)
{
	bool worth = !(c->seconds > 0) || c->seconds >= PHASE_COUNTED_FROM_S || asked("on");

	return c->probe->counted && c->phases == PHASES_HEADLINE && c->target.kind == TARGET_GPU &&
	       device_wanted(c) && worth && !asked("off");
}

static bool wanted(const struct timing *t)
{
	return t->part && t->part->bench.device && t->meter->ops->counted && phase_counted_may(t->c);
}

/* The SM, the cache, the FLOP of the case's type, and the pipe that may limit in addition to the tensor pipe.
 * This takes two passes, or three with the issue slots. */
static struct counter_request wish_of(const struct timing *t)
{
	const char *limit = t->work.limit, *type = !strncmp(limit, "compute.", 8) ? limit + 8 : "";
	struct counter_request w = {.sets = COUNTER_CORE | COUNTER_CACHE, .type = type, .ranges = RANGES};

	if (counter_tensor_metric(type))
		w.sets |= COUNTER_TENSOR;
	if (!strcmp(type, "fp32"))
		w.sets |= COUNTER_FMA;
	else if (!strcmp(type, "fp64"))
		w.sets |= COUNTER_FP64;
	else
		w.sets |= COUNTER_XU | COUNTER_ISSUE;
	return w;
}

static void mark(void *arg, bool before)
{
	struct counting *c = arg;

	if (c->refused.status)
		return;
	(void)(before ? counter_range_push(c->range, &c->refused) : counter_range_pop(c->range, &c->refused));
}

static void unmarked(void *arg, bool before)
{
	(void)arg, (void)before;
}

/* Runs one pass: a short range, then the range of interest. An iteration outside any range comes first. The
 * first iteration of a pass may wait for milliseconds, and the short range would subtract this time from the
 * long one. */
static enum status pass(struct timing *t, struct counting *c, const uint64_t count[RANGES], struct error *err)
{
	enum status st = t->meter->ops->counted(t->meter, 1, unmarked, c, err);

	for (unsigned i = 0; !st && i < RANGES && !c->refused.status; i++)
		st = t->meter->ops->counted(t->meter, count[i], mark, c, err);
	return st;
}

/* Runs all passes in a window of their own. The device is idle before and after each range. */
static enum status all_passes(struct timing *t, struct counting *c, const uint64_t count[RANGES],
			      struct window *w, unsigned *passes, struct error *err)
{
	enum status st = t->meter->ops->begin(t->meter, w, err);
	bool done = false;

	for (*passes = 0; !st && !done && *passes < PASSES_MOST && !c->refused.status; ++*passes) {
		if (timing_stopped(t))
			return timing_cancelled(err);
		if (counter_range_begin(c->range, &c->refused))
			break;
		st = pass(t, c, count, err);
		if (!st && !c->refused.status)
			(void)counter_range_end(c->range, &done, &c->refused);
	}
	if (!st && !done && !c->refused.status)
		error_set_cause(&c->refused, STATUS_VENDOR, CAUSE_VENDOR_CALL,
				"CUPTI needs more than %d passes; the limit is reached", PASSES_MOST);
	return st ? st : t->meter->ops->end(t->meter, err);
}

/* Writes the values of one iteration: the difference of the long and the short range. */
static void take_values(struct counting *c, const uint64_t count[RANGES], struct result *r)
{
	static const struct field *const fields[] = {
#define X(name, ...) [COUNTER_METRIC_##name] = &field_counter_##name,
		COUNTER_METRICS(X)
#undef X
	};
	double iterations = (double)(count[WHOLE] - count[HEAD]);
	struct counter_values range[RANGES], v;

	for (unsigned i = 0; i < RANGES; i++)
		if (counter_range_read(c->range, i, &range[i], &c->refused))
			return;
	v = counter_beyond(&range[WHOLE], &range[HEAD]);
	for (unsigned i = 0; i < COUNTER_METRIC_COUNT; i++)
		if (v.has[i])
			result_f64(r, fields[i],
				   counter_rows[i].kind == COUNTER_SUM ? v.value[i] / iterations
								       : v.value[i]);
	result_u64(r, &field_counter_iterations, count[WHOLE]);
	result_u64(r, &field_counter_passes, counter_range_passes(c->range));
}

static enum status count_case(struct timing *t, struct result *r, struct error *err)
{
	double most = t->iteration_ns > 0 ? ceil(PHASE_COUNTED_NS / t->iteration_ns) : 1;
	uint64_t count[RANGES] = {[WHOLE] = (uint64_t)fmin(fmax(most, PHASE_COUNTED_LEAST), 1 << 20)};
	struct counter_request wish = wish_of(t);
	struct counting c = {0};
	struct window w = timing_window(t);
	enum status st = STATUS_OK;
	unsigned passes;

	count[HEAD] = count[WHOLE] / PHASE_COUNTED_HEAD ? count[WHOLE] / PHASE_COUNTED_HEAD : 1;
	if (!counter_range_open(&c.range, t->part->bench.device, &wish, &c.refused)) {
		st = all_passes(t, &c, count, &w, &passes, err);
		if (!st && !c.refused.status)
			take_values(&c, count, r);
	}
	counter_range_close(&c.range);
	if (c.refused.status)
		result_text(r, &field_counter_note, c.refused.text);
	return st;
}

enum status phase_counted(struct timing *t, struct error *err)
{
	uint64_t t0 = clock_now_ns(t->w->clock);
	struct result *r;
	enum status st;

	if (!wanted(t))
		return STATUS_OK;
	r = result_create();
	if (!r)
		return error_errno(err, ENOMEM, "%s: its counters", t->c->key);
	st = timing_at(t, "counted", err);
	if (!st)
		st = count_case(t, r, err);
	if (!st)
		st = timing_phase(t, "counted", t0, clock_now_ns(t->w->clock), err);
	if (!st)
		st = timing_result(t, timing_judged(t), r, err);
	result_destroy(r);
	return st;
}
