/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks on the device every element that an operation left. The kernels of data.cu recompute each element
 * from the generator and never read the inputs, so they are independent of the operation. The host recomputes
 * samples of the inputs and of the output, to check the checking kernels. NaN equals nothing and counts as
 * wrong.
 */
#include <inttypes.h>
#include <math.h>
#include "core/math/random.h"
#include "kernel/test_data/numbers.h"
#include "kernel/memory/stream.h"
#include "probe/memory/gpu.h"

enum { SAMPLES = 16, SAMPLE_FLOATS = 1024 };

/* out[i] = factor0 * e(stream0, i) + factor1 * e(stream1, i) + constant */
struct linear {
	enum memory_stream stream0, stream1;
	float factor0, factor1, constant;
};

static struct linear linear_of(enum memory_op op)
{
	struct linear l = {.stream0 = MEMORY_STREAM_A, .stream1 = MEMORY_STREAM_B};
	uint32_t set = MEMORY_SET_BYTE * 0x01010101u;

	if (op == MEMORY_WRITE) {
		l.constant = MEMORY_FACTOR;
	} else if (op == MEMORY_SET) {
		memcpy(&l.constant, &set, sizeof(set));
	} else if (op == MEMORY_COPY) {
		l.factor0 = 1;
	} else if (op == MEMORY_SCALE) {
		l.stream0 = MEMORY_STREAM_C;
		l.factor0 = MEMORY_FACTOR;
	} else if (op == MEMORY_ADD) {
		l.factor0 = l.factor1 = 1;
	} else {
		l.stream0 = MEMORY_STREAM_B;
		l.stream1 = MEMORY_STREAM_C;
		l.factor0 = 1;
		l.factor1 = MEMORY_FACTOR;
	}
	return l;
}

static double expected_at(const struct memory *s, const struct linear *l, uint64_t i)
{
	return (double)l->factor0 * memory_element(s->seed, l->stream0, i) +
	       (double)l->factor1 * memory_element(s->seed, l->stream1, i) + (double)l->constant;
}

static void note(struct wrong *w, uint64_t index, double expected, double found)
{
	w->nan = w->nan || !isfinite(found);
	if (w->count++ && index >= w->first_index)
		return;
	w->first_index = index;
	w->expected = expected;
	w->found = found;
}

/* Start of the i-th sample of `count` elements: the first, the last, and pseudo-random ones between. */
static uint64_t sample_first(const struct memory *s, unsigned i, uint64_t count)
{
	uint64_t last = s->count - count;

	if (i == 0)
		return 0;
	return i == 1 ? last : random_u32(s->seed, 77, i) % (last + 1);
}

/* Compares samples of one stream with the host's own arithmetic. Counts errors only if the device found none.
 */
static enum status host_samples(struct memory_gpu *s, gpu_ptr from, const struct linear *l, struct wrong *w,
				struct error *err)
{
	uint64_t count = s->common.count < SAMPLE_FLOATS ? s->common.count : SAMPLE_FLOATS;
	bool found_by_device = w->count > 0;
	float found[SAMPLE_FLOATS];

	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t first = sample_first(&s->common, i, count);
		enum status st = gpu_copy_from(s->device, found, from + first * sizeof(float),
					       count * sizeof(float), err);

		if (st)
			return st;
		for (uint64_t j = 0; j < count && !found_by_device; j++) {
			double expected = expected_at(&s->common, l, first + j);

			if (!((double)found[j] == expected))
				note(w, first + j, expected, (double)found[j]);
		}
	}
	return STATUS_OK;
}

static enum status launch_record(struct memory_gpu *s, const char *entry, const void *args,
				 struct compare_record *record, struct error *err)
{
	struct compare_record empty = {.first = UINT64_MAX};
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(s->device, &kernel, "data", entry, err);

	if (!st)
		st = gpu_copy_to(s->device, s->record, &empty, sizeof(empty), err);
	if (!st)
		st = gpu_launch_1d(kernel, s->stream, 8 * gpu_sm_count(s->device), 256, 0, args, err);
	return st ? st : gpu_copy_from(s->device, record, s->record, sizeof(*record), err);
}

static enum status check_array(struct memory_gpu *s, struct wrong *w, struct error *err)
{
	struct linear l = linear_of((enum memory_op)s->common.opts.op);
	struct check_args args = {
		.out = s->out,
		.record = s->record,
		.count = s->common.count,
		.seed = s->common.seed,
		.stream0 = l.stream0,
		.stream1 = l.stream1,
		.factor0 = l.factor0,
		.factor1 = l.factor1,
		.constant = l.constant,
	};
	struct compare_record r;
	enum status st = launch_record(s, "check_linear", &args, &r, err);
	double found;

	if (st)
		return st;
	w->checked = s->common.count;
	if (r.count) {
		st = memory_gpu_fetch(s, r.first, 1, &found, err);
		note(w, r.first, expected_at(&s->common, &l, r.first), found);
		w->count = r.count;
		w->nan = r.nan > 0;
	}
	if (!st)
		st = host_samples(s, s->out, &l, w, err);
	snprintf(w->place, sizeof(w->place), "element %" PRIu64, w->first_index);
	return st;
}

/* Compares the sum with arithmetic on the generator alone, and checks the inputs. */
static enum status check_sum(struct memory_gpu *s, struct wrong *w, struct error *err)
{
	bool product = s->common.opts.op == MEMORY_DOT;
	struct sum_args args = {
		.record = s->record,
		.count = s->common.count,
		.seed = s->common.seed,
		.stream0 = MEMORY_STREAM_A,
		.stream1 = MEMORY_STREAM_B,
		.product = product,
	};
	struct linear a = {.stream0 = MEMORY_STREAM_A, .stream1 = MEMORY_STREAM_A, .factor0 = 1};
	struct linear b = {.stream0 = MEMORY_STREAM_B, .stream1 = MEMORY_STREAM_B, .factor0 = 1};
	struct compare_record r;
	double found;
	enum status st = launch_record(s, "sum_integers", &args, &r, err);

	if (!st)
		st = memory_gpu_sum(s, &found, err);
	if (st)
		return st;
	w->checked = s->common.count;
	snprintf(w->place, sizeof(w->place), "the sum of all elements");
	if (!(found == (double)r.sum)) {
		note(w, 0, (double)r.sum, found);
		return STATUS_OK;
	}
	st = host_samples(s, s->a, &a, w, err);
	if (!st && product)
		st = host_samples(s, s->b, &b, w, err);
	if (w->count)
		snprintf(w->place, sizeof(w->place), "input element %" PRIu64, w->first_index);
	return st;
}

static enum status check_walk(struct memory_gpu *s, struct wrong *w, struct error *err)
{
	uint64_t nodes = s->node_count;
	double found, expected = (double)(s->common.iterations % nodes * (MEMORY_HOPS % nodes) % nodes);
	enum status st = memory_gpu_sum(s, &found, err);

	if (st)
		return st;
	w->checked = 1;
	snprintf(w->place, sizeof(w->place), "the walk's end");
	if (!(found == expected))
		note(w, 0, expected, found);
	return STATUS_OK;
}

enum status memory_gpu_check(void *state, struct wrong *w, struct error *err)
{
	struct memory_gpu *s = state;

	switch ((enum memory_op)s->common.opts.op) {
	case MEMORY_READ:
	case MEMORY_DOT:
	case MEMORY_GATHER:
		return check_sum(s, w, err);
	case MEMORY_CHASE:
		return check_walk(s, w, err);
	default:
		return check_array(s, w, err);
	}
}
