/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of probe memory recomputes every element that an operation must leave. It is independent of
 * engine and device, and it treats NaN as wrong. */
#include <inttypes.h>
#include <math.h>
#include "probe/shared/cpu.h"
#include "probe/memory/memory.h"

enum { CHUNK = 16384 };

void memory_begin(struct memory *s, const struct bench *b, const struct memory_opts *o,
		  const struct memory_access *access)
{
	*s = (struct memory){
		.opts = *o,
		.seed = b->seed,
		.size = memory_size(b->machine, b->target, o),
		.element_bytes = memory_element_bytes(b->target),
		.access = access,
	};
	s->count = s->size / s->element_bytes;
}

static bool writes_array(enum memory_op op)
{
	return op != MEMORY_READ && op != MEMORY_DOT && op != MEMORY_GATHER && op != MEMORY_CHASE;
}

/* The number in the element's type whose bytes are all MEMORY_SET_BYTE. */
static double set_value(unsigned element_bytes)
{
	unsigned char bytes[sizeof(double)];
	float single;
	double twice;

	memset(bytes, MEMORY_SET_BYTE, sizeof(bytes));
	memcpy(&single, bytes, sizeof(single));
	memcpy(&twice, bytes, sizeof(twice));
	return element_bytes == sizeof(float) ? (double)single : twice;
}

/* Inputs a, b and c of elements [first, first + count). */
struct inputs {
	int8_t a[CHUNK], b[CHUNK], c[CHUNK];
};

static void inputs_make(struct inputs *in, const struct memory *s, uint64_t first, size_t count)
{
	enum memory_op op = s->opts.op;

	if (op != MEMORY_WRITE && op != MEMORY_SET && op != MEMORY_SCALE && op != MEMORY_TRIAD)
		memory_elements(s->seed, MEMORY_STREAM_A, first, count, in->a);
	if (op == MEMORY_ADD || op == MEMORY_TRIAD || op == MEMORY_DOT)
		memory_elements(s->seed, MEMORY_STREAM_B, first, count, in->b);
	if (op == MEMORY_SCALE || op == MEMORY_TRIAD)
		memory_elements(s->seed, MEMORY_STREAM_C, first, count, in->c);
}

/* Expected result of elements [first, first + count), computed from the inputs `in`. */
static void expected(const struct memory *s, const struct inputs *in, size_t count, double *out)
{
	switch ((enum memory_op)s->opts.op) {
	case MEMORY_COPY:
		for (size_t i = 0; i < count; i++)
			out[i] = in->a[i];
		return;
	case MEMORY_SCALE:
		for (size_t i = 0; i < count; i++)
			out[i] = MEMORY_FACTOR * in->c[i];
		return;
	case MEMORY_ADD:
		for (size_t i = 0; i < count; i++)
			out[i] = in->a[i] + in->b[i];
		return;
	case MEMORY_TRIAD:
		for (size_t i = 0; i < count; i++)
			out[i] = in->b[i] + MEMORY_FACTOR * in->c[i];
		return;
	default:
		break;
	}
	for (size_t i = 0; i < count; i++)
		out[i] = s->opts.op == MEMORY_WRITE ? MEMORY_FACTOR
			 : s->opts.op == MEMORY_SET ? set_value(s->element_bytes)
						    : NAN;
}

/* One thread's part of the check. */
struct part {
	struct inputs in;
	double expected[CHUNK], found[CHUNK];
	int64_t sum;
	struct wrong wrong;
	enum status status;
	struct error err;
};

struct parts {
	struct memory *s;
	struct part *part; /* (threads) */
};

static unsigned threads_of(const struct memory *s)
{
	return s->pool ? cpu_pool_count(s->pool) : 1;
}

/* Runs `work` over all elements; each thread has a part of its own. Owner of the parts: caller, free. */
static enum status on_threads(struct memory *s, void (*work)(void *arg, unsigned thread), struct part **out,
			      struct error *err)
{
	struct parts p = {.s = s, .part = calloc(threads_of(s), sizeof(*p.part))};

	*out = p.part;
	if (!p.part)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "memory: not enough memory to verify");
	if (s->pool)
		cpu_pool_run(s->pool, work, &p);
	else
		work(&p, 0);
	return STATUS_OK;
}

static void sum_work(void *arg, unsigned thread)
{
	const struct parts *p = arg;
	const struct memory *s = p->s;
	struct part *part = &p->part[thread];
	uint64_t first, last;

	cpu_share(s->count, CHUNK, thread, threads_of(s), &first, &last);
	for (; first < last; first += CHUNK) {
		size_t count = last - first < CHUNK ? last - first : CHUNK;
		int32_t sum = 0; /* CHUNK products of two bytes stay below 2^31 */

		inputs_make(&part->in, s, first, count);
		if (s->opts.op == MEMORY_DOT)
			for (size_t i = 0; i < count; i++)
				sum += part->in.a[i] * part->in.b[i];
		else
			for (size_t i = 0; i < count; i++)
				sum += part->in.a[i];
		part->sum += sum;
	}
}

