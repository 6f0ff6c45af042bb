/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `cublaslt`: cuBLASLt computes the GEMMs; kernels of this program walk the memory and check every
 * result. */
#include "gpu/device/gpu.h"
#include "gpu/matmul/matmul.h"
#include "kernel/test_data/gemm.h"
#include "probe/stress/stress.h"

enum {
	THREADS = 256,
	JUDGE_BLOCKS = 32,
	WALK_PER_SM = 8,
	FOUND_ROWS = 0,
	FOUND_COLUMNS,
	FOUND_WORDS,
	FOUND_COUNT
};
#define FLOAT_LIMIT (1u << 24) /* largest integer up to which FP32 is exact */

struct stress_gpu {
	struct stress common;
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct matmul *matmul;
	struct matmul_plan *plan;
	struct matmul_shape shape;
	struct gpu_kernel *fill, *sums, *judge, *walk, *turn;
	gpu_ptr a, b[STRESS_SETS], c, scale;
	gpu_ptr sum, odd, expected[STRESS_SETS]; /* cw, wc: each has two weights of n elements */
	gpu_ptr words, pass, found;
	uint64_t bytes, slice, slices;
	uint64_t products, passes, pending_set;
	bool pending;
};

static const struct {
	enum matmul_type in, out;
	enum matmul_compute compute;
} kinds[STRESS_TYPE_COUNT] = {
	[STRESS_BF16] = {MATMUL_BF16, MATMUL_F32, MATMUL_COMPUTE_F32},
	[STRESS_FP16] = {MATMUL_F16, MATMUL_F32, MATMUL_COMPUTE_F32},
	[STRESS_TF32] = {MATMUL_F32, MATMUL_F32, MATMUL_COMPUTE_TF32},
	[STRESS_FP32] = {MATMUL_F32, MATMUL_F32, MATMUL_COMPUTE_F32},
	[STRESS_FP64] = {MATMUL_F64, MATMUL_F64, MATMUL_COMPUTE_F64},
	[STRESS_E4M3] = {MATMUL_E4M3, MATMUL_F32, MATMUL_COMPUTE_F32},
	[STRESS_INT8] = {MATMUL_S8, MATMUL_S32, MATMUL_COMPUTE_S32},
};

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct stress_opts *o = opts;
	const struct gpu *g = machine_gpu(m, t->gpu[0]);
	const struct lib_found *lib = machine_lib(m, "cublaslt");
	double cc = g ? gpu_get(g, GPU_FACT_cc, 0) : 0;

	if (stress_has(o, STRESS_TENSOR) && lib && lib->status)
		return error_set_cause(err, lib->status, lib->cause, "stress: cuBLASLt: %s", lib->missing);
	if (stress_has(o, STRESS_TENSOR) && o->type == STRESS_E4M3 && cc > 0 && cc < 89)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "stress: this GPU has no FP8 units; they need sm_89 or newer");
	return STATUS_OK;
}

/* -- preparing -- */

/* B is stored transposed, because every type supports this layout. */
static enum status make_plan(struct stress_gpu *s, struct error *err)
{
	enum stress_type type = (enum stress_type)s->common.opts.type;
	uint32_t n = s->common.n;
	enum status st;

	s->shape = (struct matmul_shape){
		.a = kinds[type].in,
		.b = kinds[type].in,
		.d = kinds[type].out,
		.compute = kinds[type].compute,
		.m = n,
		.n = n,
		.k = n,
		.transpose_b = true,
		.scale_a = type == STRESS_E4M3 ? MATMUL_SCALE_TENSOR : MATMUL_SCALE_NONE,
		.scale_b = type == STRESS_E4M3 ? MATMUL_SCALE_TENSOR : MATMUL_SCALE_NONE,
	};
	st = matmul_open(&s->matmul, s->device, NULL, 0, err);
	if (!st)
		st = matmul_plan_create(&s->plan, s->matmul, &s->shape, err);
	return st ? st : matmul_plan_first(s->plan, err);
}

static enum status fill(struct stress_gpu *s, gpu_ptr out, uint32_t stream, uint64_t seed, struct error *err)
{
	uint64_t count = (uint64_t)s->common.n * s->common.n;
	struct operand_fill_args args = {.out = out,
					 .count = count,
					 .seed = seed,
					 .stream = stream,
					 .type = s->shape.a,
					 .data = OPERAND_DENSE,
					 .bits = stress_bits((enum stress_type)s->common.opts.type)};

	return gpu_launch_1d(s->fill, s->stream, (unsigned)((count / 16 + THREADS) / THREADS), THREADS, 0,
			     &args, err);
}

/* Uploads the sums that the host computed by itself. */
static enum status upload(struct stress_gpu *s, unsigned set, uint64_t seed, struct error *err)
{
	uint64_t n = s->common.n;
	struct stress_sums sums;
	enum status st = stress_expect(&sums, seed, set, stress_bits((enum stress_type)s->common.opts.type),
				       s->common.n, err);

