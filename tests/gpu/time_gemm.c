/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of a decoder's GEMMs at few rows: assay's kernels with every choice, and cuBLASLt's candidates. Each
 * is captured in a graph of many launches, each of which reads other weights, so that weights come from
 * memory. The graphs run in turn. --likely: assay's kernels only with their first choices, overlapped.
 * --search N: also up to N configurations that cuBLASLt's heuristics do not name. Without a GPU, or built
 * without kernels, it skips (exit 77).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpu/matmul/matmul.h"
#include "gpu/matmul/skinny.h"
#include "kernel/fatbin.h"
#include "kernel/test_data/gemm.h"
#include "kernel/train/common.h"
#include "kernel/train/rows.h"
#include "vendor/cuda.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
enum { NO_GPU = 77, USAGE = 64 };
enum {
	REPEATS = 5,
	CANDIDATES = 16,
	FETCHES = 9,
	SEARCH_MOST = 400,
	VARIANTS_MOST = 2 * (SKINNY_CHOICES_MOST + 1) + 3 * FETCHES + CANDIDATES + SEARCH_MOST + 2
};
enum { LAUNCHES_LEAST = 6, LAUNCHES_MOST = 64, ROWS_MOST = 256, K_MOST = 18944, OUTPUTS_MOST = 152064 };
enum { SMALL_K = 320, SMALL_OUTPUTS = 256, SMALL_ROWS = 8 };
#define GRAPH_NS 1.5e6

enum kind { BF16, MIXED, E4M3, KINDS };
static const char *const kind_names[KINDS] = {"bf16", "mixed", "e4m3"};

static const struct gemm {
	const char *name;
	uint32_t outputs, k; /* outputs: of the GEMM, before SwiGLU */
	bool bias, residual, swiglu;
} gemms[] = {
	{"qkv", 4608, 3584, true, false, false},      {"o", 3584, 3584, false, true, false},
	{"gate_up", 37888, 3584, false, false, true}, {"down", 3584, 18944, false, true, false},
	{"head", 152064, 3584, false, false, false},
};
/* For a CPU in the GPU's place. */
static const struct gemm small_gemms[] = {
	{"o", 128, 320, true, true, false},
	{"gate_up", 256, 128, false, false, true},
};
static const unsigned all_rows[] = {1, 8, 16, 32, 64, 128, 256};

enum engine { OWN, OWN_QUANTIZE, CUBLASLT, CUBLASLT_SWIGLU };
struct variant {
	enum engine engine;
	struct skinny_choice choice;
	bool overlap;
	unsigned candidate;
	char name[128];
	struct gpu_graph *graph;
	double us[REPEATS], median;
};

struct bench {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_event *event[2];
	struct skinny *skinny;
	struct matmul *mm; /* NULL: no cuBLASLt here */
	gpu_ptr pool, x, x_short, y, h, bias, scale;
	uint64_t pool_bytes, at;
	double memory_rate; /* bytes per ns, as bounds assume it */
	bool small;
	FILE *csv;
	const char *only_gemm, *only_kind;
	unsigned only_rows;
	unsigned search; /* most configurations of cuBLASLt besides its candidates */
	bool likely;	 /* assay's kernels only with their first choices, overlapped */
	/* what is timed now */
	const struct gemm *gemm;
	enum kind kind;
	unsigned rows, launches;
	struct matmul_plan *plan;
	struct variant variant[VARIANTS_MOST];
	unsigned variants;
};

static uint64_t w_bytes(const struct bench *b)
{
	return (uint64_t)b->gemm->outputs * b->gemm->k * (b->kind == BF16 ? 2 : 1);
}

static double bytes_of(const struct bench *b)
{
	const double results = b->gemm->swiglu ? 0.5 * b->gemm->outputs : b->gemm->outputs;

	return (double)w_bytes(b) + b->rows * (2.0 * results * (1 + b->gemm->residual) +
					       (b->kind == E4M3 ? 1.0 : 2.0) * b->gemm->k);
}

static double flop_of(const struct bench *b)
{
	return 2.0 * b->rows * b->gemm->outputs * b->gemm->k;
}

/* In microseconds; with 670 TFLOPS, of E4M3 1260. */
static double bound_of(const struct bench *b)
{
	return fmax(bytes_of(b) / b->memory_rate, flop_of(b) / (b->kind == E4M3 ? 1260e3 : 670e3)) * 1e-3;
}

