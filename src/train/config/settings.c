/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config/settings.h"

#include "model/chat/template.h"

static const char *const schedules[] = {
	"constant", "constant_with_warmup", "linear", "cosine", "onecycle", "wsd", NULL};
static const char *const decays[] = {"linear", "cosine", "1-sqrt", NULL};
static const char *const recomputes[] = {"none", "cheap", "full", "auto", NULL};
static const char *const formats[] = {"auto", "chat", "glaive", "sharegpt", NULL};
static const char *const long_rows[] = {"drop", "truncate", NULL};
static const char *const devices[] = {"auto", "cpu", "gpu", NULL};
static const char *const attentions[] = {"auto", "cudnn", "own", NULL};
static const char *const layouts[] = {"auto", "separate", NULL};
static const char *const optims[] = {"adamw", "adamw_torch", NULL};

#define ROW(field, ...) OPT_ROW(struct config_model, field, .name = #field, __VA_ARGS__)
static const struct opt model_rows[] = {
	ROW(name_or_path, .shown = "PATH", .help = "folder with config.json and safetensors, or a GGUF file"),
	ROW(tokenizer, .shown = "PATH", .help = "tokenizer.json or its folder; else the model's own"),
	ROW(chat_template, .preset = "auto", .choices = template_names,
	    .help = "how messages become text; auto: the model's own"),
	ROW(random_weights,
	    .help = "random numbers in the place of the files', of which the shape alone is taken: "
		    "for timings"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_lora, field, .name = #field, __VA_ARGS__)
static const struct opt lora_rows[] = {
	ROW(r, .preset = "16", .min = 1, .max = 4096, .help = "rank"),
	ROW(alpha, .preset = "32", .min = 1e-6, .max = 1e6, .help = "scale: alpha / r"),
	ROW(dropout, .preset = "0", .min = 0, .max = 0.99, .help = "of the input of A"),
	ROW(use_rslora, .help = "scale: alpha / sqrt(r)"),
	ROW(target_modules, .many = true,
	    .help = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj, or all-linear, which is the preset"),
	ROW(modules_to_save, .many = true, .help = "trained whole: embed_tokens, lm_head"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_training, field, .name = #field, __VA_ARGS__)
static const struct opt training_rows[] = {
	ROW(device, .preset = "auto", .choices = devices,
	    .help = "what computes; auto: a GPU where one is granted and answers, else the CPU"),
	ROW(attention, .preset = "auto", .choices = attentions,
	    .help = "of a GPU, of rows of one length: cuDNN's or an error, our kernels', or cuDNN's where it is there "
		    "and takes them; of rows of several lengths, as packs have, always our kernels'"),
	ROW(deterministic, .help = "of a GPU: the same bits from run to run and after a resume"),
	ROW(adapters, .preset = "auto", .choices = layouts,
	    .help = "of a GPU: their products in those of the maps they are of, where nothing is dropped; or apart"),
	ROW(tune, .preset = "true",
	    .help = "of a GPU: time cuBLASLt's candidates for each product once, behind the first step; not "
		    "where deterministic"),
	ROW(graphs, .preset = "true",
	    .help = "of a GPU: the layers of a small micro-batch (tokens x hidden up to 4.7 million) are "
		    "enqueued as a whole where one of the same shape was before"),
	ROW(step_parts, .help = "of a GPU: time each kind of operation, an event each"),
	ROW(output_dir, .shown = "DIR", .help = "run directory; --out goes first"),
	ROW(full_finetuning, .help = "train every parameter; then there is no section lora"),
	ROW(per_device_train_batch_size, .preset = "1", .min = 1, .max = 65536,
	    .help = "packs (rows, without packing) a micro-batch"),
	ROW(per_device_eval_batch_size, .preset = "1", .min = 1, .max = 65536,
	    .help = "the same, of an evaluation"),
	ROW(gradient_accumulation_steps, .preset = "1", .min = 1, .max = 65536,
	    .help = "micro-batches a step"),
	ROW(auto_find_batch_size, .help = "the largest micro-batch that 90 % of the memory available holds; "
					  "the rows of a step stay"),
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
	ROW(bf16, .preset = "true",
	    .help = "a GPU computes in BF16; false: in float32, which the CPU alone does, and always"),
	ROW(fp16, .help = "refused: bf16 needs no loss scale"),
	ROW(gradient_checkpointing, .help = "the same as recompute: full"),
	ROW(recompute, .preset = "auto", .choices = recomputes,
	    .help = "activations made again in the backward pass: none, what is cheap, all of a layer; auto: "
		    "the least of which the plan fits nine tenths of what is available"),
	ROW(logging_steps, .preset = "1", .min = 1, .max = 1e12, .help = "steps from one line to the next"),
	ROW(eval_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps from one evaluation to the next; 0: at the end"),
	ROW(eval_on_start, .help = "before the first step too"),
	ROW(save_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps from one checkpoint to the next; 0: at the end"),
	ROW(save_total_limit, .preset = "2", .min = 0, .max = 1e6,
	    .help = "newest checkpoints kept, and the best evaluation's if it was written; 0: all"),
	ROW(load_best_model_at_end,
	    .help = "a checkpoint at each best evaluation; what is exported is the last of them"),
	ROW(early_stopping_patience, .preset = "0", .min = 0, .max = 1e6,
	    .help = "ends after so many evaluations without a better loss; 0: never"),
	ROW(early_stopping_threshold, .preset = "0", .min = 0, .max = 1e6, .help = "by how much is better"),
	ROW(tensorboard, .preset = "true", .help = "write TensorBoard's events"),
	ROW(seed, .preset = "42", .help = "of adapters, rows' order, dropout"),
	ROW(zero_stage, .preset = "0", .min = 0, .max = 3,
	    .help = "DeepSpeed's, read and noted: one process holds all, whatever it says"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_data, field, .name = #field, __VA_ARGS__)
static const struct opt data_rows[] = {
	ROW(train, .many = true, .help = "files of rows, JSON Lines"),
	ROW(eval, .many = true, .help = "held-out rows"),
	ROW(format, .preset = "auto", .choices = formats, .help = "of the rows; auto: by each row's keys"),
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
_Static_assert(sizeof(config_sections) / sizeof(config_sections[0]) == CONFIG_SECTIONS, "sections");
_Static_assert(sizeof(training_rows) / sizeof(training_rows[0]) <= CONFIG_ROWS_MAX, "the longest one's rows");

const char *config_recompute_name(uint32_t recompute)
{
	return recomputes[recompute];
}

size_t config_row(const struct opt_table *t, const char *name)
{
	size_t row = 0;

	while (row < t->count && strcmp(t->rows[row].name, name))
		row++;
	return row;
}

const struct config_section *config_section(const char *name)
{
	for (size_t i = 0; i < config_section_count; i++)
		if (!strcmp(config_sections[i].name, name))
			return &config_sections[i];
	return NULL;
}

const struct tree *config_given(const struct config *c, const char *section, const char *name)
{
	const struct config_section *s = config_section(section);
	size_t row = config_row(&s->table, name);

	return row < s->table.count ? c->given[s - config_sections][row] : NULL;
}

const struct tree *config_place(const struct config *c, const char *section, const char *name)
{
	const struct tree *place = name ? config_given(c, section, name) : NULL;

	if (!place)
		place = tree_get(c->tree[0], section);
	return place ? place : c->tree[0];
}
