/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our attention kernels by gpu/attention/own_forward.h: each case in every kernel that takes it, against the
 * definition in double precision, twice with the same bits. p0: the problem, p1: 1 = logits of some hundreds.
 */
#include "cases.h"
#include "core/math/random.h"
#include "gpu/attention/own_forward.h"
#include "ref_attention.h"
#include "ref_number.h"
#include <inttypes.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NO ATTENTION_UNBOUNDED

static const uint32_t starts_q[] = {0, 70, 70, 91, 92}, starts_kv[] = {0, 33, 50, 50, 130};
/* An order of work: 1, 63 .. 65, 127 .. 129, 192, none; and a long one among short ones. */
static const uint32_t starts_edges[] = {0, 1, 64, 128, 193, 320, 448, 577, 769, 769};
static const uint32_t starts_long[] = {0, 90, 750, 751, 1000};

/* clang-format off */
#define SHAPE(b, h, kh, q, kv, d) .batch = b, .heads = h, .kv_heads = kh, .q_len = q, .kv_len = kv, .head_dim = d
static const struct attention_problem problems[] = {
	{SHAPE(1, 1, 1, 64, 64, 64)},
	{SHAPE(1, 1, 1, 1, 1, 64)},
	{SHAPE(1, 1, 1, 130, 70, 64)},
	{SHAPE(1, 1, 1, 90, 40, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 1, 1, 40, 140, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 4, 2, 40, 40, 64), .mask = ATTENTION_WINDOW, .window_left = 20, .window_right = 5},
	{SHAPE(1, 2, 1, 65, 40, 64), .mask = ATTENTION_WINDOW, .window_left = 3, .window_right = NO},
	{SHAPE(1, 3, 3, 300, 300, 64)},
	{SHAPE(4, 2, 1, 70, 80, 64), .q_starts = starts_q, .kv_starts = starts_kv},
	{SHAPE(4, 2, 1, 70, 80, 64), .q_starts = starts_q, .kv_starts = starts_kv, .mask = ATTENTION_CAUSAL},
	{SHAPE(2, 2, 2, 40, 72, 64), .q = {40 * 160, 80, 160}, .k = {72 * 144, 80, 144}, .o = {40 * 72, 80 * 72, 72}},
	{SHAPE(1, 1, 1, 30, 70, 64), .scale = -0.25},
	{SHAPE(1, 1, 1, 64, 64, 128)},
	{SHAPE(1, 2, 1, 130, 257, 128), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 1, 1, 30, 200, 128), .mask = ATTENTION_WINDOW, .window_left = 40, .window_right = 0},
	{SHAPE(4, 2, 1, 70, 80, 128), .q_starts = starts_q, .kv_starts = starts_kv, .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 1, 1, 50, 50, 96), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 1, 1, 50, 70, 40)},
	{SHAPE(1, 1, 1, 66, 66, 256), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 136, 136, 130, 130, 64)},
	{SHAPE(1, 136, 68, 130, 130, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 2, 2, 512, 512, 64)},
	{SHAPE(1, 4, 2, 400, 400, 128), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 2, 1, 512, 512, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 280, 280, 256, 128, 64), .mask = ATTENTION_FULL},
	{SHAPE(2, 140, 70, 256, 256, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 200, 200, 500, 64, 64)},
	{SHAPE(2, 2, 2, 130, 200, 256)},
	{SHAPE(2, 80, 40, 250, 256, 128)},
	{SHAPE(1, 3, 1, 100, 512, 128)},
	{SHAPE(1, 280, 140, 250, 384, 64)},
	{SHAPE(1, 280, 140, 128, 128, 128), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 1, 1, 100, 300, 256), .mask = ATTENTION_WINDOW, .window_left = 70, .window_right = 10},
	{SHAPE(1, 270, 135, 200, 512, 64)},
	{SHAPE(1, 140, 70, 512, 512, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 140, 70, 200, 512, 128)},
	{SHAPE(1, 3, 1, 500, 512, 128)},
	{SHAPE(1, 70, 35, 260, 1024, 64)},
	{SHAPE(1, 2, 1, 260, 2048, 64)},
	{SHAPE(9, 7, 1, 192, 192, 128), .q_starts = starts_edges, .kv_starts = starts_edges, .mask = ATTENTION_CAUSAL},
	{SHAPE(9, 4, 4, 192, 192, 128), .q_starts = starts_edges, .kv_starts = starts_edges},
	{SHAPE(9, 4, 2, 192, 192, 64), .q_starts = starts_edges, .kv_starts = starts_edges, .mask = ATTENTION_CAUSAL},
	{SHAPE(9, 2, 1, 192, 192, 256), .q_starts = starts_edges, .kv_starts = starts_edges, .mask = ATTENTION_CAUSAL},
	{SHAPE(4, 28, 4, 660, 660, 128), .q_starts = starts_long, .kv_starts = starts_long, .mask = ATTENTION_CAUSAL},
	{SHAPE(4, 3, 3, 660, 660, 128), .q_starts = starts_long, .kv_starts = starts_long, .mask = ATTENTION_WINDOW, .window_left = 150, .window_right = 20},
};

