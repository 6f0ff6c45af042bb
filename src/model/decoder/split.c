/* SPDX-License-Identifier: Apache-2.0 */
#include "model/decoder/split.h"
#include "core/text/text.h"
#include "model/decoder/layer_tensors.h"
#include "model/tensor/matrix.h"

/* -- sizes -- */

static bool divides(const struct shape *s, unsigned ranks)
{
	const int64_t t = ranks, share = (s->vocab + t - 1) / t;

	return t <= SPLIT_MOST && s->heads % t == 0 && s->ffn % t == 0 &&
	       (s->kv_heads % t == 0 || t % s->kv_heads == 0) && share * (t - 1) < s->vocab;
}

enum status split_check(const struct shape *whole, unsigned ranks, struct error *err)
{
	char fits[160] = "";
	size_t used = 0;

	if (ranks <= 1 || divides(whole, ranks))
		return STATUS_OK;
	for (unsigned t = 2; t <= SPLIT_MOST && used + 8 < sizeof(fits); t++)
		if (divides(whole, t))
			used += (size_t)snprintf(fits + used, sizeof(fits) - used, "%s%u", used ? ", " : "",
						 t);
	return error_set(
		err, STATUS_BAD_INPUT,
		"training: tensor_parallel_size: %u ranks cannot divide a model with %lld heads, %lld "
		"key-value heads and %lld features of the MLP; %s%s",
		ranks, (long long)whole->heads, (long long)whole->kv_heads, (long long)whole->ffn,
		*fits ? "these can: " : "only 1 can", fits);
}

struct shape split_shape(const struct shape *whole, unsigned ranks)
{
	struct shape s = *whole;

	if (ranks <= 1)
		return s;
	s.heads /= ranks;
	s.kv_heads = s.kv_heads > ranks ? s.kv_heads / ranks : 1;
	s.ffn /= ranks;
	s.vocab = (s.vocab + ranks - 1) / ranks;
	return s;
}

static int64_t border_of(int64_t count, unsigned rank, unsigned ranks)
{
	return count * rank / ranks;
}

struct split_range split_rows(const struct split *s, int64_t rows)
{
	const int64_t begin = split_is(s) ? border_of(rows, s->rank, s->ranks) : 0;
	const int64_t end = split_is(s) ? border_of(rows, s->rank + 1, s->ranks) : rows;

	return (struct split_range){begin, end - begin};
}

struct split_range split_vocabulary(const struct split *s, int64_t vocab)
{
	const int64_t share = split_is(s) ? (vocab + s->ranks - 1) / s->ranks : vocab;
	const int64_t begin = split_is(s) ? share * s->rank : 0;

	return (struct split_range){begin, begin + share < vocab ? share : vocab - begin};
}

/* -- parts -- */

enum unit { COPIED, HEADS, KV_HEADS, FEATURES, VOCABULARY };
enum axis { ROWS, COLUMNS };

struct division {
	const char *name; /* what follows the layer's number */
	enum unit unit;
	enum axis axis;
};

/* Tensors that are not listed are copied. */
static const struct division divisions[] = {
	{NAME_EMBED, VOCABULARY, ROWS},
	{NAME_HEAD, VOCABULARY, ROWS},
	{"self_attn.q_proj.weight", HEADS, ROWS},
	{"self_attn.k_proj.weight", KV_HEADS, ROWS},
	{"self_attn.v_proj.weight", KV_HEADS, ROWS},
	{"self_attn.q_proj.bias", HEADS, COLUMNS}, /* a vector is one row */
	{"self_attn.k_proj.bias", KV_HEADS, COLUMNS},
	{"self_attn.v_proj.bias", KV_HEADS, COLUMNS},
	{"self_attn.o_proj.weight", HEADS, COLUMNS},
	{"mlp.gate_proj.weight", FEATURES, ROWS},
	{"mlp.up_proj.weight", FEATURES, ROWS},
	{"mlp.down_proj.weight", FEATURES, COLUMNS},
	{"self_attn.q_proj.lora_B.weight", HEADS, ROWS},
	{"self_attn.k_proj.lora_B.weight", KV_HEADS, ROWS},
	{"self_attn.v_proj.lora_B.weight", KV_HEADS, ROWS},
	{"self_attn.o_proj.lora_A.weight", HEADS, COLUMNS},
	{"mlp.gate_proj.lora_B.weight", FEATURES, ROWS},
	{"mlp.up_proj.lora_B.weight", FEATURES, ROWS},
	{"mlp.down_proj.lora_A.weight", FEATURES, COLUMNS},
};

