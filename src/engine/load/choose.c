/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/load/choose.h"
#include <math.h>
#include <stdlib.h>
#include "core/clock.h"
#include "core/math/stats.h"
#include "engine/step/row_lists.h"
#include "model/model.h"
#include "model/gpu/backend.h"

/* Each number of rows stands for those below it. The likely ones come first, because the time may end. A
 * step with a prompt beside decoding requests has up to 768 rows or 1152 (schedule_mixed_on_gpu), and more if
 * very many requests decode or several prompts wait. */
static const int32_t counts[] = {1,    64,   256,  32,	128, 8,	 16, 768, 1152, 512, 8192, 4096, 1024,
				 2048, 1280, 1536, 384, 192, 96, 48, 640, 24,	896, 160,  224,	 3072};

/* Steps of these numbers of rows decide among ways that are nearly equal by themselves. Those that gain most
 * come first: with 256 rows and more, an H200 is at its power limit, and all near ways take about as long. A
 * number stands for those below it, so it comes before them. */
static const int32_t refined[] = {64, 32, 128, 256, 8, 16, 512, 96, 192, 384};

static const double ordinary_choose_s = 0.5, single_s = 0.05; /* after which no window begins */
static const double refine_single_s = 0.2, ordinary_refine_s = 0.3;

static double now_s(void)
{
	return (double)clock_now_ns(clock_monotonic()) * 1e-9;
}

enum { DECODE_ROWS = 64, TIMES = 7 }; /* of the step that a deterministic cost is measured with */
enum { WINDOWS = 3, STEPS = 4 };      /* of the steps with one row that are compared */
/* Steps that decide. Their layers have more bytes of weights in BF16 than the L2 holds. The device takes so
 * many times as long as the host to enqueue them. */
enum { LAYERS_LEAST = 3, DECODE_KEYS = 512 };
#define WEIGHTS_LEAST 2.5e8
#define HOST_TIMES 1.3

enum { PREFILL_LEAST = 512 }; /* steps with fewer rows have rows of as many sequences */

/* A step of padding rows that write to page 0. With several adapters, all rows use the first one, or none. A
 * single row may have several pages, all of which are page 0. It is at the first position of the last one,
 * because the others may be beyond the context. */
static enum status run(struct loaded *l, const int32_t *zeros, int64_t rows, int64_t pages, bool adapted,
		       struct error *err)
{
	const int32_t begin[2] = {0, 1}, keys = (int32_t)((pages - 1) * l->most.page_tokens + 1);
	const int32_t last = keys - 1;
	const struct paged_rows step = {
		.token = zeros,
		.position = rows == 1 ? &last : zeros,
		.slot = zeros,
		.begin = begin,
		.keys = &keys,
		.page = zeros,
		.output = zeros,
		.adapter = adapted ? zeros : NULL,
		.adapted = adapted,
		.rows = rows,
		.sequences = 1,
		.outputs = rows <= l->most.outputs ? rows : 0,
		.page_ld = pages,
		.keys_most = keys,
		.page_tokens = l->most.page_tokens,
	};

	return paged_step_forward(l->step, &step, err);
}

/* Ends watching after work with this status. An earlier error stays. */
static enum status end_watch(struct loaded *l, enum status st, struct error *err)
{
	struct error ignored = {0};
	const enum status ended = gpu_backend_watch(&l->back, false, st ? &ignored : err);

	return st ? st : ended;
}

static enum status choose(struct loaded *l, const int32_t *zeros, int64_t rows, double left_s,
			  struct error *err)
{
	enum status st = gpu_backend_watch(&l->back, true, err);

	if (!st)
		st = run(l, zeros, rows, 1, false, err);
	if (!st && l->model->owners > 1)
		st = run(l, zeros, rows, 1, true, err);
	if (!st)
		st = gpu_backend_choose(&l->back, left_s, err);
	return end_watch(l, st, err);
}

/* A step as it is served: each row belongs to a sequence of its own. All keys are on page 0. */
struct decode_step {
	struct loaded *l;
	struct paged_rows rows;
	int32_t *list; /* of all lists */
};

static enum status run_decode(void *arg, struct error *err)
{
	const struct decode_step *d = arg;

	return paged_step_forward(d->l->step, &d->rows, err);
}

/* Pages of a sequence with about DECODE_KEYS keys, if it can have so many. */
static int64_t pages_of_keys(const struct paged_limits *most)
{
	const int64_t wanted = (DECODE_KEYS + most->page_tokens - 1) / most->page_tokens;

	return wanted < most->pages ? wanted : most->pages;
}

/* Owner: caller, free of list. */
static enum status make_decode(struct decode_step *d, struct loaded *l, int64_t rows, struct error *err)
{
	const struct paged_limits *most = &l->most;
	const int64_t sequences = rows < most->sequences ? rows : most->sequences,
		      pages = pages_of_keys(most);
	const int64_t zeros = rows > sequences * pages ? rows : sequences * pages;
	const int32_t keys = (int32_t)((pages - 1) * most->page_tokens + 1);
	int32_t *list = calloc((size_t)(zeros + 2 * sequences + 1), sizeof(*list)), *begin, *all_keys;