/* count: pairs of all heads and sequences before the mask, by 16 columns of the head. */
#define CASE(why, count, problem, large) {"attention", why, count, 0, 0, problem, large}
static const struct kernel_case cases[] = {
	CASE("one tile", 4 << 12, 0, 0),
	CASE("one query, one key", 4, 1, 0),
	CASE("ragged tiles", 4 * 130 * 70, 2, 0),
	CASE("causal, rows without a key", 4 * 90 * 40, 3, 0),
	CASE("causal, more keys than queries", 4 * 40 * 140, 4, 0),
	CASE("window, two query heads a key head", 4 * 4 * 1600, 5, 0),
	CASE("window open to the right", 4 * 2 * 65 * 40, 6, 0),
	CASE("keys that stay, ragged", 4 * 3 * 90000, 7, 0),
	CASE("packed sequences, some empty", 4 * 2 * 2400, 8, 0),
	CASE("packed sequences, causal", 4 * 2 * 2400, 9, 0),
	CASE("strides of its own", 4 * 4 * 40 * 72, 10, 0),
	CASE("negative scale", 4 * 30 * 70, 11, 0),
	CASE("logits of hundreds", 4 * 130 * 70, 2, 1),
	CASE("logits of hundreds, window", 4 * 4 * 1600, 5, 1),
	CASE("D 128, one tile", 8 << 12, 12, 0),
	CASE("D 128, causal", 8 * 2 * 130 * 257, 13, 0),
	CASE("D 128, window", 8 * 30 * 200, 14, 0),
	CASE("D 128, packed sequences", 8 * 2 * 2400, 15, 0),
	CASE("D 128, logits of hundreds", 8 * 2 * 130 * 257, 13, 1),
	CASE("D 96", 6 * 50 * 50, 16, 0),
	CASE("D 40", 3 * 50 * 70, 17, 0),
	CASE("D 256, causal", 16 * 66 * 66, 18, 0),
	CASE("all SMs, keys that stay", 4 * 136 * 130 * 130, 19, 0),
	CASE("all SMs, causal", 4 * 136 * 130 * 130, 20, 0),
	CASE("fewer heads than SMs", 4 * 2 << 18, 21, 0),
	CASE("D 128, many blocks", 8 * 4 * 400 * 400, 22, 0),
	CASE("keys that stay, causal", 4 * 2 * 512 * 512, 23, 0),
	CASE("keys that stay, logits of hundreds, causal", 4 * 2 * 512 * 512, 23, 1),
	CASE("keys that stay, logits of hundreds", 4 * 2 << 18, 21, 1),
	CASE("several heads an SM, keys that stay", 4 * 280 * 256 * 128, 24, 0),
	CASE("several heads an SM, causal", 4 * 280 * 256 * 256, 25, 0),
	CASE("several heads an SM, one block of keys, ragged", 4 * 200 * 500 * 64, 26, 0),
	CASE("D 256", 16 * 4 * 130 * 200, 27, 0),
	CASE("D 256, window", 16 * 100 * 300, 32, 0),
	CASE("several heads an SM, three blocks", 4 * 280 * 250 * 384, 30, 0),
	CASE("several heads an SM, the slots just filled", 4 * 270 * 200 * 512, 33, 0),
	CASE("several heads an SM, the slots just filled, causal", 4 * 140 * 512 * 512, 34, 0),
	CASE("D 128, several heads an SM, causal", 8 * 280 * 128 * 128, 31, 0),
	CASE("D 128, several tiles an SM", 8 * 160 * 250 * 256, 28, 0),
	CASE("D 128, four blocks", 8 * 3 * 100 * 512, 29, 0),
	CASE("D 128, four blocks, several heads an SM", 8 * 140 * 200 * 512, 35, 0),
	CASE("D 128, logits of hundreds, four blocks", 8 * 3 * 100 * 512, 29, 1),
	CASE("D 128, four blocks, all passes", 8 * 3 * 500 * 512, 36, 0),
	CASE("D 128, four blocks, all passes, logits of hundreds", 8 * 3 * 500 * 512, 36, 1),
	CASE("several units an SM, keys that stream, ragged", 4 * 70 * 260 * 1024, 37, 0),
	CASE("keys that stream, more rounds", 4 * 2 * 260 * 2048, 38, 0),
	CASE("keys that stream, more rounds, logits of hundreds", 4 * 2 * 260 * 2048, 38, 1),
	CASE("D 256, logits of hundreds", 16 * 4 * 130 * 200, 27, 1),
	CASE("D 128, lengths 1 63-65 127-129 192, in an order", 8 * 7 * 98000, 39, 0),
	CASE("D 128, lengths in an order, no mask", 8 * 4 * 98000, 40, 0),
	CASE("lengths beside an order that units do not fit", 4 * 4 * 98000, 41, 0),
	CASE("D 256, lengths in an order", 16 * 2 * 98000, 42, 0),
	CASE("D 128, a long one among short ones, in an order", 8 * 28 * 500000, 43, 0),
	CASE("D 128, lengths in an order, window", 8 * 3 * 500000, 44, 0),
};
/* clang-format on */

