/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine `cublaslt` of probe gemm. It runs plans of gpu/matmul over three or more sets of A, B and C, so that
 * no iteration finds its operands in the cache. The first heuristic is the algorithm that PyTorch runs with
 * the same library, because operation, compute type and workspace are the same. cublaslt_check.c checks the
 * results.
 */
#include <inttypes.h>
#include "gpu/device/gpu.h"
#include "kernel/test_data/numbers.h"
#include "probe/gemm/cublaslt.h"
#include "probe/shared/candidates.h"

enum {
	TOP = 32,	  /* number of heuristics that search=top requests */
	EXHAUSTIVE = 512, /* largest number of candidates of search=exhaustive */
};
#define ONE_FLOAT 0x3f800000u
#define ONE_UE8M0 0x7f7f7f7fu

static const struct {
	enum matmul_type in, out;
	enum matmul_compute compute;
} kinds[GEMM_TYPE_COUNT] = {
	[GEMM_FP64] = {MATMUL_F64, MATMUL_F64, MATMUL_COMPUTE_F64},
	[GEMM_FP32] = {MATMUL_F32, MATMUL_F32, MATMUL_COMPUTE_F32},
	[GEMM_TF32] = {MATMUL_F32, MATMUL_F32, MATMUL_COMPUTE_TF32},
	[GEMM_FP16] = {MATMUL_F16, MATMUL_F16, MATMUL_COMPUTE_F32},
	[GEMM_BF16] = {MATMUL_BF16, MATMUL_BF16, MATMUL_COMPUTE_F32},
	[GEMM_E4M3] = {MATMUL_E4M3, MATMUL_BF16, MATMUL_COMPUTE_F32},
	/* no library multiplies two E5M2 matrices: A is E5M2, B is E4M3 */
	[GEMM_E5M2] = {MATMUL_E5M2, MATMUL_BF16, MATMUL_COMPUTE_F32},
	[GEMM_INT8] = {MATMUL_S8, MATMUL_S32, MATMUL_COMPUTE_S32},
};

static bool is_fp8(const struct gemm_opts *o)
{
	return o->type == GEMM_E4M3 || o->type == GEMM_E5M2;
}

static enum status refuse(struct error *err, const char *why)
{
	return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "gemm: %s", why);
}

/* FP8: the library needs every row of A, B and C to start at a multiple of 16 bytes. So the length of a row
 * is restricted, but the number of rows is not: if A is not transposed, m can be any number. */
static enum status check_fp8_rows(const struct gemm_opts *o, struct error *err)
{
	const struct {
		const char *matrix, *edge;
		uint32_t length, multiple;
	} rows[] = {
		{"A", o->ta == GEMM_T ? "m" : "k", o->ta == GEMM_T ? o->m : o->k, 16},
		{"B", o->tb == GEMM_T ? "k" : "n", o->tb == GEMM_T ? o->k : o->n, 16},
		{"C", "n", o->n, 8}, /* BF16 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].length % rows[i].multiple)
			return error_set_cause(
				err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				"gemm: FP8 rows must start at multiples of 16 bytes, but %s=%" PRIu32
				" of %s is not a multiple of %" PRIu32,
				rows[i].edge, rows[i].length, rows[i].matrix, rows[i].multiple);
	return STATUS_OK;
}

/* Checks the limits of every version of the library; the library itself reports the others in prepare. */
static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct gemm_opts *o = opts;
	const struct gpu *g = machine_gpu(m, t->gpu[0]);
	const struct lib_found *lib = machine_lib(m, "cublaslt");
	double cc = g ? gpu_get(g, GPU_FACT_cc, 0) : 0;

	if (o->threads)
		return refuse(err, "threads is an option of the CPU engines; omit it on a GPU");
	if (lib && lib->status)
		return error_set_cause(err, lib->status, lib->cause, "gemm: cuBLASLt: %s", lib->missing);
	if (o->type == GEMM_INT8 && o->bias)
		return refuse(err, "type=int8 does not support a bias");
	if (!is_fp8(o))
		return STATUS_OK;
	if (cc > 0 && cc < 89)
		return refuse(err, "this GPU has no FP8 units; they need sm_89 or newer");
	if (cc > 0 && cc < 100 && (o->ta != GEMM_N || o->tb != GEMM_T))
		return refuse(err, "FP8 on GPUs before sm_100 supports only ta=n tb=t");
	return check_fp8_rows(o, err);
}

static void shape_of(struct gemm_cublaslt *s)
{
	const struct gemm_opts *o = &s->common.opts;
	bool block = is_fp8(o) && o->scale == GEMM_SCALE_BLOCK;

	s->shape = (struct matmul_shape){
		.a = kinds[o->type].in,
		.b = kinds[gemm_type_b(o->type)].in,
		.d = kinds[o->type].out,
		.compute = kinds[o->type].compute,
		.m = o->m,
		.n = o->n,
		.k = o->k,
		.transpose_a = o->ta == GEMM_T,
		.transpose_b = o->tb == GEMM_T,
		.batch = o->batch,
		.epilogue = o->bias ? MATMUL_BIAS : MATMUL_PLAIN,
		.bias = kinds[o->type].out,
		.fast_accumulate = is_fp8(o) && !block && o->accumulate == GEMM_ACCUMULATE_FAST,
	};
	if (!is_fp8(o))
		return;
	s->shape.scale_a = s->shape.scale_b = MATMUL_SCALE_TENSOR;
	if (block && gpu_cc(s->device) >= 100) {
		s->shape.scale_a = s->shape.scale_b = MATMUL_SCALE_BLOCK32;
	} else if (block) { /* Hopper's combination: activations have a scale per 128 elements along k,
			       weights per 128 x 128 block */
		s->shape.scale_a = MATMUL_SCALE_VEC128;
		s->shape.scale_b = MATMUL_SCALE_BLOCK128;
	}
}

/* -- memory -- */

static enum status alloc_sets(struct gemm_cublaslt *s, struct error *err)
{
	const struct gemm_opts *o = &s->common.opts;
	uint64_t a = matmul_a_count(&s->shape) * gemm_in_bytes(o->type);
	uint64_t b = matmul_b_count(&s->shape) * gemm_in_bytes(o->type);
	uint64_t c = s->c_words * 4, wanted = operand_sets_on_device(s->device, a + b + c);
	enum status st = STATUS_OK;