	if (!list)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the lists of a step");
	begin = list + zeros;
	all_keys = begin + sequences + 1;
	for (int64_t i = 0; i < sequences; i++) {
		begin[i + 1] = (int32_t)i + 1;
		all_keys[i] = keys;
	}
	*d = (struct decode_step){.l = l,
				  .list = list,
				  .rows = {.token = list,
					   .position = list,
					   .slot = list,
					   .begin = begin,
					   .keys = all_keys,
					   .page = list,
					   .output = list,
					   .rows = rows,
					   .sequences = sequences,
					   .outputs = rows <= most->outputs ? rows : 0,
					   .page_ld = pages,
					   .keys_most = keys,
					   .page_tokens = most->page_tokens}};
	return STATUS_OK;
}

static int64_t layers_of(const struct shape *s)
{
	const double all = (double)(shape_parameters(s) - (s->tied ? 1 : 2) * s->vocab * s->hidden);
	const int64_t needed = (int64_t)ceil(WEIGHTS_LEAST * (double)s->layers / (2 * all));

	return needed > LAYERS_LEAST ? needed : LAYERS_LEAST;
}

/* Whether the device takes much longer for a step than the host to enqueue it. Otherwise the time of steps in
 * a row would be the host's. */
static enum status is_timed(struct loaded *l, const int32_t *zeros, int64_t rows, bool *out,
			    struct error *err)
{
	struct gpu_stream *stream = gpu_backend_stream(&l->back);
	enum status st = run(l, zeros, rows, 1, false, err); /* loads kernels */
	double begin, enqueued_s;

	if (!st)
		st = gpu_stream_wait(stream, err);
	begin = now_s();
	if (!st)
		st = run(l, zeros, rows, 1, false, err);
	enqueued_s = now_s() - begin;
	if (!st)
		st = gpu_stream_wait(stream, err);
	*out = now_s() - begin > HOST_TIMES * enqueued_s;
	return st;
}

/* From one noted step on, so that a GEMM that the step has once is known as such. */
static enum status refine(struct loaded *l, struct decode_step *step, double seconds, struct error *err)
{
	enum status st = gpu_backend_watch(&l->back, true, err);

	if (!st)
		st = run_decode(step, err);
	if (!st)
		st = gpu_backend_refine(&l->back, step->rows.rows, seconds, run_decode, step, err);
	return end_watch(l, st, err);
}

/* Without graphs, as the steps that are timed. */
static enum status is_timed_watched(struct loaded *l, const struct decode_step *step, bool *out,
				    struct error *err)
{
	enum status st = gpu_backend_watch(&l->back, true, err);

	if (!st)
		st = is_timed(l, step->list, step->rows.rows, out, err);
	return end_watch(l, st, err);
}

enum status load_refine(struct loaded *l, int64_t rows, double seconds, bool anyway, struct error *err)
{
	const double end = now_s() + seconds;
	struct decode_step step = {0};
	bool timed = anyway;
	enum status st;

	if (seconds <= 0 || !gpu_backend_has_ways(&l->back, rows))
		return STATUS_OK;
	st = make_decode(&step, l, rows, err);
	paged_step_layers(l->step, layers_of(&l->model->shape));
	if (!st && !anyway)
		st = is_timed_watched(l, &step, &timed, err);
	if (!st && timed)
		st = refine(l, &step, end - now_s(), err);
	paged_step_layers(l->step, INT64_MAX);
	free(step.list);
	return st;
}

/* A step with one row behind about DECODE_KEYS keys, if a sequence can have so many. */
static enum status run_single(struct loaded *l, const int32_t *zeros, struct error *err)
{
	const int64_t pages = pages_of_keys(&l->most);

	/* `zeros` has as many numbers as a step has rows */
	return run(l, zeros, 1, pages < l->most.rows ? pages : l->most.rows, false, err);
}

struct window_events {
	struct gpu_event *begin, *end;
};

/* The GPU's time for STEPS steps in a row, as the engine enqueues them. */
static enum status time_window(struct loaded *l, const int32_t *zeros, const struct window_events *e,
			       double *s, struct error *err)
{
	struct gpu_stream *stream = gpu_backend_stream(&l->back);
	enum status st = gpu_event_record(e->begin, stream, err);
	double ns = 0;

	for (int i = 0; !st && i < STEPS; i++)
		st = run_single(l, zeros, err);
	if (!st)
		st = gpu_event_record(e->end, stream, err);
	if (!st)
		st = gpu_event_wait(e->end, err);
	if (!st)
		st = gpu_event_elapsed_ns(e->begin, e->end, &ns, err);
	*s = ns * 1e-9 / STEPS;
	return st;
}

/* The first window, which loads kernels and records a graph, does not count. Steps of a large model differ so
 * clearly that one window is enough. */
