/* SPDX-License-Identifier: Apache-2.0 */
/* assay merge: writes a base model and an adapter as one model folder. */
#include <inttypes.h>
#include "cmd/command.h"
#include "cmd/model/model_files.h"
#include "cmd/shared/show.h"

struct merge_opts {
	const char *base, *adapter, *out;
	uint32_t dtype;
	uint64_t shard;
	bool any_base;
};

static const struct opt opts[] = {
	OPT_ROW(struct merge_opts, base, .name = "base", .positional = true, .shown = "MODEL",
		.help = "the base model: a folder or a GGUF file"),
	OPT_ROW(struct merge_opts, adapter, .name = "adapter", .positional = true, .shown = "ADAPTER",
		.help = "folder with a LoRA adapter in PEFT format; without it, merge only converts the base model"),
	OPT_ROW(struct merge_opts, out, .name = "out", .shown = "DIR",
		.help = "folder for the result; new or empty"),
	OPT_ROW(struct merge_opts, dtype, .name = "dtype", .preset = "base",
		.choices = model_files_base_dtypes,
		.help = "data type of the weights; base: unchanged, or bf16 if they are quantised"),
	OPT_ROW(struct merge_opts, shard, .name = "shard", .preset = "5GB", .unit = "B", .min = 1,
		.max = 1e15, .help = "maximum size of one weights file"),
	OPT_ROW(struct merge_opts, any_base, .name = "any-base",
		.help = "accept an adapter that was trained on other base weights"),
};

static enum status merge(struct model_files *files, const struct merge_opts *o, struct error *err)
{
	const struct merge_options mo = {
		.adapter = o->adapter,
		.dtype = model_files_base_dtype(o->dtype),
		.shard_bytes = o->shard,
		.any_base = o->any_base,
	};

	if (!o->base || !o->out)
		return error_set(err, STATUS_BAD_INPUT, "no %s given: assay merge MODEL [ADAPTER] --out DIR",
				 o->base ? "folder for the result" : "model");
	return model_files_write(files, o->base, o->out, &mo, err);
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct merge_opts *o = opts_;
	struct model_files files;
	struct error err = {0};
	struct text line = {0};
	enum status st;

	model_files_begin(&files, c);
	st = merge(&files, o, &err);
	model_files_end(&files);
	if (st)
		return command_complain(c, &err);
	text_addf(&line, "%s: %s%s%s\n", o->out, o->base, o->adapter ? " with " : "",
		  o->adapter ? o->adapter : "");
	show_text(&line, UTF8_KEEP_NOTHING);
	text_release(&line);
	return EXIT_PASS;
}

const struct command command_merge = {
	.name = "merge",
	.summary = "merge a LoRA adapter into its base model and write one model folder",
	.example = "assay merge model adapter --out merged",
	.help = "Adds a LoRA adapter to the weights of its base model and writes a folder that Hugging Face "
		"programs can load: config.json, safetensors, tokenizer. If the adapter belongs to another "
		"model, assay refuses it.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct merge_opts)},
	.alone = true,
	.run = run,
};
