/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a shape from config.json, as written by transformers 4 and 5. Unsupported settings are refused by
 * name. */
#include <inttypes.h>
#include <math.h>
#include "core/json/file.h"
#include "model/shape/shape.h"

static enum status read_count(const struct json_keys *r, const char *key, int64_t *out)
{
	const json_t *value = json_keys_value(r, key);

	if (!value)
		return STATUS_OK;
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		return error_set(r->err, STATUS_BAD_INPUT, "%s: %s is not a positive integer", r->path, key);
	*out = json_integer_value(value);
	return STATUS_OK;
}

static enum status read_bool(const struct json_keys *r, const char *key, bool *out)
{
	const json_t *value = json_keys_value(r, key);

	if (!value)
		return STATUS_OK;
	if (!json_is_boolean(value))
		return error_set(r->err, STATUS_BAD_INPUT, "%s: %s is neither true nor false", r->path, key);
	*out = json_is_true(value);
	return STATUS_OK;
}

/* Checks a setting that must have the value `done` to be supported. */
static enum status must_be(const struct json_keys *r, const char *key, bool done)
{
	bool value = done;
	enum status st = read_bool(r, key, &value);

	if (!st && value != done)
		st = error_set(r->err, STATUS_UNSUPPORTED, "%s: %s is %s, which is not supported", r->path,
			       key, value ? "true" : "false");
	return st;
}

static enum status read_family(const struct json_keys *r, enum family *out)
{
	const char *type = json_string_value(json_keys_value(r, "model_type"));

	if (!type)
		return error_set(r->err, STATUS_BAD_INPUT, "%s: model_type is missing", r->path);
	if (!family_of_type(out, type))
		return error_set(r->err, STATUS_UNSUPPORTED,
				 "%s: model_type %.40s is not supported; " FAMILY_WORDS " are", r->path,
				 type);
	return STATUS_OK;
}

static enum status read_sizes(const struct json_keys *r, struct shape *s)
{
	const struct {
		const char *key;
		int64_t *to;
		bool needed;
	} rows[] = {
		{"hidden_size", &s->hidden, true},	  {"num_hidden_layers", &s->layers, true},
		{"num_attention_heads", &s->heads, true}, {"num_key_value_heads", &s->kv_heads, false},
		{"head_dim", &s->head_dim, false},	  {"intermediate_size", &s->ffn, true},
		{"vocab_size", &s->vocab, true},	  {"max_position_embeddings", &s->context, true},
	};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && !st; i++) {
		st = read_count(r, rows[i].key, rows[i].to);
		if (!st && rows[i].needed && !*rows[i].to)
			st = error_set(r->err, STATUS_BAD_INPUT, "%s: %s is missing", r->path, rows[i].key);
	}
	if (st)
		return st;
	s->kv_heads = s->kv_heads ? s->kv_heads : s->heads;
	if (!s->head_dim) /* Qwen3Config's default is 128, whatever the hidden size */
		s->head_dim = s->family == FAMILY_QWEN3 ? 128 : s->hidden / s->heads;
	return STATUS_OK;
}

static enum status read_llama3(const struct json_keys *r, struct rope_scaling *out)
{
	enum status st;

	out->llama3 = true;
	st = json_keys_number(r, "factor", &out->factor);
	if (!st)
		st = json_keys_number(r, "low_freq_factor", &out->low);
	if (!st)
		st = json_keys_number(r, "high_freq_factor", &out->high);
	if (!st)
		st = read_count(r, "original_max_position_embeddings", &out->context);
	return st;
}

/* YaRN's factor of attention if the configuration does not give it. */
static double attention_of(double factor, double all, double part)
{
	const double grown = factor > 1 ? 0.1 * log(factor) : 0;

	return all > 0 && part > 0 ? (part * grown + 1) / (all * grown + 1) : grown + 1;
}

/* The factor is the given one, as in transformers 5 and vLLM. Some versions of transformers 4 take the ratio
 * of the two numbers of positions instead. */
static enum status read_yarn(const struct json_keys *r, const struct shape *s, struct rope_scaling *out)
{
	bool truncate = true;
	double all = 0, part = 0;
	enum status st;

	*out = (struct rope_scaling){.yarn = true, .low = 1, .high = 32, .context = s->context};
	st = json_keys_number(r, "factor", &out->factor);
	if (!st)
		st = json_keys_number(r, "beta_slow", &out->low);
	if (!st)
		st = json_keys_number(r, "beta_fast", &out->high);
	if (!st)
		st = json_keys_number(r, "mscale", &part);
	if (!st)
		st = json_keys_number(r, "mscale_all_dim", &all);
	out->attention = attention_of(out->factor, all, part);
	if (!st)
		st = json_keys_number(r, "attention_factor", &out->attention);
	if (!st)
		st = read_count(r, "original_max_position_embeddings", &out->context);
	if (!st)
		st = read_bool(r, "truncate", &truncate);
	out->smooth = !truncate;
	return st;
}