	for (unsigned i = 0; !st && i < wanted; i++) {
		st = gpu_alloc(s->device, &s->set[i].a, a, err);
		if (!st)
			st = gpu_alloc(s->device, &s->set[i].b, b, err);
		if (!st)
			st = gpu_alloc(s->device, &s->set[i].c, c, err);
	}
	s->common.sets = (unsigned)wanted;
	return st;
}

/* Bytes that any of the scale layouts can read for a matrix of `rows` along k, including padding. */
static uint64_t scale_bytes(uint64_t rows, uint64_t k)
{
	return (rows + 128) * (k / 32 + 8) + 256;
}

static enum status alloc_small(struct gemm_cublaslt *s, struct error *err)
{
	const struct gemm_opts *o = &s->common.opts;
	uint64_t sides = (uint64_t)o->m + o->n, bytes_a = scale_bytes(o->m, o->k),
		 bytes_b = scale_bytes(o->n, o->k);
	uint32_t one = s->shape.scale_a == MATMUL_SCALE_BLOCK32 ? ONE_UE8M0 : ONE_FLOAT;
	enum status st;

	st = gpu_alloc(s->device, &s->sums, 2 * sides * 8, err);
	if (!st)
		st = gpu_alloc(s->device, &s->odd, sides * 4, err);
	if (!st)
		st = gpu_alloc(s->device, &s->record, sizeof(struct compare_record), err);
	if (!st && o->bias)
		st = gpu_alloc(s->device, &s->bias, (uint64_t)o->n * 8, err);
	if (st || !is_fp8(o))
		return st;
	st = gpu_alloc(s->device, &s->scale_a, bytes_a, err);
	if (!st)
		st = gpu_alloc(s->device, &s->scale_b, bytes_b, err);
	if (!st)
		st = gpu_stream_fill32(s->stream, s->scale_a, one, bytes_a / 4, err);
	if (!st)
		st = gpu_stream_fill32(s->stream, s->scale_b, one, bytes_b / 4, err);
	return st;
}

enum status gemm_cublaslt_multiply(struct gemm_cublaslt *s, unsigned set, struct error *err)
{
	struct matmul_operands o = {.a = s->set[set].a,
				    .b = s->set[set].b,
				    .d = s->set[set].c,
				    .bias = s->bias,
				    .scale_a = s->scale_a,
				    .scale_b = s->scale_b,
				    .alpha = 1};

	return matmul_plan_enqueue(s->plan, &o, s->stream, err);
}

/* -- the engine -- */

static enum status list_all(struct gemm_cublaslt *s, const struct bench *b, struct error *err)
{
	struct candidates_listing l = {.bench = b, .t0_ns = clock_now_ns(b->clock)};
	const struct matmul_pace pace = {candidates_continue, &l};
	enum status st = matmul_plan_exhaust(s->plan, EXHAUSTIVE, &pace, err);

	result_f64(b->out, &field_listing_s, (double)(clock_now_ns(b->clock) - l.t0_ns) * 1e-9);
	return st;
}

static enum status find_candidates(struct gemm_cublaslt *s, const struct bench *b, struct error *err)
{
	enum gemm_search search = s->common.opts.search;
	enum status st = matmul_plan_candidates(s->plan, search == GEMM_SEARCH_FIRST ? 1 : TOP, err);

	if (!st && search == GEMM_SEARCH_EXHAUSTIVE)
		st = list_all(s, b, err);
	if (st)
		return st;
	s->tried = calloc(matmul_plan_count(s->plan), 1);
	if (!s->tried)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "gemm: not enough memory for the candidates");
	return STATUS_OK;
}