static enum status time_single(struct loaded *l, const int32_t *zeros, const struct window_events *e,
			       double *least, struct error *err)
{
	double s;
	enum status st = time_window(l, zeros, e, least, err);
	const double begin = now_s();

	*least = INFINITY;
	for (int i = 0; !st && i < WINDOWS && (!i || now_s() - begin < single_s); i++) {
		st = time_window(l, zeros, e, &s, err);
		*least = fmin(*least, s);
	}
	return st;
}

/* Steps with one row whose GEMMs were chosen: by the persistent kernel, or operation by operation. */
static enum status compare_single(struct loaded *l, const int32_t *zeros, struct error *err)
{
	struct gpu_device *device = gpu_backend_device(&l->back);
	struct window_events e = {0};
	double ordinary = 0, persistent = 0;
	enum status st = gpu_event_create(device, &e.begin, err);

	if (!st)
		st = gpu_event_create(device, &e.end, err);
	if (!st)
		st = time_single(l, zeros, &e, &ordinary, err);
	paged_step_persistent(l->step, true);
	if (!st)
		st = time_single(l, zeros, &e, &persistent, err);
	paged_step_persistent(l->step, persistent <= ordinary);
	gpu_event_destroy(&e.begin);
	gpu_event_destroy(&e.end);
	return st;
}

static enum status choose_single(struct loaded *l, const int32_t *zeros, double left_s, struct error *err)
{
	const bool both = paged_step_persistent(l->step, false);
	const double end = now_s() + left_s;
	enum status st = choose(l, zeros, 1, left_s, err);

	if (!st)
		st = load_refine(l, 1, fmin(refine_single_s, end - now_s()), false, err);
	if (!both)
		return st;
	if (st)
		paged_step_persistent(l->step, true);
	return st ? st : compare_single(l, zeros, err);
}

static enum status refine_all(struct loaded *l, int64_t most, struct error *err)
{
	const double begin = now_s();
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < sizeof(refined) / sizeof(refined[0]); i++) {
		const double left_s = LOAD_REFINE_S - (now_s() - begin);

		if (refined[i] <= most)
			st = load_refine(l, refined[i], left_s, false, err);
	}
	return st;
}

enum status load_choose(struct loaded *l, double seconds, struct error *err)
{
	const int64_t decode_most = row_lists_ladder(l->most.sequences, l->most.rows);
	int32_t *zeros = calloc((size_t)l->most.rows, sizeof(*zeros));
	const double begin = now_s();
	enum status st = STATUS_OK;

	if (!zeros)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the lists of a step");
	for (size_t i = 0; !st && i < sizeof(counts) / sizeof(counts[0]); i++) {
		const double left_s = seconds - (now_s() - begin);

		if ((counts[i] <= decode_most || (counts[i] >= PREFILL_LEAST && counts[i] <= l->most.rows)) &&
		    left_s > 0)
			st = counts[i] == 1 ? choose_single(l, zeros, left_s, err)
					    : choose(l, zeros, counts[i], left_s, err);
	}
	if (!st)
		st = refine_all(l, decode_most, err);
	free(zeros);
	return st;
}

/* The median time of steps with so many rows. The first one, which loads kernels, is not timed. */
static enum status time_steps(struct loaded *l, const int32_t *zeros, int64_t rows, double *median,
			      struct error *err)
{
	double took[TIMES];
	enum status st = gpu_backend_watch(&l->back, true, err); /* no graphs */

	for (int i = -1; !st && i < TIMES; i++) {
		const double begin = now_s();

		st = run(l, zeros, rows, 1, false, err);
		if (!st)
			st = gpu_stream_wait(gpu_backend_stream(&l->back), err);
		if (i >= 0)
			took[i] = now_s() - begin;
	}
	st = end_watch(l, st, err);
	if (!st)
		*median = stats_median(took, TIMES);
	return st;
}

enum status load_deterministic_cost(struct loaded *l, struct deterministic_cost *out, struct error *err)
{
	const int64_t most = row_lists_ladder(l->most.sequences, l->most.rows);
	const int64_t rows = most < DECODE_ROWS ? most : DECODE_ROWS;
	int32_t *zeros = calloc((size_t)rows, sizeof(*zeros));
	struct deterministic_cost cost = {.rows = rows};
	struct gpu_ordinary kept;
	enum status st;

	*out = (struct deterministic_cost){0};
	if (!zeros)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the lists of a step");
	gpu_backend_ordinary_begin(&l->back, &kept);
	st = choose(l, zeros, rows, ordinary_choose_s, err);
	if (!st)
		st = load_refine(l, rows, ordinary_refine_s, false, err);
	if (!st)
		st = time_steps(l, zeros, rows, &cost.ordinary_s, err);
	gpu_backend_ordinary_end(&l->back, &kept);
	if (!st)
		st = time_steps(l, zeros, rows, &cost.step_s, err);
	free(zeros);
	if (!st)
		*out = cost;
	return st;
}
