/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of a GEMM plan: the library's heuristics, and every configuration that its own check accepts. */
#include "gpu/matmul/matmul.h"
#include "gpu/matmul/internal.h"
#include "core/text/text.h"
#include "vendor/cublaslt_shapes.h"

enum { ALGO_IDS_MAX = 256, CAP_IDS_MAX = 1024, CUSTOM_MAX = 32, WIDE_SPARE = 16 };

static const struct {
	uint16_t m, n;
} tiles[] = {{0, 0},
#define X(m, n) {(m), (n)},
	     CUBLASLT_TILES(X)
#undef X
};

#define AUTO 0
static const struct {
	uint16_t id, k, stages;
} stages[] = {
#define X(id, k, stages) {id, k, stages},
	CUBLASLT_STAGES(X)
#undef X
};
#undef AUTO

static const struct {
	uint16_t id, m, n;
} clusters[] = {
#define X(id, m, n) {id, m, n},
	CUBLASLT_CLUSTERS(X)
#undef X
};

static enum status make_room(struct matmul_plan *p, unsigned room, struct error *err)
{
	cublasLtMatmulHeuristicResult_t *more;

	if (room <= p->room)
		return STATUS_OK;
	more = realloc(p->candidates, room * sizeof(*more));
	if (!more)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %u GEMM plans", room);
	p->candidates = more;
	p->room = room;
	return STATUS_OK;
}

/* For unsupported FP8 shapes the library returns NOT_SUPPORTED or INVALID_VALUE. Both mean that it has no
 * kernel. */
static enum status no_kernel(const struct matmul_plan *p, cublasStatus_t code, struct error *err)
{
	const struct matmul_shape *s = &p->shape;
	const char *name = p->mm->lt.status_name ? p->mm->lt.status_name(code) : "";

	return error_set_cause(
		err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
		"cublasLt has no kernel for %s x %s to %s, %llu x %llu x %llu, %s%s on this device: %s (%u)",
		matmul_type_name(s->a), matmul_type_name(s->b), matmul_type_name(s->d),
		(unsigned long long)s->m, (unsigned long long)s->n, (unsigned long long)s->k,
		s->transpose_b ? "T" : "N", s->transpose_a ? "T" : "N", name ? name : "", (unsigned)code);
}

/* Cluster size of an algorithm; 0 x 0 if the library decides or does not report it. */
static void read_cluster(const struct matmul_plan *p, const cublasLtMatmulAlgo_t *algo, unsigned *m,
			 unsigned *n)
{
	uint16_t id = CUBLASLT_CLUSTER_SHAPE_AUTO;
	size_t bytes;

	*m = *n = 0;
	if (p->mm->lt.config_get(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &id, sizeof(id), &bytes))
		return;
	for (size_t i = 0; i < sizeof(clusters) / sizeof(clusters[0]); i++)
		if (clusters[i].id == id) {
			*m = clusters[i].m;
			*n = clusters[i].n;
		}
}

static bool is_wide(const struct matmul_plan *p, const cublasLtMatmulAlgo_t *algo)
{
	unsigned m, n;

	if (!p->shape.cluster_most)
		return false;
	read_cluster(p, algo, &m, &n);
	return m * n > p->shape.cluster_most;
}

static enum status ask(struct matmul_plan *p, unsigned wanted, struct error *err)
{
	struct matmul *mm = p->mm;
	cublasStatus_t code;
	int found = 0;
	unsigned kept = 0;
	enum status st;

	p->count = p->selected = 0;
	st = make_room(p, wanted, err);
	if (st)
		return st;
	code = mm->lt.heuristic(mm->handle, p->desc, p->a, p->b, p->c, p->d, p->preference, (int)wanted,
				p->candidates, &found);
	if (code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_INVALID_VALUE)
		return no_kernel(p, code, err);
	st = matmul_check(mm, code, "heuristic", err);
	if (st)
		return st;
	for (int i = 0; i < found; i++)
		if (p->candidates[i].state == CUBLAS_STATUS_SUCCESS)
			p->candidates[kept++] = p->candidates[i];
	p->count = kept;
	return kept ? STATUS_OK : no_kernel(p, CUBLAS_STATUS_NOT_SUPPORTED, err);
}

/* Removes candidates with wide clusters, and keeps the order of the others. If all are wide, all stay. */
static unsigned drop_wide(struct matmul_plan *p)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < p->count; i++)
		if (!is_wide(p, &p->candidates[i].algo))
			p->candidates[kept++] = p->candidates[i];
	p->count = kept ? kept : p->count;
	return kept;
}

enum status matmul_plan_candidates(struct matmul_plan *p, unsigned wanted, struct error *err)
{
	const unsigned least = wanted ? wanted : 1;
	enum status st = ask(p, least, err);

