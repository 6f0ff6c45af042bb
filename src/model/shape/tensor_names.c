/* SPDX-License-Identifier: Apache-2.0 */
#include "model/shape/tensor_names.h"

enum extent { ONE, HIDDEN, HEADS, KV_HEADS, HEAD, FFN, VOCAB };
enum when { ALWAYS, QKV_BIAS, QK_NORM, UNTIED };

struct row {
	const char *hf, *gguf; /* if `layer`: the part after "model.layers.N." and "blk.N." */
	enum extent rows, cols;
	enum when when;
	enum extent interleaved; /* HEADS or KV_HEADS: rows are interleaved; ONE: they are not */
};

static const struct row first[] = {
	{"model.embed_tokens.weight", "token_embd.weight", VOCAB, HIDDEN, ALWAYS, ONE},
};
static const struct row layer[] = {
	{"input_layernorm.weight", "attn_norm.weight", ONE, HIDDEN, ALWAYS, ONE},
	{"self_attn.q_proj.weight", "attn_q.weight", HEADS, HIDDEN, ALWAYS, HEADS},
	{"self_attn.q_proj.bias", "attn_q.bias", ONE, HEADS, QKV_BIAS, ONE},
	{"self_attn.k_proj.weight", "attn_k.weight", KV_HEADS, HIDDEN, ALWAYS, KV_HEADS},
	{"self_attn.k_proj.bias", "attn_k.bias", ONE, KV_HEADS, QKV_BIAS, ONE},
	{"self_attn.v_proj.weight", "attn_v.weight", KV_HEADS, HIDDEN, ALWAYS, ONE},
	{"self_attn.v_proj.bias", "attn_v.bias", ONE, KV_HEADS, QKV_BIAS, ONE},
	{"self_attn.q_norm.weight", "attn_q_norm.weight", ONE, HEAD, QK_NORM, ONE},
	{"self_attn.k_norm.weight", "attn_k_norm.weight", ONE, HEAD, QK_NORM, ONE},
	{"self_attn.o_proj.weight", "attn_output.weight", HIDDEN, HEADS, ALWAYS, ONE},
	{"post_attention_layernorm.weight", "ffn_norm.weight", ONE, HIDDEN, ALWAYS, ONE},
	{"mlp.gate_proj.weight", "ffn_gate.weight", FFN, HIDDEN, ALWAYS, ONE},
	{"mlp.up_proj.weight", "ffn_up.weight", FFN, HIDDEN, ALWAYS, ONE},
	{"mlp.down_proj.weight", "ffn_down.weight", HIDDEN, FFN, ALWAYS, ONE},
};
static const struct row last[] = {
	{"model.norm.weight", "output_norm.weight", ONE, HIDDEN, ALWAYS, ONE},
	{"lm_head.weight", "output.weight", VOCAB, HIDDEN, UNTIED, ONE},
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static int64_t size_of(const struct shape *s, enum extent extent)
{
	switch (extent) {
	case ONE:
		return 1;
	case HIDDEN:
		return s->hidden;
	case HEADS:
		return s->heads * s->head_dim;
	case KV_HEADS:
		return s->kv_heads * s->head_dim;
	case HEAD:
		return s->head_dim;
	case FFN:
		return s->ffn;
	case VOCAB:
		return s->vocab;
	}
	return 0;
}

static bool has(const struct shape *s, const struct row *r)
{
	switch (r->when) {
	case ALWAYS:
		return true;
	case QKV_BIAS:
		return s->qkv_bias;
	case QK_NORM:
		return s->qk_norm;
	case UNTIED:
		return !s->tied;
	}
	return false;
}

static size_t count_of(const struct shape *s, const struct row *rows, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += has(s, &rows[i]);
	return n;
}

/* The index-th row that the shape has; NULL after the last. */
static const struct row *row_at(const struct shape *s, const struct row *rows, size_t count, size_t index)
{
	for (size_t i = 0; i < count; i++) {
		if (has(s, &rows[i]) && !index--)
			return &rows[i];
	}
	return NULL;
}

static void fill(struct named *n, const struct shape *s, const struct row *r, int64_t at)
{
	*n = (struct named){
		.rows = size_of(s, r->rows),
		.cols = size_of(s, r->cols),
		.vector = r->rows == ONE,
		.layer = at,
		.interleaved = s->family != FAMILY_LLAMA    ? 0
			       : r->interleaved == HEADS    ? s->heads
			       : r->interleaved == KV_HEADS ? s->kv_heads
							    : 0,
	};
	if (at < 0) {
		snprintf(n->hf, sizeof(n->hf), "%s", r->hf);
		snprintf(n->gguf, sizeof(n->gguf), "%s", r->gguf);
	} else {
		snprintf(n->hf, sizeof(n->hf), "model.layers.%lld.%s", (long long)at, r->hf);
		snprintf(n->gguf, sizeof(n->gguf), "blk.%lld.%s", (long long)at, r->gguf);
	}
}

size_t names_count(const struct shape *s)
{
	return count_of(s, first, LENGTH(first)) + count_of(s, last, LENGTH(last)) +
	       (size_t)s->layers * count_of(s, layer, LENGTH(layer));
}

void names_at(struct named *n, const struct shape *s, size_t index)
{
	size_t in_layer = count_of(s, layer, LENGTH(layer)), begin = LENGTH(first);
	size_t end = begin + (size_t)s->layers * in_layer;

	if (index < begin)
		fill(n, s, &first[index], -1);
	else if (index < end)
		fill(n, s, row_at(s, layer, LENGTH(layer), (index - begin) % in_layer),
		     (int64_t)((index - begin) / in_layer));
	else
		fill(n, s, row_at(s, last, LENGTH(last), index - end), -1);
}

/* Splits "3.rest" into 3 and "rest". The number must be in its shortest form, without sign. */
static const char *layer_of(const char *text, const struct shape *s, int64_t *out)
{
	int64_t n = 0;
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > 9 || text[digits] != '.' || (text[0] == '0' && digits > 1))
		return NULL;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (text[i] - '0');
	*out = n;
	return n < s->layers ? text + digits + 1 : NULL;
}

static bool find(struct named *n, const struct shape *s, const char *name, const struct row *rows,
		 size_t count, int64_t at)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(rows[i].hf, name) && has(s, &rows[i])) {
			fill(n, s, &rows[i], at);
			return true;
		}
	}
	return false;
}

bool names_find(struct named *n, const struct shape *s, const char *hf)
{
	static const char prefix[] = "model.layers.";
	const char *rest;
	int64_t at;

	if (strncmp(hf, prefix, sizeof(prefix) - 1))
		return find(n, s, hf, first, LENGTH(first), -1) || find(n, s, hf, last, LENGTH(last), -1);
	rest = layer_of(hf + sizeof(prefix) - 1, s, &at);
	return rest && find(n, s, rest, layer, LENGTH(layer), at);
}
