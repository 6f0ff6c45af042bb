/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantization_config of config.json. Supported are checkpoints of compressed-tensors in E4M3 with one factor
 * per tensor or per row, "float-quantized", and of bitsandbytes in 4 bits. Everything else is refused by
 * name.
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
		"%s: quantization_config: %s; E4M3 of compressed-tensors with a factor per tensor or per "
		"row is supported, and so are NF4 and FP4 of bitsandbytes, F32, F16 and BF16",
		r->path, what);
}

/* Weights of one group of config_groups. */
static enum status check_weights(const struct json_keys *r)
{
	const char *strategy = text_of(r, "strategy");
	char what[160];

	if (!strcmp(strategy, "block") || json_keys_value(r, "block_structure"))
		return refuse(r, "block scales (128 x 128) are not supported");
	if (json_integer_value(json_keys_value(r, "num_bits")) != 8 || strcmp(text_of(r, "type"), "float")) {
		snprintf(what, sizeof(what), "weights of type %.20s with %lld bits are not supported",
			 text_of(r, "type"), json_integer_value(json_keys_value(r, "num_bits")));
		return refuse(r, what);
	}
	if (strcmp(strategy, "tensor") && strcmp(strategy, "channel")) {
		snprintf(what, sizeof(what), "strategy %.20s of weights is not supported", strategy);
		return refuse(r, what);
	}
	if (json_is_false(json_keys_value(r, "symmetric")))
		return refuse(r, "weights with a zero point are not supported");
	return STATUS_OK;
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

enum status shape_check_quantization(const json_t *config, const char *path, struct error *err)
{
	const struct json_keys r = {config, path, err};
	const char *method = text_of(&r, "quant_method");
	char what[160];

	if (!json_is_object(config))
		return error_set(err, STATUS_BAD_INPUT, "%s: quantization_config is not an object", path);
	if (json_keys_value(&r, "weight_block_size"))
		return refuse(&r, "block scales (128 x 128) are not supported");
	if (!strcmp(method, "bitsandbytes"))
		return check_bitsandbytes(&r);
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
