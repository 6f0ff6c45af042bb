/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention's gradients by gpu/attention/own_backward.h: each case in every way that takes it, against the
 * definition in double precision, into memory of NaN, twice: with the same bits where a way promises them.
 * p0: the problem, p1: 1 = logits of some hundreds.
 */
#include "attention_backward_problems.h"
#include "cases.h"
#include "core/math/random.h"
#include "gpu/attention/own_backward.h"
#include "ref_attention.h"
#include "ref_number.h"
#include <inttypes.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off */
/* count: pairs of all heads and sequences before the mask, by 16 columns of the head. */
#define CASE(why, count, problem, large) {"attention_backward", why, count, 0, 0, problem, large}
static const struct kernel_case cases[] = {
	CASE("one tile", 4 << 12, 0, 0),
	CASE("one query, one key", 4, 1, 0),
	CASE("ragged tiles", 4 * 130 * 70, 2, 0),
	CASE("causal, rows without a key", 4 * 90 * 40, 3, 0),
	CASE("causal, more keys than queries", 4 * 40 * 140, 4, 0),
	CASE("window, two query heads a key head", 4 * 4 * 1600, 5, 0),
	CASE("window open to the right", 4 * 2 * 65 * 40, 6, 0),
	CASE("packed sequences, some empty", 4 * 2 * 2400, 7, 0),
	CASE("D 128, packed sequences, causal", 8 * 2 * 2400, 8, 0),
	CASE("strides of its own", 4 * 4 * 40 * 72, 9, 0),
	CASE("negative scale", 4 * 30 * 70, 10, 0),
	CASE("logits of hundreds", 4 * 130 * 70, 2, 1),
	CASE("D 128, one tile", 8 << 12, 11, 0),
	CASE("D 128, causal, more keys", 8 * 2 * 130 * 257, 12, 0),
	CASE("D 128, window", 8 * 30 * 200, 13, 0),
	CASE("D 128, lengths 1 63 65, 7 query heads a key head", 8 * 7 * 8195 / 4, 14, 0),
	CASE("lengths 1 63-65 127-129 192", 4 * 4 * 98000, 15, 0),
	CASE("lengths 1 63-65 127-129 192, 4 query heads a key head", 4 * 4 * 98000, 16, 0),
	CASE("D 128, lengths 1 63-65 127-129 192, 7 query heads a key head", 8 * 7 * 98000, 17, 0),
	CASE("D 128, lengths 1 63-65 127-129 192, no mask", 8 * 4 * 98000, 18, 0),
	CASE("D 128, 28 heads on 4", 8 * 28 * 90000, 19, 0),
	CASE("9 heads on 3", 4 * 18 * 102400, 20, 0),
	CASE("D 128, window across tiles", 8 * 2 * 490000, 21, 0),
	CASE("D 128, 2112, causal", 8 * 2 * 2112 * 2112, 22, 0),
	CASE("2112, no mask", 4 * 2112 * 2112, 23, 0),
	CASE("D 128, logits of hundreds", 8 * 2 * 130 * 257, 12, 1),
	CASE("all SMs, causal", 4 * 136 * 192 * 192, 24, 0),
};
/* clang-format on */

/* Q, K, V, O, dO in; dQ, dK, dV out. */
enum tensor { Q, K, V, O, D_O, D_Q, D_K, D_V, TENSORS };
static const char *const names[TENSORS] = {"Q", "K", "V", "O", "dO", "dQ", "dK", "dV"};

struct bed {
	const struct attention_problem *p;
	bool large;
	uint64_t count[TENSORS], rows;
	void *host[TENSORS], *again[TENSORS];
	struct guarded device[TENSORS], lse, starts[2], order, workspace;
	uint32_t order_count;
	double *right[TENSORS], *lse_right;
	float *lse_host;
};

static bool bed_alloc(struct bed *b)
{
	const struct attention_problem *p = b->p;
	const uint64_t count[TENSORS] = {attention_q_count(p), attention_k_count(p), attention_v_count(p),
					 attention_o_count(p), attention_o_count(p), attention_q_count(p),
					 attention_k_count(p), attention_v_count(p)};
	bool room = true;

	b->rows = attention_lse_count(p);
	for (int t = 0; t < TENSORS; t++) {
		b->count[t] = count[t];
		b->host[t] = calloc(count[t], 2);
		b->again[t] = calloc(count[t], 2);
		b->right[t] = calloc(count[t], sizeof(double));
		room = room && b->host[t] && b->again[t] && b->right[t];
	}
	b->lse_right = calloc(b->rows, sizeof(double));
	b->lse_host = calloc(b->rows, sizeof(float));
	return room && b->lse_right && b->lse_host;
}