	if (st || drop_wide(p))
		return st;
	st = ask(p, least + WIDE_SPARE, err);
	if (!st)
		p->only_wide = !drop_wide(p);
	if (p->count > least)
		p->count = least;
	return st;
}

enum status matmul_plan_first(struct matmul_plan *p, struct error *err)
{
	return matmul_plan_candidates(p, 1, err);
}

/* Capabilities of an algorithm: the option values that may be combined. */
struct algo_caps {
	cublasLtMatmulAlgo_t algo;
	uint32_t tile[CAP_IDS_MAX], stage[CAP_IDS_MAX];
	unsigned tile_count, stage_count;
	int32_t split, custom_max;
	uint32_t reductions, swizzle;
};

static unsigned cap_list(const struct cublaslt *lt, const cublasLtMatmulAlgo_t *algo,
			 cublasLtMatmulAlgoCapAttributes_t what, uint32_t *list)
{
	size_t bytes = 0;

	if (lt->cap_get(algo, what, NULL, 0, &bytes) || !bytes || bytes > CAP_IDS_MAX * sizeof(*list) ||
	    lt->cap_get(algo, what, list, bytes, &bytes)) {
		list[0] = 0; /* undefined: the algorithm has no choice of this option */
		return 1;
	}
	return (unsigned)(bytes / sizeof(*list));
}

static void caps_read(const struct cublaslt *lt, struct algo_caps *c)
{
	size_t bytes;

	c->split = c->custom_max = 0;
	c->reductions = c->swizzle = 0;
	c->tile_count = cap_list(lt, &c->algo, CUBLASLT_ALGO_CAP_TILE_IDS, c->tile);
	c->stage_count = cap_list(lt, &c->algo, CUBLASLT_ALGO_CAP_STAGES_IDS, c->stage);
	/* An attribute that an older library lacks stays 0, so the option is not tried. */
	lt->cap_get(&c->algo, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, &c->split, sizeof(c->split), &bytes);
	lt->cap_get(&c->algo, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, &c->reductions, sizeof(c->reductions),
		    &bytes);
	lt->cap_get(&c->algo, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, &c->swizzle, sizeof(c->swizzle),
		    &bytes);
	lt->cap_get(&c->algo, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, &c->custom_max, sizeof(c->custom_max),
		    &bytes);
	if (c->custom_max > CUSTOM_MAX)
		c->custom_max = CUSTOM_MAX;
}

struct config {
	uint32_t tile, stage, swizzle, custom, reduction;
	int32_t split;
	uint16_t cluster;
};

static bool already(const struct matmul_plan *p, const cublasLtMatmulAlgo_t *algo)
{
	for (unsigned i = 0; i < p->count; i++)
		if (!memcmp(p->candidates[i].algo.data, algo->data, sizeof(algo->data)))
			return true;
	return false;
}

/* State of a listing. */
struct listing {
	struct matmul_plan *p;
	unsigned limit;
	const struct matmul_pace *pace; /* NULL: none */
	bool enough;
};

static bool goes_on(const struct listing *l)
{
	return !l->enough && l->p->count < l->limit;
}

/* Adds the configuration if the library's check accepts it within the workspace. */
static enum status take_if_accepted(struct matmul_plan *p, const cublasLtMatmulAlgo_t *base,
				    const struct config *c, struct error *err)
{
	const struct cublaslt *lt = &p->mm->lt;
	cublasLtMatmulHeuristicResult_t result = {0};
	cublasLtMatmulAlgo_t algo = *base;
	cublasStatus_t bad;
	enum status st;

	bad = lt->config_set(&algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &c->tile, sizeof(c->tile)) |
	      lt->config_set(&algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, &c->stage, sizeof(c->stage)) |
	      lt->config_set(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &c->split, sizeof(c->split)) |
	      lt->config_set(&algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &c->reduction,
			     sizeof(c->reduction)) |
	      lt->config_set(&algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, &c->swizzle, sizeof(c->swizzle)) |
	      lt->config_set(&algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, &c->custom, sizeof(c->custom));
	if (c->cluster != CUBLASLT_CLUSTER_SHAPE_AUTO)
		bad |= lt->config_set(&algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &c->cluster,
				      sizeof(c->cluster));
	if (bad || lt->algo_check(p->mm->handle, p->desc, p->a, p->b, p->c, p->d, &algo, &result) ||
	    result.workspaceSize > p->mm->workspace_bytes || already(p, &algo))
		return STATUS_OK;
	result.algo = algo;
	result.state = CUBLAS_STATUS_SUCCESS;
	st = make_room(p, p->count + 1 > p->room ? 2 * p->count + 16 : p->room, err);
	if (!st)
		p->candidates[p->count++] = result;
	return st;
}