/* Reads rope_scaling (transformers 4) or rope_parameters (5), which also contains the base. */
static enum status read_rope(const struct json_keys *r, const char *key, struct shape *s)
{
	const struct json_keys in = {json_keys_value(r, key), r->path, r->err};
	const char *type;
	enum status st;

	if (!in.map)
		return STATUS_OK;
	if (!json_is_object(in.map))
		return error_set(r->err, STATUS_BAD_INPUT, "%s: %s is not an object", r->path, key);
	st = json_keys_number(&in, "rope_theta", &s->rope_theta);
	if (st)
		return st;
	type = json_string_value(json_keys_value(&in, "rope_type"));
	type = type ? type : json_string_value(json_keys_value(&in, "type"));
	if (type && !strcmp(type, "llama3"))
		return read_llama3(&in, &s->rope);
	if (type && !strcmp(type, "yarn"))
		return read_yarn(&in, s, &s->rope);
	if (type ? !strcmp(type, "default") : !json_keys_value(&in, "factor"))
		return STATUS_OK;
	return error_set(r->err, STATUS_UNSUPPORTED,
			 "%s: %s has the unsupported type %.40s; without it the model supports only %" PRId64
			 " positions",
			 r->path, key, type ? type : "(none given)", s->context);
}

/* Checks that every layer attends to all earlier tokens. */
static enum status check_attention(const struct json_keys *r)
{
	const json_t *types = json_keys_value(r, "layer_types"), *one;
	double part = 1;
	enum status st;
	size_t i;

	json_array_foreach((json_t *)types, i, one)
	{
		if (!json_is_string(one) || strcmp(json_string_value(one), "full_attention"))
			return error_set(r->err, STATUS_UNSUPPORTED,
					 "%s: layer_types has %.40s, which is not supported", r->path,
					 json_is_string(one) ? json_string_value(one)
							     : "an item that is not a text");
	}
	st = json_keys_number(r, "partial_rotary_factor", &part);
	if (!st && part != 1)
		st = error_set(r->err, STATUS_UNSUPPORTED, "%s: partial_rotary_factor %g is not supported",
			       r->path, part);
	return st;
}

static enum status check_switches(const struct json_keys *r, const struct shape *s)
{
	const char *act = json_string_value(json_keys_value(r, "hidden_act"));
	enum status st = STATUS_OK;

	if (act && strcmp(act, "silu"))
		return error_set(r->err, STATUS_UNSUPPORTED, "%s: hidden_act %.40s is not supported; silu is",
				 r->path, act);
	if (json_keys_value(r, "quantization_config"))
		st = shape_check_quantization(json_keys_value(r, "quantization_config"), r->path, r->err);
	if (!st && s->family != FAMILY_QWEN2)
		st = must_be(r, "attention_bias", false);
	if (!st)
		st = must_be(r, "mlp_bias", false);
	if (!st)
		st = must_be(r, "use_sliding_window", false);
	return st ? st : check_attention(r);
}

/* Checks one id or a list of ids. */
static enum status check_id(const struct json_keys *r, const char *key, const json_t *id, int64_t vocab)
{
	if (json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < vocab)
		return STATUS_OK;
	return error_set(r->err, STATUS_BAD_INPUT, "%s: %s is not an id of a vocabulary of %" PRId64, r->path,
			 key, vocab);
}

static enum status check_ids(const struct json_keys *r, int64_t vocab)
{
	static const char *const keys[] = {"bos_token_id", "eos_token_id"};
	enum status st = STATUS_OK;

	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]) && !st; k++) {
		const json_t *ids = json_keys_value(r, keys[k]), *id;
		size_t i;

		if (ids && !json_is_array(ids))
			st = check_id(r, keys[k], ids, vocab);
		json_array_foreach((json_t *)ids, i, id) if (!st) st = check_id(r, keys[k], id, vocab);
	}
	return st;
}

enum status shape_of_config(struct shape *s, const json_t *config, const char *path, struct error *err)
{
	const struct json_keys r = {config, path, err};
	enum status st;

	*s = (struct shape){.norm_eps = 1e-6, .rope_theta = 1e4}; /* defaults of all three families */
	if (!json_is_object(config))
		return error_set(err, STATUS_BAD_INPUT, "%s: it is not a JSON object", path);
	st = read_family(&r, &s->family);
	if (!st)
		st = read_sizes(&r, s);
	if (!st)
		st = json_keys_number(&r, "rms_norm_eps", &s->norm_eps);
	if (!st)
		st = json_keys_number(&r, "rope_theta", &s->rope_theta);
	if (!st)
		st = read_rope(&r, "rope_scaling", s);
	if (!st)
		st = read_rope(&r, "rope_parameters", s);
	if (!st)
		st = read_bool(&r, "tie_word_embeddings", &s->tied);
	if (!st)
		st = check_switches(&r, s);
	if (!st)
		st = check_ids(&r, s->vocab);
	s->qkv_bias = s->family == FAMILY_QWEN2;
	s->qk_norm = s->family == FAMILY_QWEN3;
	return st ? st : shape_check(s, path, err);
}