static void bed_data(struct bed *b, uint64_t seed)
{
	const struct attention_problem *p = b->p;
	const struct ref_attention r = {.q = b->host[Q],
					.k = b->host[K],
					.v = b->host[V],
					.d_o = b->host[D_O],
					.o = b->right[O],
					.lse = b->lse_right,
					.d_q = b->right[D_Q],
					.d_k = b->right[D_K],
					.d_v = b->right[D_V]};

	for (uint32_t t = Q; t <= D_O; t++)
		for (uint64_t i = 0; i < b->count[t]; i++)
			ref_number_store(p->type, b->host[t], i,
					 (b->large && t == Q ? 32 : 1) * 1.73 *
						 (double)random_f32(seed, t + 1, i));
	ref_attention_run(p, &r);
	for (uint64_t i = 0; i < b->count[O]; i++)
		ref_number_store(p->type, b->host[O], i, b->right[O][i]);
	for (uint64_t i = 0; i < b->rows; i++)
		b->lse_host[i] = (float)b->lse_right[i];
}

static enum status put_starts(struct kit *k, struct bed *b, struct error *err)
{
	const struct attention_problem *p = b->p;
	enum status st = STATUS_OK;

	if (p->q_starts)
		st = kit_put(k, &b->starts[0], p->q_starts, (p->batch + 1) * 4, err);
	if (!st && p->q_starts)
		st = kit_put(k, &b->starts[1], p->kv_starts, (p->batch + 1) * 4, err);
	return st ? st : kit_order(k, &b->order, p, &b->order_count, err);
}

static enum status bed_make(struct kit *k, struct bed *b, struct error *err)
{
	enum status st = STATUS_OK;

	if (!bed_alloc(b))
		return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	bed_data(b, k->seed);
	for (int t = Q; t <= D_O && !st; t++)
		st = kit_put(k, &b->device[t], b->host[t], b->count[t] * 2, err);
	if (!st)
		st = kit_put(k, &b->lse, b->lse_host, b->rows * sizeof(float), err);
	return st ? st : put_starts(k, b, err);
}

static void bed_free(struct kit *k, struct bed *b)
{
	for (int t = 0; t < TENSORS; t++) {
		kit_free(k, &b->device[t]);
		free(b->host[t]);
		free(b->again[t]);
		free(b->right[t]);
	}
	kit_free(k, &b->lse);
	kit_free(k, &b->starts[0]);
	kit_free(k, &b->starts[1]);
	kit_free(k, &b->order);
	kit_free(k, &b->workspace);
	free(b->lse_right);
	free(b->lse_host);
}

static enum status enqueue(struct kit *k, struct attention_own_backward *a, struct bed *b, struct error *err)
{
	const struct attention_operands x = {.q = b->device[Q].data,
					     .k = b->device[K].data,
					     .v = b->device[V].data,
					     .o = b->device[O].data,
					     .lse = b->lse.data,
					     .q_starts = b->starts[0].data,
					     .kv_starts = b->starts[1].data,
					     .order = b->order.data,
					     .order_count = b->order_count};
	const struct sdpa_gradients g = {b->device[D_O].data, b->device[D_Q].data, b->device[D_K].data,
					 b->device[D_V].data};

	return attention_own_backward_enqueue(a, &x, &g, b->workspace.data, k->stream, err);
}

/* Runs once into fresh memory of NaN, the workspace too; what it left goes to `out`. */
static enum status run(struct kit *k, struct attention_own_backward *a, unsigned which, struct bed *b,
		       void *const *out, struct error *err)
{
	enum status st = kit_alloc(k, &b->workspace, attention_own_backward_workspace(a, which), err);

	for (int t = D_Q; t < TENSORS && !st; t++)
		st = kit_alloc(k, &b->device[t], b->count[t] * 2, err);
	if (!st)
		st = enqueue(k, a, b, err);
	for (int t = D_Q; t < TENSORS && !st; t++) {
		st = gpu_copy_from(k->device, out[t], b->device[t].data, b->count[t] * 2, err);
		if (!st)
			st = kit_guards(k, &b->device[t], names[t], err);
	}
	if (!st)
		st = kit_guards(k, &b->workspace, "the workspace", err);
	for (int t = D_Q; t < TENSORS; t++)
		kit_free(k, &b->device[t]);
	kit_free(k, &b->workspace);
	return st;
}

