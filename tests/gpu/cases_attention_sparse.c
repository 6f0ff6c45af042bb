/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our block-sparse attention by gpu/attention/own_block_sparse.h: lists made on the device, attended by them in both
 * types, against the same lists and pairs in double precision, twice with the same bits. p0: row of `shapes`;
 * count: pairs of all heads, by 16 columns of the head.
 */
#include <inttypes.h>
#include <math.h>
#include "cases.h"
#include "core/math/random.h"
#include "gpu/attention/own_block_sparse.h"
#include "kernel/attention/sparse/make_lists.h"
#include "kernel/attention/sparse/args.h"
#include "ref.h"
#include "ref_number.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const uint32_t starts_q[] = {0, 200, 200, 330}, starts_kv[] = {0, 150, 180, 470};

struct shape {
	struct attention_problem p;
	struct attention_sparse_how how;
	bool elements, large; /* a mask of elements; logits of some hundreds */
};

/* clang-format off */
#define SHAPE(b, h, kh, q, kv, d) .batch = b, .heads = h, .kv_heads = kh, .q_len = q, .kv_len = kv, .head_dim = d
static const struct shape shapes[] = {
	{{SHAPE(1, 1, 1, 128, 128, 64)}, {.source = LISTS_ALL, .k_block = 128, .batches = 1, .heads = 1}, false, false},
	{{SHAPE(1, 1, 1, 1, 1, 128)}, {.source = LISTS_ALL, .k_block = 64, .batches = 1, .heads = 1}, false, false},
	{{SHAPE(1, 2, 1, 300, 520, 64)}, {.source = LISTS_RANDOM, .k_block = 128, .batches = 1, .heads = 2, .density = 0.5}, false, false},
	{{SHAPE(1, 2, 1, 300, 520, 128), .mask = ATTENTION_CAUSAL}, {.source = LISTS_RANDOM, .k_block = 64, .batches = 1, .heads = 2, .density = 0.6}, false, false},
	{{SHAPE(1, 2, 2, 260, 130, 128), .mask = ATTENTION_CAUSAL}, {.source = LISTS_ALL, .k_block = 128, .batches = 1, .heads = 1}, false, false},
	{{SHAPE(2, 1, 1, 256, 400, 64), .mask = ATTENTION_WINDOW, .window_left = 150, .window_right = 20}, {.source = LISTS_ALL, .k_block = 64, .batches = 1, .heads = 1}, false, false},
	{{SHAPE(1, 1, 1, 256, 256, 128)}, {.source = LISTS_RANDOM, .k_block = 128, .batches = 1, .heads = 1, .density = 0}, false, false},
	{{SHAPE(3, 2, 1, 200, 290, 64), .q_starts = starts_q, .kv_starts = starts_kv, .mask = ATTENTION_CAUSAL}, {.source = LISTS_ALL, .k_block = 64, .batches = 3, .heads = 1}, false, false},
	{{SHAPE(1, 2, 2, 256, 380, 128)}, {.source = LISTS_MAP, .k_block = 128, .batches = 1, .heads = 2}, true, false},
	{{SHAPE(1, 1, 1, 256, 380, 64), .mask = ATTENTION_CAUSAL}, {.source = LISTS_MAP, .k_block = 64, .batches = 1, .heads = 1}, true, false},
	{{SHAPE(1, 1, 1, 256, 380, 128)}, {.source = LISTS_STRIDED, .k_block = 64, .batches = 1, .heads = 1, .stride = 2}, false, true},
	{{SHAPE(1, 140, 140, 260, 260, 64)}, {.source = LISTS_RANDOM, .k_block = 64, .batches = 1, .heads = 140, .density = 0.7}, false, false},
	{{SHAPE(1, 2, 1, 2100, 3000, 128)}, {.source = LISTS_RANDOM, .k_block = 128, .batches = 1, .heads = 2, .density = 0.4}, false, false},
};

