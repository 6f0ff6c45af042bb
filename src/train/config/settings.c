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
static const char *const save_strategies[] = {"steps", "no", NULL};
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
	    .help = "for timing: use random weights, and take only the model's shape from its files"),
	ROW(load_in_4bit,
	    .help = "store the weights of the linear layers in 4 bits, as bitsandbytes does (QLoRA). Needs a "
		    "section lora"),
	ROW(bnb_4bit_quant_type, .preset = "nf4", .choices = quant_types,
	    .help = "with load_in_4bit: the 4-bit format, that is, the 16 numbers that it can store"),
	ROW(bnb_4bit_use_double_quant, .preset = "true",
	    .help = "with load_in_4bit: store the scale of each block of 64 weights in 8 bits. A weight then "
		    "takes 4.1 instead of 4.5 bits"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_lora, field, .name = #field, __VA_ARGS__)
static const struct opt lora_rows[] = {
	ROW(r, .preset = "16", .min = 1, .max = 4096, .help = "rank of the adapter"),
	ROW(alpha, .preset = "32", .min = 1e-6, .max = 1e6, .help = "the adapter is scaled by alpha / r"),
	ROW(dropout, .preset = "0", .min = 0, .max = 0.99,
	    .help = "dropout rate at the input of the adapter (matrix A)"),
	ROW(use_rslora, .help = "use the scale alpha / sqrt(r)"),
	ROW(target_modules, .many = true,
	    .help = "linear layers that get an adapter: any of q_proj k_proj v_proj o_proj gate_proj up_proj "
		    "down_proj. Default: all-linear, which means all seven"),
	ROW(modules_to_save, .many = true,
	    .help = "modules whose own weights are trained too: embed_tokens, lm_head"),
};
#undef ROW

/* A resumed run may change the settings with no_key: they divide the work, and do not change what it is. */
#define ROW(field, ...) OPT_ROW(struct config_training, field, .name = #field, __VA_ARGS__)
static const struct opt training_rows[] = {
	ROW(device, .preset = "auto", .choices = devices,
	    .help = "device of the training. auto: a GPU if one is usable, otherwise the CPU"),
	ROW(attention, .preset = "auto", .choices = attentions,
	    .help = "GPU only: attention kernels for sequences of equal length. auto: cuDNN if it is available "
		    "and supports the shape, otherwise assay's own. cudnn: always cuDNN, and an error if it is "
		    "not usable. own: assay's kernels. Sequences of unequal length, as in packs, always use "
		    "assay's kernels. plain: kernels without tensor cores, for all sequences. float32 always "
		    "uses plain"),
	ROW(precision, .preset = "auto", .choices = precisions,
	    .help = "number format of activations and GEMMs. auto: bf16 on a GPU, fp32 on a CPU. fp32: float32 "
		    "without TF32. tf32 (GPU only): float32, but GEMMs use tensor cores, which round their "
		    "inputs to 10 bits. bf16: GPU only. fp8 (GPUs of sm_90, such as H100): the linear layers of "
		    "the base model multiply in E4M3, and the rest uses bf16. With device: cpu, a CPU computes "
		    "fp8 training in float32"),
	ROW(fp8_layers, .many = true,
	    .help = "with precision: fp8: the decoder layers that use FP8, for example [1-26]. The others keep "
		    "the number format of the activations. Default: all layers"),
	ROW(deterministic, .help = "GPU only: bit-identical results from run to run and after a resume"),
	ROW(adapters, .preset = "auto", .choices = layouts,
	    .help = "GPU only. auto: compute the adapters in the same GEMMs as their base layers (fused), if "
		    "dropout is 0. separate: never"),
	ROW(tune, .preset = "true",
	    .help = "GPU only: after the first step, time cuBLASLt's algorithms for each GEMM once and use the "
		    "fastest. No effect with deterministic"),
	ROW(graphs, .preset = "true",
	    .help = "GPU only: launch all layers as one CUDA graph, which saves launch time. Applies to small "
		    "micro-batches (tokens x hidden up to 4.7 million) whose shape occurred before"),
	ROW(step_parts,
	    .help = "GPU only: time each kind of operation, so that the report shows the parts of a step"),
	ROW(output_dir, .shown = "DIR", .help = "run directory; --out overrides it"),
	ROW(full_finetuning, .help = "train every parameter; not allowed together with a section lora"),
	ROW(per_device_train_batch_size, .preset = "1", .min = 1, .max = 65536,
	    .help = "sequences per micro-batch on each rank. A sequence is a pack of rows or, without packing, "
		    "one row"),
	ROW(per_device_eval_batch_size, .preset = "1", .min = 1, .max = 65536,
	    .help = "sequences per micro-batch during evaluation"),
	ROW(gradient_accumulation_steps, .preset = "1", .min = 1, .max = 65536,
	    .help = "micro-batches per optimizer step on each rank. With 1, full fine-tuning needs less "
		    "memory, because activations use the gradient's memory; a model with a tied head needs "
		    "zero_stage: 2 or 3 for that"),
	ROW(global_batch_size, .preset = "0", .min = 0, .max = 1e9,
	    .help = "sequences per step of all ranks together. assay then sets gradient_accumulation_steps "
		    "accordingly. 0: the number follows from the other settings and the number of ranks"),
	ROW(gpus, .no_key = true, .preset = "1", .min = 0, .max = 1024,
	    .help = "number of GPUs of this node to train on, with one rank each. 0: all. With assay launch each "
		    "rank uses one GPU, and this setting has no effect"),
	ROW(bucket_cap_mb, .preset = "64", .min = 0.001, .max = 1e6,
	    .help = "full fine-tuning on several ranks: the gradient is added over the ranks in parts (buckets) "
		    "of this size in MiB, while lower layers still compute. With offload: optimizer, it is the "
		    "size in MiB of the float32 weights whose states are copied at once"),
	ROW(communication_data_type, .preset = "fp32", .choices = communications,
	    .help = "full fine-tuning on several ranks: number format in which the ranks send and add their "
		    "gradients. bf16 halves the bytes, but rounds each rank's gradient and the sum"),
	ROW(dataloader_num_workers, .preset = "1", .max = 1024,
	    .help = "1 or more: a thread prepares the next micro-batch during the step. 0: the step waits while "
		    "its micro-batch is prepared and copied to the GPU. Values above 1 have no further effect, "
		    "because one thread is enough"),
	ROW(auto_find_batch_size,
	    .help = "use the largest micro-batch that fits into 90 % of the available memory. The number of rows "
		    "per step stays the same"),
	ROW(max_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "number of optimizer steps; 0: as many as num_train_epochs needs"),
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
	    .help = "optimizer: AdamW. Its moments are in float32 (adamw, adamw_torch), in 8 bits as in "
		    "bitsandbytes (adamw_8bit, adamw_bnb_8bit), or in BF16 with stochastic rounding "
		    "(adamw_bf16). The names with paged_ are accepted too, but assay does not page"),
	ROW(master_weights, .preset = "fp32", .choices = masters,
	    .help = "full fine-tuning on a GPU: the weights that the optimizer updates. fp32: a float32 copy. "
		    "split: the BF16 weights and the 16 more bits that float32 has. none: only the BF16 weights, "
		    "with stochastic rounding. With split and none, gradients are in BF16"),
	ROW(offload, .no_key = true, .preset = "none", .choices = offloads,
	    .help = "full fine-tuning. optimizer: keep the moments, and the weights that GEMMs do not read, in "
		    "pinned host memory. They pass through the GPU in buckets of bucket_cap_mb. On one rank with "
		    "max_grad_norm: 0, a layer is updated as soon as its gradient is complete"),
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
	    .help = "activations to recompute in the backward pass (gradient checkpointing). none: nothing. "
		    "cheap: the outputs of norms. full: the whole layer. offload: as full, with the inputs of "
		    "layers in pinned host memory. auto: the first of none, cheap and full that fits into 90 % "
		    "of the available memory"),
	ROW(logging_steps, .preset = "1", .min = 1, .max = 1e12, .help = "steps between two printed lines"),
	ROW(eval_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps between two evaluations; 0: evaluate only at the end"),
	ROW(eval_on_start, .help = "also evaluate before the first step"),
	ROW(save_steps, .preset = "0", .min = 0, .max = 1e12,
	    .help = "steps between two checkpoints; 0: save only at the end"),
	ROW(save_strategy, .preset = "steps", .choices = save_strategies,
	    .help = "steps: save as save_steps says, and at the end. no: write no checkpoint, adapter or model; "
		    "for measurements"),
	ROW(save_total_limit, .preset = "2", .min = 0, .max = 1e6,
	    .help = "number of newest checkpoints to keep, in addition to the one with the best evaluation; 0: "
		    "keep all"),
	ROW(load_best_model_at_end,
	    .help = "write a checkpoint after each evaluation that is the best so far, and export the best one "
		    "at the end"),
	ROW(early_stopping_patience, .preset = "0", .min = 0, .max = 1e6,
	    .help = "stop after this many evaluations without a better loss; 0: never"),
	ROW(early_stopping_threshold, .preset = "0", .min = 0, .max = 1e6,
	    .help = "smallest decrease of the loss that counts as better"),
	ROW(tensorboard, .preset = "true", .help = "write TensorBoard event files"),
	ROW(seed, .preset = "42",
	    .help = "seed of the adapters' initial values, the order of rows and dropout"),
	ROW(zero_stage, .no_key = true, .preset = "0", .min = 0, .max = 3,
	    .help = "several ranks: the data that they divide between them, as in DeepSpeed's ZeRO. 0: nothing. "
		    "1: the optimizer states. 2: also the gradient. 3: also the weights. Adapters and their "
		    "gradient are small, so each rank keeps them whole"),
	ROW(dp_shard_size, .no_key = true, .preset = "0", .min = 0, .max = 4096,
	    .help = "with zero_stage: number of ranks in a group that divides the data (hybrid sharding, HSDP). "
		    "Each group holds a whole copy, so only sums of gradients pass between groups. Usually the "
		    "number of GPUs of a node. With tensor_parallel_size, it counts copies of the model. 0: all "
		    "ranks form one group"),
	ROW(tensor_parallel_size, .no_key = true, .preset = "1", .min = 1, .max = 64,
	    .help = "number of ranks that share one copy of the model. Each rank computes its own heads, "
		    "features and part of the vocabulary. The number of all ranks must be a multiple of this "
		    "number. With zero_stage, the copies divide each rank's part of the model"),
};
#undef ROW

