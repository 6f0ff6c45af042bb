/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config/settings.h"

#include "text/chat/template.h"

static const char *const schedules[] = {
	"constant", "constant_with_warmup", "linear", "cosine", "onecycle", "wsd", NULL};
static const char *const decays[] = {"linear", "cosine", "1-sqrt", NULL};
static const char *const recomputes[] = {"none", "cheap", "full", "offload", "auto", NULL};
static const char *const formats[] = {"auto", "chat", "glaive", "sharegpt", NULL};
static const char *const long_rows[] = {"drop", "truncate", NULL};
static const char *const devices[] = {"auto", "cpu", "gpu", NULL};
static const char *const attentions[] = {"auto", "cudnn", "own", "plain", NULL};
static const char *const precisions[] = {"auto", "fp32", "tf32", "bf16", "fp8", NULL};
static const char *const layouts[] = {"auto", "separate", NULL};
static const char *const optims[] = {"adamw",	   "adamw_torch",      "adamw_8bit",	    "adamw_bnb_8bit",
				     "adamw_bf16", "paged_adamw_8bit", "paged_adamw_32bit", NULL};
static const char *const offloads[] = {"none", "optimizer", NULL};
static const char *const masters[] = {"fp32", "split", "none", NULL};

static const char *const communications[] = {"fp32", "bf16", NULL};
static const char *const quant_types[] = {"nf4", "fp4", NULL};

