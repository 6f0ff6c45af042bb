/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a training run, in YAML or JSON. The names of settings are those common in the field.
 * config_read checks everything that needs neither the model's files nor the rows.
 * docs/reference/training.md lists all settings.
 */
#ifndef TRAIN_CONFIG_CONFIG_H
#define TRAIN_CONFIG_CONFIG_H
#include <jansson.h>
#include "core/input/opt.h"
#include "core/text/text.h"
#include "core/input/tree.h"

struct config_model {
	const char *name_or_path; /* folder of a Hugging Face model, or a GGUF file */
	const char *tokenizer;	  /* NULL: the model's own */
	const char *chat_template;
	bool random_weights; /* only the shape is read from the model's files */
	bool load_in_4bit;   /* the layers' linear weights are stored in 4 bits */
	uint32_t bnb_4bit_quant_type;
	bool bnb_4bit_use_double_quant;
};

struct config_lora {
	uint32_t r;
	double alpha, dropout;
	struct opt_words target_modules, modules_to_save;
	bool use_rslora;
};

enum config_quant_type { CONFIG_NF4, CONFIG_FP4 };
enum config_device { CONFIG_DEVICE_AUTO, CONFIG_DEVICE_CPU, CONFIG_DEVICE_GPU };
enum config_attention {
	CONFIG_ATTENTION_AUTO,
	CONFIG_ATTENTION_CUDNN,
	CONFIG_ATTENTION_OWN,
	CONFIG_ATTENTION_PLAIN
};
/* AUTO: BF16 on a GPU, FP32 on a CPU. */
enum config_precision {
	CONFIG_PRECISION_AUTO,
	CONFIG_PRECISION_FP32,
	CONFIG_PRECISION_TF32,
	CONFIG_PRECISION_BF16,
	CONFIG_PRECISION_FP8
};
const char *config_precision_name(uint32_t precision);
enum config_adapters { CONFIG_ADAPTERS_AUTO, CONFIG_ADAPTERS_SEPARATE };
enum config_recompute {
	CONFIG_RECOMPUTE_NONE,
	CONFIG_RECOMPUTE_CHEAP,
	CONFIG_RECOMPUTE_FULL,
	CONFIG_RECOMPUTE_OFFLOAD,
	CONFIG_RECOMPUTE_AUTO
};
const char *config_recompute_name(uint32_t recompute);
enum config_optim {
	CONFIG_ADAMW,
	CONFIG_ADAMW_TORCH,
	CONFIG_ADAMW_8BIT,
	CONFIG_ADAMW_BNB_8BIT,
	CONFIG_ADAMW_BF16,
	CONFIG_PAGED_ADAMW_8BIT,
	CONFIG_PAGED_ADAMW_32BIT
};
enum config_save { CONFIG_SAVE_STEPS, CONFIG_SAVE_NO };
enum config_master { CONFIG_MASTER_FP32, CONFIG_MASTER_SPLIT, CONFIG_MASTER_NONE };
const char *config_master_name(uint32_t master);
enum config_offload { CONFIG_OFFLOAD_NONE, CONFIG_OFFLOAD_OPTIMIZER };
enum config_communication { CONFIG_COMMUNICATION_FP32, CONFIG_COMMUNICATION_BF16 };
enum config_schedule {
	CONFIG_CONSTANT,
	CONFIG_CONSTANT_WITH_WARMUP,
	CONFIG_LINEAR,
	CONFIG_COSINE,
	CONFIG_ONECYCLE,
	CONFIG_WSD
};
enum config_decay { CONFIG_DECAY_LINEAR, CONFIG_DECAY_COSINE, CONFIG_DECAY_1_SQRT };

