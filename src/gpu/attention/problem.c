/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention/problem.h"
#include <math.h>
#include "core/text/text.h"

static const struct {
	const char *name;
	unsigned bytes;
} types[ATTENTION_TYPE_COUNT] = {
#define X(name, text, bytes) [ATTENTION_##name] = {text, bytes},
	ATTENTION_TYPES(X)
#undef X
};

static const char *const masks[ATTENTION_MASK_COUNT] = {
#define X(name, text) [ATTENTION_##name] = text,
	ATTENTION_MASKS(X)
#undef X
};

const char *attention_type_name(enum attention_type type)
{
	return types[type].name;
}

unsigned attention_type_bytes(enum attention_type type)
{
	return types[type].bytes;
}

const char *attention_mask_name(enum attention_mask mask)
{
	return masks[mask];
}

double attention_scale(const struct attention_problem *p)
{
	return p->scale != 0.0 ? p->scale : 1.0 / sqrt((double)p->head_dim);
}

static void window_side(struct text *t, uint32_t side)
{
	if (side == ATTENTION_UNBOUNDED)
		text_add(t, "all");
	else
		text_addf(t, "%u", side);
}

void attention_describe(const struct attention_problem *p, char *text, size_t size)
{
	struct text t = {0};

	text_addf(&t, "B%u H%u", p->batch, p->heads);
	if (p->kv_heads != p->heads)
		text_addf(&t, "/%u", p->kv_heads);
	text_addf(&t, " S%u", p->q_len);
	if (p->kv_len != p->q_len)
		text_addf(&t, "x%u", p->kv_len);
	text_addf(&t, " D%u %s", p->head_dim, attention_type_name(p->type));
	if (p->out_type != p->type)
		text_addf(&t, " to %s", attention_type_name(p->out_type));
	if (p->mask != ATTENTION_FULL)
		text_addf(&t, " %s", attention_mask_name(p->mask));
	if (p->mask == ATTENTION_WINDOW) {
		text_add(&t, " ");
		window_side(&t, p->window_left);
		text_add(&t, ":");
		window_side(&t, p->window_right);
	}
	if (p->q_starts)
		text_add(&t, " of different lengths");
	text_copy(text, size, text_str(&t));
	text_release(&t);
}

static struct attention_strides or_packed(const struct attention_problem *p,
					  const struct attention_strides *given, uint32_t heads, uint32_t len)
{
	uint64_t d = p->head_dim;

	if (given->batch || given->head || given->row)
		return *given;
	if (p->q_starts)
		return (struct attention_strides){.head = d, .row = heads * d};
	return (struct attention_strides){.batch = heads * len * d, .head = len * d, .row = d};
}

struct attention_strides attention_q_strides(const struct attention_problem *p)
{
	return or_packed(p, &p->q, p->heads, p->q_len);
}

struct attention_strides attention_k_strides(const struct attention_problem *p)
{
	return or_packed(p, &p->k, p->kv_heads, p->kv_len);
}

struct attention_strides attention_v_strides(const struct attention_problem *p)
{
	return or_packed(p, &p->v, p->kv_heads, p->kv_len);
}

struct attention_strides attention_o_strides(const struct attention_problem *p)
{
	return or_packed(p, &p->o, p->heads, p->q_len);
}

/* Rows of a batch element that a tensor spans. Sequences of different length form one batch of all tokens. */
static uint64_t span(const struct attention_problem *p, struct attention_strides s, uint32_t heads,
		     uint32_t len, const uint32_t *starts)
{
	uint64_t rows = starts ? starts[p->batch] : len, batches = starts ? 1 : p->batch;

	if (!rows)
		return 0;
	return (batches - 1) * s.batch + (heads - 1) * s.head + (rows - 1) * s.row + p->head_dim;
}

uint64_t attention_q_count(const struct attention_problem *p)
{
	return span(p, attention_q_strides(p), p->heads, p->q_len, p->q_starts);
}

uint64_t attention_k_count(const struct attention_problem *p)
{
	return span(p, attention_k_strides(p), p->kv_heads, p->kv_len, p->kv_starts);
}

