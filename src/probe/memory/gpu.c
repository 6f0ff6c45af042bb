/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines `own` (kernels of memory.cu and memory_bulk.cu) and `driver` (the driver's copy and fill) of probe
 * memory on a GPU. Elements are floats. memory.h defines which bytes count. The search variants of an
 * operation are kernels and launch shapes. There are several only if the streams are large enough for the
 * choice to matter. The first is the one that was fastest on an H100.
 */
#include "probe/memory/gpu.h"
#include "kernel/memory/stream.h"

/* Bytes of a stream: smaller streams have one variant, which is enough for a curve. */
#define VARIANTS_FROM ((uint64_t)1 << 30)
enum { GATHER_PER_SM = 8, GATHER_THREADS = 256 };

static bool is_move(enum memory_op op)
{
	return op != MEMORY_GATHER && op != MEMORY_CHASE && op != MEMORY_SET;
}

static enum move_op move_of(enum memory_op op)
{
	switch (op) {
	case MEMORY_WRITE:
		return MOVE_WRITE;
	case MEMORY_COPY:
		return MOVE_COPY;
	case MEMORY_SCALE:
		return MOVE_SCALE;
	case MEMORY_ADD:
		return MOVE_ADD;
	case MEMORY_TRIAD:
		return MOVE_TRIAD;
	case MEMORY_DOT:
		return MOVE_DOT;
	default:
		return MOVE_READ;
	}
}

static enum status supports_gpu(const struct machine *m, const struct target *t, const struct memory_opts *o,
				struct error *err)
{
	const struct gpu *g = machine_gpu(m, t->gpu[0]);
	double cc = g ? gpu_get(g, GPU_FACT_cc, 0) : 0;

	if (o->store != MEMORY_STORE_AUTO || o->threads)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"memory: store and threads are options of the CPU engine; omit them on a GPU");
	if (cc > 0 && cc < 80)
		return error_set(err, STATUS_UNSUPPORTED,
				 "memory: engine own needs sm_80 or newer, this GPU is sm_%.0f", cc);
	return STATUS_OK;
}

static enum status own_supports(const struct machine *m, const struct target *t, const void *opts,
				struct error *err)
{
	const struct memory_opts *o = opts;

	if (o->op == MEMORY_SET)
		return error_set(err, STATUS_UNSUPPORTED,
				 "memory: op=set needs engine driver; engine own has op=write");
	return supports_gpu(m, t, o, err);
}

static enum status driver_supports(const struct machine *m, const struct target *t, const void *opts,
				   struct error *err)
{
	const struct memory_opts *o = opts;

	if (o->op != MEMORY_SET && o->op != MEMORY_COPY)
		return error_set(err, STATUS_UNSUPPORTED,
				 "memory: engine driver supports op=copy and op=set, not op=%s",
				 memory_op_name((enum memory_op)o->op));
	return supports_gpu(m, t, o, err);
}

static const char *walker(enum memory_op op)
{
	return op == MEMORY_GATHER ? "gather_v3" : "chase";
}

/* The data of the previous variant does not count for this one: the next verification first runs an iteration
 * of its own. */
static enum status own_select(void *state, unsigned variant, const char **name, struct error *err)
{
	struct memory_gpu *s = state;
	enum memory_op op = (enum memory_op)s->common.opts.op;
	enum status st = STATUS_OK;

	if (is_move(op))
		st = move_prepare(&s->move, s->device, move_of(op), &s->shapes[variant], s->common.count,
				  err);
	s->common.iterations = 0;
	*name = is_move(op) ? s->move.name : walker(op);
	return st;
}

static unsigned own_variants(void *state)
{
	const struct memory_gpu *s = state;

	if (!is_move((enum memory_op)s->common.opts.op) || s->common.size < VARIANTS_FROM)
		return 1;
	return s->common.opts.search == MEMORY_SEARCH_FIRST ? 1 : s->shape_count;
}

static enum status run_once(void *state, struct error *err);