struct config_training {
	const char *output_dir;
	uint32_t per_device_train_batch_size, per_device_eval_batch_size, gradient_accumulation_steps;
	uint64_t max_steps; /* 0: derived from the number of epochs */
	double num_train_epochs, learning_rate, warmup_ratio, weight_decay, adam_beta1, adam_beta2,
		adam_epsilon, max_grad_norm, min_lr_ratio, pct_start, div_factor, final_div_factor;
	uint64_t warmup_steps, num_decay_steps, logging_steps, eval_steps, save_steps;
	uint32_t dataloader_num_workers; /* 0: batches are made while the step waits */
	uint32_t save_strategy;		 /* enum config_save */
	uint32_t save_total_limit;	 /* 0: keep all */
	uint32_t lr_scheduler_type, decay_type, recompute, optim, master_weights, offload;
	/* The caller replaces AUTO in `device` before training; the back end reads AUTO as CPU */
	uint32_t device, attention, adapters, precision;
	struct opt_words fp8_layers; /* none: all layers */
	bool deterministic, step_parts, tune, graphs;
	bool full_finetuning, auto_find_batch_size, bf16, fp16, gradient_checkpointing, eval_on_start,
		load_best_model_at_end, tensorboard;
	uint32_t early_stopping_patience; /* evaluations without improvement before the run stops; 0: never */
	double early_stopping_threshold;
	uint64_t seed;
	uint32_t gpus;			  /* of this node, if no launcher started the ranks; 0: all */
	uint32_t zero_stage;		  /* from DeepSpeed's configuration */
	uint32_t dp_shard_size;		  /* ranks of a group that divides what zero_stage says; 0: all */
	uint32_t tensor_parallel_size;	  /* ranks that share one copy of the model */
	double bucket_cap_mb;		  /* MiB of the gradient that are summed over the ranks at once */
	uint32_t communication_data_type; /* of the gradient's numbers between ranks */
	uint64_t global_batch_size; /* packs of all ranks in one step; 0: from the three settings' product */
};

struct config_data {
	struct opt_words train, eval;
	uint32_t format, long_rows;
	uint64_t max_seq_length, max_bad_rows, max_train_samples, max_eval_samples;
	bool packing, shuffle, control_tokens;
	const char *cache_dir;
};

enum { CONFIG_SECTIONS = 4, CONFIG_ROWS_MAX = 64 };

/* Not settings: where the run happens. See train/mesh/mesh.h. */
struct config_place {
	unsigned rank, ranks; /* ranks 0: one rank */
	uint64_t step_packs;  /* packs of a step in the run that is resumed; 0: the settings decide */
};

struct config {
	struct config_model model;
	struct config_lora lora;
	struct config_training training;
	struct config_data data;
	bool has_lora;
	/* Not a setting: PCI address of the GPU that the plan is for. Lent. NULL or "": CUDA's first GPU. */
	const char *gpu;
	struct config_place place;
	struct text notes; /* one line for each setting without effect */
	struct tree *tree[2];
	/* The tree node of each setting's value; NULL: not given. */
	const struct tree *given[CONFIG_SECTIONS][CONFIG_ROWS_MAX];
	const char **words[8];
	size_t word_lists;
	char *paths[64]; /* owned memory of paths that were made absolute */
	size_t path_count;
};

/* Values of the settings long_rows and format. */
enum config_long_rows { CONFIG_LONG_DROP, CONFIG_LONG_TRUNCATE };
enum config_format { CONFIG_FORMAT_AUTO, CONFIG_FORMAT_CHAT, CONFIG_FORMAT_GLAIVE, CONFIG_FORMAT_SHAREGPT };

/* One section. Its settings are fields of the struct at `offset` in struct config. */
struct config_section {
	const char *name, *help;
	struct opt_table table;
	size_t offset;
};
extern const struct config_section config_sections[];
extern const size_t config_section_count; /* at most CONFIG_SECTIONS */

/* Whether layer i computes in FP8: precision is fp8 and fp8_layers, such as
 * [2-25, 27], has it or is not given. */
bool config_layer_fp8(const struct config *c, int64_t i);
/* Checks that the model has the layers of fp8_layers. */
enum status config_check_layers(const struct config *c, int64_t layers, struct error *err);
/* Reads and checks a configuration. Relative paths are relative to the working directory and become
 * absolute. BAD_INPUT names file and line, and for an unknown word the nearest known one. After
 * config_release *c is zeroed. */
enum status config_read(struct config *c, const char *path, struct error *err);
enum status config_parse(struct config *c, const char *name, const char *text, size_t size,
			 struct error *err);
void config_release(struct config *c);
/* Appends every setting as YAML. Reading the text again gives the same values. */
void config_write(struct text *out, const struct config *c);
/* SHA-256 of every setting. */
void config_hash(char out[65], const struct config *c);
/* SHA-256 of the settings that a resumed run may not change: all without no_key. */
void config_run_hash(char out[65], const struct config *c);
/* These settings as texts: {"training": {"precision": "fp8"}}. Texts of the sections model and data are left
 * out, because they may be paths. Owner: caller. NULL: no memory. */
json_t *config_run_settings(const struct config *c);

/* Reads DeepSpeed's JSON, given as a file or a map (train/config/deepspeed.c). Stage, micro-batch,
 * accumulation, clipping and bf16 become settings of `training`; if such a setting is also given there, it
 * must have the same value. Every other DeepSpeed setting is listed in c->notes. */
enum status config_deepspeed(struct config *c, const struct tree *map, struct error *err);
#endif