uint64_t attention_v_count(const struct attention_problem *p)
{
	return span(p, attention_v_strides(p), p->kv_heads, p->kv_len, p->kv_starts);
}

uint64_t attention_o_count(const struct attention_problem *p)
{
	return span(p, attention_o_strides(p), p->heads, p->q_len, p->q_starts);
}

uint64_t attention_lse_count(const struct attention_problem *p)
{
	return (uint64_t)p->batch * p->heads * p->q_len;
}

uint32_t attention_q_len(const struct attention_problem *p, uint32_t batch)
{
	return p->q_starts ? p->q_starts[batch + 1] - p->q_starts[batch] : p->q_len;
}

uint32_t attention_kv_len(const struct attention_problem *p, uint32_t batch)
{
	return p->kv_starts ? p->kv_starts[batch + 1] - p->kv_starts[batch] : p->kv_len;
}

struct attention_keys attention_keys(const struct attention_problem *p, uint32_t batch, uint32_t row)
{
	int64_t q_len = attention_q_len(p, batch), kv_len = attention_kv_len(p, batch);
	int64_t at = (int64_t)row + kv_len - q_len, from = 0, to = kv_len;

	if (p->mask == ATTENTION_CAUSAL)
		to = at + 1;
	if (p->mask == ATTENTION_WINDOW && p->window_left != ATTENTION_UNBOUNDED)
		from = at - (int64_t)p->window_left;
	if (p->mask == ATTENTION_WINDOW && p->window_right != ATTENTION_UNBOUNDED)
		to = at + (int64_t)p->window_right + 1;
	if (from < 0)
		from = 0;
	if (to > kv_len)
		to = kv_len;
	if (from >= to)
		return (struct attention_keys){0, 0};
	return (struct attention_keys){(uint32_t)from, (uint32_t)to};
}

static double pairs_of_one(const struct attention_problem *p, uint32_t batch)
{
	uint32_t rows = attention_q_len(p, batch);
	uint64_t sum = 0;

	if (p->mask == ATTENTION_FULL)
		return (double)rows * (double)attention_kv_len(p, batch);
	for (uint32_t i = 0; i < rows; i++) {
		struct attention_keys keys = attention_keys(p, batch, i);

		sum += keys.to - keys.from;
	}
	return (double)sum;
}

double attention_pairs(const struct attention_problem *p)
{
	double sum = 0.0;

	if (!p->q_starts)
		return pairs_of_one(p, 0) * (double)p->batch * (double)p->heads;
	for (uint32_t b = 0; b < p->batch; b++)
		sum += pairs_of_one(p, b);
	return sum * (double)p->heads;
}

double attention_flop(const struct attention_problem *p)
{
	return 4.0 * (double)p->head_dim * attention_pairs(p);
}

double attention_flop_backward(const struct attention_problem *p)
{
	return 10.0 * (double)p->head_dim * attention_pairs(p);
}

/* Number of elements, without the gaps of strides. */
struct elements {
	double q, kv, lse;
};

static struct elements elements_of(const struct attention_problem *p)
{
	double q_rows = p->q_starts ? (double)p->q_starts[p->batch] : (double)p->batch * p->q_len;
	double kv_rows = p->kv_starts ? (double)p->kv_starts[p->batch] : (double)p->batch * p->kv_len;

	return (struct elements){.q = q_rows * p->heads * p->head_dim,
				 .kv = kv_rows * p->kv_heads * p->head_dim,
				 .lse = q_rows * p->heads};
}

double attention_bytes(const struct attention_problem *p)
{
	struct elements e = elements_of(p);

	return (e.q + 2.0 * e.kv) * attention_type_bytes(p->type) + e.q * attention_type_bytes(p->out_type) +
	       (p->want_lse ? e.lse * sizeof(float) : 0.0);
}