/* One problem's tensors on both sides. */
struct tensors {
	void *q, *k, *v, *o, *again;
	double *o_ref, *lse_ref;
	float *lse;
	struct guarded dq, dk, dv, d_o, dlse, starts[2], scale[3], order;
	uint32_t order_count;
	uint64_t size[4]; /* bytes of q, k, v, o */
	double most;	  /* of |lse| */
};

static void fill(void *to, enum attention_type type, uint64_t count, uint64_t seed, uint32_t stream,
		 double amplitude)
{
	for (uint64_t i = 0; i < count; i++)
		ref_number_store(type, to, i, amplitude * 1.73 * (double)random_f32(seed, stream, i));
}

/* What FP8's stored elements are multiplied by: of Q, K, V. */
static const float descale[] = {0.5f, 1.5f, 0.75f};

static double descale_of(const struct attention_problem *p, int tensor)
{
	return p->type == ATTENTION_E4M3 ? (double)descale[tensor] : 1.0;
}

/* The reference, on the numbers that are meant. */
static void refer(const struct attention_problem *p, const struct ref_attention *r)
{
	struct attention_problem meant = *p;

	meant.scale = attention_scale(p) * descale_of(p, 0) * descale_of(p, 1);
	ref_attention_run(&meant, r);
}

static enum status tensors_make(struct kit *k, struct tensors *t, const struct attention_problem *p,
				bool large, struct error *err)
{
	const uint64_t count[4] = {attention_q_count(p), attention_k_count(p), attention_v_count(p),
				   attention_o_count(p)};
	const uint64_t rows = attention_lse_count(p);
	struct ref_attention r;
	enum status st;

	for (int i = 0; i < 4; i++)
		t->size[i] = count[i] * attention_type_bytes(i < 3 ? p->type : p->out_type);
	t->q = calloc(1, t->size[0]);
	t->k = calloc(1, t->size[1]);
	t->v = calloc(1, t->size[2]);
	t->o = calloc(1, t->size[3]);
	t->again = calloc(1, t->size[3]);
	t->o_ref = calloc(count[3], sizeof(double));
	t->lse_ref = calloc(rows, sizeof(double));
	t->lse = calloc(rows, sizeof(float));
	if (!t->q || !t->k || !t->v || !t->o || !t->again || !t->o_ref || !t->lse_ref || !t->lse)
		return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	fill(t->q, p->type, count[0], k->seed, 1, large ? 32 : 1);
	fill(t->k, p->type, count[1], k->seed, 2, 1);
	fill(t->v, p->type, count[2], k->seed, 3, 1);
	r = (struct ref_attention){.q = t->q, .k = t->k, .v = t->v, .o = t->o_ref, .lse = t->lse_ref};
	refer(p, &r);
	for (uint64_t i = 0; i < count[3]; i++)
		t->o_ref[i] *= descale_of(p, 2);
	for (uint64_t i = 0; i < rows; i++)
		if (fabs(t->lse_ref[i]) > t->most && !isinf(t->lse_ref[i]))
			t->most = fabs(t->lse_ref[i]);
	st = kit_put(k, &t->dq, t->q, t->size[0], err);
	if (!st)
		st = kit_put(k, &t->dk, t->k, t->size[1], err);
	if (!st)
		st = kit_put(k, &t->dv, t->v, t->size[2], err);
	if (!st && p->q_starts)
		st = kit_put(k, &t->starts[0], p->q_starts, (p->batch + 1) * 4, err);
	if (!st && p->q_starts)
		st = kit_put(k, &t->starts[1], p->kv_starts, (p->batch + 1) * 4, err);
	if (!st)
		st = kit_order(k, &t->order, p, &t->order_count, err);
	for (int i = 0; i < 3 && !st && p->type == ATTENTION_E4M3; i++)
		st = kit_put(k, &t->scale[i], &descale[i], sizeof(float), err);
	return st;
}