static const struct memory_access own_access = {
	.poison = memory_gpu_poison,
	.run = run_once,
	.fetch = memory_gpu_fetch,
	.sum = memory_gpu_sum,
	.check = memory_gpu_check,
};

static enum status own_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct memory_gpu *s = state;
	const struct memory_opts *o = opts;
	enum memory_op op = (enum memory_op)o->op;
	const char *name;
	enum status st = memory_gpu_make(s, b, o, &own_access, err);

	if (st)
		return st;
	if (is_move(op)) {
		s->shapes = move_shapes(s->device, move_of(op), &s->shape_count);
		st = own_select(s, 0, &name, err);
	} else {
		name = walker(op);
		st = gpu_kernel(s->device, &s->kernel, "memory", name, err);
		s->move.blocks = GATHER_PER_SM * gpu_sm_count(s->device);
	}
	if (!st)
		result_text(b->out, &memory_fields[MEMORY_FIELD_kernel], name);
	return st;
}

static enum status own_enqueue(void *state, uint64_t i, struct error *err)
{
	struct memory_gpu *s = state;
	struct move_arrays arrays = {
		.partial = s->partial, .count = s->common.count, .factor = MEMORY_FACTOR, .out = s->out};

	(void)i;
	s->common.iterations++;
	switch ((enum memory_op)s->common.opts.op) {
	case MEMORY_GATHER:
		return gpu_launch_1d(s->kernel, s->stream, s->move.blocks, GATHER_THREADS, 0,
				     &(struct gather_args){s->a, s->index, s->partial, s->common.count}, err);
	case MEMORY_CHASE:
		return gpu_launch_1d(s->kernel, s->stream, 1, 1, 0,
				     &(struct chase_args){s->cursor, MEMORY_HOPS}, err);
	case MEMORY_SCALE:
		arrays.in0 = s->c;
		break;
	case MEMORY_TRIAD:
		arrays.in0 = s->b;
		arrays.in1 = s->c;
		break;
	default:
		arrays.in0 = s->a;
		arrays.in1 = s->b;
	}
	return move_launch(&s->move, &arrays, s->stream, err);
}

static enum status run_once(void *state, struct error *err)
{
	struct memory_gpu *s = state;
	enum status st = own_enqueue(s, 0, err);

	return st ? st : gpu_stream_wait(s->stream, err);
}

static enum status driver_enqueue(void *state, uint64_t i, struct error *err)
{
	struct memory_gpu *s = state;

	(void)i;
	s->common.iterations++;
	if (s->common.opts.op == MEMORY_COPY)
		return gpu_stream_copy(s->stream, s->out, s->a, s->common.size, err);
	return gpu_stream_fill32(s->stream, s->out, MEMORY_SET_BYTE * 0x01010101u, s->common.count, err);
}

static enum status driver_once(void *state, struct error *err)
{
	struct memory_gpu *s = state;
	enum status st = driver_enqueue(s, 0, err);

	return st ? st : gpu_stream_wait(s->stream, err);
}

static const struct memory_access driver_access = {
	.poison = memory_gpu_poison,
	.run = driver_once,
	.fetch = memory_gpu_fetch,
	.sum = memory_gpu_sum,
	.check = memory_gpu_check,
};

static enum status driver_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	const struct memory_opts *o = opts;
	enum status st = memory_gpu_make(state, b, o, &driver_access, err);

	if (!st)
		result_text(b->out, &memory_fields[MEMORY_FIELD_kernel],
			    o->op == MEMORY_COPY ? "cuMemcpyDtoDAsync" : "cuMemsetD32Async");
	return st;
}

const struct engine memory_gpu_engine = {
	.name = "own",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct memory_gpu),
	.supports = own_supports,
	.prepare = own_prepare,
	.enqueue = own_enqueue,
	.variants = own_variants,
	.select = own_select,
	.release = memory_gpu_release,
};

const struct engine memory_driver_engine = {
	.name = "driver",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct memory_gpu),
	.supports = driver_supports,
	.prepare = driver_prepare,
	.enqueue = driver_enqueue,
	.release = memory_gpu_release,
};
