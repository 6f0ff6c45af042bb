/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe gemm: matrix multiplication. One iteration is 2 m n k FLOP per batch. Bytes are the minimum: A and B
 * are read once, C is written once. The descriptor is at the end. check.c verifies; each engine has a file of
 * its own.
 */
#include "probe/shared/cpu.h"
#include "probe/gemm/gemm.h"
#include "probe/peak/peak.h"
#include "core/math/random.h"
#include "probe/gemm/host.h"
#include "probe/shared/operand_sets.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define X(id, name, in, out) name,
static const char *const types[] = {GEMM_TYPES(X) NULL};
#undef X
#define X(id, name, in, out) in,
static const unsigned in_bytes[] = {GEMM_TYPES(X)};
#undef X
#define X(id, name, in, out) out,
static const unsigned out_bytes[] = {GEMM_TYPES(X)};
#undef X
#define X(id, name, in, out) "compute." name,
static const char *const limits[] = {GEMM_TYPES(X)};
#undef X
static const char *const trans[] = {"n", "t", NULL};
static const char *const accumulates[] = {"fast", "exact", NULL};
static const char *const scales[] = {"tensor", "block", NULL};
static const char *const searches[] = {"first", "top", "exhaustive", NULL};
static const char *const datas[] = {"random", "zeros", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct gemm_opts, type, .name = "type", .preset = "fp32", .choices = types,
		.help = "type of A and B (e5m2: A is e5m2, B is e4m3); FP8 gives BF16 output, INT8 gives INT32 output"),
	OPT_ROW(struct gemm_opts, m, .name = "m", .preset = "4096", .min = 1, .max = 262144,
		.help = "rows of A and C"),
	OPT_ROW(struct gemm_opts, n, .name = "n", .preset = "4096", .min = 1, .max = 262144,
		.help = "columns of B and C"),
	OPT_ROW(struct gemm_opts, k, .name = "k", .preset = "4096", .min = 1, .max = 262144,
		.help = "columns of A, rows of B"),
	OPT_ROW(struct gemm_opts, ta, .name = "ta", .preset = "n", .choices = trans,
		.help = "storage of A: not transposed (n) or transposed (t)"),
	OPT_ROW(struct gemm_opts, tb, .name = "tb", .preset = "n", .choices = trans,
		.help = "storage of B: not transposed (n) or transposed (t)"),
	OPT_ROW(struct gemm_opts, batch, .name = "batch", .preset = "1", .min = 1, .max = 65536,
		.help = "GEMMs per iteration (batched GEMM)"),
	OPT_ROW(struct gemm_opts, bias, .name = "bias", .help = "add a bias vector, one value per column"),
	OPT_ROW(struct gemm_opts, accumulate, .name = "accumulate", .preset = "fast", .choices = accumulates,
		.help = "FP8: accumulate in the tensor core only (fast), or promote to FP32 (exact)"),
	OPT_ROW(struct gemm_opts, scale, .name = "scale", .preset = "tensor", .choices = scales,
		.help = "FP8: one scale per tensor, or one per block"),
	OPT_ROW(struct gemm_opts, search, .name = "search", .preset = "first", .choices = searches,
		.help = "first: the library's first choice; top: the fastest of its top choices; exhaustive: the fastest of all its algorithms"),
	OPT_ROW(struct gemm_opts, data, .name = "data", .preset = "random", .choices = datas,
		.help = "inputs: scaled random numbers, or zeros (to study the effect on power)"),
	OPT_ROW(struct gemm_opts, threads, .name = "threads", .preset = "0", .max = 4096,
		.help = "CPU threads; 0: all usable CPUs"),
};

const struct field gemm_fields[] = {GEMM_FIELDS(FIELD_ROW)};

const char *gemm_type_name(enum gemm_type type)
{
	return types[type];
}

unsigned gemm_in_bytes(enum gemm_type type)
{
	return in_bytes[type];
}

unsigned gemm_out_bytes(enum gemm_type type)
{
	return out_bytes[type];
}

enum gemm_type gemm_type_b(enum gemm_type type)
{
	return type == GEMM_E5M2 ? GEMM_E4M3 : type;
}