static gpu_ptr next_weights(struct bench *b)
{
	const uint64_t bytes = (w_bytes(b) + 1023) / 1024 * 1024;
	gpu_ptr p;

	if (b->at + bytes > b->pool_bytes)
		b->at = 0;
	p = b->pool + b->at;
	b->at += bytes;
	return p;
}

static struct skinny_problem problem_of(struct bench *b)
{
	const struct gemm *g = b->gemm;
	const uint32_t results = g->swiglu ? g->outputs / 2 : g->outputs;

	return (struct skinny_problem){
		.w = next_weights(b),
		.x = b->kind == E4M3 ? b->x_short : b->x,
		.y = b->y,
		.w_scale = b->kind == BF16 ? 0 : b->scale,
		.x_scale = b->kind == E4M3 ? b->scale : 0,
		.bias = g->bias ? b->bias : 0,
		.residual = g->residual ? b->y : 0,
		.rows = b->rows,
		.outputs = results,
		.k = g->k,
		.swiglu = g->swiglu,
		.row_w = g->k,
		.row_x = g->k,
		.row_y = results,
		.row_residual = results,
	};
}

static enum status run_own(struct bench *b, const struct variant *v, struct error *err)
{
	const struct skinny_problem p = problem_of(b);
	enum status st = STATUS_OK;

	if (v->engine == OWN_QUANTIZE)
		st = skinny_quantize(b->skinny,
				     &(struct skinny_quantize){.from = b->x,
							       .to = b->x_short,
							       .scale = b->scale,
							       .rows = b->rows,
							       .cols = b->gemm->k,
							       .row_from = b->gemm->k,
							       .row_to = b->gemm->k},
				     v->overlap, b->stream, err);
	return st ? st : skinny_enqueue(b->skinny, &p, &v->choice, v->overlap, b->stream, err);
}

static enum status run_cublaslt(struct bench *b, const struct variant *v, struct error *err)
{
	const struct matmul_operands o = {
		.a = b->kind == E4M3 ? b->x_short : b->x,
		.b = next_weights(b),
		.d = b->y,
		.bias = b->gemm->bias ? b->bias : 0,
		.scale_a = b->kind == E4M3 ? b->scale : 0,
		.scale_b = b->kind == E4M3 ? b->scale : 0,
		.alpha = 1,
		.beta = b->gemm->residual ? 1 : 0,
	};
	const uint32_t ffn = b->gemm->outputs / 2;
	const struct train_swiglu_args swiglu = {.gate_up = b->y,
						 .h = b->h,
						 .ld_gate_up = 2 * (int64_t)ffn,
						 .ld_h = ffn,
						 .rows = b->rows,
						 .ffn = ffn};
	struct gpu_kernel *k;
	enum status st = matmul_plan_enqueue(b->plan, &o, b->stream, err);

	if (st || v->engine == CUBLASLT)
		return st;
	st = gpu_kernel(b->device, &k, "train_rows", "train_swiglu", err);
	return st ? st
		  : gpu_launch_1d(k, b->stream, train_blocks(b->rows, ffn), TRAIN_THREADS, 0, &swiglu, err);
}

static enum status run(struct bench *b, const struct variant *v, struct error *err)
{
	return v->engine == OWN || v->engine == OWN_QUANTIZE ? run_own(b, v, err) : run_cublaslt(b, v, err);
}

/* Runs it once, because a library may load code in its first call, then captures it. */
static enum status prepare(struct bench *b, struct variant *v, struct error *err)
{
	struct error ignored = {0};
	enum status st = STATUS_OK, end;

	if (b->plan && v->engine >= CUBLASLT)
		st = matmul_plan_select(b->plan, v->candidate, err);
	if (!st)
		st = run(b, v, err);
	if (!st)
		st = gpu_stream_wait(b->stream, err);
	if (!st)
		st = gpu_capture_begin(b->stream, err);
	if (st)
		return st;
	for (unsigned i = 0; !st && i < b->launches; i++)
		st = run(b, v, err);
	end = gpu_capture_end(b->stream, &v->graph, st ? &ignored : err);
	return st ? st : end;
}

static enum status add(struct bench *b, const struct variant *given, struct error *err)
{
	struct variant *v = &b->variant[b->variants];
	struct error why = {0};
	enum status st;