#define CASE(why, count, shape) {"sparse", why, count, 0, 0, shape, 0}
static const struct kernel_case cases[] = {
	CASE("one full block", 4 << 14, 0),
	CASE("one query, one key", 8, 1),
	CASE("random, two query heads a key head, ragged", 4 * 2 * 300 * 520, 2),
	CASE("random and causal, pairs of blocks, an odd one at the end", 8 * 2 * 300 * 520, 3),
	CASE("causal, blocks of rows without a key", 8 * 2 * 260 * 130, 4),
	CASE("a window", 4 * 2 * 256 * 400, 5),
	CASE("nothing listed", 8 * 256 * 256, 6),
	CASE("packed sequences, one without queries", 4 * 2 * 330 * 290, 7),
	CASE("a mask of elements", 8 * 2 * 256 * 380, 8),
	CASE("a mask of elements below a causal one", 4 * 256 * 380, 9),
	CASE("strides, logits of hundreds", 8 * 256 * 380, 10),
	CASE("more units than SMs", 4 * 140 * 260 * 260, 11),
	CASE("many blocks a row", 8 * 2 * 2100 * 3000, 12),
};
/* clang-format on */

enum { Q, K, V, O, LSE, MASK, STARTS_Q, STARTS_KV, ARRAYS };

struct tensors {
	uint64_t bytes[ARRAYS];
	void *host[ARRAYS], *found[2], *found_lse;
	struct guarded device[ARRAYS];
};

static void sizes(struct tensors *t, const struct attention_problem *p, const struct shape *s)
{
	t->bytes[Q] = attention_q_count(p) * 2;
	t->bytes[K] = attention_k_count(p) * 2;
	t->bytes[V] = attention_v_count(p) * 2;
	t->bytes[O] = attention_o_count(p) * 2;
	t->bytes[LSE] = attention_lse_count(p) * 4;
	t->bytes[MASK] = s->elements ? (uint64_t)s->how.batches * s->how.heads * p->q_len * p->kv_len : 4;
	t->bytes[STARTS_Q] = t->bytes[STARTS_KV] = (p->batch + 1) * 4ull;
}

static void fill(struct tensors *t, const struct attention_problem *p, const struct shape *s, uint64_t seed)
{
	for (int i = Q; i <= V; i++)
		for (uint64_t e = 0; e < t->bytes[i] / 2; e++)
			ref_number_store(p->type, t->host[i], e,
					 (i == Q && s->large ? 32 : 1) * 1.73 *
						 (double)random_f32(seed, 1 + (uint32_t)i, e));
	for (uint64_t e = 0; e < t->bytes[MASK] && s->elements; e++)
		((uint8_t *)t->host[MASK])[e] = e % p->kv_len < 128 || random_u32(seed, 9, e) % 3 == 0;
	memset(t->host[O], 0xff, t->bytes[O]);
	memset(t->host[LSE], 0xff, t->bytes[LSE]);
	if (p->q_starts) {
		memcpy(t->host[STARTS_Q], p->q_starts, t->bytes[STARTS_Q]);
		memcpy(t->host[STARTS_KV], p->kv_starts, t->bytes[STARTS_KV]);
	}
}

static enum status tensors_make(struct kit *k, struct tensors *t, const struct attention_problem *p,
				const struct shape *s, struct error *err)
{
	enum status st = STATUS_OK;

	sizes(t, p, s);
	for (int i = 0; i < ARRAYS; i++)
		t->host[i] = calloc(1, t->bytes[i] + 4);
	t->found[0] = malloc(t->bytes[O]);
	t->found[1] = malloc(t->bytes[O]);
	t->found_lse = malloc(t->bytes[LSE]);
	for (int i = 0; i < ARRAYS; i++)
		if (!t->host[i] || !t->found[0] || !t->found[1] || !t->found_lse)
			return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	fill(t, p, s, k->seed);
	for (int i = 0; i < ARRAYS && !st; i++) {
		st = kit_alloc(k, &t->device[i], t->bytes[i], err);
		if (!st)
			st = gpu_copy_to(k->device, t->device[i].data, t->host[i], t->bytes[i], err);
	}
	return st;
}

static void tensors_free(struct kit *k, struct tensors *t)
{
	for (int i = 0; i < ARRAYS; i++) {
		kit_free(k, &t->device[i]);
		free(t->host[i]);
	}
	free(t->found[0]);
	free(t->found[1]);
	free(t->found_lse);
}

/* -- the reference, on lists of its own making -- */

struct ref_lists {
	uint32_t *words; /* begins, lists, counts, order; then bits and map */
	struct attention_lists_args a;
};