#define ROW(field, ...) OPT_ROW(struct config_data, field, .name = #field, __VA_ARGS__)
static const struct opt data_rows[] = {
	ROW(train, .many = true, .help = "training data: JSON Lines files"),
	ROW(eval, .many = true,
	    .help = "held-out rows, which test the model and are not used for training: JSON Lines files"),
	ROW(format, .preset = "auto", .choices = formats,
	    .help = "format of the rows; auto: detect it from the keys of each row"),
	ROW(max_seq_length, .preset = "1024", .min = 8, .max = 16777216,
	    .help = "tokens per pack, and the limit for one row"),
	ROW(packing, .preset = "true",
	    .help = "put several rows into one sequence (pack). Attention does not cross the borders of rows"),
	ROW(shuffle, .preset = "true", .help = "use another order of rows in each epoch"),
	ROW(long_rows, .preset = "drop", .choices = long_rows,
	    .help = "drop or truncate rows that are longer than max_seq_length. assay counts them in both cases"),
	ROW(max_bad_rows, .preset = "0", .min = 0, .max = 1e12,
	    .help = "number of invalid rows to skip, with a warning for each. If there are more, training does "
		    "not start"),
	ROW(max_train_samples, .preset = "0", .min = 0, .max = 1e12,
	    .help = "use only this many rows, chosen at random from those that fit. The choice is the same in "
		    "every run. 0: all rows"),
	ROW(max_eval_samples, .preset = "0", .min = 0, .max = 1e12,
	    .help = "like max_train_samples, for the held-out rows"),
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