	if (b->variants == VARIANTS_MOST)
		return STATUS_OK;
	*v = *given;
	st = prepare(b, v, &why);
	if (!st) {
		b->variants++;
		return STATUS_OK;
	}
	gpu_graph_destroy(&v->graph);
	if (st != STATUS_UNSUPPORTED)
		return error_set_cause(err, st, why.cause, "%s", why.text);
	printf("  %s %s rows %u %s: %s\n", b->gemm->name, kind_names[b->kind], b->rows, v->name, why.text);
	return STATUS_OK;
}

static void name_own(struct variant *v)
{
	snprintf(v->name, sizeof(v->name), "cluster%u_together%u_sm%u_running%u%s%s%s%s%s", v->choice.cluster,
		 v->choice.together, v->choice.per_sm, v->choice.running,
		 v->choice.invariant ? "_invariant" : "", v->choice.short_fetch ? "_fetch128" : "",
		 v->choice.keep ? "_keep" : "", v->overlap ? "_overlap" : "",
		 v->engine == OWN_QUANTIZE ? "_quantize" : "");
}

static enum status add_own(struct bench *b, struct error *err)
{
	const struct skinny_problem p = problem_of(b);
	struct skinny_choice choices[SKINNY_CHOICES_MOST + 1];
	struct error why = {0};
	unsigned count;
	enum status st = STATUS_OK;

	if (skinny_check(&p, &why))
		return STATUS_OK;
	count = skinny_choices(b->skinny, &p, choices);
	choices[count++] = skinny_invariant(b->skinny, &p);
	for (unsigned i = 0; !st && i < 2 * count; i++) {
		struct variant v = {.engine = OWN, .choice = choices[i / 2], .overlap = i % 2};

		if (b->likely && (!v.overlap || i / 2 >= FETCHES))
			continue;
		name_own(&v);
		st = add(b, &v, err);
	}
	/* The first choices are the likely ones. */
	for (unsigned i = 0; !st && i < 3 * FETCHES && i / 3 + 1 < count; i++) {
		struct variant v = {.engine = OWN, .choice = choices[i / 3], .overlap = true};

		v.choice.short_fetch = i % 3 != 1;
		v.choice.keep = i % 3 != 0;
		name_own(&v);
		st = add(b, &v, err);
	}
	return st;
}

static enum status add_cublaslt(struct bench *b, struct error *err)
{
	const struct matmul_shape shape = {
		.a = b->kind == E4M3 ? MATMUL_E4M3 : MATMUL_BF16,
		.b = b->kind == E4M3 ? MATMUL_E4M3 : MATMUL_BF16,
		.d = MATMUL_BF16,
		.compute = MATMUL_COMPUTE_F32,
		.m = b->rows,
		.n = b->gemm->outputs,
		.k = b->gemm->k,
		.transpose_b = true,
		.epilogue = b->gemm->bias ? MATMUL_BIAS : MATMUL_PLAIN,
		.bias = MATMUL_BF16,
		.scale_a = b->kind == E4M3 ? MATMUL_SCALE_ROW : MATMUL_SCALE_NONE,
		.scale_b = b->kind == E4M3 ? MATMUL_SCALE_ROW : MATMUL_SCALE_NONE,
		.fast_accumulate = b->kind == E4M3,
		.accumulate = b->gemm->residual,
	};
	struct error why = {0};
	enum status st = matmul_plan_create(&b->plan, b->mm, &shape, &why);

	if (!st)
		st = matmul_plan_candidates(b->plan, CANDIDATES, &why);
	if (!st && b->search)
		st = matmul_plan_exhaust(b->plan, CANDIDATES + b->search, NULL, &why);
	if (st == STATUS_UNSUPPORTED) {
		printf("  %s %s rows %u cublaslt: %s\n", b->gemm->name, kind_names[b->kind], b->rows,
		       why.text);
		return STATUS_OK;
	}
	if (st)
		return error_set_cause(err, st, why.cause, "%s", why.text);
	for (unsigned i = 0; !st && i < matmul_plan_count(b->plan); i++) {
		struct variant v = {.engine = CUBLASLT, .candidate = i};
		struct matmul_description d;

		matmul_plan_describe(b->plan, i, &d);
		snprintf(v.name, sizeof(v.name), "%u_%s_split%u", i, d.name, d.split_k);
		for (char *c = v.name; *c; c++)
			if (*c == ' ' || *c == ',')
				*c = '_';
		st = add(b, &v, err);
	}
	return st;
}