	if (st)
		return st;
	for (unsigned w = 0; !st && w < 2; w++) {
		st = gpu_copy_to(s->device, s->expected[set] + w * n * 8, sums.cw[w], n * 8, err);
		if (!st)
			st = gpu_copy_to(s->device, s->expected[set] + (2 + w) * n * 8, sums.wc[w], n * 8,
					 err);
	}
	stress_sums_free(&sums);
	return st;
}

static enum status prepare_tensor(struct stress_gpu *s, uint64_t seed, struct error *err)
{
	uint64_t n = s->common.n, elements = n * n;
	unsigned in = matmul_type_bytes(kinds[s->common.opts.type].in),
		 out = matmul_type_bytes(kinds[s->common.opts.type].out);
	enum status st = make_plan(s, err);

	if (!st)
		st = gpu_kernel(s->device, &s->fill, "operand", "operand_fill", err);
	if (!st)
		st = gpu_kernel(s->device, &s->sums, "operand", "operand_sums", err);
	if (!st)
		st = gpu_kernel(s->device, &s->judge, "operand", "operand_judge", err);
	if (!st)
		st = gpu_alloc(s->device, &s->a, elements * in, err);
	if (!st)
		st = gpu_alloc(s->device, &s->c, elements * out, err);
	if (!st)
		st = gpu_alloc(s->device, &s->sum, 4 * n * 8, err);
	if (!st)
		st = gpu_alloc(s->device, &s->odd, 2 * n * 4, err);
	if (!st)
		st = gpu_alloc(s->device, &s->scale, 256, err);
	if (!st)
		st = gpu_stream_fill32(s->stream, s->scale, 0x3f800000u, 64, err); /* 1.0 */
	if (!st)
		st = gpu_stream_fill32(s->stream, s->sum, 0, 8 * n, err);
	if (!st)
		st = gpu_stream_fill32(s->stream, s->odd, 0, 2 * n, err);
	if (!st)
		st = fill(s, s->a, STRESS_STREAM_A, seed, err);
	for (unsigned set = 0; !st && set < STRESS_SETS; set++) {
		st = gpu_alloc(s->device, &s->b[set], elements * in, err);
		if (!st)
			st = gpu_alloc(s->device, &s->expected[set], 4 * n * 8, err);
		if (!st)
			st = fill(s, s->b[set], set ? STRESS_STREAM_G2 : STRESS_STREAM_G, seed, err);
		if (!st)
			st = upload(s, set, seed, err);
	}
	return st;
}

static enum status prepare_memory(struct stress_gpu *s, struct error *err)
{
	enum status st = gpu_kernel(s->device, &s->walk, "operand", "operand_memory", err);

	if (!st)
		st = gpu_kernel(s->device, &s->turn, "operand", "operand_turn", err);
	if (!st)
		st = gpu_alloc(s->device, &s->words, s->bytes, err);
	if (!st)
		st = gpu_alloc(s->device, &s->pass, s->slices * 8, err);
	return st ? st : gpu_stream_fill32(s->stream, s->pass, 0, 2 * s->slices, err);
}

/* -- one iteration -- */

static enum status judge(struct stress_gpu *s, unsigned side, struct error *err)
{
	uint64_t n = s->common.n;
	struct operand_judge_args args = {.sums = s->sum + side * 2 * n * 8,
					  .expected = s->expected[s->pending_set] + side * 2 * n * 8,
					  .odd = s->odd + side * n * 4,
					  .found = s->found + side * sizeof(struct operand_found),
					  .count = n};

	return gpu_launch_1d(s->judge, s->stream, JUDGE_BLOCKS, THREADS, 0, &args, err);
}

static enum status check_product(struct stress_gpu *s, struct error *err)
{
	uint64_t n = s->common.n;
	struct operand_sums_args args = {.c = s->c,
					 .cw = s->sum,
					 .wc = s->sum + 2 * n * 8,
					 .odd_row = s->odd,
					 .odd_column = s->odd + n * 4,
					 .rows = n,
					 .columns = n,
					 .row_step = n,
					 .type = s->shape.d,
					 .limit = s->shape.d == MATMUL_S32 ? INT32_MAX : FLOAT_LIMIT};
	const unsigned grid[3] = {(unsigned)((n + OPERAND_SUMS_COLUMNS - 1) / OPERAND_SUMS_COLUMNS),
				  (unsigned)((n + OPERAND_SUMS_ROWS - 1) / OPERAND_SUMS_ROWS), 1};
	const unsigned block[3] = {OPERAND_SUMS_THREADS, 1, 1};
	enum status st;

