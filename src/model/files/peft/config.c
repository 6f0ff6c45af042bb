/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes adapter_config.json. Settings that change the result are supported or refused; others are
 * ignored. */
#include <inttypes.h>
#include <math.h>
#include "core/json/file.h"
#include "model/files/peft/names.h"

static enum status refuse(const struct json_keys *r, const char *key, const char *why)
{
	return error_set(r->err, STATUS_UNSUPPORTED, "%s: %s %s", r->path, key, why);
}

static enum status read_rank(const struct json_keys *r, struct peft_config *c)
{
	double rank = 8, alpha = 8, dropout = 0; /* PEFT's defaults */
	enum status st = json_keys_number(r, "r", &rank);

	if (!st)
		st = json_keys_number(r, "lora_alpha", &alpha);
	if (!st)
		st = json_keys_number(r, "lora_dropout", &dropout);
	if (st)
		return st;
	if (!(rank >= 1 && rank <= PEFT_RANK_MOST) || rank != floor(rank))
		return error_set(r->err, STATUS_BAD_INPUT, "%s: r is %g; it must be an integer of 1 or more",
				 r->path, rank);
	if (!(alpha > 0 && alpha <= 1e9) || !(dropout >= 0 && dropout < 1))
		return error_set(r->err, STATUS_BAD_INPUT,
				 "%s: lora_alpha %g or lora_dropout %g is out of range", r->path, alpha,
				 dropout);
	c->rank = (int64_t)rank;
	c->alpha = alpha;
	c->dropout = dropout;
	c->rslora = json_is_true(json_keys_value(r, "use_rslora"));
	c->dora = json_is_true(json_keys_value(r, "use_dora"));
	return STATUS_OK;
}

/* Neither false nor empty. */
static bool is_set(const json_t *value)
{
	if (json_is_object(value) || json_is_array(value))
		return json_object_size(value) || json_array_size(value);
	return value && !json_is_false(value);
}

/* Each of these settings changes the meaning of the matrices. */
static enum status check_done(const struct json_keys *r)
{
	static const char *const off[] = {"fan_in_fan_out",
					  "lora_bias",
					  "use_qalora",
					  "use_bdlora",
					  "alora_invocation_tokens",
					  "arrow_config",
					  "kasa_config",
					  "monteclora_config",
					  "target_parameters",
					  "trainable_token_indices"};
	static const char *const uneven[] = {"layers_to_transform", "layers_pattern", "layer_replication",
					     "exclude_modules"};
	const char *bias = json_string_value(json_keys_value(r, "bias"));
	const char *init = json_string_value(json_keys_value(r, "init_lora_weights"));

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		if (is_set(json_keys_value(r, off[i])))
			return refuse(r, off[i], "is set; such adapters are not supported");
	}
	for (size_t i = 0; i < sizeof(uneven) / sizeof(uneven[0]); i++) {
		if (is_set(json_keys_value(r, uneven[i])))
			return refuse(r, uneven[i],
				      "is not empty; only adapters of all layers are supported");
	}
	if (bias && strcmp(bias, "none"))
		return refuse(r, "bias", "is not \"none\"; trained biases are not supported");
	if (init && (!strncmp(init, "pissa", 5) || !strcmp(init, "olora") || !strcmp(init, "corda") ||
		     !strcmp(init, "loftq")))
		return refuse(r, "init_lora_weights",
			      "changes the base model; convert the adapter to plain LoRA");
	return STATUS_OK;
}

static const char *leaf_of(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static enum status read_targets(const struct json_keys *r, struct peft_config *c)
{
	const json_t *list = json_keys_value(r, "target_modules"), *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		unsigned bit = json_is_string(one) ? peft_target_by_name(leaf_of(json_string_value(one))) : 0;

		if (!bit)
			return error_set(
				r->err, STATUS_UNSUPPORTED,
				"%s: target_modules has %.60s; supported are q_proj, k_proj, v_proj, "
				"o_proj, gate_proj, up_proj and down_proj",
				r->path,
				json_is_string(one) ? json_string_value(one) : "an item that is not a text");
		c->targets |= bit;
	}
	return STATUS_OK;
}

static enum status read_save(const struct json_keys *r, struct peft_config *c)
{
	const json_t *list = json_keys_value(r, "modules_to_save"), *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		const char *leaf = json_is_string(one) ? leaf_of(json_string_value(one)) : "";

		if (strcmp(leaf, "embed_tokens") && strcmp(leaf, "lm_head"))
			return error_set(
				r->err, STATUS_UNSUPPORTED,
				"%s: modules_to_save has %.60s; supported are embed_tokens and lm_head",
				r->path, leaf);
		c->save |= !strcmp(leaf, "lm_head") ? PEFT_SAVE_HEAD : PEFT_SAVE_EMBED;
	}
	return STATUS_OK;
}

enum status peft_config_parse(struct peft_config *c, const json_t *config, const char *path,
			      struct error *err)
{
	const struct json_keys r = {config, path, err};
	const char *type = json_string_value(json_object_get(config, "peft_type"));
	const char *base = json_string_value(json_object_get(config, "base_model_name_or_path"));
	enum status st;

	*c = (struct peft_config){0};
	if (!type || strcmp(type, "LORA"))
		return error_set(err, type ? STATUS_UNSUPPORTED : STATUS_BAD_INPUT,
				 "%s: peft_type is %.40s; only LORA is supported", path,
				 type ? type : "missing");
	snprintf(c->base, sizeof(c->base), "%s", base ? base : "");
	st = read_rank(&r, c);
	if (!st)
		st = check_done(&r);
	if (!st)
		st = read_targets(&r, c);
	return st ? st : read_save(&r, c);
}

static json_t *leaves(const struct peft_config *c)
{
	json_t *list = json_array();

	for (int i = 0; i < PEFT_TARGET_COUNT; i++) {
		if (c->targets & 1u << i)
			json_array_append_new(list, json_string(peft_target_name((enum peft_target)i)));
	}
	return list;
}

static json_t *saved(const struct peft_config *c)
{
	json_t *list = c->save ? json_array() : json_null();

	if (c->save & PEFT_SAVE_EMBED)
		json_array_append_new(list, json_string("embed_tokens"));
	if (c->save & PEFT_SAVE_HEAD)
		json_array_append_new(list, json_string("lm_head"));
	return list;
}

/* Writes integers as PEFT does: lora_alpha 16, not 16.0. */
static json_t *number(double value)
{
	return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

/* Has no peft_version, because PEFT did not write it. PEFT accepts that. */
json_t *peft_config_json(const struct peft_config *c)
{
	return json_pack("{s:n, s:s, s:s, s:b, s:b, s:b, s:n, s:n, s:o, s:f, s:o, s:s, s:I, s:{}, s:{}, s:n, "
			 "s:o, s:s, s:b, s:b, s:b}",
			 "auto_mapping", "base_model_name_or_path", c->base, "bias", "none", "fan_in_fan_out",
			 0, "inference_mode", 1, "init_lora_weights", 1, "layers_pattern",
			 "layers_to_transform", "lora_alpha", number(c->alpha), "lora_dropout", c->dropout,
			 "modules_to_save", saved(c), "peft_type", "LORA", "r", (json_int_t)c->rank,
			 "rank_pattern", "alpha_pattern", "revision", "target_modules", leaves(c),
			 "task_type", "CAUSAL_LM", "use_dora", c->dora, "use_rslora", c->rslora, "lora_bias",
			 0);
}