/* -- how far off -- */

struct errors {
	double squares, of_right, doubt;
};

/*
 * A row of a gradient. Values have variance 1; P, dS and the result are rounded once each. D has the rounding
 * of O: of a row with few keys it is as large as dS itself may be, 0.3 units a pair, and dK adds it up over
 * the heads. Where logits are of hundreds dS is the difference of two numbers of that size, and nothing else
 * stays: times what dS is multiplied by (queries of variance 1024 in dK, over all of them).
 */
static double row_doubt(const struct bed *b, enum tensor t)
{
	const struct attention_problem *p = b->p;
	const double heads = (double)p->heads / p->kv_heads, sums = sqrt(p->q_len * heads);

	if (b->large)
		return t == D_K ? 32 * sums : (t == D_V ? sums : 4);
	return t == D_V ? 0.02 : 0.3 * (t == D_K ? sqrt(2 * heads) : 1);
}

static enum status compare_row(const struct bed *b, enum tensor t, const void *found, uint64_t first,
			       double typical, struct errors *e, struct error *err)
{
	const struct attention_problem *p = b->p;
	const double unit = p->type == ATTENTION_BF16 ? 0x1p-8 : 0x1p-11, *right = b->right[t] + first;
	const double floor = row_doubt(b, t) * unit;
	double most = typical;

	for (uint32_t d = 0; d < p->head_dim; d++)
		most = fmax(most, fabs(right[d]));
	for (uint32_t d = 0; d < p->head_dim; d++) {
		double value = ref_number_load(p->type, found, first + d), off = value - right[d];

		if (!(fabs(off) <= 6 * unit * most + 6 * floor))
			return error_set(err, STATUS_MISMATCH,
					 "%s, element %" PRIu64
					 " is %g, by definition %g, of which %g is allowed",
					 names[t], first + d, value, right[d], 6 * unit * most + 6 * floor);
		e->squares += off * off;
		e->of_right += right[d] * right[d];
		e->doubt += b->large ? floor * floor : 0x1p-12 * unit * unit;
	}
	return STATUS_OK;
}

static struct attention_strides strides_of(const struct attention_problem *p, enum tensor t)
{
	return t == D_Q ? attention_q_strides(p)
			: (t == D_K ? attention_k_strides(p) : attention_v_strides(p));
}

static enum status compare(const struct bed *b, enum tensor t, const void *found, struct error *err)
{
	const struct attention_problem *p = b->p;
	const struct attention_strides s = strides_of(p, t);
	const uint32_t *starts = t == D_Q ? p->q_starts : p->kv_starts;
	const double unit = p->type == ATTENTION_BF16 ? 0x1p-8 : 0x1p-11;
	struct errors e = {0};
	double typical = 0;
	enum status st = STATUS_OK;

	for (uint64_t i = 0; i < b->count[t]; i++)
		typical += b->right[t][i] * b->right[t][i];
	typical = sqrt(typical / (double)b->count[t]);
	for (uint32_t n = 0; n < p->batch && !st; n++)
		for (uint32_t h = 0; h < (t == D_Q ? p->heads : p->kv_heads) && !st; h++)
			for (uint32_t i = 0;
			     i < (t == D_Q ? attention_q_len(p, n) : attention_kv_len(p, n)) && !st; i++)
				st = compare_row(b, t, found,
						 (starts ? starts[n] * s.row : n * s.batch) + h * s.head +
							 i * s.row,
						 typical, &e, err);
	if (!st && sqrt(e.squares) > 1.5 * unit * sqrt(e.of_right) + 2 * sqrt(e.doubt))
		st = error_set(err, STATUS_MISMATCH, "%s is off by %.3g of its norm", names[t],
			       sqrt(e.squares / e.of_right));
	return st;
}

static enum status candidate(struct kit *k, struct attention_own_backward *a, unsigned which, struct bed *b,
			     struct error *err)
{
	const bool adds = !strstr(attention_own_backward_name(a, which), "two_passes");
	enum status st = attention_own_backward_select(a, which, err);