static const struct division *division_of(const char *name)
{
	static const char prefix[] = "model.layers.";
	const char *below = name;

	if (!strncmp(name, prefix, sizeof(prefix) - 1) && strchr(name + sizeof(prefix) - 1, '.'))
		below = strchr(name + sizeof(prefix) - 1, '.') + 1;
	for (size_t i = 0; i < sizeof(divisions) / sizeof(divisions[0]); i++)
		if (!strcmp(divisions[i].name, below))
			return &divisions[i];
	return NULL;
}

/* The own elements along the axis that is divided. */
static struct split_range own_of(const struct split *s, const struct shape *whole, enum unit unit)
{
	const int64_t t = s->ranks, kv = whole->kv_heads;

	if (unit == VOCABULARY)
		return split_vocabulary(s, whole->vocab);
	if (unit == FEATURES)
		return (struct split_range){whole->ffn / t * s->rank, whole->ffn / t};
	if (unit == KV_HEADS && kv < t)
		return (struct split_range){s->rank / (t / kv) * whole->head_dim, whole->head_dim};
	return (struct split_range){(unit == HEADS ? whole->heads : kv) / t * s->rank * whole->head_dim,
				    (unit == HEADS ? whole->heads : kv) / t * whole->head_dim};
}

struct split_part split_part_of(const struct split *s, const struct shape *whole, const char *name,
				int64_t rows, int64_t cols)
{
	const struct division *d = division_of(name);
	struct split_part out = {.rows = rows,
				 .cols = cols,
				 .all_rows = rows,
				 .all_cols = cols,
				 .sharers = s->ranks > 1 ? s->ranks : 1,
				 .first = !s->rank};
	struct split_range own;

	if (!d || !split_is(s))
		return out;
	own = own_of(s, whole, d->unit);
	*(d->axis == ROWS ? &out.row : &out.col) = own.begin;
	*(d->axis == ROWS ? &out.rows : &out.cols) = own.count;
	out.sharers = 1;
	if (d->unit == KV_HEADS && whole->kv_heads < s->ranks)
		out.sharers = s->ranks / (unsigned)whole->kv_heads;
	out.first = s->rank % out.sharers == 0;
	return out;
}

/* -- between the parts of a layer -- */

static struct mat as_vector(const struct mat *all)
{
	struct mat v = *all;

	v.rows = 1;
	v.cols = v.ld = all->rows * all->ld;
	return v;
}

static void put_borders(struct split *s, const struct mat *all, int chunk)
{
	for (unsigned r = 0; r <= s->ranks; r++)
		s->border[chunk][r] = (size_t)(border_of(all->rows, r, s->ranks) * all->ld);
}

enum status split_gather(struct split *s, struct mat all, struct error *err)
{
	enum status st;

	if (!split_is(s) || !s->comm)
		return STATUS_OK;
	put_borders(s, &all, 0);
	st = s->comm->ops->all_gather(s->comm, as_vector(&all), s->border[0], err);
	return st ? st : s->comm->ops->wait(s->comm, err);
}

enum status split_sum(struct split *s, struct mat all, struct error *err)
{
	enum status st = split_sum_begin(s, all, 0, err);

	return st ? st : split_wait(s, err);
}

enum status split_sum_begin(struct split *s, struct mat all, int chunk, struct error *err)
{
	if (!split_is(s) || !s->comm)
		return STATUS_OK;
	put_borders(s, &all, chunk);
	return s->comm->ops->reduce_scatter(s->comm, as_vector(&all), s->border[chunk], err);
}

enum status split_wait(struct split *s, struct error *err)
{
	return split_is(s) && s->comm ? s->comm->ops->wait(s->comm, err) : STATUS_OK;
}

int64_t split_chunk(const struct split *s, int64_t cols)
{
	enum { LEAST = 1024, TOGETHER = 64 }; /* fewer columns make slow GEMMs */
	const int64_t by_size = cols / LEAST < 1 ? 1 : cols / LEAST;
	const int64_t wanted = s->chunks ? s->chunks : by_size;
	const int64_t count = wanted < SPLIT_CHUNKS ? wanted : SPLIT_CHUNKS;
	const int64_t each = (cols + count - 1) / count;

	return count < 2 || each < TOGETHER ? each : (each + TOGETHER - 1) / TOGETHER * TOGETHER;
}

enum status split_random(struct backend *back, struct mat to, const struct random_fill *whole,
			 const struct split_part *part, struct error *err)
{
	struct random_fill fill = *whole;
	enum status st = STATUS_OK;

	if (part->cols == part->all_cols) {
		fill.first += (uint64_t)(part->row * part->all_cols);
		return back->ops->random(back, to, &fill, err);
	}
	for (int64_t i = 0; i < to.rows && !st; i++) {
		fill.first = whole->first + (uint64_t)((part->row + i) * part->all_cols + part->col);
		st = back->ops->random(back, mat_rows(&to, i, 1), &fill, err);
	}
	return st;
}
