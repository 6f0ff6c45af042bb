/* SPDX-License-Identifier: Apache-2.0 */
/* Data of Q, K, V and dO, row by row. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "core/math/random.h"
#include "probe/attention/attention.h"
#include "probe/attention/attended_pairs.h"
#include "probe/attention/element_types.h"
#include "probe/shared/cpu.h"

enum { STREAM_CODES = 98, INDEX_BITS = 20, GRAIN = 16 /* rows */ };

/* uniform in +- sqrt 3, which has variance 1 */
static const float unit = 1.7320508f, large = 32 * 1.7320508f;

/* Index of the row's first element within the tensor. Shorter sequences leave a gap. */
static uint64_t index_of(const struct attention_problem *p, enum attention_tensor t, uint32_t b, uint32_t h,
			 uint32_t row)
{
	uint64_t rows = t == ATTENTION_Q || t == ATTENTION_D_O ? p->q_len : p->kv_len;

	return (((uint64_t)b * attention_tensor_heads(p, t) + h) * rows + row) * p->head_dim;
}

/* One call of the generator gives four elements; head_dim is a multiple of 8. */
static void random_row(const struct attention *a, enum attention_tensor t, uint64_t index, float scale,
		       float *out)
{
	const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};

	for (uint32_t d = 0; d < a->c.problem.head_dim; d += 4) {
		uint64_t block = (index + d) / 4;
		uint32_t word[4];

		philox4x32(word,
			   (const uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)t + 1, 0},
			   key);
		for (unsigned i = 0; i < 4; i++)
			out[d + i] = (float)(((double)word[i] + 0.5) * 0x1p-31 - 1.0) * scale;
	}
}

/* -1, 0 or 1, from two bits per element. So sums of a million elements are exact in FP32. */
static void integer_row(const struct attention *a, enum attention_tensor t, uint64_t index, float *out)
{
	const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
	uint32_t word[4];

	for (uint32_t d = 0; d < a->c.problem.head_dim; d += 8) {
		uint64_t at = (index + d) / 8, block = at / 4;
		uint32_t bits;

		if (!d || at % 4 == 0)
			philox4x32(word,
				   (const uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32),
						       (uint32_t)t + 1, 0},
				   key);
		bits = word[at % 4];
		for (unsigned i = 0; i < 8; i++)
			out[d + i] = (float)((int)(bits >> 2 * i & 3) == 0) -
				     (float)((int)(bits >> 2 * i & 3) == 1);
	}
}

/* -- data SELECT -- */

/* The smallest power of two for which one differing sign lowers the logit by at least 24: the exp(-24) of all
 * other keys together is below the resolution of every type here. */
static double amplitude(const struct attention_problem *p)
{
	return exp2(ceil(log2(12 / attention_scale(p))));
}

double attention_select_logit(const struct attention_problem *p)
{
	return amplitude(p) * p->head_dim * attention_scale(p);
}

bool attention_can_select(const struct attention_problem *p)
{
	return p->head_dim >= INDEX_BITS || p->kv_len <= 1u << p->head_dim;
}

/* A key's code: the signs of its number, then random signs. */
static void code_row(const struct attention *a, uint32_t b, uint32_t g, uint32_t key, float size, float *out)
{
	const struct attention_problem *p = &a->c.problem;
	uint64_t index = index_of(p, ATTENTION_K, b, g, key) / p->head_dim * 8;
	uint32_t word = 0;

	for (uint32_t d = 0; d < p->head_dim; d++) {
		bool minus;

		if (d % 32 == 0)
			word = random_u32(a->seed, STREAM_CODES, index + d / 32);
		minus = d < INDEX_BITS ? key >> d & 1 : word >> d % 32 & 1;
		out[d] = minus ? -size : size;
	}
}

uint32_t attention_selected(const struct attention *a, const struct attention_keys *span, uint32_t spans,
			    uint32_t b, uint32_t row)
{
	const struct attention_problem *p = &a->c.problem;
	int64_t own = (int64_t)row + attention_kv_len(p, b) - attention_q_len(p, b);
	uint64_t keys = 0, wanted;

	for (uint32_t i = 0; i < spans; i++) {
		/* With a mask, every other query selects the key at its own position, so that each key is
		 * selected by a query. */
		if (p->mask != ATTENTION_FULL && row % 2 && own >= span[i].from && own < span[i].to)
			return (uint32_t)own;
		keys += span[i].to - span[i].from;
	}
	/* the factor is prime: without a mask, all keys are selected in turn */
	wanted = ((uint64_t)row * 2654435761u + b) % keys;
	for (uint32_t i = 0;; i++) {
		uint32_t here = span[i].to - span[i].from;

		if (wanted < here || i + 1 == spans)
			return span[i].from + (uint32_t)wanted;
		wanted -= here;
	}
}