static void tensors_free(struct kit *k, struct tensors *t)
{
	struct guarded *device[] = {&t->dq,	  &t->dk,	&t->dv,	      &t->starts[0], &t->starts[1],
				    &t->scale[0], &t->scale[1], &t->scale[2], &t->order};
	void *host[] = {t->q, t->k, t->v, t->o, t->again, t->o_ref, t->lse_ref, t->lse};

	for (size_t i = 0; i < COUNT(device); i++)
		kit_free(k, device[i]);
	for (size_t i = 0; i < COUNT(host); i++)
		free(host[i]);
}

/* Runs once into fresh memory of NaN; what it left goes to `o` and t->lse. */
static enum status attend(struct kit *k, struct attention_own *a, struct tensors *t, void *o, uint64_t rows,
			  struct error *err)
{
	struct attention_operands x = {.q = t->dq.data,
				       .k = t->dk.data,
				       .v = t->dv.data,
				       .q_starts = t->starts[0].data,
				       .kv_starts = t->starts[1].data,
				       .order = t->order.data,
				       .order_count = t->order_count,
				       .descale_q = t->scale[0].data,
				       .descale_k = t->scale[1].data,
				       .descale_v = t->scale[2].data};
	enum status st = kit_alloc(k, &t->d_o, t->size[3], err);

	if (!st)
		st = kit_alloc(k, &t->dlse, rows * 4, err);
	x.o = t->d_o.data;
	x.lse = t->dlse.data;
	if (!st)
		st = attention_own_enqueue(a, &x, k->stream, err);
	if (!st)
		st = gpu_copy_from(k->device, o, t->d_o.data, t->size[3], err);
	if (!st)
		st = gpu_copy_from(k->device, t->lse, t->dlse.data, rows * 4, err);
	if (!st)
		st = kit_guards(k, &t->d_o, "O", err);
	if (!st)
		st = kit_guards(k, &t->dlse, "log-sum-exp", err);
	kit_free(k, &t->d_o);
	kit_free(k, &t->dlse);
	return st;
}

