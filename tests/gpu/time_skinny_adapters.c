/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What four adapters cost in the GEMMs of a decode step:
 *
 *   tests/gpu/kernel_cases time skinny_adapters   checks all cases first, then times
 *
 * A line is one GEMM of 64 rows of Qwen2-7B's shape: its time without adapters and with them, each with the
 * fastest choice. Successive calls read other weights, of 600 MB together, so they come from memory and not
 * from the L2. The last line of a kind is the sum of a layer.
 */
#include <stdlib.h>
#include "cases.h"
#include "gpu/matmul/skinny_adapters.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define COLD_BYTES ((uint64_t)600 << 20)

enum { ROWS = 64, ADAPTERS = 4, CALLS = 12, FETCH_WAYS = 2, CHOICES = 12 };

struct shape {
	const char *name;
	uint32_t outputs, k;
	bool swiglu, residual;
	unsigned parts;
	uint32_t begin[3], count[3];
};
static const struct shape shapes[] = {
	{"qkv", 4608, 3584, false, false, 3, {0, 3584, 4096}, {3584, 512, 512}},
	{"o", 3584, 3584, false, true, 1, {0}, {3584}},
	{"gate_up", 18944, 3584, true, false, 2, {0, 18944}, {18944, 18944}},
	{"down", 3584, 18944, false, true, 1, {0}, {3584}},
};

struct bed {
	struct kit *k;
	const struct shape *s;
	bool e4m3, adapted;
	uint32_t width, rank, a_rows, b_rows;
	uint64_t copies, turn, w_bytes, a_bytes, b_bytes;
	struct skinny *skinny;
	struct skinny_choice choice;
	struct guarded w, a, b, x, x16, y, u, residual, scale, adapter;
};

static enum status call(void *arg, struct error *err)
{
	struct bed *b = arg;
	const uint64_t copy = b->turn++ % b->copies;
	const struct skinny_problem p = {
		.w = b->w.data + copy * b->w_bytes,
		.x = b->e4m3 ? b->x.data : b->x16.data,
		.y = b->y.data,
		.w_scale = b->e4m3 ? b->scale.data : 0,
		.x_scale = b->e4m3 ? b->scale.data : 0,
		.residual = b->s->residual ? b->residual.data : 0,
		.rows = ROWS,
		.outputs = b->s->outputs,
		.k = b->s->k,
		.swiglu = b->s->swiglu,
		.row_w = b->s->k,
		.row_x = b->s->k,
		.row_y = b->s->outputs,
		.row_residual = b->s->outputs,
	};
	struct skinny_adapters ad = {
		.a = b->a.data + copy * b->a_bytes,
		.b = b->b.data + copy * b->b_bytes,
		.x = b->x16.data,
		.u = b->u.data,
		.adapter = b->adapter.data,
		.width = b->width,
		.rank = b->rank,
		.parts = b->s->parts,
		.row_a = b->s->k,
		.row_b = b->width,
		.row_x = b->s->k,
		.row_u = b->a_rows,
	};

	for (unsigned i = 0; i < b->s->parts; i++) {
		ad.begin[i] = b->s->begin[i];
		ad.count[i] = b->s->count[i];
	}
	return b->adapted ? skinny_adapters_enqueue(b->skinny, &p, &ad, &b->choice, true, b->k->stream, err)
			  : skinny_enqueue(b->skinny, &p, &b->choice, true, b->k->stream, err);
}

/* The fastest choice. */
static enum status time_best(struct bed *b, double *best, struct skinny_choice *choice, struct error *err)
{
	const struct skinny_problem p = {.w_scale = b->e4m3,
					 .x_scale = b->e4m3,
					 .rows = ROWS,
					 .outputs = b->s->outputs,
					 .k = b->s->k,
					 .swiglu = b->s->swiglu};
	struct skinny_choice all[SKINNY_CHOICES_MOST];
	const unsigned count = skinny_choices(b->skinny, &p, all);
	enum status st = STATUS_OK;

	*best = 0;
	for (unsigned i = 0; !st && i < CHOICES * FETCH_WAYS && i / FETCH_WAYS < count; i++) {
		struct error why = {0};
		double ns;

		b->choice = all[i / FETCH_WAYS];
		b->choice.short_fetch = i % FETCH_WAYS == 0;
		st = kit_time(b->k, call, b, CALLS, &ns, &why);
		if (st == STATUS_UNSUPPORTED) {
			st = STATUS_OK;
			continue;
		}
		if (st)
			return error_set_cause(err, st, why.cause, "%s", why.text);
		if (*best && ns >= *best)
			continue;
		*best = ns;
		*choice = b->choice;
	}
	return st;
}

static enum status fill(struct bed *b, const struct guarded *g, uint32_t word, struct error *err)
{
	return gpu_stream_fill32(b->k->stream, g->data, word, g->size / 4, err);
}

