/* SPDX-License-Identifier: Apache-2.0 */
/* assay quantize: writes a model whose linear layers are in 4 bits. */
#include "cmd/command.h"
#include "cmd/model/model_files.h"
#include "cmd/shared/show.h"

struct quantize_opts {
	const char *model, *adapter, *out;
	uint32_t to, dtype;
	uint64_t shard;
	bool double_quant;
};

static const char *const types[] = {
#define X(name, text) [BNB4_##name] = text,
	BNB4_TYPE_LIST(X)
#undef X
		[BNB4_TYPE_COUNT] = NULL,
};

static const struct opt opts[] = {
	OPT_ROW(struct quantize_opts, model, .name = "model", .positional = true, .shown = "MODEL",
		.help = "the model: a folder or a GGUF file"),
	OPT_ROW(struct quantize_opts, to, .name = "to", .also = "quant-type bnb-4bit-quant-type",
		.preset = "nf4", .choices = types, .help = "format of the linear layers"),
	OPT_ROW(struct quantize_opts, double_quant, .name = "double-quant",
		.also = "bnb-4bit-use-double-quant nested", .preset = "true",
		.help = "quantize the scales (absmax) of the blocks too: 4.13 instead of 4.5 bits per weight"),
	OPT_ROW(struct quantize_opts, adapter, .name = "adapter", .shown = "DIR",
		.help = "folder with a LoRA adapter in PEFT format, which is merged first"),
	OPT_ROW(struct quantize_opts, out, .name = "out", .shown = "DIR",
		.help = "folder for the result; new or empty"),
	OPT_ROW(struct quantize_opts, dtype, .name = "dtype", .preset = "base",
		.choices = model_files_base_dtypes,
		.help = "data type of all other weights; base: unchanged, or bf16 if they are quantised"),
	OPT_ROW(struct quantize_opts, shard, .name = "shard", .preset = "5GB", .unit = "B", .min = 1,
		.max = 1e15, .help = "maximum size of one weights file"),
};

static enum status quantize(struct model_files *files, const struct quantize_opts *o, struct error *err)
{
	const struct folder_bnb4 to = {.type = (enum bnb4_type)o->to, .nested = o->double_quant};
	const struct merge_options mo = {
		.adapter = o->adapter,
		.dtype = model_files_base_dtype(o->dtype),
		.bnb4 = &to,
		.shard_bytes = o->shard,
	};

	if (!o->model || !o->out)
		return error_set(err, STATUS_BAD_INPUT, "no %s given: assay quantize MODEL --out DIR",
				 o->model ? "folder for the result" : "model");
	return model_files_write(files, o->model, o->out, &mo, err);
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct quantize_opts *o = opts_;
	struct model_files files;
	struct error err = {0};
	struct text line = {0};
	enum status st;

	model_files_begin(&files, c);
	st = quantize(&files, o, &err);
	model_files_end(&files);
	if (st)
		return command_complain(c, &err);
	text_addf(&line, "%s: %s%s%s in %s%s\n", o->out, o->model, o->adapter ? " with " : "",
		  o->adapter ? o->adapter : "", types[o->to], o->double_quant ? ", double quantization" : "");
	show_text(&line, UTF8_KEEP_NOTHING);
	text_release(&line);
	return EXIT_PASS;
}

const struct command command_quantize = {
	.name = "quantize",
	.summary = "quantize the linear layers of a model to 4 bits (NF4 or FP4)",
	.example = "assay quantize model --to nf4 --out model-nf4",
	.help = "Writes a folder that transformers with bitsandbytes can load, and that assay can train "
		"adapters on. The linear layers of the decoder become NF4 or FP4 in blocks of 64. Embedding, "
		"norms and head stay unchanged. A 7B model takes 5.5 GB instead of 15 GB.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct quantize_opts)},
	.alone = true,
	.run = run,
};