/* Of rounding one number to the type. */
static double roundoff(enum attention_type type)
{
	return type == ATTENTION_E4M3 ? 0x1p-4 : (type == ATTENTION_BF16 ? 0x1p-8 : 0x1p-11);
}

/* FP8's elements are wrong by so much that one by one they would pass with keys confused: a row's are held to
 * the row together. A probability is off by 2^-4 of itself at most, each in its own way, so O is by that
 * share of its root mean square, if values are independent; twice that, and what 16-bit output and scores
 * add. */
static enum status compare_together(const struct attention_problem *p, const struct tensors *t, uint64_t at,
				    uint64_t row, double drift, struct error *err)
{
	double wrong = 0.0, right = 0.0, limit;

	for (uint32_t d = 0; d < p->head_dim; d++) {
		wrong += pow(ref_number_load(p->out_type, t->o, at + d) - t->o_ref[at + d], 2);
		right += pow(t->o_ref[at + d], 2);
	}
	limit = (2 * roundoff(p->type) + roundoff(p->out_type)) * sqrt(right / p->head_dim) + 2 * drift;
	if (sqrt(wrong / p->head_dim) <= limit)
		return STATUS_OK;
	return error_set(err, STATUS_MISMATCH,
			 "row %" PRIu64 " is off by %g (root mean square), of which %g is allowed", row,
			 sqrt(wrong / p->head_dim), limit);
}

/*
 * Values are within 1.73 of 0. Rounding of probabilities and of O: one unit each; scores in FP32 are off by
 * 2^-21 of the largest sums, which moves probabilities by as much. FP8 adds scores up in 13 bits, and what is
 * below 2^-13 of the largest probability is lost.
 */
static enum status compare_row(const struct attention_problem *p, const struct tensors *t, uint64_t at,
			       uint64_t row, struct error *err)
{
	const bool fp8 = p->type == ATTENTION_E4M3;
	const double drift = (fp8 ? 0x1p-12 : 0x1p-19) * (4 + t->most), lse = t->lse_ref[row];
	const double limit =
		1.8 * (roundoff(p->type) + roundoff(p->out_type) + drift + (fp8 ? 0x1p-14 * p->kv_len : 0.0));

	for (uint32_t d = 0; d < p->head_dim; d++) {
		double found = ref_number_load(p->out_type, t->o, at + d);

		if (!(fabs(found - t->o_ref[at + d]) <= limit))
			return error_set(err, STATUS_MISMATCH,
					 "row %" PRIu64
					 " column %u is %g, by definition %g, of which %g is allowed",
					 row, d, found, t->o_ref[at + d], limit);
	}
	if (fp8 && compare_together(p, t, at, row, drift, err))
		return STATUS_MISMATCH;
	if (isinf(lse) ? (double)t->lse[row] == lse : fabs((double)t->lse[row] - lse) <= 4 * drift)
		return STATUS_OK;
	return error_set(err, STATUS_MISMATCH, "row %" PRIu64 ": log-sum-exp %g, by definition %g", row,
			 (double)t->lse[row], lse);
}

static enum status compare(const struct attention_problem *p, const struct tensors *t, struct error *err)
{
	const struct attention_strides s = attention_o_strides(p);
	enum status st = STATUS_OK;

	for (uint32_t b = 0; b < p->batch && !st; b++)
		for (uint32_t h = 0; h < p->heads && !st; h++)
			for (uint32_t i = 0; i < attention_q_len(p, b) && !st; i++) {
				uint64_t first = p->q_starts ? p->q_starts[b] * s.row : b * s.batch;
				uint64_t row = ((uint64_t)b * p->heads + h) * p->q_len + i;

				st = compare_row(p, t, first + h * s.head + i * s.row, row, err);
			}
	return st;
}

