/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs by cuBLASLt. Each shape has a plan, made when it first occurs. */
#include <stdlib.h>
#include "model/gpu/fp8.h"
#include "model/gpu/gemm/gemm.h"

/* WORTH_TIMES: a GEMM that uses the choice of a similar one is timed itself once it has run so often that
 * timing its candidates would be a twentieth of its total time. */
enum { ALIGN_MOST = 256, THIN_BELOW = 512, WORTH_TIMES = 1600 };
/* Clusters of eight blocks sometimes crash if several contexts share a device
 * (docs/explanation/design/model_gpu.md, "Several runs on one card"). GEMMs of generation take up to a fifth
 * less time with them, so generation uses them on a device that it has for itself. Deterministic results do
 * not depend on others. */
enum { CLUSTER_MOST = 4 };

static unsigned cluster_most(const struct gpu_state *g)
{
	return g->options.few_rows && !g->options.deterministic && !g->is_shared ? 0 : CLUSTER_MOST;
}

enum status gemm_plans_create(struct gemm_plans **out, const struct gpu_state *g, struct error *err)
{
	struct gemm_plans *p = calloc(1, sizeof(*p));
	enum status st;
	int version;

	*out = p;
	if (!p)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for GEMM plans");
	st = matmul_open(&p->library, g->device, g->options.cublaslt, 0, err);
	if (st)
		return st;
	version = matmul_version(p->library);
	snprintf(p->name, sizeof(p->name), "cuBLASLt %d.%d.%d", version / 10000, version / 100 % 100,
		 version % 100);
	return STATUS_OK;
}

void gemm_plans_release(struct gemm_plans **out)
{
	struct gemm_plans *p = *out;

	if (!p)
		return;
	for (size_t i = 0; i < p->count; i++)
		matmul_plan_destroy(&p->planned[i].plan);
	matmul_close(&p->library);
	free(p->planned);
	free(p->known);
	free(p);
	*out = NULL;
}

void gemm_plans_forget(struct gemm_plans *p, size_t count)
{
	while (p->count > count)
		matmul_plan_destroy(&p->planned[--p->count].plan);
}

bool gemm_plans_settled(const struct gpu_state *g)
{
	for (size_t i = 0; g->options.tune && !g->held && i < g->products->count; i++)
		if (!g->products->planned[i].tuned)
			return false;
	return !g->held;
}

const char *gemm_plans_name(const struct gemm_plans *p)
{
	return p->name;
}

static bool type_of(enum dtype dtype, enum matmul_type *out)
{
	*out = dtype == DTYPE_F32 ? MATMUL_F32 : dtype == DTYPE_BF16 ? MATMUL_BF16 : MATMUL_E4M3;
	return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_E4M3;
}

unsigned gemm_alignment(const struct gemm *g)
{
	uint64_t bits = gpu_address(g->a.data) | gpu_address(g->b.data) | gpu_address(g->c.data) |
			gpu_address(g->d.data) | ALIGN_MOST;

	return (unsigned)(bits & -bits);
}

/* Shapes are compared as bytes, so padding bytes must be zero. */
static enum status shape_of(const struct gpu_state *gpu, struct matmul_shape *s, const struct gemm *g,
			    struct error *err)
{
	const enum gpu_precision precision = gpu->options.precision;

	memset(s, 0, sizeof(*s));
	if (!type_of(g->a.dtype, &s->a) || !type_of(g->b.dtype, &s->b) || !type_of(g->d.dtype, &s->d) ||
	    s->d == MATMUL_E4M3 || (s->a == MATMUL_E4M3) != (s->b == MATMUL_E4M3))
		return error_set(err, STATUS_UNSUPPORTED,
				 "a GPU's GEMMs support only BF16 and F32, and on sm_90 operands in E4M3");
	if (g->beta != 0 && g->c.ld != g->d.ld)
		return error_set(err, STATUS_BUG, "a GEMM is added to a matrix with another row pitch");
	s->compute = precision == GPU_PRECISION_TF32 ? MATMUL_COMPUTE_TF32 : MATMUL_COMPUTE_F32;
	s->m = (uint64_t)g->d.rows;
	s->n = (uint64_t)g->d.cols;
	s->k = (uint64_t)(g->trans_a ? g->a.rows : g->a.cols);
	s->transpose_a = g->trans_a;
	s->transpose_b = g->trans_b;
	s->row_a = (uint64_t)g->a.ld;
	s->row_b = (uint64_t)g->b.ld;
	s->row_d = (uint64_t)g->d.ld;
	s->epilogue = g->bias.rows ? MATMUL_BIAS : MATMUL_PLAIN;
	s->bias = precision == GPU_PRECISION_BF16 ? MATMUL_BF16 : MATMUL_F32;
	s->accumulate = g->beta != 0;
	s->whole_sums = g->whole_sums;
	s->align_bytes = gemm_alignment(g);
	s->cluster_most = cluster_most(gpu);
	if (s->a == MATMUL_E4M3 && fp8_is_rows(&g->a)) {
		s->scale_a = MATMUL_SCALE_VEC128;
		s->scale_b = fp8_is_weight(&g->b) ? MATMUL_SCALE_BLOCK128 : MATMUL_SCALE_VEC128;
	} else if (s->a == MATMUL_E4M3) {
		s->scale_a = s->scale_b = MATMUL_SCALE_ROW;
		s->fast_accumulate = true;
	}
	return STATUS_OK;
}

