/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a shape from a GGUF's metadata. */
#include <inttypes.h>
#include <math.h>
#include "model/tensor/dtype.h"
#include "model/files/gguf/gguf.h"
#include "model/shape/shape.h"

struct reading {
	const struct gguf *g;
	const char *arch;
	struct error *err;
};

enum { KEY_SIZE = 96 };

static const char *key_of(const struct reading *r, char key[KEY_SIZE], const char *rest)
{
	snprintf(key, KEY_SIZE, "%s.%s", r->arch, rest);
	return key;
}

/* The key may be absent if `needed` is false. */
static enum status read_count(const struct reading *r, const char *rest, int64_t *out, bool needed)
{
	char key[KEY_SIZE];

	if (needed && !gguf_find(&r->g->metadata, key_of(r, key, rest)))
		return error_set(r->err, STATUS_BAD_INPUT, "%s: %s is missing", r->g->metadata.path, key);
	return gguf_i64(&r->g->metadata, key_of(r, key, rest), 1, INT32_MAX, out, r->err);
}

/* Reads a number, or a list that has the same number for every layer. */
static enum status read_per_layer(const struct reading *r, const char *rest, int64_t *out)
{
	char key[KEY_SIZE];
	const struct gguf_value *v = gguf_find(&r->g->metadata, key_of(r, key, rest));

	if (!v || v->type != GGUF_ARRAY)
		return read_count(r, rest, out, false);
	for (uint64_t i = 0; i < v->count; i++) {
		if (gguf_item(v, i) != gguf_item(v, 0))
			return error_set(r->err, STATUS_UNSUPPORTED,
					 "%s: %s differs between layers, which is not supported",
					 r->g->metadata.path, key);
	}
	*out = v->count ? gguf_item(v, 0) : 0;
	return STATUS_OK;
}

static enum status read_family(struct reading *r, enum family *out)
{
	struct gguf_text arch = {0};
	enum status st = gguf_string(&r->g->metadata, "general.architecture", &arch, r->err);
	char word[40];

	if (st)
		return st;
	snprintf(word, sizeof(word), "%.*s", (int)(arch.size < sizeof(word) ? arch.size : sizeof(word) - 1),
		 arch.size ? arch.data : "");
	if (!family_of_type(out, word))
		return error_set(r->err, STATUS_UNSUPPORTED,
				 "%s: general.architecture \"%s\" is not supported; " FAMILY_WORDS " are",
				 r->g->metadata.path, word);
	r->arch = family_type(*out);
	return STATUS_OK;
}

static enum status read_sizes(const struct reading *r, struct shape *s)
{
	const struct tensor *table = gguf_tensor(r->g, "token_embd.weight");
	int64_t value_dim = 0, rotated = 0;
	enum status st;

	if (!table || table->rank != 2)
		return error_set(r->err, STATUS_BAD_INPUT, "%s: token_embd.weight is missing or not a matrix",
				 r->g->metadata.path);
	s->vocab = table->dim[0];
	s->tied = !gguf_tensor(r->g, "output.weight");
	st = read_count(r, "embedding_length", &s->hidden, true);
	if (!st)
		st = read_count(r, "block_count", &s->layers, true);
	if (!st)
		st = read_count(r, "attention.head_count", &s->heads, true);
	if (!st)
		st = read_per_layer(r, "attention.head_count_kv", &s->kv_heads);
	if (!st)
		st = read_per_layer(r, "feed_forward_length", &s->ffn);
	if (!st)
		st = read_count(r, "context_length", &s->context, true);
	if (!st)
		st = read_count(r, "attention.key_length", &s->head_dim, false);
	if (st)
		return st;
	s->kv_heads = s->kv_heads ? s->kv_heads : s->heads;
	s->head_dim = s->head_dim ? s->head_dim : s->hidden / s->heads;
	value_dim = rotated = s->head_dim;
	st = read_count(r, "attention.value_length", &value_dim, false);
	if (!st)
		st = read_count(r, "rope.dimension_count", &rotated, false);
	if (!st && (value_dim != s->head_dim || rotated != s->head_dim))
		st = error_set(r->err, STATUS_UNSUPPORTED,
			       "%s: a head size of %" PRId64 " with %" PRId64 " values and %" PRId64
			       " rotated elements is not supported",
			       r->g->metadata.path, s->head_dim, value_dim, rotated);
	return st;
}

