/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues one training step on the streams. */
#include <math.h>
#include "probe/scaling/scaling.h"

struct gpu_stream *scaling_wire(const struct scaling_state *s)
{
	return s->bench->stream[s->opts.overlap];
}

uint64_t scaling_bucket_count(const struct scaling_opts *o)
{
	return (uint64_t)o->layers / o->buckets * o->width * o->width;
}

/* Scales results to a variance of about one: inputs are uniform in (-1, 1), which has a variance of one
 * third. */
double scaling_alpha(const struct scaling_state *s, enum scaling_product p)
{
	return 3 / sqrt(p == SCALING_TO_WEIGHT ? s->opts.m : s->opts.width);
}

static gpu_ptr of_layer(const struct scaling_state *s, gpu_ptr all, uint32_t layer)
{
	return all + 2ull * layer * s->opts.width * s->opts.width;
}

static enum status multiply(struct scaling_state *s, enum scaling_product p, gpu_ptr a, gpu_ptr b, gpu_ptr d,
			    struct error *err)
{
	const struct matmul_operands o = {.a = a, .b = b, .d = d, .alpha = scaling_alpha(s, p)};

	return matmul_plan_enqueue(s->plan[p], &o, s->bench->stream[0], err);
}

static enum status forward(struct scaling_state *s, struct error *err)
{
	enum status st = fault_injection_late_put(&s->late, s->bench->stream[0], err);

	for (uint32_t l = 0; l < s->opts.layers && !st; l++)
		st = multiply(s, SCALING_FORWARD, s->input[l % SCALING_SETS], of_layer(s, s->weight, l),
			      s->out, err);
	return st;
}

static enum status backward(struct scaling_state *s, uint32_t layer, struct error *err)
{
	gpu_ptr towards = s->gradient_in[layer % SCALING_SETS];
	enum status st = multiply(s, SCALING_TO_INPUT, towards, of_layer(s, s->weight, layer), s->back, err);

	return st ? st
		  : multiply(s, SCALING_TO_WEIGHT, towards, s->input[layer % SCALING_SETS],
			     of_layer(s, s->gradient, layer), err);
}

static enum status update(struct scaling_state *s, struct error *err)
{
	return gpu_stream_copy(s->bench->stream[0], s->moved, s->gradient,
			       2ull * s->opts.layers * s->opts.width * s->opts.width, err);
}

/* Averages one bucket. Buckets are numbered in the order in which they become ready: number 0 belongs to the
 * last layers. */
static enum status average(struct scaling_state *s, uint32_t bucket, struct error *err)
{
	uint64_t count = scaling_bucket_count(&s->opts);
	gpu_ptr at = s->gradient + 2 * count * (s->opts.buckets - 1 - bucket);
	ncclDataType_t type = s->opts.type == SCALING_BF16 ? ncclBfloat16 : ncclFloat16;
	void *p = (void *)(uintptr_t)at;

	return nccl_check(s->nccl,
			  s->nccl->all_reduce(p, p, count, type, ncclAvg, s->comm->comm,
					      gpu_stream_raw(scaling_wire(s))),
			  s->comm->comm, "ncclAllReduce", err);
}

/* Runs after the bucket's last gradient. */
static enum status send_bucket(struct scaling_state *s, uint32_t bucket, struct error *err)
{
	enum status st = STATUS_OK;

	if (s->opts.overlap) {
		st = gpu_event_record(s->ready[bucket], s->bench->stream[0], err);
		if (!st)
			st = gpu_stream_after(scaling_wire(s), s->ready[bucket], err);
	}
	return st ? st : average(s, bucket, err);
}

static enum status mark(struct gpu_event *e, struct gpu_stream *on, struct error *err)
{
	return e ? gpu_event_record(e, on, err) : STATUS_OK;
}

/* Without overlap, all buckets are sent after the last gradient. */
static enum status backward_all(struct scaling_state *s, const struct scaling_marks *m, bool communicate,
				struct error *err)
{
	uint32_t each = s->opts.layers / s->opts.buckets, done = 0;
	enum status st = STATUS_OK;

	for (uint32_t l = s->opts.layers; l-- > 0 && !st;) {
		st = backward(s, l, err);
		if (st || ++done % each)
			continue;
		if (done == each)
			st = mark(m->first, s->bench->stream[0], err);
		if (!st && done == s->opts.layers)
			st = mark(m->ready, s->bench->stream[0], err);
		if (!st && communicate && s->opts.overlap)
			st = send_bucket(s, done / each - 1, err);
	}
	for (uint32_t b = 0; b < s->opts.buckets && !st && communicate && !s->opts.overlap; b++)
		st = send_bucket(s, b, err);
	return st;
}

static enum status join(struct scaling_state *s, struct error *err)
{
	enum status st;

	if (!s->opts.overlap)
		return STATUS_OK;
	st = gpu_event_record(s->drained, scaling_wire(s), err);
	return st ? st : gpu_stream_after(s->bench->stream[0], s->drained, err);
}

enum status scaling_compute(struct scaling_state *s, struct error *err)
{
	enum status st = forward(s, err);

	if (!st)
		st = backward_all(s, &(struct scaling_marks){0}, false, err);
	return st ? st : update(s, err);
}

enum status scaling_communicate(struct scaling_state *s, struct error *err)
{
	enum status st = STATUS_OK;

	for (uint32_t b = 0; b < s->opts.buckets && !st; b++)
		st = average(s, b, err);
	return st;
}

enum status scaling_step(struct scaling_state *s, const struct scaling_marks *marks, struct error *err)
{
	static const struct scaling_marks none = {0};
	const struct scaling_marks *m = marks ? marks : &none;
	enum status st = forward(s, err);

	if (!st)
		st = backward_all(s, m, true, err);
	if (!st)
		st = mark(m->end, scaling_wire(s), err);
	if (!st)
		st = join(s, err);
	s->steps++;
	return st ? st : update(s, err);
}

enum status scaling_wait(struct scaling_state *s, struct error *err)
{
	enum status st = join(s, err);

	return st ? st : team_nccl_wait(s->team, s->comm, s->bench->stream[0], s->done, s->bench->clock, err);
}
