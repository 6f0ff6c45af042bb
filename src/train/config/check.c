/* SPDX-License-Identifier: Apache-2.0 */
/* Checks between the settings of a training run. */
#include "train/config/settings.h"

static const char *const linears[] = {"q_proj",	 "k_proj",    "v_proj",	    "o_proj", "gate_proj",
				      "up_proj", "down_proj", "all-linear", NULL};
static const char *const saved_whole[] = {"embed_tokens", "lm_head", NULL};

/* Sets the error "file:line: section: name: why". */
static enum status refuse(const struct config *c, const char *section, const char *name, const char *why,
			  struct error *err)
{
	const struct tree *place = config_place(c, section, name);

	return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: %s: %s", place->file, place->line, section, name,
			 why);
}

static enum status check_word(const struct config *c, const struct opt_words *words, size_t i,
			      const char *const *known, const char *what, struct error *err)
{
	const char *word = words->word[i], *near;
	size_t count = 0;
	char why[200] = "";
	bool found = false;

	for (; known[count]; count++)
		found = found || !strcmp(known[count], word);
	near = opt_nearest(word, known, count);
	if (!found)
		snprintf(why, sizeof(why), "unknown module \"%.64s\"%s%s%s", word,
			 near ? ", did you mean \"" : "", near ? near : "", near ? "\"" : "");
	else if (!strcmp(word, "all-linear") && words->count > 1)
		snprintf(why, sizeof(why),
			 "all-linear already includes every module; remove the other names");
	for (size_t k = 0; k < i && !*why; k++)
		if (!strcmp(words->word[k], word))
			snprintf(why, sizeof(why), "\"%s\" is listed twice", word);
	return *why ? refuse(c, "lora", what, why, err) : STATUS_OK;
}

static enum status check_words(const struct config *c, const struct opt_words *words,
			       const char *const *known, const char *what, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < words->count && !st; i++)
		st = check_word(c, words, i, known, what, err);
	return st;
}

static enum status check_lora(const struct config *c, struct error *err)
{
	enum status st;

	if (c->has_lora && c->training.full_finetuning)
		return refuse(c, "training", "full_finetuning", "it cannot be combined with a section lora",
			      err);
	if (!c->has_lora && !c->training.full_finetuning)
		return refuse(c, "training", "full_finetuning",
			      "it is false and there is no section lora, so nothing would be trained; add a "
			      "section lora or set full_finetuning: true",
			      err);
	st = check_words(c, &c->lora.target_modules, linears, "target_modules", err);
	return st ? st : check_words(c, &c->lora.modules_to_save, saved_whole, "modules_to_save", err);
}

static enum status check_model(const struct config *c, struct error *err)
{
	/* a run directory's configuration gives every setting, so only other values count */
	const char *changed = c->model.bnb_4bit_quant_type != CONFIG_NF4 ? "bnb_4bit_quant_type"
			      : !c->model.bnb_4bit_use_double_quant	 ? "bnb_4bit_use_double_quant"
									 : NULL;

	if (c->model.load_in_4bit && c->training.full_finetuning)
		return refuse(
			c, "model", "load_in_4bit",
			"weights in 4 bits cannot be trained, so full_finetuning is not possible; use a section "
			"lora instead",
			err);
	return !c->model.load_in_4bit && changed
		       ? refuse(c, "model", changed, "it has an effect only with load_in_4bit: true", err)
		       : STATUS_OK;
}

/* Whether recompute and gradient_checkpointing are both given and differ. */
static bool recompute_contradicts(const struct config *c)
{
	const struct config_training *t = &c->training;

	if (t->gradient_checkpointing && t->recompute == CONFIG_RECOMPUTE_CHEAP)
		return true;
	return config_given(c, "training", "recompute") &&
	       config_given(c, "training", "gradient_checkpointing") &&
	       t->recompute != CONFIG_RECOMPUTE_CHEAP && t->recompute != CONFIG_RECOMPUTE_AUTO &&
	       t->gradient_checkpointing != (t->recompute == CONFIG_RECOMPUTE_FULL);
}

static bool computes_bf16(const struct config *c)
{
	const struct config_training *t = &c->training;

	return t->precision == CONFIG_PRECISION_AUTO
		       ? t->bf16
		       : t->precision != CONFIG_PRECISION_FP32 && t->precision != CONFIG_PRECISION_TF32;
}