static bool ref_lists_make(struct ref_lists *r, const struct tensors *t, const struct attention_problem *p,
			   const struct shape *s)
{
	const uint32_t q_blocks = (p->q_len + 127) / 128,
		       k_blocks = (p->kv_len + s->how.k_block - 1) / s->how.k_block;
	const uint64_t rows = (uint64_t)s->how.batches * s->how.heads * q_blocks, blocks = rows * k_blocks;
	const uint64_t units = (uint64_t)p->batch * p->heads * q_blocks;
	const uint64_t counts[] = {
		rows + 1, rows + 1, blocks, blocks, 2 * rows, units, blocks * 4 * s->how.k_block, blocks};
	uint64_t all = 0, at[COUNT(counts)];

	for (size_t i = 0; i < COUNT(counts); i++) {
		at[i] = all;
		all += counts[i];
	}
	r->words = calloc(all, 4);
	if (!r->words)
		return false;
	for (size_t i = 0; i < COUNT(counts); i++)
		at[i] = (uintptr_t)(r->words + at[i]);
	r->a = (struct attention_lists_args){
		.lists = {.full_begin = at[0],
			  .partial_begin = at[1],
			  .full = at[2],
			  .partial = at[3],
			  .batches = s->how.batches,
			  .heads = s->how.heads,
			  .q_blocks = q_blocks,
			  .k_blocks = k_blocks,
			  .q_block = 128,
			  .k_block = s->how.k_block},
		.counts = at[4],
		.order = at[5],
		.bits = at[6],
		.map = at[7],
		.mask = (uintptr_t)t->host[MASK],
		.q_starts = p->q_starts ? (uintptr_t)t->host[STARTS_Q] : 0,
		.kv_starts = p->q_starts ? (uintptr_t)t->host[STARTS_KV] : 0,
		.seed = s->how.seed,
		.below = (uint64_t)ceil(s->how.density * 0x1p32),
		.source = s->how.source,
		.stride = s->how.stride,
		.batch = p->batch,
		.heads = p->heads,
		.q_len = p->q_len,
		.kv_len = p->kv_len,
		.left = p->mask == ATTENTION_WINDOW ? (int32_t)p->window_left : ATTENTION_OPEN,
		.right = p->mask == ATTENTION_WINDOW ? (int32_t)p->window_right
						     : (p->mask == ATTENTION_CAUSAL ? 0 : ATTENTION_OPEN),
		.section = 1,
	};
	return true;
}

static struct tensor_map map_of(const void *data, struct attention_strides step, uint32_t head_dim)
{
	return (struct tensor_map){
		.opaque = {(uintptr_t)data, head_dim, 0, 0, 0, step.row * 2, step.head * 2, step.batch * 2}};
}

/* O and lse of the host. False: no memory. */
static bool reference(struct tensors *t, const struct attention_problem *p, const struct shape *s)
{
	static const char *const entries[] = {"lists_classify", "lists_count", "lists_place", "lists_write",
					      "lists_bits"};
	const struct ref_grid grid = {1, 1};
	struct ref_lists r;
	struct attention_sparse_args a;

	if (!ref_lists_make(&r, t, p, s))
		return false;
	for (size_t i = 0; i < COUNT(entries); i++)
		if (s->elements || (i > 0 && i < 4))
			ref_run(entries[i], grid, &r.a);
	a = (struct attention_sparse_args){
		.dense = {.q_map = map_of(t->host[Q], attention_q_strides(p), p->head_dim),
			  .k_map = map_of(t->host[K], attention_k_strides(p), p->head_dim),
			  .v_map = map_of(t->host[V], attention_v_strides(p), p->head_dim),
			  .o_map = map_of(t->host[O], attention_o_strides(p), p->head_dim),
			  .o = (uintptr_t)t->host[O],
			  .lse = (uintptr_t)t->host[LSE],
			  .q_starts = r.a.q_starts,
			  .kv_starts = r.a.kv_starts,
			  .batch = p->batch,
			  .heads = p->heads,
			  .kv_heads = p->kv_heads,
			  .q_len = p->q_len,
			  .kv_len = p->kv_len,
			  .left = r.a.left,
			  .right = r.a.right,
			  .scale_log2 = (float)(attention_scale(p) * M_LOG2E)},
		.lists = r.a.lists,
		.bits = s->elements ? r.a.bits : 0,
	};
	ref_run(p->type == ATTENTION_BF16 ? "sparse_bf16" : "sparse_fp16", grid, &a);
	free(r.words);
	return true;
}