static enum status check_sizes(const struct attention_problem *p, struct error *err)
{
	const struct {
		const char *name;
		uint32_t value;
	} sizes[] = {{"batch", p->batch},
		     {"heads", p->heads},
		     {"key and value heads", p->kv_heads},
		     {"query length", p->q_len},
		     {"key length", p->kv_len}};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (!sizes[i].value || sizes[i].value > INT32_MAX)
			return error_set(err, STATUS_BAD_INPUT, "attention: %s is %u, and must be 1 to %d",
					 sizes[i].name, sizes[i].value, INT32_MAX);
	if (!p->head_dim || p->head_dim > ATTENTION_HEAD_DIM_MAX || p->head_dim % 8)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: a head dimension of %u is not a multiple of 8 from 8 to %d",
				 p->head_dim, ATTENTION_HEAD_DIM_MAX);
	if (p->heads % p->kv_heads)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: %u query heads are not a multiple of %u key and value heads",
				 p->heads, p->kv_heads);
	if (!isfinite(p->scale))
		return error_set(err, STATUS_BAD_INPUT, "attention: the scale is not a finite number");
	return STATUS_OK;
}

static enum status check_kinds(const struct attention_problem *p, struct error *err)
{
	if (p->type >= ATTENTION_TYPE_COUNT || p->out_type >= ATTENTION_TYPE_COUNT)
		return error_set(err, STATUS_BAD_INPUT, "attention: unknown element type");
	if (p->mask >= ATTENTION_MASK_COUNT)
		return error_set(err, STATUS_BAD_INPUT, "attention: unknown mask");
	if (p->type != ATTENTION_E4M3 && p->out_type != p->type)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: with inputs of type %s the output must be %s, not %s",
				 attention_type_name(p->type), attention_type_name(p->type),
				 attention_type_name(p->out_type));
	return STATUS_OK;
}

/* Rows of a tensor must not overlap, because an engine would read them as another shape. Strides must be
 * multiples of 16 bytes for bulk loads and copies. */
static enum status check_strides(const struct attention_problem *p, const char *name,
				 struct attention_strides s, unsigned bytes, struct error *err)
{
	if (s.row < p->head_dim || s.head < p->head_dim || (!p->q_starts && p->batch > 1 && !s.batch))
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: the strides of %s are shorter than its rows of %u elements",
				 name, p->head_dim);
	if (s.row * bytes % 16 || s.head * bytes % 16 || s.batch * bytes % 16)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: the strides of %s are not multiples of 16 bytes", name);
	return STATUS_OK;
}

static enum status check_starts(const struct attention_problem *p, const char *name, const uint32_t *starts,
				uint32_t longest, struct error *err)
{
	uint32_t most = 0;

	if (starts[0])
		return error_set(err, STATUS_BAD_INPUT, "attention: the first %s starts at token %u, not 0",
				 name, starts[0]);
	for (uint32_t b = 0; b < p->batch; b++) {
		if (starts[b + 1] < starts[b] || starts[b + 1] > INT32_MAX)
			return error_set(err, STATUS_BAD_INPUT,
					 "attention: %s %u starts at token %u and ends at %u", name, b,
					 starts[b], starts[b + 1]);
		if (starts[b + 1] - starts[b] > most)
			most = starts[b + 1] - starts[b];
	}
	if (most != longest)
		return error_set(err, STATUS_BAD_INPUT,
				 "attention: the longest %s has %u tokens, but the given maximum is %u", name,
				 most, longest);
	return STATUS_OK;
}

enum status attention_check(const struct attention_problem *p, struct error *err)
{
	enum status st = check_kinds(p, err);

	if (!st)
		st = check_sizes(p, err);
	if (st)
		return st;
	if (!p->q_starts != !p->kv_starts)
		return error_set(
			err, STATUS_BAD_INPUT,
			"attention: lengths of queries and keys must be given together or not at all");
	st = check_strides(p, "Q", attention_q_strides(p), attention_type_bytes(p->type), err);
	if (!st)
		st = check_strides(p, "K", attention_k_strides(p), attention_type_bytes(p->type), err);
	if (!st)
		st = check_strides(p, "V", attention_v_strides(p), attention_type_bytes(p->type), err);
	if (!st)
		st = check_strides(p, "O", attention_o_strides(p), attention_type_bytes(p->out_type), err);
	if (!st && p->q_starts)
		st = check_starts(p, "sequence of queries", p->q_starts, p->q_len, err);
	if (!st && p->kv_starts)
		st = check_starts(p, "sequence of keys", p->kv_starts, p->kv_len, err);
	return st;
}