static enum status set_up(struct bed *b, struct error *err)
{
	const uint64_t w_rows = b->s->swiglu ? 2 * b->s->outputs : b->s->outputs, k = b->s->k;
	const struct {
		struct guarded *to;
		uint64_t bytes;
		uint32_t word; /* of small numbers */
	} all[] = {
		{&b->w, b->copies * b->w_bytes, b->e4m3 ? 0x20a020a0 : 0x3c003c00},
		{&b->a, b->copies * b->a_bytes, 0x3c003c00},
		{&b->b, b->copies * b->b_bytes, 0x3c003c00},
		{&b->x, ROWS * k, 0x30303030},
		{&b->x16, 2 * ROWS * k, 0x3f003f00},
		{&b->y, 2 * (uint64_t)ROWS * b->s->outputs, 0},
		{&b->residual, 2 * (uint64_t)ROWS * b->s->outputs, 0x3f803f80},
		{&b->u, 2 * (uint64_t)ROWS * b->a_rows, 0},
		{&b->scale, 4 * (w_rows > ROWS ? w_rows : ROWS), 0x3c000000},
	};
	int32_t adapter[ROWS];
	enum status st = STATUS_OK;

	for (int i = 0; i < ROWS; i++)
		adapter[i] = i % ADAPTERS;
	for (size_t i = 0; !st && i < COUNT(all); i++) {
		st = kit_alloc(b->k, all[i].to, all[i].bytes, err);
		if (!st)
			st = fill(b, all[i].to, all[i].word, err);
	}
	if (!st)
		st = kit_put(b->k, &b->adapter, adapter, sizeof(adapter), err);
	return st ? st : gpu_stream_wait(b->k->stream, err);
}

static void release(struct bed *b)
{
	struct guarded *all[] = {&b->w, &b->a, &b->b,	     &b->x,	&b->x16,
				 &b->y, &b->u, &b->residual, &b->scale, &b->adapter};

	for (size_t i = 0; i < COUNT(all); i++)
		kit_free(b->k, all[i]);
	skinny_close(&b->skinny);
}

static enum status time_shape(struct kit *k, const struct shape *s, bool e4m3, uint32_t rank, double sum[2],
			      struct error *err)
{
	const uint64_t w_rows = s->swiglu ? 2 * s->outputs : s->outputs;
	struct bed b = {.k = k, .s = s, .e4m3 = e4m3, .rank = rank, .width = ADAPTERS * rank};
	struct skinny_choice choice[2] = {{0}};
	double ns[2] = {0, 0};
	enum status st = skinny_open(&b.skinny, k->device, err);

	b.a_rows = s->parts * b.width;
	for (unsigned i = 0; i < s->parts; i++)
		b.b_rows += s->count[i];
	b.w_bytes = w_rows * s->k * (e4m3 ? 1 : 2);
	b.a_bytes = 2 * (uint64_t)b.a_rows * s->k;
	b.b_bytes = 2 * (uint64_t)b.b_rows * b.width;
	b.copies = COLD_BYTES / b.w_bytes + 1;
	if (!st)
		st = skinny_adapters_open(b.skinny, k->stream, err);
	if (!st)
		st = set_up(&b, err);
	for (int i = 0; !st && i < 2; i++) {
		b.adapted = i;
		st = time_best(&b, &ns[i], &choice[i], err);
		sum[i] += ns[i];
	}
	if (!st)
		printf("%s, %-8s rank %2u: %6.2f us, with adapters %6.2f us, %5.2f us more; choices %u/%u/%u%s, "
		       "%u/%u/%u%s\n",
		       e4m3 ? "e4m3" : "bf16", s->name, rank, ns[0] * 1e-3, ns[1] * 1e-3,
		       (ns[1] - ns[0]) * 1e-3, choice[0].cluster, choice[0].together, choice[0].per_sm,
		       choice[0].short_fetch ? "s" : "", choice[1].cluster, choice[1].together,
		       choice[1].per_sm, choice[1].short_fetch ? "s" : "");
	release(&b);
	return st;
}

enum status skinny_adapters_time(struct kit *k, struct error *err)
{
	static const uint32_t ranks[] = {16, 64};
	enum status st = STATUS_OK;

	for (int kind = 0; !st && kind < 2; kind++)
		for (size_t r = 0; !st && r < COUNT(ranks); r++) {
			double sum[2] = {0, 0};

			for (size_t i = 0; !st && i < COUNT(shapes); i++)
				st = time_shape(k, &shapes[i], kind, ranks[r], sum, err);
			if (!st)
				printf("%s, a layer, rank %2u: %6.2f us, with adapters %6.2f us, %5.2f us more\n",
				       kind ? "e4m3" : "bf16", ranks[r], sum[0] * 1e-3, sum[1] * 1e-3,
				       (sum[1] - sum[0]) * 1e-3);
		}
	return st;
}