/* Whether bf16 and precision are both given and differ. */
static bool precision_contradicts(const struct config *c)
{
	const struct config_training *t = &c->training;

	return t->precision != CONFIG_PRECISION_AUTO && config_given(c, "training", "bf16") &&
	       t->bf16 != computes_bf16(c);
}

/* Reads "7" or "2-25". False: it is neither. */
static bool read_layers(const char *word, uint64_t *first, uint64_t *last)
{
	unsigned long long from, to;
	int end = 0, more = 0;

	if (sscanf(word, "%6llu%n", &from, &end) != 1 || word[0] < '0' || word[0] > '9')
		return false;
	to = from;
	if (word[end] == '-' && (word[end + 1] < '0' || word[end + 1] > '9' ||
				 sscanf(word + end + 1, "%6llu%n", &to, &more) != 1))
		return false;
	*first = from;
	*last = to;
	return !word[end + (more ? 1 + more : 0)] && from <= to;
}

static enum status check_fp8(const struct config *c, struct error *err)
{
	const struct opt_words *words = &c->training.fp8_layers;
	uint64_t first, last;
	char why[160];

	if (words->count && c->training.precision != CONFIG_PRECISION_FP8)
		return refuse(c, "training", "fp8_layers", "it has an effect only with precision: fp8", err);
	for (size_t i = 0; i < words->count; i++)
		if (!read_layers(words->word[i], &first, &last)) {
			snprintf(why, sizeof(why),
				 "\"%.40s\" is neither a layer, such as 7, nor a range, such as 2-25",
				 words->word[i]);
			return refuse(c, "training", "fp8_layers", why, err);
		}
	return STATUS_OK;
}

enum status config_check_layers(const struct config *c, int64_t layers, struct error *err)
{
	const struct opt_words *words = &c->training.fp8_layers;
	uint64_t first, last;
	char why[160];

	for (size_t i = 0; i < words->count; i++)
		if (read_layers(words->word[i], &first, &last) && last >= (uint64_t)layers) {
			snprintf(why, sizeof(why), "the model has no layer %llu; its layers are 0 to %lld",
				 (unsigned long long)last, (long long)layers - 1);
			return refuse(c, "training", "fp8_layers", why, err);
		}
	return STATUS_OK;
}

bool config_layer_fp8(const struct config *c, int64_t i)
{
	const struct opt_words *words = &c->training.fp8_layers;
	uint64_t first, last;

	if (c->training.precision != CONFIG_PRECISION_FP8)
		return false;
	for (size_t k = 0; k < words->count; k++)
		if (read_layers(words->word[k], &first, &last) && (uint64_t)i >= first && (uint64_t)i <= last)
			return true;
	return !words->count;
}

static enum status check_precision(const struct config *c, struct error *err)
{
	const uint32_t attention = c->training.attention;

	if (precision_contradicts(c))
		return refuse(c, "training", "bf16",
			      "it contradicts precision; remove bf16, because precision says everything",
			      err);
	if (!computes_bf16(c) && (attention == CONFIG_ATTENTION_CUDNN || attention == CONFIG_ATTENTION_OWN))
		return refuse(
			c, "training", "attention",
			"cudnn and own compute in BF16, but precision or bf16 requests float32; use plain "
			"or auto",
			err);
	return STATUS_OK;
}

static enum status check_states(const struct config *c, struct error *err)
{
	const struct config_training *t = &c->training;

	if (t->offload && c->has_lora)
		return refuse(
			c, "training", "offload",
			"the optimizer states of adapters are small and stay on the device; remove it, or "
			"train with full_finetuning",
			err);
	if (t->master_weights == CONFIG_MASTER_FP32)
		return STATUS_OK;
	if (c->has_lora)
		return refuse(
			c, "training", "master_weights",
			"adapters always have float32 weights, because they are small; remove it, or train "
			"with full_finetuning",
			err);
	if (!computes_bf16(c))
		return refuse(c, "training", "master_weights",
			      "its weights are BF16, but precision or bf16 requests float32; use fp32", err);
	if (t->device == CONFIG_DEVICE_CPU)
		return refuse(
			c, "training", "master_weights",
			"it saves memory only on a GPU, because the CPU computes with float32 weights; use fp32",
			err);
	return STATUS_OK;
}

static enum status check_training(const struct config *c, struct error *err)
{
	const struct config_training *t = &c->training;
	enum status st = check_precision(c, err);