/* -- rows -- */

/* Fills the row. Returns true if its values are exact in the type, else false: then storing rounds them. */
static bool raw_row(const struct attention *a, enum attention_data data, enum attention_tensor t, uint32_t b,
		    uint32_t h, uint32_t row, float *out)
{
	const struct attention_problem *p = &a->c.problem;
	uint64_t index = index_of(p, t, b, h, row);
	bool means = data == ATTENTION_DATA_MEAN || data == ATTENTION_DATA_KEYLESS;

	if (means && t == (data == ATTENTION_DATA_MEAN ? ATTENTION_Q : ATTENTION_K))
		memset(out, 0, p->head_dim * sizeof(*out));
	else if (means && (t == ATTENTION_V || t == ATTENTION_D_O))
		integer_row(a, t, index, out);
	else if (data == ATTENTION_DATA_SELECT && t == ATTENTION_K)
		code_row(a, b, h, row, 1, out);
	else {
		random_row(a, t, index, data == ATTENTION_DATA_LARGE && t == ATTENTION_Q ? large : unit, out);
		return false;
	}
	return true;
}

void attention_row_values(const struct attention *a, enum attention_data data, enum attention_tensor t,
			  uint32_t b, uint32_t h, uint32_t row, float *out)
{
	if (!raw_row(a, data, t, b, h, row, out))
		attention_round(a->c.problem.type, out, a->c.problem.head_dim);
}

/* Q's row that selects one key. */
static void select_row(const struct attention *a, struct attention_keys *span, uint32_t b, uint32_t h,
		       uint32_t row, float *out)
{
	const struct attention_problem *p = &a->c.problem;
	uint32_t spans = attention_pairs_spans(p, a->c.blocks, b, h, row, span);

	if (spans)
		code_row(a, b, h / (p->heads / p->kv_heads), attention_selected(a, span, spans, b, row),
			 (float)amplitude(p), out);
	else
		memset(out, 0, p->head_dim * sizeof(*out));
}

/* -- filling -- */

struct filling { /* argument of the pool's work functions */
	const struct attention *a;
	enum attention_data data;
	enum attention_tensor t;
	unsigned char *to;
	struct attention_keys *span; /* (room) per thread; only for SELECT's Q */
	uint32_t room;
};

static void fill_work(void *arg, unsigned thread)
{
	const struct filling *f = arg;
	const struct attention_problem *p = &f->a->c.problem;
	uint32_t heads = attention_tensor_heads(p, f->t),
		 rows = f->t == ATTENTION_Q || f->t == ATTENTION_D_O ? p->q_len : p->kv_len;
	float values[ATTENTION_HEAD_DIM_MAX];
	uint64_t first, last;

	cpu_share((uint64_t)p->batch * heads * rows, GRAIN, thread, cpu_pool_count(f->a->pool), &first,
		  &last);
	for (uint64_t i = first; i < last; i++) {
		uint32_t row = (uint32_t)(i % rows), h = (uint32_t)(i / rows % heads),
			 b = (uint32_t)(i / rows / heads);

		if (row >= attention_tensor_rows(p, f->t, b))
			continue;
		if (f->span)
			select_row(f->a, f->span + (size_t)thread * f->room, b, h, row, values);
		else
			(void)raw_row(f->a, f->data, f->t, b, h, row, values); /* storing rounds */
		attention_store(p->type,
				f->to + attention_tensor_at(p, f->t, b, h, row) *
						attention_type_bytes(p->type),
				values, p->head_dim);
	}
}

static enum status fill_tensor(struct attention *a, enum attention_data data, enum attention_tensor t,
			       struct error *err)
{
	struct filling f = {.a = a, .data = data, .t = t, .room = attention_attended_room(a->c.blocks)};
	bool selects = data == ATTENTION_DATA_SELECT && t == ATTENTION_Q;
	enum status st = STATUS_OK;

	f.to = malloc(attention_tensor_bytes(&a->c.problem, t));
	if (selects)
		f.span = malloc((size_t)cpu_pool_count(a->pool) * f.room * sizeof(*f.span));
	if (!f.to || (selects && !f.span))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "attention: not enough memory for the data");
	if (!st) {
		cpu_pool_run(a->pool, fill_work, &f);
		st = a->access->write(a, t, f.to, err);
	}
	free(f.span);
	free(f.to);
	return st;
}

enum status attention_fill(struct attention *a, enum attention_data data, struct error *err)
{
	static const enum attention_tensor filled[] = {ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_D_O};
	enum status st = STATUS_OK;

	for (unsigned i = 0; !st && i < sizeof(filled) / sizeof(filled[0]); i++)
		if (attention_has(&a->c, filled[i]))
			st = fill_tensor(a, data, filled[i], err);
	return st || !a->c.backward ? st : a->access->forward(a, err);
}