static double llama3_divisor(const struct rope_scaling *s, double theta, int64_t head_dim, int64_t i)
{
	double turn = 2 * M_PI * pow(theta, 2.0 * (double)i / (double)head_dim); /* wavelength in positions */
	double blend = ((double)s->context / turn - s->low) / (s->high - s->low);

	if (turn < (double)s->context / s->high)
		return 1;
	if (turn > (double)s->context / s->low)
		return s->factor;
	return 1 / ((1 - blend) / s->factor + blend);
}

/* A GGUF stores Llama 3's scaling as a tensor with one divisor per frequency. */
static enum status read_divisors(const struct reading *r, struct shape *s)
{
	const struct tensor *t = gguf_tensor(r->g, "rope_freqs.weight");
	int64_t half = s->head_dim / 2;
	float divisor;

	if (!t)
		return STATUS_OK;
	if (t->dtype != DTYPE_F32 || t->rank != 1 || t->dim[0] != half || !half)
		return error_set(r->err, STATUS_BAD_INPUT,
				 "%s: rope_freqs.weight is not a vector of %" PRId64 " F32",
				 r->g->metadata.path, half);
	memcpy(&divisor, t->data + sizeof(divisor) * (size_t)(half - 1), sizeof(divisor));
	s->rope = (struct rope_scaling){
		.llama3 = true, .factor = (double)divisor, .low = 1, .high = 4, .context = 8192};
	for (int64_t i = 0; i < half; i++) {
		double due = llama3_divisor(&s->rope, s->rope_theta, s->head_dim, i);

		memcpy(&divisor, t->data + sizeof(divisor) * (size_t)i, sizeof(divisor));
		if (!(fabs((double)divisor - due) <= 1e-4 * due))
			return error_set(r->err, STATUS_UNSUPPORTED,
					 "%s: rope_freqs.weight has %g for frequency %" PRId64
					 ", but Llama 3's scaling has %g; other scalings are not supported",
					 r->g->metadata.path, (double)divisor, i, due);
	}
	return STATUS_OK;
}

static enum status read_rope(const struct reading *r, struct shape *s)
{
	struct gguf_text type = {0};
	char key[KEY_SIZE];
	enum status st = gguf_f64(&r->g->metadata, key_of(r, key, "rope.freq_base"), &s->rope_theta, r->err);

	if (!st)
		st = gguf_string(&r->g->metadata, key_of(r, key, "rope.scaling.type"), &type, r->err);
	if (!st && type.size && !(type.size == 4 && !memcmp(type.data, "none", 4)))
		st = error_set(r->err, STATUS_UNSUPPORTED,
			       "%s: %s %.*s is not supported; without it the model supports only %" PRId64
			       " positions",
			       r->g->metadata.path, key, (int)(type.size < 40 ? type.size : 40), type.data,
			       s->context);
	return st ? st : read_divisors(r, s);
}

enum status shape_of_gguf(struct shape *s, const struct gguf *g, struct error *err)
{
	struct reading r = {.g = g, .err = err};
	char key[KEY_SIZE];
	enum status st;

	*s = (struct shape){.rope_theta = 1e4}; /* ggml's default */
	st = read_family(&r, &s->family);
	if (!st)
		st = read_sizes(&r, s);
	if (!st)
		st = gguf_f64(&g->metadata, key_of(&r, key, "attention.layer_norm_rms_epsilon"), &s->norm_eps,
			      err);
	if (!st)
		st = read_rope(&r, s);
	s->qkv_bias = s->family == FAMILY_QWEN2;
	s->qk_norm = s->family == FAMILY_QWEN3;
	return st ? st : shape_check(s, g->metadata.path, err);
}