static enum status time_once(struct bench *b, struct variant *v, double *us, struct error *err)
{
	double ns;
	enum status st = gpu_event_record(b->event[0], b->stream, err);

	if (!st)
		st = gpu_graph_launch(v->graph, b->stream, err);
	if (!st)
		st = gpu_event_record(b->event[1], b->stream, err);
	if (!st)
		st = gpu_event_wait(b->event[1], err);
	if (!st)
		st = gpu_event_elapsed_ns(b->event[0], b->event[1], &ns, err);
	*us = st ? 0 : ns * 1e-3 / b->launches;
	return st;
}

static int by_value(const void *a_, const void *b_)
{
	const double *a = a_, *b = b_;

	return (*a > *b) - (*a < *b);
}

/* Round 0 only warms up. */
static enum status time_all(struct bench *b, unsigned from, struct error *err)
{
	enum status st = STATUS_OK;
	double us;

	for (unsigned r = 0; !st && r <= REPEATS; r++)
		for (unsigned i = from; !st && i < b->variants; i++) {
			st = time_once(b, &b->variant[i], &us, err);
			if (r)
				b->variant[i].us[r - 1] = us;
		}
	for (unsigned i = from; i < b->variants; i++) {
		qsort(b->variant[i].us, REPEATS, sizeof(us), by_value);
		b->variant[i].median = b->variant[i].us[REPEATS / 2];
	}
	return st;
}

/* The fastest of an engine; overlap: -1 either. NULL: none. */
static const struct variant *best(const struct bench *b, enum engine engine, int overlap)
{
	const struct variant *found = NULL;

	for (unsigned i = 0; i < b->variants; i++) {
		const struct variant *v = &b->variant[i];

		if (v->engine == engine && (overlap < 0 || v->overlap == overlap) && !v->choice.invariant &&
		    (!found || v->median < found->median))
			found = v;
	}
	return found;
}

/* What stands beside the fused forms: quantizing x first, and SwiGLU after cuBLASLt. */
static enum status add_companions(struct bench *b, struct error *err)
{
	const struct variant *own = best(b, OWN, 1), *lt = best(b, CUBLASLT, -1);
	const unsigned from = b->variants;
	struct variant v;
	enum status st = STATUS_OK;

	if (own && b->kind == E4M3) {
		v = *own;
		v.engine = OWN_QUANTIZE;
		v.graph = NULL;
		name_own(&v);
		st = add(b, &v, err);
	}
	if (!st && lt && b->gemm->swiglu) {
		v = *lt;
		v.engine = CUBLASLT_SWIGLU;
		v.graph = NULL;
		st = add(b, &v, err);
	}
	return st ? st : time_all(b, from, err);
}

static void show(const struct bench *b, const char *what, const struct variant *v)
{
	if (v)
		printf("%-8s %-5s rows %3u %-16s %9.2f us  %6.0f GB/s %6.1f TFLOPS  %5.1f %% of the bound  %s\n",
		       b->gemm->name, kind_names[b->kind], b->rows, what, v->median,
		       bytes_of(b) / v->median * 1e-3, flop_of(b) / v->median * 1e-6,
		       100 * bound_of(b) / v->median, v->name);
}

static void report(const struct bench *b)
{
	static const char *const engines[] = {"own", "own_quantize", "cublaslt", "cublaslt_swiglu"};

	for (unsigned i = 0; i < b->variants && b->csv; i++) {
		const struct variant *v = &b->variant[i];

		fprintf(b->csv, "%s,%s,%s,%u,%u,%u,%s,%s,%u,%.3f,%.3f,%.1f,%.2f,%.3f,%.4f\n",
			gpu_name(b->device), b->gemm->name, kind_names[b->kind], b->gemm->outputs, b->gemm->k,
			b->rows, engines[v->engine], v->name, v->overlap, v->median, v->us[0],
			bytes_of(b) / v->median * 1e-3, flop_of(b) / v->median * 1e-6, bound_of(b),
			bound_of(b) / v->median);
	}
	show(b, "own overlap", best(b, OWN, 1));
	show(b, "own", best(b, OWN, 0));
	for (unsigned i = 0; i < b->variants; i++)
		if (b->variant[i].choice.invariant && b->variant[i].overlap && b->variant[i].engine == OWN)
			show(b, "own invariant", &b->variant[i]);
	show(b, "own + quantize", best(b, OWN_QUANTIZE, -1));
	for (unsigned i = 0; i < b->variants; i++)
		if (b->variant[i].engine == CUBLASLT && !b->variant[i].candidate)
			show(b, "cublaslt first", &b->variant[i]);
	show(b, "cublaslt best", best(b, CUBLASLT, -1));
	show(b, "cublaslt +swiglu", best(b, CUBLASLT_SWIGLU, -1));
}