static enum status offer(struct listing *l, const cublasLtMatmulAlgo_t *base, const struct config *c,
			 struct error *err)
{
	enum status st = l->pace ? l->pace->go_on(l->pace->arg, &l->enough, err) : STATUS_OK;

	return st || l->enough ? st : take_if_accepted(l->p, base, c, err);
}

/* Passes of the search: each varies one unusual option, from likely to unlikely. */
enum pass { PASS_PLAIN, PASS_CLUSTER, PASS_SWIZZLE, PASS_CUSTOM, PASS_SPLIT, PASS_COUNT };

static enum status offer_turned(struct listing *l, const struct algo_caps *caps, enum pass pass,
				struct config c, struct error *err)
{
	static const uint16_t shapes[] = {
		CUBLASLT_CLUSTER_SHAPE_1x1x1, CUBLASLT_CLUSTER_SHAPE_2x1x1, CUBLASLT_CLUSTER_SHAPE_1x2x1,
		CUBLASLT_CLUSTER_SHAPE_2x2x1, CUBLASLT_CLUSTER_SHAPE_4x1x1, CUBLASLT_CLUSTER_SHAPE_1x4x1,
	};
	static const int32_t splits[] = {2, 3, 4, 5, 6, 8, 12, 16, 32};
	enum status st = STATUS_OK;

	switch (pass) {
	case PASS_PLAIN:
		return offer(l, &caps->algo, &c, err);
	case PASS_CLUSTER:
		for (size_t i = 0; !st && i < sizeof(shapes) / sizeof(shapes[0]) && goes_on(l); i++) {
			c.cluster = shapes[i];
			st = offer(l, &caps->algo, &c, err);
		}
		return st;
	case PASS_SWIZZLE:
		for (c.swizzle = 1; !st && c.swizzle <= caps->swizzle && goes_on(l); c.swizzle++)
			st = offer(l, &caps->algo, &c, err);
		return st;
	case PASS_CUSTOM:
		for (c.custom = 1; !st && c.custom <= (uint32_t)caps->custom_max && goes_on(l); c.custom++)
			st = offer(l, &caps->algo, &c, err);
		return st;
	case PASS_SPLIT:
		for (size_t i = 0; !st && caps->split && i < sizeof(splits) / sizeof(splits[0]); i++)
			for (c.reduction = 1; !st && c.reduction <= 4 && goes_on(l); c.reduction *= 2) {
				c.split = splits[i];
				if (caps->reductions & c.reduction &&
				    (!l->p->shape.whole_sums ||
				     c.reduction == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE))
					st = offer(l, &caps->algo, &c, err);
			}
		return st;
	case PASS_COUNT:
		break;
	}
	return STATUS_BUG;
}

static enum status exhaust_algo(struct listing *l, const struct algo_caps *caps, enum pass pass,
				struct error *err)
{
	enum status st = STATUS_OK;

	for (unsigned t = 0; !st && t < caps->tile_count; t++)
		for (unsigned s = 0; !st && s < caps->stage_count && goes_on(l); s++) {
			struct config c = {.tile = caps->tile[t], .stage = caps->stage[s], .split = 1};

			st = offer_turned(l, caps, pass, c, err);
		}
	return st;
}

enum status matmul_plan_exhaust(struct matmul_plan *p, unsigned limit, const struct matmul_pace *pace,
				struct error *err)
{
	struct listing l = {.p = p, .limit = limit, .pace = pace};
	const struct matmul_codes *c = &p->codes;
	struct matmul *mm = p->mm;
	struct algo_caps *caps;
	int ids[ALGO_IDS_MAX], found = 0;
	enum status st;

	st = LT_CALL(mm, err, algo_ids, mm->handle, c->compute, c->scale, c->a, c->b, c->c, c->d,
		     ALGO_IDS_MAX, ids, &found);
	if (st)
		return st;
	caps = malloc(sizeof(*caps));
	if (!caps)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a GEMM search");
	for (int pass = 0; !st && pass < PASS_COUNT; pass++)
		for (int i = 0; !st && i < found && goes_on(&l); i++) {
			if (mm->lt.algo_init(mm->handle, c->compute, c->scale, c->a, c->b, c->c, c->d, ids[i],
					     &caps->algo))
				continue; /* the library lists it, but not for these types */
			caps_read(&mm->lt, caps);
			st = exhaust_algo(&l, caps, (enum pass)pass, err);
		}
	free(caps);
	return st;
}

unsigned matmul_plan_count(const struct matmul_plan *p)
{
	return p->count;
}

enum status matmul_plan_select(struct matmul_plan *p, unsigned candidate, struct error *err)
{
	if (candidate >= p->count)
		return error_set(err, STATUS_BUG, "GEMM plan: candidate %u of %u", candidate, p->count);
	p->selected = candidate;
	return STATUS_OK;
}