	if (!st)
		st = run(k, a, which, b, b->host, err);
	for (int t = D_Q; t < TENSORS && !st; t++)
		st = compare(b, (enum tensor)t, b->host[t], err);
	if (!st)
		st = run(k, a, which, b, b->again, err);
	for (int t = D_Q; t < TENSORS && !st; t++) {
		if (t == D_Q && adds)
			st = compare(b, D_Q, b->again[t], err);
		else if (memcmp(b->host[t], b->again[t], b->count[t] * 2))
			st = error_set(err, STATUS_MISMATCH, "%s has other bits in another run", names[t]);
	}
	return st;
}

static void one(struct kit *k, const struct kernel_case *c, enum attention_type type)
{
	struct attention_problem p = problems[c->p0];
	struct attention_own_backward *a = NULL;
	struct bed b = {.p = &p, .large = c->p1 == 1};
	struct error err = {0};
	enum status st;

	p.type = p.out_type = type;
	st = attention_own_backward_create(&a, k->device, &p, false, &err);
	if (!st)
		st = bed_make(k, &b, &err);
	for (unsigned i = 0; a && i < attention_own_backward_count(a); i++) {
		if (!st)
			st = candidate(k, a, i, &b, &err);
		kit_result(k, "attention_backward", attention_own_backward_name(a, i), c, st, &err);
		st = STATUS_OK;
		err = (struct error){0};
	}
	if (!a)
		kit_result(k, "attention_backward", attention_type_name(type), c, st, &err);
	bed_free(k, &b);
	attention_own_backward_destroy(&a);
}

static void test(struct kit *k)
{
	for (size_t i = 0; i < COUNT(cases); i++)
		if (kit_wants(k, "attention_backward", &cases[i])) {
			one(k, &cases[i], ATTENTION_F16);
			one(k, &cases[i], ATTENTION_BF16);
		}
}

/* -- times -- */

struct timing {
	struct kit *kit;
	struct attention_own_backward *own;
	struct bed *bed;
};

static enum status call(void *arg, struct error *err)
{
	const struct timing *t = arg;

	return enqueue(t->kit, t->own, t->bed, err);
}

/* Small numbers on the device, of which the gradients are finite; what they are is the cases' business. */
static enum status time_data(struct kit *k, struct bed *b, struct error *err)
{
	enum status st = STATUS_OK;
	uint64_t most = 0;

	for (int t = 0; t < TENSORS; t++)
		most = b->count[t] > most ? b->count[t] : most;
	b->host[0] = calloc(most, 2);
	if (!b->host[0])
		return error_set(err, STATUS_NO_RESOURCE, "no memory for data");
	for (uint64_t i = 0; i < most; i++)
		ref_number_store(b->p->type, b->host[0], i, (double)random_f32(k->seed, 1, i));
	for (int t = 0; t < TENSORS && !st; t++)
		st = kit_put(k, &b->device[t], b->host[0], b->count[t] * 2, err);
	free(b->host[0]);
	b->host[0] = calloc(b->rows, sizeof(float));
	for (uint64_t i = 0; b->host[0] && i < b->rows; i++)
		((float *)b->host[0])[i] = logf((float)b->p->kv_len);
	if (!st && b->host[0])
		st = kit_put(k, &b->lse, b->host[0], b->rows * sizeof(float), err);
	return st ? st : put_starts(k, b, err);
}

/* What the selected way leaves, on the host. */
static enum status gather(struct kit *k, const struct timing *t, unsigned which, void *const *out,
			  struct error *err)
{
	struct bed *b = t->bed;
	enum status st = attention_own_backward_select(t->own, which, err);

	if (!st)
		st = kit_alloc(k, &b->workspace, attention_own_backward_workspace(t->own, which), err);
	if (!st)
		st = enqueue(k, t->own, b, err);
	for (int i = D_Q; i < TENSORS && !st; i++)
		st = gpu_copy_from(k->device, out[i], b->device[i].data, b->count[i] * 2, err);
	return st;
}

/* Sizes at which double precision takes too long: held to the portable kernels, which the cases hold to it.
 */
static enum status agree(const struct bed *b, enum tensor t, struct error *err)
{
	const double unit = b->p->type == ATTENTION_BF16 ? 0x1p-8 : 0x1p-11;
	double squares = 0, of_right = 0;