	if (!s->pending)
		return STATUS_OK;
	st = gpu_launch(s->sums, s->stream, grid, block, 0, &args, err);
	if (!st)
		st = judge(s, FOUND_ROWS, err);
	if (!st)
		st = judge(s, FOUND_COLUMNS, err);
	s->pending = false;
	s->products++;
	return st;
}

static enum status multiply(struct stress_gpu *s, uint64_t i, struct error *err)
{
	struct matmul_operands o = {.a = s->a,
				    .b = s->b[i % STRESS_SETS],
				    .d = s->c,
				    .scale_a = s->scale,
				    .scale_b = s->scale,
				    .alpha = 1};
	/* nobody has collected the result of the last GEMM: it is checked all the same */
	enum status st = check_product(s, err);

	if (!st)
		st = matmul_plan_enqueue(s->plan, &o, s->stream, err);
	s->pending = !st;
	s->pending_set = i % STRESS_SETS;
	return st;
}

static enum status walk(struct stress_gpu *s, uint64_t i, struct error *err)
{
	uint64_t slice = i % s->slices;
	struct operand_memory_args args = {.words = s->words + slice * s->slice,
					   .found = s->found + FOUND_WORDS * sizeof(struct operand_found),
					   .pass = s->pass + slice * 8,
					   .count = s->slice / 8};
	enum status st = gpu_launch_1d(s->walk, s->stream, WALK_PER_SM * gpu_sm_count(s->device), THREADS, 0,
				       &args, err);

	s->passes++;
	return st ? st : gpu_launch_1d(s->turn, s->stream, 1, 1, 0, &args, err);
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct stress_gpu *s = state;
	enum status st = STATUS_OK;

	s->common.iterations++;
	if (s->plan)
		st = multiply(s, i, err);
	if (!st && s->words)
		st = walk(s, i, err);
	return st;
}

static enum status enqueue_check(void *state, uint64_t i, struct error *err)
{
	(void)i;
	return check_product(state, err);
}

static enum status one(void *state, struct error *err)
{
	return enqueue(state, 0, err);
}

static enum status collect(void *state, struct stress_found *out, struct error *err)
{
	struct stress_gpu *s = state;
	struct operand_found f[FOUND_COUNT];
	enum status st = check_product(s, err);

	if (!st)
		st = gpu_stream_wait(s->stream, err);
	if (!st)
		st = gpu_copy_from(s->device, f, s->found, sizeof(f), err);
	if (st)
		return st;
	*out = (struct stress_found){
		.products = s->products,
		.passes = s->passes,
		.rows = f[FOUND_ROWS].wrong,
		.columns = f[FOUND_COLUMNS].wrong,
		.nan = f[FOUND_ROWS].nan,
		.first_row = f[FOUND_ROWS].first,
		.first_column = f[FOUND_COLUMNS].first,
		.words = f[FOUND_WORDS].wrong,
		.first_word = f[FOUND_WORDS].first,
	};
	return STATUS_OK;
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	const struct target gpu = {.kind = TARGET_GPU};
	struct operand_found none[FOUND_COUNT] = {0};
	struct stress_gpu *s = state;
	enum status st;

	s->common =
		(struct stress){.opts = *(const struct stress_opts *)opts, .collect = collect, .one = one};
	s->common.n = stress_n(&gpu, opts);
	s->device = b->device;
	s->stream = b->stream[0];
	s->slice = stress_slice(&gpu, opts);
	s->slices = stress_bytes(&gpu, opts) / s->slice;
	s->bytes = s->slices * s->slice;
	for (int i = 0; i < FOUND_COUNT; i++)
		none[i].first = UINT64_MAX;
	st = gpu_alloc(s->device, &s->found, sizeof(none), err);
	if (!st)
		st = gpu_copy_to(s->device, s->found, none, sizeof(none), err);
	if (!st && stress_has(&s->common.opts, STRESS_TENSOR))
		st = prepare_tensor(s, b->seed, err);
	if (!st && stress_has(&s->common.opts, STRESS_MEMORY))
		st = prepare_memory(s, err);
	return st ? st : gpu_stream_wait(s->stream, err);
}

static void release(void *state)
{
	struct stress_gpu *s = state;
	gpu_ptr *const all[] = {&s->a,	 &s->b[0],	  &s->b[1],	   &s->c,     &s->scale, &s->sum,
				&s->odd, &s->expected[0], &s->expected[1], &s->words, &s->pass,	 &s->found};

	for (size_t i = 0; s->device && i < sizeof(all) / sizeof(all[0]); i++)
		gpu_free(s->device, all[i]);
	matmul_plan_destroy(&s->plan);
	matmul_close(&s->matmul);
	*s = (struct stress_gpu){0};
}

const struct engine stress_gpu_engine = {
	.name = "cublaslt",
	.libs = "cublaslt cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct stress_gpu),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.enqueue_check = enqueue_check,
	.release = release,
};