#define ROW(field, ...) OPT_ROW(struct config_model, field, .name = #field, __VA_ARGS__)
static const struct opt model_rows[] = {
	ROW(name_or_path, .shown = "PATH", .help = "folder with config.json and safetensors, or a GGUF file"),
	ROW(tokenizer, .shown = "PATH",
	    .help = "tokenizer.json or its folder; default: the model's own tokenizer"),
	ROW(chat_template, .preset = "auto", .choices = template_names,
	    .help = "format that turns messages into text; auto: the model's own template"),
	ROW(random_weights,
	    .help = "fill the weights with random numbers and take only the model's shape from its files; "
		    "for timing"),
	ROW(load_in_4bit,
	    .help = "store the weights of the layers' linear layers in 4 bits, as bitsandbytes does (QLoRA); needs a "
		    "section lora"),
	ROW(bnb_4bit_quant_type, .preset = "nf4", .choices = quant_types,
	    .help = "load_in_4bit: the 16 numbers that 4 bits stand for"),
	ROW(bnb_4bit_use_double_quant, .preset = "true",
	    .help = "load_in_4bit: store the scale of each 64 weights in 8 bits; 4.1 instead of 4.5 bits per weight"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_lora, field, .name = #field, __VA_ARGS__)
static const struct opt lora_rows[] = {
	ROW(r, .preset = "16", .min = 1, .max = 4096, .help = "rank of the adapter"),
	ROW(alpha, .preset = "32", .min = 1e-6, .max = 1e6, .help = "scale of the adapter: alpha / r"),
	ROW(dropout, .preset = "0", .min = 0, .max = 0.99, .help = "dropout rate of the input of A"),
	ROW(use_rslora, .help = "use the scale alpha / sqrt(r)"),
	ROW(target_modules, .many = true,
	    .help = "linear layers with an adapter, of q_proj k_proj v_proj o_proj gate_proj up_proj down_proj; "
		    "all-linear, the default, means all of them"),
	ROW(modules_to_save, .many = true, .help = "modules trained in full: embed_tokens, lm_head"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_training, field, .name = #field, __VA_ARGS__)
static const struct opt training_rows[] = {
	ROW(device, .preset = "auto", .choices = devices,
	    .help = "auto: a GPU if one is granted and usable, else the CPU"),
	ROW(attention, .preset = "auto", .choices = attentions,
	    .help = "GPU only. Attention of sequences of equal length: cudnn, which is an error if cuDNN is not usable; own, "
		    "assay's kernels; or auto, cuDNN if it is available and supports the shape. Sequences of unequal "
		    "length, as in packs, always use assay's kernels. plain: kernels without tensor cores, for any "
		    "sequences; float32 always uses them"),
	ROW(precision, .preset = "auto", .choices = precisions,
	    .help = "number type of activations and GEMMs. auto: bf16 on a GPU, fp32 on a CPU. fp32: float32 without "
		    "TF32. tf32, only on a GPU: float32 with GEMMs on tensor cores, which round their inputs to 10 bits. "
		    "bf16: only on a GPU. fp8, on a GPU of sm_90: the base model's linear layers multiply in E4M3, and "
		    "the rest is as with bf16. A CPU computes the same in float32, with device: cpu"),
	ROW(fp8_layers, .many = true,
	    .help = "with precision: fp8, the layers whose linear layers use it, such as [1-26]; the others keep the "
		    "number type of activations. Default: all layers"),
	ROW(deterministic, .help = "GPU only: bit-identical results from run to run and after a resume"),
	ROW(adapters, .preset = "auto", .choices = layouts,
	    .help = "GPU only. auto: fuse the adapters' GEMMs into the GEMMs of their base layers if "
		    "dropout is 0; separate: never"),
	ROW(tune, .preset = "true",
	    .help = "GPU only: time cuBLASLt's candidates for each GEMM once, after the first step; has no "
		    "effect with deterministic"),
	ROW(graphs, .preset = "true",
	    .help = "GPU only: launch the layers of a small micro-batch (tokens x hidden up to 4.7 million) as one CUDA "
		    "graph if the same shape occurred before"),
	ROW(step_parts, .help = "GPU only: time each kind of operation with CUDA events"),
	ROW(output_dir, .shown = "DIR", .help = "run directory; --out overrides it"),
	ROW(full_finetuning, .help = "train every parameter; not allowed together with a section lora"),
	ROW(per_device_train_batch_size, .preset = "1", .min = 1, .max = 65536,
	    .help = "sequences per micro-batch: packs, or rows without packing"),
	ROW(per_device_eval_batch_size, .preset = "1", .min = 1, .max = 65536,
	    .help = "sequences per micro-batch of an evaluation"),
	ROW(gradient_accumulation_steps, .preset = "1", .min = 1, .max = 65536,
	    .help = "micro-batches per step, of each rank"),
	ROW(global_batch_size, .preset = "0", .min = 0, .max = 1e9,
	    .help = "sequences per step of all ranks together, which sets gradient_accumulation_steps; 0: as the "
		    "other settings and the number of ranks give"),
	ROW(gpus, .preset = "1", .min = 0, .max = 1024,
	    .help = "GPUs of this node that assay train uses, one rank each; 0: all. Launched ranks use one each, "
		    "whatever this says"),
	ROW(bucket_cap_mb, .preset = "64", .min = 0.001, .max = 1e6,
	    .help = "full fine-tuning on several ranks: MiB of the gradient whose sum over the ranks begins while "
		    "lower layers still compute theirs. With offload: optimizer: MiB of float32 weights whose states "
		    "are copied at once"),
	ROW(communication_data_type, .preset = "fp32", .choices = communications,
	    .help = "full fine-tuning on several ranks: number type in which they add their gradients. bf16 halves the bytes, "
		    "and rounds what each rank sends and the sum"),
	ROW(dataloader_num_workers, .preset = "1", .max = 1024,
	    .help = "0: make each micro-batch, and copy it to the GPU, while the step waits for it; 1 or more: a thread makes the "
		    "next one ahead. More than one has no further effect, because one thread is enough"),
	ROW(auto_find_batch_size, .help = "use the largest micro-batch that fits into 90 % of the available "
					  "memory; a step keeps its number of rows"),
	ROW(max_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "optimizer steps; 0: as many as num_train_epochs needs"),
	ROW(num_train_epochs, .preset = "1", .min = 1e-6, .max = 1e6,
	    .help = "passes over all rows; max_steps overrides it"),
	ROW(learning_rate, .preset = "2e-5", .min = 0, .max = 10, .help = "peak learning rate"),
	ROW(lr_scheduler_type, .preset = "linear", .choices = schedules, .help = "learning rate schedule"),
	ROW(warmup_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps of linear warm-up from 0 to learning_rate"),
	ROW(warmup_ratio, .preset = "0", .min = 0, .max = 1, .help = "warm-up as a share of all steps"),
	ROW(min_lr_ratio, .preset = "0", .min = 0, .max = 1,
	    .help = "cosine, wsd: final learning rate as a share of the peak"),
	ROW(num_decay_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "wsd: steps of the decay phase; 0: a tenth of all steps"),
	ROW(decay_type, .preset = "linear", .choices = decays, .help = "wsd: shape of the decay"),
	ROW(pct_start, .preset = "0.3", .min = 1e-6, .max = 0.999999,
	    .help = "onecycle: share of the steps with a rising learning rate"),
	ROW(div_factor, .preset = "25", .min = 1, .max = 1e9,
	    .help = "onecycle: initial learning rate = learning_rate / div_factor"),
	ROW(final_div_factor, .preset = "1e4", .min = 1, .max = 1e12,
	    .help = "onecycle: final learning rate = initial learning rate / final_div_factor"),
	ROW(optim, .preset = "adamw", .choices = optims,
	    .help = "AdamW with moments in float32 (adamw, adamw_torch), in 8 bits as in bitsandbytes (adamw_8bit, "
		    "adamw_bnb_8bit), or in BF16 with stochastic rounding (adamw_bf16). Names with paged_ mean the "
		    "same without paging"),
	ROW(master_weights, .preset = "fp32", .choices = masters,
	    .help = "full fine-tuning on a GPU: weights that the optimizer changes. fp32 keeps a float32 copy. split keeps "
		    "the BF16 weights and the 16 bits that float32 has in addition. none keeps only the BF16 weights and "
		    "rounds them stochastically. Gradients are BF16 with split and none"),
	ROW(offload, .preset = "none", .choices = offloads,
	    .help = "full fine-tuning. optimizer: moments, and weights that GEMMs do not read, are in pinned host memory, and "
		    "pass through the GPU in buckets of bucket_cap_mb. With max_grad_norm: 0 on one rank, a layer is updated "
		    "as soon as its gradient is complete"),
	ROW(weight_decay, .preset = "0", .min = 0, .max = 10, .help = "decoupled weight decay"),
	ROW(adam_beta1, .preset = "0.9", .min = 0, .max = 0.999999999,
	    .help = "decay rate of the first moment"),
	ROW(adam_beta2, .preset = "0.999", .min = 0, .max = 0.999999999,
	    .help = "decay rate of the second moment"),
	ROW(adam_epsilon, .preset = "1e-8", .min = 1e-30, .max = 1,
	    .help = "added to the square root of the second moment"),
	ROW(max_grad_norm, .preset = "1", .min = 0, .max = 1e9,
	    .help = "clip gradients to this global norm; 0: no clipping"),
	ROW(bf16, .preset = "true",
	    .help = "false is the same as precision: fp32; true is the same as precision: auto"),
	ROW(fp16, .help = "not supported; use bf16, which needs no loss scale"),
	ROW(gradient_checkpointing, .help = "same as recompute: full"),
	ROW(recompute, .preset = "auto", .choices = recomputes,
	    .help = "activations to recompute in the backward pass: none, cheap (outputs of norms) or full (the "
		    "whole layer). offload is full with the inputs of layers in pinned host memory. auto takes the least "
		    "of none, cheap and full with which the plan fits into 90 % of the available memory"),
	ROW(logging_steps, .preset = "1", .min = 1, .max = 1e12, .help = "steps between two printed lines"),
	ROW(eval_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps between two evaluations; 0: evaluate only at the end"),
	ROW(eval_on_start, .help = "also evaluate before the first step"),
	ROW(save_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps between two checkpoints; 0: save only at the end"),
	ROW(save_total_limit, .preset = "2", .min = 0, .max = 1e6,
	    .help = "number of newest checkpoints to keep, in addition to the best evaluation's; 0: keep all"),
	ROW(load_best_model_at_end,
	    .help = "write a checkpoint at each best evaluation, and export the last of these at the end"),
	ROW(early_stopping_patience, .preset = "0", .min = 0, .max = 1e6,
	    .help = "stop after this many evaluations without a better loss; 0: never"),
	ROW(early_stopping_threshold, .preset = "0", .min = 0, .max = 1e6,
	    .help = "smallest decrease of the loss that counts as better"),
	ROW(tensorboard, .preset = "true", .help = "write TensorBoard event files"),
	ROW(seed, .preset = "42",
	    .help = "seed of the adapters' initial values, the order of rows and dropout"),
	ROW(zero_stage, .preset = "0", .min = 0, .max = 3,
	    .help = "what several ranks divide, as in DeepSpeed. 0: nothing. 1: the optimizer's states. 2: also the "
		    "gradient. 3: also the weights. Adapters and their gradient are small and stay whole"),
	ROW(dp_shard_size, .preset = "0", .min = 0, .max = 4096,
	    .help = "with zero_stage: ranks of a group that divides what zero_stage says (hybrid sharding, HSDP). The groups "
		    "hold copies, so only sums of gradients pass between them. Usually the GPUs of a node. With "
		    "tensor_parallel_size: copies of the model, not ranks. 0: all"),
	ROW(tensor_parallel_size, .preset = "1", .min = 1, .max = 64,
	    .help = "ranks that share one copy of the model: each computes its heads, features and part of the "
		    "vocabulary. The number of ranks is a multiple of it. With zero_stage the copies divide each "
		    "rank's part"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_data, field, .name = #field, __VA_ARGS__)
static const struct opt data_rows[] = {
	ROW(train, .many = true, .help = "training data: JSON Lines files"),
	ROW(eval, .many = true, .help = "held-out set: JSON Lines files"),
	ROW(format, .preset = "auto", .choices = formats,
	    .help = "format of the rows; auto: detect it from the keys of each row"),
	ROW(max_seq_length, .preset = "1024", .min = 8, .max = 16777216,
	    .help = "tokens per pack, and the limit for one row"),
	ROW(packing, .preset = "true",
	    .help = "put several rows into one pack; attention does not cross rows"),
	ROW(shuffle, .preset = "true", .help = "use another order of rows in each epoch"),
	ROW(long_rows, .preset = "drop", .choices = long_rows,
	    .help = "rows longer than max_seq_length: drop or truncate them; both are counted"),
	ROW(max_bad_rows, .preset = "0", .min = 0, .max = 1e12,
	    .help = "invalid rows to skip, with a warning for each; one more is an error"),
	ROW(max_train_samples, .preset = "0", .min = 0, .max = 1e12,
	    .help = "use this many random rows of those that fit, the same in every run; 0: all"),
	ROW(max_eval_samples, .preset = "0", .min = 0, .max = 1e12, .help = "the same for the held-out set"),
	ROW(control_tokens, .help = "treat texts such as <|im_end|> inside messages as control tokens"),
	ROW(cache_dir, .shown = "DIR", .help = "folder to cache tokenized rows; default: no cache"),
};
#undef ROW

#define TABLE(rows, type)                                                                                    \
	{                                                                                                    \
		rows, sizeof(rows) / sizeof((rows)[0]), sizeof(type)                                         \
	}
const struct config_section config_sections[] = {
	{"model", "the base model", TABLE(model_rows, struct config_model), offsetof(struct config, model)},
	{"lora", "the adapter", TABLE(lora_rows, struct config_lora), offsetof(struct config, lora)},
	{"training", "steps, optimizer, files", TABLE(training_rows, struct config_training),
	 offsetof(struct config, training)},
	{"data", "rows", TABLE(data_rows, struct config_data), offsetof(struct config, data)},
};
const size_t config_section_count = sizeof(config_sections) / sizeof(config_sections[0]);
_Static_assert(sizeof(config_sections) / sizeof(config_sections[0]) == CONFIG_SECTIONS, "sections");
_Static_assert(sizeof(training_rows) / sizeof(training_rows[0]) <= CONFIG_ROWS_MAX,
	       "training is the section with the most rows");

const char *config_master_name(uint32_t master)
{
	return masters[master];
}

const char *config_recompute_name(uint32_t recompute)
{
	return recomputes[recompute];
}

const char *config_precision_name(uint32_t precision)
{
	return precisions[precision];
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
