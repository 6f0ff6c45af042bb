/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `nccl`: one rank per GPU; cuBLASLt computes the GEMMs, NCCL averages the gradients. */
#include "kernel/test_data/gemm.h"
#include "probe/scaling/scaling.h"

enum { THREADS = 256, SPAN = 4 /* elements that one thread fills */ };

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	static const char *const libs[] = {"nccl", "cublaslt"};

	(void)t, (void)opts;
	for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]); i++) {
		const struct lib_found *lib = machine_lib(m, libs[i]);

		if (lib && lib->status)
			return error_set_cause(err, lib->status, lib->cause, "scaling: %s: %s", libs[i],
					       lib->missing);
	}
	return STATUS_OK;
}

static enum status fill(struct scaling_state *s, gpu_ptr out, uint64_t count, uint32_t stream,
			struct error *err)
{
	const struct operand_fill_args args = {.out = out,
					       .count = count,
					       .seed = s->bench->seed,
					       .stream = stream,
					       .type = s->opts.type == SCALING_BF16 ? OPERAND_BF16
										    : OPERAND_F16,
					       .data = OPERAND_RANDOM};
	struct gpu_device *d = s->bench->device;
	struct gpu_kernel *k;
	enum status st = gpu_kernel(d, &k, "operand", "operand_fill", err);

	return st ? st
		  : gpu_launch_1d(k, s->bench->stream[0],
				  (unsigned)((count + SPAN * THREADS - 1) / (SPAN * THREADS)), THREADS, 0,
				  &args, err);
}

static enum status allocate(struct scaling_state *s, struct error *err)
{
	uint64_t rows = 2ull * s->opts.m * s->opts.width;
	uint64_t weights = 2ull * s->opts.layers * s->opts.width * s->opts.width;
	struct {
		gpu_ptr *at;
		uint64_t bytes;
	} wanted[] = {{&s->input[0], rows},	  {&s->input[1], rows},	   {&s->gradient_in[0], rows},
		      {&s->gradient_in[1], rows}, {&s->out, rows},	   {&s->back, rows},
		      {&s->weight, weights},	  {&s->gradient, weights}, {&s->moved, weights}};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && !st; i++)
		st = gpu_alloc(s->bench->device, wanted[i].at, wanted[i].bytes, err);
	return st;
}

static enum status fill_all(struct scaling_state *s, struct error *err)
{
	uint64_t rows = (uint64_t)s->opts.m * s->opts.width;
	uint32_t own = s->team->rank * SCALING_SETS;
	enum status st = fill(s, s->weight, (uint64_t)s->opts.layers * s->opts.width * s->opts.width,
			      SCALING_STREAM_WEIGHT, err);

	for (uint32_t i = 0; i < SCALING_SETS && !st; i++) {
		st = fill(s, s->input[i], rows, SCALING_STREAM_INPUT + own + i, err);
		if (!st)
			st = fill(s, s->gradient_in[i], rows, SCALING_STREAM_GRADIENT + own + i, err);
	}
	return st;
}

/* Weights are stored as (out, in), both dimensions of size `width`. */
static enum status plan(struct scaling_state *s, struct error *err)
{
	enum matmul_type type = s->opts.type == SCALING_BF16 ? MATMUL_BF16 : MATMUL_F16;
	struct matmul_shape shape[SCALING_PRODUCTS];
	enum status st = matmul_open(&s->mm, s->bench->device, NULL, 0, err);

	for (int i = 0; i < SCALING_PRODUCTS; i++)
		shape[i] = (struct matmul_shape){.a = type,
						 .b = type,
						 .d = type,
						 .compute = MATMUL_COMPUTE_F32,
						 .m = s->opts.m,
						 .n = s->opts.width,
						 .k = s->opts.width};
	shape[SCALING_FORWARD].transpose_b = true;
	shape[SCALING_TO_WEIGHT].transpose_a = true;
	shape[SCALING_TO_WEIGHT].m = s->opts.width;
	shape[SCALING_TO_WEIGHT].k = s->opts.m;
	for (int i = 0; i < SCALING_PRODUCTS && !st; i++) {
		st = matmul_plan_create(&s->plan[i], s->mm, &shape[i], err);
		if (!st)
			st = matmul_plan_first(s->plan[i], err);
	}
	return st;
}

static enum status make_events(struct scaling_state *s, struct error *err)
{
	struct gpu_device *d = s->bench->device;
	enum status st = gpu_event_create(d, &s->drained, err);

	if (!st)
		st = gpu_event_create(d, &s->done, err);
	for (uint32_t b = 0; b < s->opts.buckets && !st; b++)
		st = gpu_event_create(d, &s->ready[b], err);
	for (int k = 0; k < 3; k++)
		for (int i = 0; i <= SCALING_TRACE_MAX && !st; i++)
			st = gpu_event_create(d, &s->mark[k][i], err);
	return st;
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct scaling_state *s = state;
	const struct scaling_opts *o = opts;
	enum status st;

	s->opts = *o;
	s->bench = b;
	s->team = b->team;
	if (!s->team || s->team->size < 2)
		return error_set(err, STATUS_UNSUPPORTED, "scaling: needs at least two ranks");
	st = team_nccl_open(s->team, err);
	if (st)
		return st;
	s->nccl = team_nccl_table(s->team);
	st = allocate(s, err);
	if (!st)
		st = plan(s, err);
	if (!st)
		st = make_events(s, err);
	if (!st)
		st = fill_all(s, err);
	st = team_agree(s->team, st, err);
	if (!st)
		st = team_nccl_comm(s->team, &(struct team_comm_spec){0}, &s->comm, err);
	return st ? st : scaling_plant_late(s, err);
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	(void)i;
	return scaling_step(state, NULL, err);
}

static void release(void *state)
{
	struct scaling_state *s = state;
	struct gpu_device *d = s->bench ? s->bench->device : NULL;
	gpu_ptr *const held[] = {&s->input[0], &s->input[1], &s->gradient_in[0], &s->gradient_in[1], &s->out,
				 &s->back,     &s->weight,   &s->gradient,	 &s->moved};

	if (!d)
		return;
	team_nccl_drain(s->team, s->comm, scaling_wire(s), s->done, s->bench->clock);
	for (int i = 0; i < SCALING_PRODUCTS; i++)
		matmul_plan_destroy(&s->plan[i]);
	matmul_close(&s->mm);
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		gpu_free(d, held[i]);
	for (int b = 0; b < SCALING_BUCKETS_MAX; b++)
		gpu_event_destroy(&s->ready[b]);
	for (int k = 0; k < 3; k++)
		for (int i = 0; i <= SCALING_TRACE_MAX; i++)
			gpu_event_destroy(&s->mark[k][i]);
	gpu_event_destroy(&s->drained);
	gpu_event_destroy(&s->done);
}

const struct engine scaling_nccl_engine = {
	.name = "nccl",
	.libs = "nccl cublaslt cuda",
	.targets = TARGET_NODE | TARGET_TEAM,
	.streams = 2,
	.state_size = sizeof(struct scaling_state),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.release = release,
};