/* Expected sum, which is exact: its magnitude is below 2^14 * 2^32. gather sums a permutation, so its sum is
 * that of a. chase: the expected end of the walk. */
static enum status expected_sum(struct memory *s, double *out, struct error *err)
{
	struct part *part;
	int64_t sum = 0;
	enum status st;

	if (s->opts.op == MEMORY_CHASE) {
		uint64_t nodes = s->size / MEMORY_NODE_BYTES(s->element_bytes);

		*out = (double)(s->iterations % nodes * (MEMORY_HOPS % nodes) % nodes);
		return STATUS_OK;
	}
	st = on_threads(s, sum_work, &part, err);
	for (unsigned i = 0; !st && i < threads_of(s); i++)
		sum += part[i].sum;
	free(part);
	*out = (double)sum;
	return st;
}

static enum status mismatch(const struct memory *s, const struct wrong *w, struct error *err)
{
	return error_set_cause(err, STATUS_MISMATCH, w->nan ? CAUSE_NAN : CAUSE_WRONG_RESULT,
			       "memory op=%s: %" PRIu64 " of %" PRIu64
			       " elements are wrong, the first at %s: expected %g, found %g",
			       memory_op_name(s->opts.op), w->count, w->checked, w->place, w->expected,
			       w->found);
}

static void note(struct wrong *w, uint64_t index, double expected, double found)
{
	if (found == expected)
		return;
	if (!isfinite(found))
		w->nan = true;
	if (w->count++)
		return;
	w->first_index = index;
	w->expected = expected;
	w->found = found;
}

static void array_work(void *arg, unsigned thread)
{
	const struct parts *p = arg;
	struct memory *s = p->s;
	struct part *part = &p->part[thread];
	uint64_t first, last;

	cpu_share(s->count, CHUNK, thread, threads_of(s), &first, &last);
	for (; !part->status && first < last; first += CHUNK) {
		size_t count = last - first < CHUNK ? last - first : CHUNK;

		inputs_make(&part->in, s, first, count);
		expected(s, &part->in, count, part->expected);
		part->status = s->access->fetch(s, first, count, part->found, &part->err);
		for (size_t i = 0; !part->status && i < count; i++)
			note(&part->wrong, first + i, part->expected[i], part->found[i]);
		part->wrong.checked += part->status ? 0 : count;
	}
}

/* Each thread checks one range, in order. So the first wrong element is that of the first thread that found
 * one. */
static enum status check_array(struct memory *s, struct wrong *w, struct error *err)
{
	struct part *part;
	enum status st = on_threads(s, array_work, &part, err);

	for (unsigned i = 0; !st && i < threads_of(s); i++) {
		const struct wrong *found = &part[i].wrong;

		if (found->count && !w->count) {
			w->first_index = found->first_index;
			w->expected = found->expected;
			w->found = found->found;
		}
		w->count += found->count;
		w->checked += found->checked;
		w->nan |= found->nan;
		st = part[i].status;
		if (st && err)
			*err = part[i].err;
	}
	free(part);
	snprintf(w->place, sizeof(w->place), "element %" PRIu64, w->first_index);
	return st;
}

static enum status check_sum(struct memory *s, struct wrong *w, struct error *err)
{
	bool chase = s->opts.op == MEMORY_CHASE;
	double found, right = 0;
	enum status st = s->access->sum(s, &found, err);

	if (!st)
		st = expected_sum(s, &right, err);
	if (st)
		return st;
	note(w, 0, right, found);
	w->checked += chase ? 1 : s->count; /* every element entered the sum */
	snprintf(w->place, sizeof(w->place), chase ? "the walk's end" : "the sum of all elements");
	return STATUS_OK;
}

static enum status check_output(struct memory *s, struct wrong *w, struct error *err)
{
	enum status st;

	w->total = s->opts.op == MEMORY_CHASE ? 1 : s->count;
	if (s->access->check)
		st = s->access->check(s, w, err);
	else
		st = writes_array(s->opts.op) ? check_array(s, w, err) : check_sum(s, w, err);
	if (!st && w->count)
		st = mismatch(s, w, err);
	return st;
}

enum status memory_verify(void *state, struct wrong *wrong, struct error *err)
{
	struct memory *s = state;
	enum status st = STATUS_OK;

	*wrong = (struct wrong){0};
	if (s->iterations && s->ready) {
		st = check_output(s, wrong, err);
	} else {
		st = s->access->poison(s, err);
		s->iterations = 0;
		if (!st)
			st = s->access->run(s, err);
		s->iterations = 1;
		if (!st)
			st = check_output(s, wrong, err);
	}
	if (st)
		return st;
	s->ready = true;
	s->iterations = 0;
	return s->access->poison(s, err);
}
