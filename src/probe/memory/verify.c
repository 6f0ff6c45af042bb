/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation must have left, recomputed element by element: independent of engine and device,
 * NaN-safe. */
#include <inttypes.h>
#include <math.h>
#include "probe/memory/memory.h"

enum { CHUNK = 65536 };

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

/* Bytes of MEMORY_SET_BYTE as a number of the element's type. */
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

/* Inputs of [first, first + count): rows of a, b, c. */
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

static double expected(const struct memory *s, const struct inputs *in, size_t i)
{
	switch ((enum memory_op)s->opts.op) {
	case MEMORY_WRITE:
		return MEMORY_FACTOR;
	case MEMORY_SET:
		return set_value(s->element_bytes);
	case MEMORY_COPY:
		return in->a[i];
	case MEMORY_SCALE:
		return MEMORY_FACTOR * in->c[i];
	case MEMORY_ADD:
		return in->a[i] + in->b[i];
	case MEMORY_TRIAD:
		return in->b[i] + MEMORY_FACTOR * in->c[i];
	default:
		return NAN;
	}
}

/* Exact: below 2^14 * 2^32 in magnitude. The sum over a permutation is the sum. chase: where the walk must
 * be. */
static double expected_sum(const struct memory *s, struct inputs *in)
{
	int64_t sum = 0;

	if (s->opts.op == MEMORY_CHASE) {
		uint64_t nodes = s->size / MEMORY_NODE_BYTES(s->element_bytes);

		return (double)(s->iterations % nodes * (MEMORY_HOPS % nodes) % nodes);
	}
	for (uint64_t first = 0; first < s->count; first += CHUNK) {
		size_t count = s->count - first < CHUNK ? s->count - first : CHUNK;

		inputs_make(in, s, first, count);
		for (size_t i = 0; i < count; i++)
			sum += s->opts.op == MEMORY_DOT ? in->a[i] * in->b[i] : in->a[i];
	}
	return (double)sum;
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

static enum status check_array(struct memory *s, struct inputs *in, struct wrong *w, struct error *err)
{
	double *found = malloc(CHUNK * sizeof(*found));
	enum status st = STATUS_OK;

	if (!found)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "memory: no room to verify");
	for (uint64_t first = 0; !st && first < s->count; first += CHUNK) {
		size_t count = s->count - first < CHUNK ? s->count - first : CHUNK;

		inputs_make(in, s, first, count);
		st = s->access->fetch(s, first, count, found, err);
		for (size_t i = 0; !st && i < count; i++)
			note(w, first + i, expected(s, in, i), found[i]);
		w->checked += st ? 0 : count;
	}
	free(found);
	snprintf(w->place, sizeof(w->place), "element %" PRIu64, w->first_index);
	return st;
}

static enum status check_sum(struct memory *s, struct inputs *in, struct wrong *w, struct error *err)
{
	bool chase = s->opts.op == MEMORY_CHASE;
	double found;
	enum status st = s->access->sum(s, &found, err);

	if (st)
		return st;
	note(w, 0, expected_sum(s, in), found);
	w->checked += chase ? 1 : s->count; /* every element entered the sum */
	snprintf(w->place, sizeof(w->place), chase ? "the walk's end" : "the sum of all elements");
	return STATUS_OK;
}

static enum status check_output(struct memory *s, struct wrong *w, struct error *err)
{
	struct inputs *in;
	enum status st;

	w->total = s->opts.op == MEMORY_CHASE ? 1 : s->count;
	if (s->access->check) {
		st = s->access->check(s, w, err);
	} else {
		in = malloc(sizeof(*in));
		if (!in)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "memory: no room to verify");
		st = writes_array(s->opts.op) ? check_array(s, in, w, err) : check_sum(s, in, w, err);
		free(in);
	}
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