static enum status time_gemm(struct bench *b, struct error *err)
{
	const double launches = GRAPH_NS * 1e-3 / bound_of(b);
	enum status st;

	b->launches = launches < LAUNCHES_LEAST	 ? LAUNCHES_LEAST
		      : launches > LAUNCHES_MOST ? LAUNCHES_MOST
						 : (unsigned)launches;
	if (b->small)
		b->launches = 2;
	b->variants = 0;
	st = add_own(b, err);
	if (!st && b->mm && b->kind != MIXED)
		st = add_cublaslt(b, err);
	if (!st)
		st = time_all(b, 0, err);
	if (!st)
		st = add_companions(b, err);
	if (!st)
		report(b);
	for (unsigned i = 0; i < b->variants; i++)
		gpu_graph_destroy(&b->variant[i].graph);
	matmul_plan_destroy(&b->plan);
	if (b->csv)
		fflush(b->csv);
	return st;
}

static enum status fill(struct bench *b, gpu_ptr to, uint64_t count, enum operand_type type,
			struct error *err)
{
	const struct operand_fill_args a = {to, count, 1, 1, type, OPERAND_RANDOM, 0};
	struct gpu_kernel *k;
	enum status st = gpu_kernel(b->device, &k, "operand", "operand_fill", err);

	if (!st)
		st = gpu_launch_1d(k, b->stream, 8 * gpu_sm_count(b->device), 256, 0, &a, err);
	return st ? st : gpu_stream_wait(b->stream, err);
}

static enum status time_kind(struct bench *b, struct error *err)
{
	enum status st = fill(b, b->pool, b->pool_bytes / (b->kind == BF16 ? 2 : 1),
			      b->kind == BF16 ? OPERAND_BF16 : OPERAND_E4M3, err);

	b->at = 0;
	for (size_t g = 0; !st && g < (b->small ? COUNT(small_gemms) : COUNT(gemms)); g++)
		for (size_t r = 0; !st && r < COUNT(all_rows); r++) {
			b->gemm = b->small ? &small_gemms[g] : &gemms[g];
			b->rows = all_rows[r];
			if ((b->only_gemm && strcmp(b->only_gemm, b->gemm->name)) ||
			    (b->only_rows && b->only_rows != b->rows) || (b->small && b->rows > SMALL_ROWS) ||
			    2 * w_bytes(b) > b->pool_bytes)
				continue;
			st = time_gemm(b, err);
		}
	return st;
}

static enum status allocate(struct bench *b, gpu_ptr *p, uint64_t bytes, struct error *err)
{
	enum status st = gpu_alloc(b->device, p, bytes, err);

	return st ? st
		  : gpu_stream_fill32(b->stream, *p, 0x3f800000 /* 1 in F32, twice 1 or 0 in BF16 */,
				      bytes / 4, err);
}

static enum status open_all(struct bench *b, struct error *err)
{
	const uint64_t k = b->small ? SMALL_K : K_MOST, outputs = b->small ? SMALL_OUTPUTS : OUTPUTS_MOST;
	struct error why = {0};
	enum status st = skinny_open(&b->skinny, b->device, err);