static enum status add(struct gemm_plans *p, const struct matmul_shape *shape, struct gemm_plan **out,
		       struct error *err)
{
	struct gemm_plan *one;
	enum status st;

	if (p->count == p->room) {
		const size_t room = p->room ? 2 * p->room : 64;
		struct gemm_plan *more = realloc(p->planned, room * sizeof(*more));

		if (!more)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for a GEMM plan");
		p->planned = more;
		p->room = room;
	}
	one = &p->planned[p->count];
	memset(one, 0, sizeof(*one));
	memcpy(&one->shape, shape, sizeof(*shape));
	st = matmul_plan_create(&one->plan, p->library, shape, err);
	if (!st)
		st = matmul_plan_first(one->plan, err);
	if (st) {
		matmul_plan_destroy(&one->plan);
		return st;
	}
	p->count++;
	*out = one;
	return STATUS_OK;
}

static enum status plan_of(struct gemm_plans *p, const struct matmul_shape *shape, struct gemm_plan **out,
			   struct error *err)
{
	/* Called a thousand times per step; there are up to a thousand plans if packs vary in their number
	 * of rows. So the cheap comparisons come first. */
	for (size_t i = 0; i < p->count; i++) {
		const struct matmul_shape *s = &p->planned[i].shape;

		if (s->m == shape->m && s->n == shape->n && s->k == shape->k &&
		    !memcmp(s, shape, sizeof(*shape))) {
			*out = &p->planned[i];
			return STATUS_OK;
		}
	}
	return add(p, shape, out, err);
}

static bool is_thin(const struct matmul_shape *s)
{
	return s->m < THIN_BELOW || s->n < THIN_BELOW || s->k < THIN_BELOW;
}

/* Takes the choice of an earlier run, if the library still accepts it. */
static void recall(const struct gemm_plans *p, struct gemm_plan *one)
{
	struct error ignored = {0};
	char key[160];

	gemm_plans_key(key, &one->shape);
	for (size_t i = 0; i < p->known_count && !one->recalled; i++) {
		const struct gpu_choice *c = &p->known[i];

		if ((c->seconds <= 0 && !c->alike) || strcmp(c->product, key) ||
		    matmul_plan_recall(one->plan, c->words, &ignored))
			continue;
		one->recalled = one->tuned = true;
		one->alike = c->alike;
		one->cached = c->cached;
		one->seconds = c->seconds;
		one->first_seconds = c->first_seconds;
	}
}

/* The dimension that is the micro-batch's rows: k for a gradient of parameters, else m. */
static uint64_t *rows_of(struct matmul_shape *s)
{
	return s->transpose_a ? &s->k : &s->m;
}

/* Whether the number of rows differs by at most a factor of two, and everything else is equal. */
static bool are_alike(const struct matmul_shape *x, const struct matmul_shape *y)
{
	struct matmul_shape a, b;
	uint64_t rows, others;

	memcpy(&a, x, sizeof(a)); /* including padding bytes */
	memcpy(&b, y, sizeof(b));
	rows = *rows_of(&a);
	others = *rows_of(&b);
	*rows_of(&a) = *rows_of(&b) = 0;
	return !memcmp(&a, &b, sizeof(a)) && rows <= 2 * others && others <= 2 * rows;
}

/* Takes the algorithm of a similar GEMM. Packs vary in their number of rows, and timing the candidates of
 * each would take longer than a short run. */
static void take_alike(const struct gemm_plans *p, struct gemm_plan *one)
{
	uint64_t words[MATMUL_ALGORITHM_WORDS];
	struct error ignored = {0};

	for (size_t i = 0; i < p->count && !one->recalled; i++) {
		const struct gemm_plan *other = &p->planned[i];

		if (other == one || !other->tuned || other->alike || !are_alike(&other->shape, &one->shape))
			continue;
		matmul_plan_algorithm(other->plan, other->chosen, words);
		if (matmul_plan_recall(one->plan, words, &ignored))
			continue;
		one->recalled = one->tuned = one->alike = true;
	}
}

/* Times a GEMM that uses the choice of a similar one, once it has run often enough. */
static enum status settle_alike(struct backend *back, struct gemm_plan *one, const struct gemm *g,
				const struct matmul_operands *o, struct error *err)
{
	if (!one->alike || ++one->times < WORTH_TIMES)
		return STATUS_OK;
	one->tuned = one->recalled = one->alike = one->cached = false;
	return gemm_plans_tune(back, one, g, o, err);
}