/* Of O's rows as they stand in memory: how many differ, and which first. */
static enum status same_bits(const struct attention_problem *p, const struct tensors *t, unsigned run,
			     struct error *err)
{
	const uint64_t row_bytes = p->head_dim * attention_type_bytes(p->out_type),
		       rows = t->size[3] / row_bytes;
	uint64_t differ = 0, first = 0;

	for (uint64_t i = 0; i < rows; i++)
		if (memcmp((const char *)t->o + i * row_bytes, (const char *)t->again + i * row_bytes,
			   row_bytes) &&
		    differ++ == 0)
			first = i;
	if (!differ)
		return STATUS_OK;
	return error_set(err, STATUS_MISMATCH,
			 "run %u gave other bits in %" PRIu64 " rows of %" PRIu64 ", first in %" PRIu64, run,
			 differ, rows, first);
}

static enum status candidate(struct kit *k, struct attention_own *a, unsigned which,
			     const struct attention_problem *p, struct tensors *t, struct error *err)
{
	enum status st = attention_own_select(a, which, err);

	if (!st)
		st = attend(k, a, t, t->o, attention_lse_count(p), err);
	if (!st)
		st = compare(p, t, err);
	for (unsigned run = 2; run <= 2 + k->repeats && !st; run++) {
		st = attend(k, a, t, t->again, attention_lse_count(p), err);
		if (!st)
			st = same_bits(p, t, run, err);
	}
	return st;
}

/* A candidate's name is its entry, or that and a comma and more. */
static bool named(const char *name, const char *entry)
{
	size_t length = entry ? strlen(entry) : 0;

	return !entry || (!strncmp(name, entry, length) && (name[length] == '\0' || name[length] == ','));
}

static bool wanted(const struct kit *k, const struct attention_own *a)
{
	for (unsigned i = 0; i < attention_own_count(a); i++)
		if (named(attention_own_name(a, i), k->only))
			return true;
	return false;
}

static void one(struct kit *k, const struct kernel_case *c, enum attention_type type, enum attention_type out)
{
	struct attention_problem p = problems[c->p0];
	struct attention_own *a = NULL;
	struct tensors t = {0};
	struct error err = {0};
	char name[128];
	enum status st;

	p.type = type;
	p.out_type = out;
	if (p.head_dim * attention_type_bytes(type) % 16) /* no engine takes such rows */
		return;
	p.want_lse = true;
	st = attention_own_create(&a, k->device, &p, &err);
	if (a && !wanted(k, a)) {
		attention_own_destroy(&a);
		return;
	}
	if (!st)
		st = tensors_make(k, &t, &p, c->p1 == 1, &err);
	for (unsigned i = 0; a && i < attention_own_count(a); i++) {
		if (!named(attention_own_name(a, i), k->only))
			continue;
		if (!st)
			st = candidate(k, a, i, &p, &t, &err);
		snprintf(name, sizeof(name), "%s", attention_own_name(a, i));
		kit_result(k, "attention", name, c, st, &err);
		st = STATUS_OK;
		err = (struct error){0};
	}
	if (!a)
		kit_result(k, "attention", attention_type_name(type), c, st, &err);
	tensors_free(k, &t);
	attention_own_destroy(&a);
}

static void test(struct kit *k)
{
	for (size_t i = 0; i < COUNT(cases); i++)
		if (kit_wants(k, "attention", &cases[i])) {
			one(k, &cases[i], ATTENTION_F16, ATTENTION_F16);
			one(k, &cases[i], ATTENTION_BF16, ATTENTION_BF16);
			one(k, &cases[i], ATTENTION_E4M3, ATTENTION_F16);
			one(k, &cases[i], ATTENTION_E4M3, ATTENTION_BF16);
		}
}

const struct kernel_group group_attention = {
	.name = "attention",
	.cases = cases,
	.count = COUNT(cases),
	.test = test,
};