/* -- one case -- */

/* O: a rounding of the values, the weights and the result; lse: of a logit's sum in FP32. */
static enum status compare(const struct tensors *t, const struct attention_problem *p, struct error *err)
{
	const double unit = p->type == ATTENTION_BF16 ? 0x1p-8 : 0x1p-11;
	const float *lse = t->found_lse, *lse_expected = t->host[LSE];

	for (uint64_t i = 0; i < t->bytes[O] / 2; i++) {
		double f = ref_number_load(p->type, t->found[0], i),
		       e = ref_number_load(p->type, t->host[O], i);

		if (isnan(e) ? ((uint16_t *)t->found[0])[i] != 0xffff
			     : !(fabs(f - e) <= 2 * unit * (fabs(e) + 1.73)))
			return error_set(err, STATUS_MISMATCH, "element %" PRIu64 " of O is %g, not %g", i, f,
					 e);
	}
	for (uint64_t i = 0; i < t->bytes[LSE] / 4; i++)
		if (isnan(lse_expected[i])
			    ? !isnan(lse[i])
			    : !(lse[i] == lse_expected[i] ||
				fabsf(lse[i] - lse_expected[i]) <= 2e-5f * (50 + fabsf(lse_expected[i]))))
			return error_set(err, STATUS_MISMATCH, "lse %" PRIu64 " is %g, not %g", i,
					 (double)lse[i], (double)lse_expected[i]);
	if (memcmp(t->found[0], t->found[1], t->bytes[O]))
		return error_set(err, STATUS_MISMATCH, "a second run gave other bits");
	return STATUS_OK;
}

static enum status attend(struct kit *k, struct tensors *t, const struct attention_problem *p,
			  const struct attention_sparse_how *how, struct error *err)
{
	struct attention_operands o = {.q = t->device[Q].data,
				       .k = t->device[K].data,
				       .v = t->device[V].data,
				       .o = t->device[O].data,
				       .lse = t->device[LSE].data,
				       .q_starts = t->device[STARTS_Q].data,
				       .kv_starts = t->device[STARTS_KV].data};
	struct attention_sparse *s = NULL;
	enum status st = attention_sparse_create(&s, k->device, p, how, err);

	if (!st)
		st = attention_sparse_build(s, &o, k->stream, err);
	for (int i = 0; i < 2 && !st; i++) {
		st = gpu_stream_fill32(k->stream, o.o, 0xffffffffu, t->bytes[O] / 4, err);
		if (!st)
			st = attention_sparse_enqueue(s, &o, k->stream, err);
		if (!st)
			st = gpu_copy_from(k->device, t->found[i], o.o, t->bytes[O], err);
	}
	if (!st)
		st = gpu_copy_from(k->device, t->found_lse, o.lse, t->bytes[LSE], err);
	attention_sparse_destroy(&s);
	return st;
}

/* portable: the kernels of sm_80. */
static enum status one_type(struct kit *k, const struct shape *s, enum attention_type type, bool portable,
			    struct error *err)
{
	struct attention_problem p = s->p;
	struct attention_sparse_how how = s->how;
	struct tensors t = {0};
	enum status st;

	p.type = p.out_type = type;
	p.want_lse = true;
	how.portable = portable;
	st = tensors_make(k, &t, &p, s, err);
	how.mask = s->elements ? t.device[MASK].data : 0;
	if (!st)
		st = attend(k, &t, &p, &how, err);
	if (!st && !reference(&t, &p, s))
		st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	if (!st)
		st = compare(&t, &p, err);
	if (!st)
		st = kit_guards(k, &t.device[O], "O", err);
	if (!st)
		st = kit_guards(k, &t.device[LSE], "lse", err);
	tensors_free(k, &t);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	enum status st = one_type(k, &shapes[c->p0], ATTENTION_F16, false, err);

	if (!st)
		st = one_type(k, &shapes[c->p0], ATTENTION_BF16, false, err);
	if (!st)
		st = one_type(k, &shapes[c->p0], ATTENTION_F16, true, err);
	return st ? st : one_type(k, &shapes[c->p0], ATTENTION_BF16, true, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_attention_sparse, one);
}

const struct kernel_group group_attention_sparse = {
	.name = "sparse",
	.cases = cases,
	.count = COUNT(cases),
	.test = test,
};
