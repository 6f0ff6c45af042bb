/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold among the settings of a training run. */
#include "train/config/settings.h"

static const char *const linears[] = {"q_proj",	 "k_proj",    "v_proj",	    "o_proj", "gate_proj",
				      "up_proj", "down_proj", "all-linear", NULL};
static const char *const saved_whole[] = {"embed_tokens", "lm_head", NULL};

/* "file:line: section: name: why" */
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
			 "all-linear stands for every one: another beside it contradicts it");
	for (size_t k = 0; k < i && !*why; k++)
		if (!strcmp(words->word[k], word))
			snprintf(why, sizeof(why), "\"%s\" stands there twice", word);
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
		return refuse(c, "training", "full_finetuning", "it and a section lora contradict each other",
			      err);
	if (!c->has_lora && !c->training.full_finetuning)
		return refuse(
			c, "training", "full_finetuning",
			"it is not true, and there is no section lora: which is to be trained, an adapter "
			"or everything?",
			err);
	st = check_words(c, &c->lora.target_modules, linears, "target_modules", err);
	return st ? st : check_words(c, &c->lora.modules_to_save, saved_whole, "modules_to_save", err);
}

/* Two settings of one thing, each given and not the same. */
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

static enum status check_training(const struct config *c, struct error *err)
{
	const struct config_training *t = &c->training;

	if (t->fp16)
		return refuse(c, "training", "fp16",
			      "float16 overflows without a loss scale and is not done; use bf16: true", err);
	if (t->warmup_steps && t->warmup_ratio > 0)
		return refuse(c, "training", "warmup_ratio", "warmup_steps is given as well: one of them",
			      err);
	if (recompute_contradicts(c))
		return refuse(c, "training", "gradient_checkpointing",
			      "it is recompute: full by another name, and recompute contradicts it", err);
	if (t->deterministic && t->attention == CONFIG_ATTENTION_CUDNN)
		return refuse(c, "training", "attention",
			      "cudnn's gradients differ from run to run, and deterministic asks for the "
			      "same: own or auto",
			      err);
	if (t->max_steps && t->warmup_steps > t->max_steps)
		return refuse(c, "training", "warmup_steps",
			      "they are more than max_steps: learning_rate would never be reached", err);
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
		return refuse(c, "training", wish, "it needs held-out rows, and data: eval names none", err);
	if (t->early_stopping_patience && !t->eval_steps)
		return refuse(c, "training", "early_stopping_patience", "it needs eval_steps", err);
	return STATUS_OK;
}

enum status config_check(const struct config *c, struct error *err)
{
	enum status st;

	if (!c->model.name_or_path)
		return refuse(c, "model", "name_or_path", "it is missing: which model?", err);
	if (!c->data.train.count)
		return refuse(c, "data", "train", "it is missing: which rows?", err);
	st = check_lora(c, err);
	if (!st)
		st = check_training(c, err);
	return st ? st : check_evaluation(c, err);
}

void config_settle(struct config *c)
{
	const struct tree *place = config_place(c, "training", "zero_stage");
	struct config_training *t = &c->training;

	if (t->gradient_checkpointing)
		t->recompute = CONFIG_RECOMPUTE_FULL;
	t->gradient_checkpointing = t->recompute == CONFIG_RECOMPUTE_FULL;
	if (t->zero_stage)
		text_addf(&c->notes,
			  "%s:%d: training: zero_stage: %u divides nothing here: one process holds weights, "
			  "gradients and moments\n",
			  place->file, place->line, t->zero_stage);
}