void matmul_plan_algorithm(const struct matmul_plan *p, unsigned candidate,
			   uint64_t out[MATMUL_ALGORITHM_WORDS])
{
	_Static_assert(sizeof(p->candidates->algo.data) == MATMUL_ALGORITHM_WORDS * sizeof(*out), "words");
	memset(out, 0, MATMUL_ALGORITHM_WORDS * sizeof(*out));
	if (candidate < p->count)
		memcpy(out, p->candidates[candidate].algo.data, sizeof(p->candidates->algo.data));
}

enum status matmul_plan_recall(struct matmul_plan *p, const uint64_t algorithm[MATMUL_ALGORITHM_WORDS],
			       struct error *err)
{
	const struct matmul *mm = p->mm;
	cublasLtMatmulHeuristicResult_t result = {0};
	cublasLtMatmulAlgo_t algo;
	enum status st;

	memcpy(algo.data, algorithm, sizeof(algo.data));
	if (mm->lt.algo_check(mm->handle, p->desc, p->a, p->b, p->c, p->d, &algo, &result) ||
	    result.workspaceSize > mm->workspace_bytes || (!p->only_wide && is_wide(p, &algo)))
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "cublasLt does not accept the cached algorithm for this GEMM");
	st = make_room(p, 1, err);
	if (st)
		return st;
	result.algo = algo;
	result.state = CUBLAS_STATUS_SUCCESS;
	p->candidates[0] = result;
	p->count = 1;
	p->selected = 0;
	return STATUS_OK;
}

static uint32_t config_u32(const struct matmul_plan *p, unsigned candidate,
			   cublasLtMatmulAlgoConfigAttributes_t what)
{
	uint32_t value = 0;
	size_t bytes;

	if (p->mm->lt.config_get(&p->candidates[candidate].algo, what, &value, sizeof(value), &bytes))
		return 0;
	return value;
}

static uint16_t config_u16(const struct matmul_plan *p, unsigned candidate,
			   cublasLtMatmulAlgoConfigAttributes_t what)
{
	uint16_t value = 0;
	size_t bytes;

	if (p->mm->lt.config_get(&p->candidates[candidate].algo, what, &value, sizeof(value), &bytes))
		return 0;
	return value;
}

static void describe_name(struct matmul_description *d)
{
	struct text t = {0};

	text_addf(&t, "algo%d", d->id);
	if (d->tile_m)
		text_addf(&t, " %ux%u", d->tile_m, d->tile_n);
	if (d->stage_k && d->stages)
		text_addf(&t, " stages%ux%u", d->stage_k, d->stages);
	else if (d->stage_k)
		text_addf(&t, " stages%uxauto", d->stage_k);
	if (d->cluster_m)
		text_addf(&t, " cluster%ux%u", d->cluster_m, d->cluster_n);
	if (!d->split_k)
		text_addf(&t, " splitauto");
	else if (d->split_k > 1)
		text_addf(&t, " split%u/%u", d->split_k, d->reduction);
	if (d->swizzle)
		text_addf(&t, " swizzle%u", d->swizzle);
	if (d->custom)
		text_addf(&t, " option%u", d->custom);
	if (d->inner)
		text_addf(&t, " inner%u", d->inner);
	text_copy(d->name, sizeof(d->name), text_str(&t));
	text_release(&t);
}

void matmul_plan_describe(const struct matmul_plan *p, unsigned candidate, struct matmul_description *out)
{
	uint32_t tile, stage;
	int32_t split;

	*out = (struct matmul_description){0};
	if (candidate >= p->count)
		return;
	out->id = (int)config_u32(p, candidate, CUBLASLT_ALGO_CONFIG_ID);
	tile = config_u32(p, candidate, CUBLASLT_ALGO_CONFIG_TILE_ID);
	stage = config_u32(p, candidate, CUBLASLT_ALGO_CONFIG_STAGES_ID);
	if (tile < sizeof(tiles) / sizeof(tiles[0])) {
		out->tile_m = tiles[tile].m;
		out->tile_n = tiles[tile].n;
	}
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
		if (stages[i].id == stage) {
			out->stage_k = stages[i].k;
			out->stages = stages[i].stages;
		}
	read_cluster(p, &p->candidates[candidate].algo, &out->cluster_m, &out->cluster_n);
	split = (int32_t)config_u32(p, candidate, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
	out->split_k = split < 0 ? 0 : (unsigned)split;
	out->reduction = config_u32(p, candidate, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
	out->swizzle = config_u32(p, candidate, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
	out->custom = config_u32(p, candidate, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
	out->inner = config_u16(p, candidate, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
	out->waves = (double)p->candidates[candidate].wavesCount;
	out->workspace_bytes = p->candidates[candidate].workspaceSize;
	describe_name(out);
}
