/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantization_config of config.json. Supported are checkpoints of compressed-tensors ("float-quantized") and
 * of transformers' "fp8" in E4M3, with one scale per tensor, per row or per 128 x 128 elements, and of
 * bitsandbytes in 4 bits. Everything else is refused by name.
 */
#include "core/json/file.h"
#include "model/shape/shape.h"

static const char *text_of(const struct json_keys *r, const char *key)
{
	const char *text = json_string_value(json_keys_value(r, key));

	return text ? text : "(none)";
}

static enum status refuse(const struct json_keys *r, const char *what)
{
	return error_set(
		r->err, STATUS_UNSUPPORTED,
		"%s: quantization_config: %s; E4M3 with a scale per tensor, per row or per 128 x 128 elements "
		"is supported, and so are NF4 and FP4 of bitsandbytes, F32, F16 and BF16",
		r->path, what);
}

/* Whether a list of two block sizes is 128 and 128. */
static enum status check_blocks(const struct json_keys *r, const char *key)
{
	const json_t *sizes = json_keys_value(r, key);
	const long long rows = json_integer_value(json_array_get(sizes, 0));
	const long long cols = json_integer_value(json_array_get(sizes, 1));
	char what[160];

	if (json_array_size(sizes) == 2 && rows == 128 && cols == 128)
		return STATUS_OK;
	if (json_array_size(sizes) == 2)
		snprintf(what, sizeof(what), "%s: blocks of %lld x %lld are not supported", key, rows, cols);
	else
		snprintf(what, sizeof(what), "%s is not a list of two numbers", key);
	return refuse(r, what);
}

/* Weights of one group of config_groups. */
static enum status check_weights(const struct json_keys *r)
{
	const char *strategy = text_of(r, "strategy");
	char what[160];

	if (json_integer_value(json_keys_value(r, "num_bits")) != 8 || strcmp(text_of(r, "type"), "float")) {
		snprintf(what, sizeof(what), "weights of type %.20s with %lld bits are not supported",
			 text_of(r, "type"), json_integer_value(json_keys_value(r, "num_bits")));
		return refuse(r, what);
	}
	if (strcmp(strategy, "tensor") && strcmp(strategy, "channel") && strcmp(strategy, "block")) {
		snprintf(what, sizeof(what), "strategy %.20s of weights is not supported", strategy);
		return refuse(r, what);
	}
	if (json_is_false(json_keys_value(r, "symmetric")))
		return refuse(r, "weights with a zero point are not supported");
	return strcmp(strategy, "block") ? STATUS_OK : check_blocks(r, "block_structure");
}

static enum status check_groups(const struct json_keys *r)
{
	const json_t *groups = json_keys_value(r, "config_groups");
	enum status st = STATUS_OK;
	const char *name;
	json_t *group;

	if (!json_is_object(groups) || !json_object_size(groups))
		return error_set(r->err, STATUS_BAD_INPUT,
				 "%s: quantization_config: config_groups is not an object with a group",
				 r->path);
	json_object_foreach((json_t *)groups, name, group)
	{
		const struct json_keys in = {group, r->path, r->err};
		const struct json_keys weights = {
			json_is_object(group) ? json_keys_value(&in, "weights") : NULL, r->path, r->err};

		if (!st && !json_is_object(weights.map))
			st = error_set(r->err, STATUS_BAD_INPUT,
				       "%s: quantization_config: group %.40s has no weights", r->path, name);
		if (!st)
			st = check_weights(&weights);
		if (!st && json_keys_value(&in, "output_activations"))
			st = refuse(r, "quantized outputs are not supported");
	}
	return st;
}

/* Which matrices are quantized, and how, is in the files of the weights. */
static enum status check_bitsandbytes(const struct json_keys *r)
{
	const char *type = text_of(r, "bnb_4bit_quant_type");
	char what[160];

	if (!json_is_true(json_keys_value(r, "load_in_4bit")))
		return refuse(r, "LLM.int8 of bitsandbytes is not supported");
	if (strcmp(type, "nf4") && strcmp(type, "fp4")) {
		snprintf(what, sizeof(what), "bnb_4bit_quant_type %.40s is not supported", type);
		return refuse(r, what);
	}
	return STATUS_OK;
}

/* transformers' "fp8". Which matrices are quantized is in the files of the weights. */
static enum status check_fp8(const struct json_keys *r)
{
	const char *format = json_string_value(json_keys_value(r, "fmt"));
	const char *scheme = json_string_value(json_keys_value(r, "activation_scheme"));
	char what[160];

	if (format && strcmp(format, "e4m3")) {
		snprintf(what, sizeof(what), "fmt %.40s is not supported", format);
		return refuse(r, what);
	}
	if (scheme && strcmp(scheme, "dynamic")) {
		snprintf(what, sizeof(what), "activation_scheme %.40s is not supported", scheme);
		return refuse(r, what);
	}
	return json_keys_value(r, "weight_block_size") ? check_blocks(r, "weight_block_size") : STATUS_OK;
}

enum status shape_check_quantization(const json_t *config, const char *path, struct error *err)
{
	const struct json_keys r = {config, path, err};
	const char *method = text_of(&r, "quant_method");
	char what[160];

	if (!json_is_object(config))
		return error_set(err, STATUS_BAD_INPUT, "%s: quantization_config is not an object", path);
	if (!strcmp(method, "bitsandbytes"))
		return check_bitsandbytes(&r);
	if (!strcmp(method, "fp8"))
		return check_fp8(&r);
	if (strcmp(method, "compressed-tensors")) {
		snprintf(what, sizeof(what),
			 "quantized checkpoints are not supported with quant_method %.40s", method);
		return refuse(&r, what);
	}
	if (strcmp(text_of(&r, "format"), "float-quantized")) {
		snprintf(what, sizeof(what), "format %.40s is not supported", text_of(&r, "format"));
		return refuse(&r, what);
	}
	if (json_keys_value(&r, "kv_cache_scheme"))
		return refuse(&r, "kv_cache_scheme is not supported");
	return check_groups(&r);
}