/* Runs the recalled algorithm. If it does not run with these operands, the candidates are timed again. */
static enum status run_recalled(struct backend *back, struct gemm_plan *one, const struct gemm *g,
				const struct matmul_operands *o, struct error *err)
{
	struct gpu_state *gpu = gpu_of(back);
	struct error why = {0};
	enum status st = matmul_plan_enqueue(one->plan, o, gpu->stream, &why);

	if (st != STATUS_UNSUPPORTED)
		return st ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
	one->recalled = one->tuned = one->alike = one->cached = false;
	one->seconds = one->first_seconds = 0;
	st = matmul_plan_first(one->plan, err);
	if (!st && !gpu->held)
		st = gemm_plans_tune(back, one, g, o, err);
	return st ? st : matmul_plan_enqueue(one->plan, o, gpu->stream, err);
}

static struct matmul_operands operands_of(const struct gemm *g)
{
	return (struct matmul_operands){
		.a = gpu_address(g->a.data),
		.b = gpu_address(g->b.data),
		.c = g->beta != 0 ? gpu_address(g->c.data) : 0,
		.d = gpu_address(g->d.data),
		.bias = g->bias.rows ? gpu_address(g->bias.data) : 0,
		.scale_a = g->a.dtype == DTYPE_E4M3 ? gpu_address(g->a.scales.data) : 0,
		.scale_b = g->b.dtype == DTYPE_E4M3 ? gpu_address(g->b.scales.data) : 0,
		.alpha = (double)g->alpha,
		.beta = (double)g->beta,
	};
}

/* Takes the algorithm that was chosen before requests ran. */
static void take_chosen(const struct gpu_state *gpu, const struct gemm *g, struct gemm_plan *one)
{
	const struct gemm_way *way = gemm_chosen(gpu, g);
	struct error ignored = {0};

	if (way && way->engine == GEMM_LIBRARY && way->words[0] &&
	    !matmul_plan_recall(one->plan, way->words, &ignored))
		one->recalled = one->tuned = true;
}

enum status gemm_plans_find(struct backend *back, const struct gemm *g, struct gemm_plan **p,
			    struct matmul_operands *o, struct error *err)
{
	struct gemm_plans *all = gpu_of(back)->products;
	const size_t before = all->count;
	struct matmul_shape shape;
	enum status st = shape_of(gpu_of(back), &shape, g, err);

	*o = operands_of(g);
	if (!st)
		st = plan_of(all, &shape, p, err);
	if (!st && all->count > before)
		take_chosen(gpu_of(back), g, *p);
	return st;
}

enum status gemm_plans_run(struct backend *back, const struct gemm *g, double before, struct error *err)
{
	struct gpu_state *gpu = gpu_of(back);
	const bool tune = gpu->options.tune && !gpu->capturing;
	struct gemm_plan *planned = NULL;
	struct matmul_operands o;
	enum status st = gemm_plans_find(back, g, &planned, &o, err);

	if (!st && tune && !planned->tuned && gpu->products->known_count)
		recall(gpu->products, planned);
	if (!st && tune && !planned->tuned)
		take_alike(gpu->products, planned);
	if (!st && tune && !planned->tuned && !gpu->held)
		st = gemm_plans_tune(back, planned, g, &o, err);
	if (!st && !gpu->capturing && !gpu->held)
		st = settle_alike(back, planned, g, &o, err);
	if (!st)
		st = gpu_part_flop(back, is_thin(&planned->shape) ? GPU_PART_THIN : GPU_PART_PRODUCTS, before,
				   err);
	if (!st && planned->recalled)
		return run_recalled(back, planned, g, &o, err);
	return st ? st : matmul_plan_enqueue(planned->plan, &o, gpu->stream, err);
}

enum status gemm_run(struct backend *back, const struct gemm *g, const struct mat *h, struct error *err)
{
	struct gpu_state *gpu = gpu_of(back);
	const double before = back->cost.flop;
	const struct gemm_way *way = gemm_chosen(gpu, g);
	enum status st = gemm_watch(gpu, g, h, err);

	cost_gemm(back, g);
	if (st)
		return st;
	if (few_rows_take(gpu, g) || (way && way->engine == GEMM_OWN && few_rows_can(gpu, g))) {
		if (h->rows)
			cost_touch(back, h, 3);
		st = gpu_part_flop(back, GPU_PART_THIN, before, err);
		return st ? st : few_rows_run(back, g, h, way, err);
	}
	st = gpu_takes_fp8(g) ? gpu_gemm_fp8(back, g, before, err) : gemm_plans_run(back, g, before, err);
	return st || !h->rows ? st : back->ops->swiglu(back, g->d, *h, err);
}

enum status gpu_gemm(struct backend *back, const struct gemm *g, struct error *err)
{
	const struct mat none = {0};

	return gemm_run(back, g, &none, err);
}