double gemm_element(uint64_t seed, enum gemm_stream stream, enum gemm_data data, enum gemm_type type,
		    uint64_t i)
{
	uint32_t word;

	switch (data) {
	case GEMM_DATA_ZEROS:
		return 0;
	case GEMM_DATA_INTEGER:
		word = random_u32(seed, stream, i / 8) >> (i % 8 * 4) & 15;
		return word == 0 ? 1 : word == 1 ? -1 : 0;
	case GEMM_DATA_RANDOM:
		break;
	}
	if (type == GEMM_INT8)
		return (int8_t)(random_u32(seed, stream, i) >> 24);
	return (double)random_f32(seed, stream, i);
}

int64_t gemm_weight(unsigned which, uint64_t position)
{
	return which ? 1 + (int64_t)((uint32_t)(position * 2654435761u) >> 20) : 1 + (int64_t)position;
}

void gemm_begin(struct gemm *g, const struct bench *b, const struct gemm_opts *o,
		const struct gemm_access *access, unsigned sets)
{
	*g = (struct gemm){.opts = *o, .seed = b->seed, .access = access, .sets = sets};
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct gemm_opts *o = opts;
	double rows = o->m, columns = o->n, depth = o->k, batch = o->batch;

	(void)m, (void)t;
	return (struct work){
		.flop = 2 * rows * columns * depth * batch,
		.read_bytes = batch * depth * (rows + columns) * in_bytes[o->type],
		.write_bytes = batch * rows * columns * out_bytes[o->type],
		.limit = limits[o->type],
	};
}

/* Bytes of one A, B and C together. */
static double gemm_set_bytes(const struct gemm_opts *o)
{
	return (double)o->batch * ((double)in_bytes[o->type] * o->k * ((double)o->m + o->n) +
				   (double)out_bytes[o->type] * o->m * o->n);
}

/* The sets that the engines use. Workspace and verification's sums are small in comparison. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	operand_sets_need(m, t, gemm_set_bytes(opts), out);
}

static enum status check(const void *opts, struct error *err)
{
	const struct gemm_opts *o = opts;
	double elements = (double)o->batch * ((double)o->m * o->n + (double)o->k * ((double)o->m + o->n));

	if (elements > 0x1p40)
		return error_set(err, STATUS_BAD_INPUT,
				 "gemm: m, n, k and batch need %.3g elements, more than 2^40; reduce them",
				 elements);
	if (o->k > 65536 && (o->type == GEMM_BF16 || o->type == GEMM_E4M3 || o->type == GEMM_E5M2))
		return error_set(
			err, STATUS_BAD_INPUT,
			"gemm: k must be at most 65536 for type=%s, because larger sums cannot be checked in BF16",
			types[o->type]);
	if (o->type != GEMM_E4M3 && o->type != GEMM_E5M2) {
		if (o->accumulate != GEMM_ACCUMULATE_FAST)
			return error_set(err, STATUS_BAD_INPUT,
					 "gemm: accumulate=exact needs type=e4m3 or type=e5m2, not %s",
					 types[o->type]);
		if (o->scale != GEMM_SCALE_TENSOR)
			return error_set(err, STATUS_BAD_INPUT,
					 "gemm: scale=block needs type=e4m3 or type=e5m2, not %s",
					 types[o->type]);
	}
	return STATUS_OK;
}

/* The ceiling is probe peak's loop of multiply-adds of the same type on as many threads, if there is one that
 * uses the same instructions as the library. */
static bool ceiling(const struct machine *m, const struct target *t, const void *opts, struct ceiling *out)
{
	const struct gemm_opts *o = opts;
	struct peak_opts *peak = (struct peak_opts *)out->opts;

	(void)m, (void)t;
	out->probe = &probe_peak;
	out->engine = &peak_cpu_engine;
	*peak = (struct peak_opts){.unit = PEAK_FMA, .type = o->type, .threads = o->threads};
	return true; /* whether this machine has such a loop, the engine of probe peak decides */
}

static const struct engine *const engines[] = {
	&gemm_cublaslt_engine,
	&gemm_openblas_engine,
	&gemm_onednn_engine,
	NULL,
};

const struct probe probe_gemm = {
	.name = "gemm",
	.summary = "GEMM (matrix multiplication) in every type that the machine supports",
	.counted = true,
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct gemm_opts)},
	.fields = gemm_fields,
	.field_count = GEMM_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.ceiling = ceiling,
	.verify = gemm_verify,
};