	for (uint64_t i = 0; i < b->count[t]; i++) {
		double right = ref_number_load(b->p->type, b->host[t], i);
		double off = ref_number_load(b->p->type, b->again[t], i) - right;

		squares += off * off;
		of_right += right * right;
	}
	if (of_right > 0 && squares <= 2.25 * unit * unit * of_right)
		return STATUS_OK;
	return error_set(err, STATUS_MISMATCH,
			 "%s differs from the portable kernels' by %.3g of its norm %.3g", names[t],
			 sqrt(squares / of_right), sqrt(of_right));
}

static enum status time_way(struct kit *k, struct timing *t, unsigned which, const char *what,
			    struct error *err)
{
	struct bed *b = t->bed;
	enum status st = gather(k, t, which, b->again, err);
	double ns = 0;

	for (int i = D_Q; i < TENSORS && !st; i++)
		st = agree(b, (enum tensor)i, err);
	if (!st)
		st = kit_time(k, call, t, 10, &ns, err);
	if (!st)
		printf("time %s %s: %.1f us, %.1f TFLOPS\n", attention_own_backward_name(t->own, which), what,
		       ns * 1e-3, attention_flop_backward(b->p) / ns * 1e-3);
	kit_free(k, &b->workspace);
	return st;
}

static enum status time_one(struct kit *k, const struct attention_problem *p, struct error *err)
{
	struct bed b = {.p = p,
			.rows = attention_lse_count(p),
			.count = {attention_q_count(p), attention_k_count(p), attention_v_count(p),
				  attention_o_count(p), attention_o_count(p), attention_q_count(p),
				  attention_k_count(p), attention_v_count(p)}};
	struct timing t = {k, NULL, &b};
	enum status st = attention_own_backward_create(&t.own, k->device, p, false, err);
	char what[128];

	attention_describe(p, what, sizeof(what));
	if (!st)
		st = time_data(k, &b, err);
	for (int i = D_Q; i < TENSORS && !st; i++) {
		b.host[i] = calloc(b.count[i], 2);
		b.again[i] = calloc(b.count[i], 2);
		if (!b.host[i] || !b.again[i])
			st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	}
	if (!st)
		st = gather(k, &t, attention_own_backward_count(t.own) - 1, b.host, err);
	kit_free(k, &b.workspace);
	for (unsigned i = 0; !st && i < attention_own_backward_count(t.own); i++)
		st = time_way(k, &t, i, what, err);
	bed_free(k, &b);
	attention_own_backward_destroy(&t.own);
	return st;
}

/* Packed documents: one that is much longer than the others, some of a kind, few long ones. */
static const uint32_t starts_one[] = {0, 1984, 2410, 2800, 3133, 3443, 3665, 3845, 3944, 4020, 4096};
static const uint32_t starts_eight[] = {0, 1000, 1531, 1608, 2520, 2865, 3545, 3668, 4472};
static const uint32_t starts_three[] = {0, 4096, 7096, 8192};

static enum status time_all(struct kit *k, struct error *err)
{
	static const struct attention_problem shapes[] = {
		{SHAPE(2, 28, 4, 4096, 4096, 128), .mask = ATTENTION_CAUSAL},
		{SHAPE(4, 32, 32, 4096, 4096, 128)},
		{SHAPE(4, 32, 32, 4096, 4096, 128), .mask = ATTENTION_CAUSAL},
		{SHAPE(8, 9, 3, 2048, 2048, 64), .mask = ATTENTION_CAUSAL},
		{SHAPE(16, 16, 16, 512, 512, 64)},
		{SHAPE(10, 28, 4, 1984, 1984, 128), .q_starts = starts_one, .kv_starts = starts_one,
		 .mask = ATTENTION_CAUSAL},
		{SHAPE(8, 28, 4, 1000, 1000, 128), .q_starts = starts_eight, .kv_starts = starts_eight,
		 .mask = ATTENTION_CAUSAL},
		{SHAPE(3, 28, 4, 4096, 4096, 128), .q_starts = starts_three, .kv_starts = starts_three,
		 .mask = ATTENTION_CAUSAL},
	};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < COUNT(shapes) && !st; i++) {
		struct attention_problem p = shapes[i];

		p.type = p.out_type = ATTENTION_BF16;
		st = time_one(k, &p, err);
	}
	return st;
}

const struct kernel_group group_attention_backward = {
	.name = "attention_backward",
	.cases = cases,
	.count = COUNT(cases),
	.test = test,
	.time = time_all,
};
