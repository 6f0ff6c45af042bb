/* SPDX-License-Identifier: Apache-2.0 */
#include "model/shape/shape.h"

#include <inttypes.h>
#include <math.h>
#include "core/input/opt.h"
#include "model/tensor/dtype.h"
#include "model/shape/tensor_names.h"

struct family_row {
	const char *type, *class;
};

static const struct family_row families[] = {
#define X(name, type, class) [FAMILY_##name] = {type, class},
	FAMILY_LIST(X)
#undef X
};

const char *family_type(enum family family)
{
	return families[family].type;
}

bool family_of_type(enum family *out, const char *type)
{
	for (int i = 0; i < FAMILY_COUNT; i++) {
		if (!strcmp(families[i].type, type)) {
			*out = (enum family)i;
			return true;
		}
	}
	return false;
}

static enum status within(int64_t value, int64_t max, const char *what, const char *path, struct error *err)
{
	if (value >= 1 && value <= max)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s: %s is %" PRId64 "; it must be 1 to %" PRId64, path, what,
			 value, max);
}

static enum status check_sizes(const struct shape *s, const char *path, struct error *err)
{
	const struct {
		int64_t value, max;
		const char *what;
	} sizes[] = {
		{s->hidden, 1 << 20, "the hidden size"},    {s->layers, 10000, "the number of layers"},
		{s->heads, 1 << 12, "the number of heads"}, {s->kv_heads, s->heads, "the number of KV heads"},
		{s->head_dim, 1 << 12, "the head size"},    {s->ffn, 1 << 24, "the MLP size"},
		{s->vocab, 1 << 24, "the vocabulary size"}, {s->context, INT32_MAX, "the longest context"},
	};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !st; i++)
		st = within(sizes[i].value, sizes[i].max, sizes[i].what, path, err);
	return st;
}

static enum status check_rope(const struct rope_scaling *r, const char *path, struct error *err)
{
	if (!r->llama3 && !r->yarn)
		return STATUS_OK;
	if (r->yarn && !(r->attention > 0 && isfinite(r->attention)))
		return error_set(err, STATUS_BAD_INPUT, "%s: RoPE scaling has an attention_factor of %g",
				 path, r->attention);
	if (r->factor >= 1 && isfinite(r->factor) && r->low > 0 && r->high > r->low && isfinite(r->high) &&
	    r->context >= 1)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "%s: RoPE scaling is inconsistent: factor %g, low %g, high %g, of %" PRId64
			 " positions",
			 path, r->factor, r->low, r->high, r->context);
}

enum status shape_check(const struct shape *s, const char *path, struct error *err)
{
	enum status st = check_sizes(s, path, err);

	if (st)
		return st;
	if (s->heads % s->kv_heads)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %" PRId64 " heads cannot be divided evenly among %" PRId64 " KV heads",
				 path, s->heads, s->kv_heads);
	if (s->head_dim % 2)
		return error_set(err, STATUS_BAD_INPUT, "%s: RoPE needs an even head size, not %" PRId64,
				 path, s->head_dim);
	if (!(s->norm_eps > 0 && s->norm_eps < 1))
		return error_set(err, STATUS_BAD_INPUT, "%s: the norm's epsilon is %g, which is out of range",
				 path, s->norm_eps);
	if (!(s->rope_theta >= 1 && s->rope_theta <= 1e15))
		return error_set(err, STATUS_BAD_INPUT, "%s: RoPE's base is %g, which is out of range", path,
				 s->rope_theta);
	return check_rope(&s->rope, path, err);
}

int64_t shape_parameters(const struct shape *s)
{
	size_t count = names_count(s);
	int64_t sum = 0;
	struct named n;

	for (size_t i = 0; i < count; i++) {
		names_at(&n, s, i);
		sum += n.rows * n.cols;
	}
	return sum;
}

/* Writes names for all versions: transformers up to 4 read rope_theta, rope_scaling and torch_dtype; 5 reads
 * both forms. */
static json_t *rope_json(const struct shape *s)
{
	if (s->rope.yarn)
		return json_pack("{s:s, s:f, s:f, s:f, s:f, s:b, s:I}", "rope_type", "yarn", "factor",
				 s->rope.factor, "beta_slow", s->rope.low, "beta_fast", s->rope.high,
				 "attention_factor", s->rope.attention, "truncate", !s->rope.smooth,
				 "original_max_position_embeddings", (json_int_t)s->rope.context);
	if (!s->rope.llama3)
		return json_null();
	return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", s->rope.factor,
			 "low_freq_factor", s->rope.low, "high_freq_factor", s->rope.high,
			 "original_max_position_embeddings", (json_int_t)s->rope.context);
}

json_t *shape_config(const struct shape *s, enum dtype dtype)
{
	const char *type = dtype == DTYPE_F32 ? "float32" : dtype == DTYPE_F16 ? "float16" : "bfloat16";
	json_t *j;

	j = json_pack(
		"{s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:b, s:s, s:f, s:f, s:b}",
		"architectures", families[s->family].class, "model_type", families[s->family].type,
		"hidden_act", "silu", "hidden_size", (json_int_t)s->hidden, "intermediate_size",
		(json_int_t)s->ffn, "num_hidden_layers", (json_int_t)s->layers, "num_attention_heads",
		(json_int_t)s->heads, "num_key_value_heads", (json_int_t)s->kv_heads, "head_dim",
		(json_int_t)s->head_dim, "vocab_size", (json_int_t)s->vocab, "max_position_embeddings",
		(json_int_t)s->context, "rms_norm_eps", s->norm_eps, "rope_theta", s->rope_theta,
		"rope_scaling", rope_json(s), "tie_word_embeddings", s->tied, "torch_dtype", type,
		"initializer_range", 0.02, "attention_dropout", 0.0, "use_cache", true);
	if (!j)
		return NULL;
	if (s->family == FAMILY_LLAMA || s->family == FAMILY_QWEN3)
		json_object_set_new(j, "attention_bias", json_false());
	if (s->family == FAMILY_LLAMA)
		json_object_set_new(j, "mlp_bias", json_false());
	else
		json_object_set_new(j, "use_sliding_window", json_false());
	return j;
}
