/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step/trained_model.h"

#include <stdlib.h>
#include "train/mesh/mesh.h"

enum recompute trained_model_recompute(const struct config_training *t)
{
	static const enum recompute modes[] = {
		[CONFIG_RECOMPUTE_NONE] = RECOMPUTE_NONE,
		[CONFIG_RECOMPUTE_CHEAP] = RECOMPUTE_CHEAP,
		[CONFIG_RECOMPUTE_FULL] = RECOMPUTE_FULL,
		[CONFIG_RECOMPUTE_OFFLOAD] = RECOMPUTE_FULL,
		/* If memory_fit_settle was not called, memory does not matter. */
		[CONFIG_RECOMPUTE_AUTO] = RECOMPUTE_NONE,
	};

	return t->gradient_checkpointing ? RECOMPUTE_FULL : modes[t->recompute];
}

static unsigned targets_of(const struct opt_words *words)
{
	unsigned all = 0, targets = 0;

	for (int i = 0; i < PEFT_TARGET_COUNT; i++)
		all |= 1u << i;
	for (size_t i = 0; i < words->count; i++)
		targets |= !strcmp(words->word[i], "all-linear") ? all : peft_target_by_name(words->word[i]);
	return words->count ? targets : all;
}

static struct params_format format_of(const struct config_training *t)
{
	static const enum moments moments[] = {
		[CONFIG_ADAMW] = MOMENTS_F32,
		[CONFIG_ADAMW_TORCH] = MOMENTS_F32,
		[CONFIG_ADAMW_8BIT] = MOMENTS_8BIT,
		[CONFIG_ADAMW_BNB_8BIT] = MOMENTS_8BIT,
		[CONFIG_ADAMW_BF16] = MOMENTS_BF16,
		[CONFIG_PAGED_ADAMW_8BIT] = MOMENTS_8BIT,
		[CONFIG_PAGED_ADAMW_32BIT] = MOMENTS_F32,
	};
	static const enum master masters[] = {
		[CONFIG_MASTER_FP32] = MASTER_F32,
		[CONFIG_MASTER_SPLIT] = MASTER_SPLIT,
		[CONFIG_MASTER_NONE] = MASTER_NONE,
	};

	return (struct params_format){moments[t->optim], masters[t->master_weights]};
}

static struct storage storage_of(const struct config_model *m)
{
	static const enum bnb4_type types[] = {[CONFIG_NF4] = BNB4_NF4, [CONFIG_FP4] = BNB4_FP4};

	return m->load_in_4bit ? (struct storage){.form = STORAGE_BNB4,
						  .type = types[m->bnb_4bit_quant_type],
						  .nested = m->bnb_4bit_use_double_quant}
			       : (struct storage){.form = STORAGE_NUMBERS};
}

/* A mesh that does not fit is reported by stepper_create. */
static struct model_split split_of(const struct config *c)
{
	const unsigned tensor = c->training.tensor_parallel_size;

	return (struct model_split){.rank = tensor > 1 ? c->place.rank % tensor : 0, .ranks = tensor};
}

/* What the ranks divide. Packs that are added along a tree before the sum over ranks need the whole gradient.
 */
static struct model_shards shards_of(const struct config *c)
{
	struct mesh m;
	struct error ignored = {0}; /* stepper_create reports it */
	struct model_shards out = {.stage = c->training.zero_stage};

	if (mesh_of(&m, c, &ignored))
		return out;
	out.rank = m.shard_rank;
	out.ranks = m.shard;
	out.whole_gradient = m.each_pack && m.micros > 1;
	return out;
}

/* The parts of a configuration that say what is trained. */
static struct model_options options_of(const struct config *c, struct peft_config *lora)
{
	*lora = (struct peft_config){
		.rank = c->lora.r,
		.alpha = c->lora.alpha,
		.dropout = c->lora.dropout,
		.rslora = c->lora.use_rslora,
		.targets = targets_of(&c->lora.target_modules),
	};
	for (size_t i = 0; i < c->lora.modules_to_save.count; i++)
		lora->save |= !strcmp(c->lora.modules_to_save.word[i], "lm_head") ? PEFT_SAVE_HEAD
										  : PEFT_SAVE_EMBED;
	snprintf(lora->base, sizeof(lora->base), "%s", c->model.name_or_path);
	return (struct model_options){.lora = c->has_lora ? lora : NULL,
				      .full = !c->has_lora,
				      .storage = storage_of(&c->model),
				      .shards = shards_of(c),
				      .split = split_of(c),
				      .separate = c->training.adapters == CONFIG_ADAPTERS_SEPARATE,
				      .states = format_of(&c->training),
				      .offload_states = c->training.offload == CONFIG_OFFLOAD_OPTIMIZER,
				      .positions = (int64_t)c->data.max_seq_length};
}

enum status trained_model_create(struct model **out, const struct shape *shape, const struct config *c,
				 struct error *err)
{
	bool *fp8 = calloc((size_t)shape->layers + 1, sizeof(*fp8));
	struct peft_config lora;
	struct model_options options = options_of(c, &lora);
	enum status st = config_check_layers(c, shape->layers, err);

	if (!fp8)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a list of layers");
	for (int64_t i = 0; i < shape->layers; i++)
		fp8[i] = config_layer_fp8(c, i);
	options.fp8 = c->training.precision == CONFIG_PRECISION_FP8 ? fp8 : NULL;
	if (!st)
		st = model_create(out, shape, &options, err);
	free(fp8);
	return st;
}
