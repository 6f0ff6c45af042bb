/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config_rows.h"

static const char *const schedules[] = {
	"constant", "constant_with_warmup", "linear", "cosine", "onecycle", "wsd", NULL};
static const char *const decays[] = {"linear", "cosine", "1-sqrt", NULL};
static const char *const recomputes[] = {"none", "cheap", "full", NULL};
static const char *const formats[] = {"auto", "chat", "glaive", "sharegpt", NULL};
static const char *const long_rows[] = {"drop", "truncate", NULL};
static const char *const optims[] = {"adamw", "adamw_torch", NULL};
static const char *const linears[] = {"q_proj",	 "k_proj",    "v_proj",	    "o_proj", "gate_proj",
				      "up_proj", "down_proj", "all-linear", NULL};
static const char *const saved_whole[] = {"embed_tokens", "lm_head", NULL};

#define ROW(field, ...) OPT_ROW(struct config_model, field, .name = #field, __VA_ARGS__)
static const struct opt model_rows[] = {
	ROW(name_or_path, .shown = "PATH", .help = "folder with config.json and safetensors, or a GGUF file"),
	ROW(tokenizer, .shown = "PATH", .help = "tokenizer.json or its folder; else the model's own"),
	ROW(chat_template, .preset = "auto", .shown = "NAME",
	    .help = "how messages become text; auto: the model's own family"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_lora, field, .name = #field, __VA_ARGS__)
static const struct opt lora_rows[] = {
	ROW(r, .preset = "16", .min = 1, .max = 4096, .help = "rank"),
	ROW(alpha, .preset = "32", .min = 1e-6, .max = 1e6, .help = "scale: alpha / r"),
	ROW(dropout, .preset = "0", .min = 0, .max = 0.99, .help = "of the input of A"),
	ROW(use_rslora, .help = "scale: alpha / sqrt(r)"),
	ROW(target_modules, .many = true,
	    .help = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj, or "
		    "all-linear, which is the preset"),
	ROW(modules_to_save, .many = true, .help = "trained whole: embed_tokens, lm_head"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_training, field, .name = #field, __VA_ARGS__)
static const struct opt training_rows[] = {
	ROW(output_dir, .shown = "DIR", .help = "run directory; --out goes first"),
	ROW(full_finetuning, .help = "train every parameter; then there is no section lora"),
	ROW(per_device_train_batch_size, .preset = "1", .min = 1, .max = 65536,
	    .help = "packs (rows, without packing) a micro-batch"),
	ROW(per_device_eval_batch_size, .preset = "1", .min = 1, .max = 65536,
	    .help = "the same, of an evaluation"),
	ROW(gradient_accumulation_steps, .preset = "1", .min = 1, .max = 65536,
	    .help = "micro-batches a step"),
	ROW(max_steps, .preset = "0", .min = 0, .max = 1e12, .help = "0: as the epochs need"),
	ROW(num_train_epochs, .preset = "1", .min = 1e-6, .max = 1e6,
	    .help = "times over all rows; max_steps goes first"),
	ROW(learning_rate, .preset = "2e-5", .min = 0, .max = 10, .help = "at its highest"),
	ROW(lr_scheduler_type, .preset = "linear", .choices = schedules, .help = "its course"),
	ROW(warmup_steps, .preset = "0", .min = 0, .max = 1e12, .help = "from 0 to learning_rate"),
	ROW(warmup_ratio, .preset = "0", .min = 0, .max = 1, .help = "the same as a share of all steps"),
	ROW(min_lr_ratio, .preset = "0", .min = 0, .max = 1,
	    .help = "cosine, wsd: what is left at the end, a share"),
	ROW(num_decay_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "wsd: its last part; 0: a tenth of all"),
	ROW(decay_type, .preset = "linear", .choices = decays, .help = "wsd: the shape of its last part"),
	ROW(pct_start, .preset = "0.3", .min = 1e-6, .max = 0.999999,
	    .help = "onecycle: share of the steps that rise"),
	ROW(div_factor, .preset = "25", .min = 1, .max = 1e9,
	    .help = "onecycle: begins at learning_rate over this"),
	ROW(final_div_factor, .preset = "1e4", .min = 1, .max = 1e12,
	    .help = "onecycle: ends at its begin over this"),
	ROW(optim, .preset = "adamw", .choices = optims, .help = "AdamW is what there is"),
	ROW(weight_decay, .preset = "0", .min = 0, .max = 10, .help = "decoupled"),
	ROW(adam_beta1, .preset = "0.9", .min = 0, .max = 0.999999999, .help = ""),
	ROW(adam_beta2, .preset = "0.999", .min = 0, .max = 0.999999999, .help = ""),
	ROW(adam_epsilon, .preset = "1e-8", .min = 1e-30, .max = 1,
	    .help = "beside the root of the second moment"),
	ROW(max_grad_norm, .preset = "1", .min = 0, .max = 1e9,
	    .help = "gradients are scaled down to it; 0: never"),
	ROW(bf16, .help = "of the GPU's arithmetic; a CPU computes in float32 either way"),
	ROW(fp16, .help = "refused: bf16 needs no loss scale"),
	ROW(gradient_checkpointing, .help = "the same as recompute: full"),
	ROW(recompute, .preset = "none", .choices = recomputes,
	    .help = "activations made again in the backward pass: none, what is cheap, all of a layer"),
	ROW(logging_steps, .preset = "1", .min = 1, .max = 1e12, .help = "steps from one line to the next"),
	ROW(eval_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps from one evaluation to the next; 0: at the end"),
	ROW(eval_on_start, .help = "before the first step too"),
	ROW(save_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps from one checkpoint to the next; 0: at the end"),
	ROW(save_total_limit, .preset = "2", .min = 0, .max = 1e6,
	    .help = "checkpoints kept, the best one always; 0: all"),
	ROW(load_best_model_at_end, .help = "the adapter is the best checkpoint's, by evaluation loss"),
	ROW(early_stopping_patience, .preset = "0", .min = 0, .max = 1e6,
	    .help = "ends after so many evaluations without a better loss; 0: never"),
	ROW(early_stopping_threshold, .preset = "0", .min = 0, .max = 1e6, .help = "by how much is better"),
	ROW(tensorboard, .preset = "true", .help = "write TensorBoard's events"),
	ROW(seed, .preset = "42", .help = "of adapters, rows' order, dropout"),
	ROW(zero_stage, .preset = "0", .min = 0, .max = 3,
	    .help = "DeepSpeed's; one rank has nothing to divide"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_data, field, .name = #field, __VA_ARGS__)
static const struct opt data_rows[] = {
	ROW(train, .many = true, .help = "files of rows, JSON Lines"),
	ROW(eval, .many = true, .help = "held-out rows"),
	ROW(format, .preset = "auto", .choices = formats, .help = "of the rows; auto: by the first"),
	ROW(max_seq_length, .preset = "1024", .min = 8, .max = 16777216,
	    .help = "tokens of a pack, and of a row at most"),
	ROW(packing, .preset = "true", .help = "several rows a pack, which never see each other"),
	ROW(shuffle, .preset = "true", .help = "another order each epoch"),
	ROW(long_rows, .preset = "drop", .choices = long_rows,
	    .help = "longer than max_seq_length; counted either way"),
	ROW(max_bad_rows, .preset = "0", .min = 0, .max = 1e12,
	    .help = "rows that may be wrong; each is told"),
	ROW(max_train_samples, .preset = "0", .min = 0, .max = 1e12,
	    .help = "so many of the rows that fit, drawn at random, the same in every run; 0: all"),
	ROW(max_eval_samples, .preset = "0", .min = 0, .max = 1e12, .help = "the same, held-out rows"),
	ROW(control_tokens, .help = "words such as <|im_end|> inside messages are control tokens, not text"),
	ROW(cache_dir, .shown = "DIR", .help = "where tokenised rows are kept; else nowhere"),
};
#undef ROW

#define TABLE(rows, type)                                                                                    \
	{                                                                                                    \
		rows, sizeof(rows) / sizeof((rows)[0]), sizeof(type)                                         \
	}
const struct config_section config_sections[] = {
	{"model", "what is tuned", TABLE(model_rows, struct config_model), offsetof(struct config, model)},
	{"lora", "the adapter", TABLE(lora_rows, struct config_lora), offsetof(struct config, lora)},
	{"training", "steps, optimiser, files", TABLE(training_rows, struct config_training),
	 offsetof(struct config, training)},
	{"data", "rows", TABLE(data_rows, struct config_data), offsetof(struct config, data)},
};
const size_t config_section_count = sizeof(config_sections) / sizeof(config_sections[0]);

static enum status check_words(const struct opt_words *words, const char *const *known, const char *what,
			       const char *place, struct error *err)
{
	for (size_t i = 0; i < words->count; i++) {
		const char *near;
		size_t count = 0;
		bool found = false;

		for (; known[count]; count++)
			found = found || !strcmp(known[count], words->word[i]);
		near = opt_nearest(words->word[i], known, count);
		if (!found)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: lora: %s: unknown module \"%.64s\"%s%s%s", place, what,
					 words->word[i], near ? ", did you mean \"" : "", near ? near : "",
					 near ? "\"" : "");
		for (size_t k = 0; k < i; k++)
			if (!strcmp(words->word[k], words->word[i]))
				return error_set(err, STATUS_BAD_INPUT,
						 "%s: lora: %s: \"%s\" stands there twice", place, what,
						 words->word[i]);
	}
	return STATUS_OK;
}

static enum status check_lora(const struct config *c, const char *place, struct error *err)
{
	enum status st;

	if (c->has_lora == c->training.full_finetuning)
		return error_set(
			err, STATUS_BAD_INPUT,
			c->has_lora ? "%s: a section lora and training: full_finetuning: true contradict "
				      "each other"
				    : "%s: neither a section lora nor training: full_finetuning: true: "
				      "which is to be trained, an adapter or everything?",
			place);
	st = check_words(&c->lora.target_modules, linears, "target_modules", place, err);
	return st ? st : check_words(&c->lora.modules_to_save, saved_whole, "modules_to_save", place, err);
}

static enum status check_training(const struct config *c, const char *place, struct error *err)
{
	const struct config_training *t = &c->training;

	if (t->fp16)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: training: fp16: float16 overflows without a loss scale and is not done; use "
			"bf16: true",
			place);
	if (t->warmup_steps && t->warmup_ratio > 0)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: training: warmup_steps or warmup_ratio, not both", place);
	if (t->gradient_checkpointing && t->recompute == CONFIG_RECOMPUTE_CHEAP)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: training: gradient_checkpointing and recompute: cheap contradict each other",
			place);
	if (t->max_steps && t->warmup_steps > t->max_steps)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: training: warmup_steps are more than max_steps: learning_rate would never be "
			"reached",
			place);
	return STATUS_OK;
}

static enum status check_evaluation(const struct config *c, const char *place, struct error *err)
{
	const struct config_training *t = &c->training;
	const char *wish = t->eval_steps		? "eval_steps"
			   : t->eval_on_start		? "eval_on_start"
			   : t->load_best_model_at_end	? "load_best_model_at_end"
			   : t->early_stopping_patience ? "early_stopping_patience"
							: NULL;

	if (wish && !c->data.eval.count)
		return error_set(err, STATUS_BAD_INPUT, "%s: training: %s needs held-out rows: data: eval",
				 place, wish);
	if (t->early_stopping_patience && !t->eval_steps)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: training: early_stopping_patience needs eval_steps", place);
	return STATUS_OK;
}

enum status config_check(const struct config *c, const char *place, struct error *err)
{
	enum status st;

	if (!c->model.name_or_path)
		return error_set(err, STATUS_BAD_INPUT, "%s: model: name_or_path is missing", place);
	if (!c->data.train.count)
		return error_set(err, STATUS_BAD_INPUT, "%s: data: train is missing: which rows?", place);
	st = check_lora(c, place, err);
	if (!st)
		st = check_training(c, place, err);
	return st ? st : check_evaluation(c, place, err);
}