static void report(const struct gemm_cublaslt *s, struct result *out)
{
	int version = matmul_version(s->matmul);
	struct matmul_description d;
	char text[512];

	matmul_plan_describe(s->plan, 0, &d);
	snprintf(text, sizeof(text), "cuBLASLt %d.%d.%d %s", version / 10000, version / 100 % 100,
		 version % 100, matmul_path(s->matmul));
	result_text(out, &gemm_fields[GEMM_FIELD_library], text);
	result_u64(out, &gemm_fields[GEMM_FIELD_rotated_sets], s->common.sets);
	result_u64(out, &gemm_fields[GEMM_FIELD_workspace_bytes], matmul_workspace_bytes(s->matmul));
	result_u64(out, &gemm_fields[GEMM_FIELD_candidates], matmul_plan_count(s->plan));
	result_u64(out, &gemm_fields[GEMM_FIELD_algorithm], (uint64_t)d.id);
	result_u64(out, &gemm_fields[GEMM_FIELD_split_k], d.split_k);
	result_u64(out, &gemm_fields[GEMM_FIELD_swizzle], d.swizzle);
	if (d.waves > 0)
		result_f64(out, &gemm_fields[GEMM_FIELD_waves], d.waves);
	if (d.tile_m) {
		snprintf(text, sizeof(text), "%ux%u", d.tile_m, d.tile_n);
		result_text(out, &gemm_fields[GEMM_FIELD_tile], text);
	}
	if (d.stage_k) {
		snprintf(text, sizeof(text), d.stages ? "%ux%u" : "%uxauto", d.stage_k, d.stages);
		result_text(out, &gemm_fields[GEMM_FIELD_stages], text);
	}
	if (d.cluster_m) {
		snprintf(text, sizeof(text), "%ux%u", d.cluster_m, d.cluster_n);
		result_text(out, &gemm_fields[GEMM_FIELD_cluster], text);
	}
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct gemm_cublaslt *s = state;
	enum status st;

	gemm_begin(&s->common, b, opts, &gemm_cublaslt_access, 0);
	s->device = b->device;
	s->stream = b->stream[0];
	shape_of(s);
	s->c_words = (matmul_d_count(&s->shape) * gemm_out_bytes(s->common.opts.type) + 3) / 4;
	st = gemm_cublaslt_kernels(s, err);
	if (!st)
		st = matmul_open(&s->matmul, s->device, NULL, 0, err);
	if (!st)
		st = matmul_plan_create(&s->plan, s->matmul, &s->shape, err);
	if (!st)
		st = find_candidates(s, b, err);
	if (!st)
		st = alloc_small(s, err);
	if (!st)
		st = alloc_sets(s, err);
	if (!st)
		st = gemm_cublaslt_access.fill(s, s->common.opts.data, err);
	if (!st)
		st = gemm_cublaslt_access.poison(s, err);
	if (!st && b->out)
		report(s, b->out);
	return st;
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct gemm_cublaslt *s = state;
	unsigned set = (unsigned)(i % s->common.sets);

	s->common.written |= 1u << set;
	return gemm_cublaslt_multiply(s, set, err);
}

static unsigned variants(void *state)
{
	return matmul_plan_count(((struct gemm_cublaslt *)state)->plan);
}

/* Runs a candidate once before the search times it, because some candidates that the library lists do not
 * run. */
static enum status select_variant(void *state, unsigned variant, const char **name, struct error *err)
{
	struct gemm_cublaslt *s = state;
	struct matmul_description d;
	enum status st = matmul_plan_select(s->plan, variant, err);

	if (st)
		return st;
	matmul_plan_describe(s->plan, variant, &d);
	memcpy(s->name, d.name, sizeof(s->name));
	*name = s->name;
	if (s->tried[variant] == 2)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "gemm: %s does not run",
				       s->name);
	if (!s->tried[variant]) {
		st = gemm_cublaslt_access.run(s, 0, err);
		s->tried[variant] = st ? 2 : 1;
		s->common.integer_done = false;
	}
	return st;
}

static void release(void *state)
{
	struct gemm_cublaslt *s = state;

	gemm_end(&s->common);
	if (!s->device)
		return;
	for (unsigned i = 0; i < OPERAND_SETS_MAX; i++) {
		gpu_free(s->device, &s->set[i].a);
		gpu_free(s->device, &s->set[i].b);
		gpu_free(s->device, &s->set[i].c);
	}
	gpu_free(s->device, &s->bias);
	gpu_free(s->device, &s->scale_a);
	gpu_free(s->device, &s->scale_b);
	gpu_free(s->device, &s->sums);
	gpu_free(s->device, &s->odd);
	gpu_free(s->device, &s->record);
	matmul_plan_destroy(&s->plan);
	matmul_close(&s->matmul);
	free(s->tried);
	*s = (struct gemm_cublaslt){0};
}

const struct engine gemm_cublaslt_engine = {
	.name = "cublaslt",
	.libs = "cublaslt cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct gemm_cublaslt),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.variants = variants,
	.select = select_variant,
	.release = release,
};