	for (int i = 0; !st && i < 2; i++)
		st = gpu_event_create(b->device, &b->event[i], err);
	if (!st && matmul_open(&b->mm, b->device, NULL, 0, &why)) {
		printf("no cuBLASLt: %s\n", why.text);
		matmul_close(&b->mm);
	}
	if (!st)
		st = allocate(b, &b->pool, b->pool_bytes, err);
	if (!st)
		st = allocate(b, &b->x, 2 * ROWS_MOST * k, err);
	if (!st)
		st = allocate(b, &b->x_short, ROWS_MOST * k, err);
	if (!st)
		st = allocate(b, &b->y, 2 * ROWS_MOST * outputs, err);
	if (!st)
		st = allocate(b, &b->h, 2 * ROWS_MOST * k, err);
	if (!st)
		st = allocate(b, &b->bias, 2 * outputs, err);
	if (!st)
		st = allocate(b, &b->scale, 4 * outputs, err);
	if (!st)
		st = fill(b, b->x, ROWS_MOST * k, OPERAND_BF16, err);
	return st ? st : fill(b, b->x_short, ROWS_MOST * k, OPERAND_E4M3, err);
}

static void release(struct bench *b)
{
	gpu_ptr *all[] = {&b->pool, &b->x, &b->x_short, &b->y, &b->h, &b->bias, &b->scale};

	for (size_t i = 0; b->device && i < COUNT(all); i++)
		gpu_free(b->device, all[i]);
	for (int i = 0; i < 2; i++)
		gpu_event_destroy(&b->event[i]);
	if (b->mm)
		matmul_close(&b->mm);
	skinny_close(&b->skinny);
	gpu_stream_destroy(&b->stream);
	gpu_close(&b->device);
	if (b->csv)
		fclose(b->csv);
}

static bool parse(struct bench *b, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--small")) {
			b->small = true;
			b->pool_bytes = 1 << 20;
		} else if (!strcmp(argv[i], "--likely")) {
			b->likely = true;
		} else if (i + 1 == argc) {
			return false;
		} else if (!strcmp(argv[i], "--gemm")) {
			b->only_gemm = argv[++i];
		} else if (!strcmp(argv[i], "--kind")) {
			b->only_kind = argv[++i];
		} else if (!strcmp(argv[i], "--rows")) {
			b->only_rows = (unsigned)strtoul(argv[++i], NULL, 10);
		} else if (!strcmp(argv[i], "--search")) {
			b->search = (unsigned)strtoul(argv[++i], NULL, 10);
			if (b->search > SEARCH_MOST)
				return false;
		} else if (!strcmp(argv[i], "--csv") && !b->csv) {
			b->csv = fopen(argv[++i], "w");
			if (!b->csv)
				return false;
		} else {
			return false;
		}
	}
	return true;
}

static enum status time_kinds(struct bench *b, struct error *err)
{
	enum status st = STATUS_OK;

	if (b->csv)
		fprintf(b->csv,
			"gpu,gemm,kind,n,k,rows,engine,variant,overlap,us,us_least,gb_s,tflops,bound_us,share\n");
	for (int kind = 0; !st && kind < KINDS; kind++) {
		b->kind = (enum kind)kind;
		if (!b->only_kind || !strcmp(b->only_kind, kind_names[kind]))
			st = time_kind(b, err);
	}
	return st;
}

int main(int argc, char **argv)
{
	static struct bench b = {.pool_bytes = (uint64_t)4 << 30};
	struct error err = {0};
	enum status st;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!parse(&b, argc, argv)) {
		fputs("usage: time_gemm [--small] [--likely] [--search N] [--gemm NAME] [--kind bf16|mixed|e4m3] "
		      "[--rows N] [--csv FILE]\n",
		      stderr);
		return USAGE;
	}
	cuda_keep_no_cache();
	if (!kernel_fatbin_at(0) || gpu_open(&b.device, NULL, &err) == STATUS_UNAVAILABLE) {
		printf("1..0 # SKIP %s\n",
		       err.status ? err.text : "built without kernels: no nvcc at build time");
		return NO_GPU;
	}
	st = err.status ? err.status : gpu_stream_create(b.device, &b.stream, &err);
	if (!st) {
		b.memory_rate = strstr(gpu_name(b.device), "H200") ? 4400 : 3000;
		printf("%s; bounds assume %.1f TB/s\n", gpu_name(b.device), b.memory_rate * 1e-3);
		st = open_all(&b, &err);
	}
	if (!st)
		st = time_kinds(&b, &err);
	if (st)
		printf("FAIL %s\n", err.text);
	release(&b);
	return st == STATUS_UNSUPPORTED || st == STATUS_UNAVAILABLE ? NO_GPU : st != STATUS_OK;
}