	if (!st)
		st = check_fp8(c, err);
	if (st)
		return st;
	if (t->fp16)
		return refuse(c, "training", "fp16",
			      "float16 is not supported, because it overflows without a loss scale; use "
			      "bf16: true",
			      err);
	if (t->warmup_steps && t->warmup_ratio > 0)
		return refuse(c, "training", "warmup_ratio",
			      "warmup_steps is given as well; remove one of them", err);
	if (recompute_contradicts(c))
		return refuse(c, "training", "gradient_checkpointing",
			      "it means the same as recompute: full, but recompute has another value", err);
	if (t->deterministic && t->attention == CONFIG_ATTENTION_CUDNN)
		return refuse(c, "training", "attention",
			      "cuDNN's gradients differ from run to run, which deterministic does not "
			      "allow; use own or auto",
			      err);
	if (c->has_lora && t->communication_data_type != CONFIG_COMMUNICATION_FP32)
		return refuse(
			c, "training", "communication_data_type",
			"ranks add the gradients of adapters in float32, because they are small; remove it, or "
			"train with full_finetuning",
			err);
	if (t->max_steps && t->warmup_steps > t->max_steps)
		return refuse(c, "training", "warmup_steps",
			      "it is larger than max_steps, so the learning rate would never reach its peak",
			      err);
	return check_states(c, err);
}

static enum status check_saves(const struct config *c, struct error *err)
{
	const struct config_training *t = &c->training;
	const char *wish = t->save_steps ? "save_steps" : "load_best_model_at_end";

	if (t->save_strategy == CONFIG_SAVE_NO && (t->save_steps || t->load_best_model_at_end))
		return refuse(c, "training", wish, "with save_strategy: no, nothing is saved", err);
	return STATUS_OK;
}

static enum status check_evaluation(const struct config *c, struct error *err)
{
	const struct config_training *t = &c->training;
	const char *wish = t->eval_steps		? "eval_steps"
			   : t->eval_on_start		? "eval_on_start"
			   : t->load_best_model_at_end	? "load_best_model_at_end"
			   : t->early_stopping_patience ? "early_stopping_patience"
							: NULL;

	if (wish && !c->data.eval.count)
		return refuse(c, "training", wish, "it needs a held-out set, but data: eval is not given",
			      err);
	if (t->early_stopping_patience && !t->eval_steps)
		return refuse(c, "training", "early_stopping_patience", "it needs eval_steps", err);
	return STATUS_OK;
}

enum status config_check(const struct config *c, struct error *err)
{
	enum status st;

	if (!c->model.name_or_path)
		return refuse(c, "model", "name_or_path", "it is missing; name a model's folder or GGUF file",
			      err);
	if (!c->data.train.count)
		return refuse(c, "data", "train", "it is missing; name a JSON Lines file", err);
	st = check_model(c, err);
	if (!st)
		st = check_lora(c, err);
	if (!st)
		st = check_training(c, err);
	if (!st)
		st = check_saves(c, err);
	return st ? st : check_evaluation(c, err);
}

void config_settle(struct config *c)
{
	struct config_training *t = &c->training;
	const struct tree *place;

	if (!t->bf16 && t->precision == CONFIG_PRECISION_AUTO)
		t->precision = CONFIG_PRECISION_FP32;
	t->bf16 = t->precision != CONFIG_PRECISION_FP32 && t->precision != CONFIG_PRECISION_TF32;
	if (t->gradient_checkpointing)
		t->recompute = CONFIG_RECOMPUTE_FULL;
	t->gradient_checkpointing = t->recompute == CONFIG_RECOMPUTE_FULL;
	if (t->optim == CONFIG_PAGED_ADAMW_8BIT || t->optim == CONFIG_PAGED_ADAMW_32BIT) {
		place = config_place(c, "training", "optim");
		text_addf(
			&c->notes,
			"%s:%d: training: optim: assay plans its memory and never moves it while it trains, so "
			"paged_adamw_%s means %s\n",
			place->file, place->line, t->optim == CONFIG_PAGED_ADAMW_8BIT ? "8bit" : "32bit",
			t->optim == CONFIG_PAGED_ADAMW_8BIT ? "adamw_8bit" : "adamw");
	}
	if (t->dataloader_num_workers > 1) {
		place = config_place(c, "training", "dataloader_num_workers");
		text_addf(
			&c->notes,
			"%s:%d: training: dataloader_num_workers: %u has the effect of 1, because one thread makes "
			"all micro-batches\n",
			place->file, place->line, t->dataloader_num_workers);
	}
}
