/* SPDX-License-Identifier: Apache-2.0 */
/* assay make-model: writes a model with random weights in the usual file formats. */
#include <inttypes.h>
#include "cmd/command.h"
#include "cmd/model/model_files.h"
#include "cmd/shared/show.h"
#include "core/file/mapped.h"
#include "core/gguf/metadata.h"
#include "model/files/random_weights.h"
#include "text/tokenizer/tokenizer.h"
#include "text/files/tokenizer_files.h"
#include "model/files/weights.h"

struct make_opts {
	const char *out, *shape, *tokenizer;
	uint32_t dtype;
	uint64_t seed, shard;
	bool holes;
};

static const struct opt opts[] = {
	OPT_ROW(struct make_opts, out, .name = "out", .also = "output o", .shown = "DIR",
		.help = "folder for the model; new or empty"),
	OPT_ROW(struct make_opts, shape, .name = "shape", .also = "size preset", .shown = "NAME",
		.preset = "tiny", .choices = shape_names, .help = "architecture and size of the model"),
	OPT_ROW(struct make_opts, seed, .name = "seed", .preset = "1", .help = "seed of the random weights"),
	OPT_ROW(struct make_opts, dtype, .name = "dtype", .also = "type torch-dtype", .preset = "bf16",
		.choices = model_files_dtypes, .help = "data type of the weights"),
	OPT_ROW(struct make_opts, shard, .name = "shard", .preset = "5GB", .unit = "B", .min = 1, .max = 1e15,
		.help = "maximum size of one weights file"),
	OPT_ROW(struct make_opts, tokenizer, .name = "tokenizer", .shown = "PATH",
		.help = "tokenizer.json, a folder with it, or a GGUF file (default: a vocabulary of bytes)"),
	OPT_ROW(struct make_opts, holes, .name = "holes",
		.help = "write sparse files of zeros, which need no disk space and no time. Enough for plans, which "
			"read only the headers"),
};

struct making {
	const struct make_opts *o;
	struct model_files files;
};

static enum status rows(void *arg, const struct named *n, int64_t row, int64_t count, float *out,
			struct error *err)
{
	const struct making *m = arg;

	(void)err;
	random_weights(n, m->o->seed, row, count, out);
	return STATUS_OK;
}

static enum status add_tokenizer(void *arg, const char *dir, struct error *err)
{
	const struct making *m = arg;
	const char *from = m->o->tokenizer;
	struct gguf_metadata metadata;
	enum status st;

	if (!from)
		return tokenizer_files_of_bytes(dir, err);
	if (!model_files_is_gguf(from))
		return tokenizer_files_copy(dir, from, err);
	st = gguf_metadata_open(&metadata, from, err);
	if (st)
		return st;
	st = mapped_check(tokenizer_files_of_gguf(dir, &metadata, err), err);
	gguf_metadata_release(&metadata);
	return st;
}

/* Checks that the model has a row for each token id. A program built without tokenizers cannot check it. */
static enum status check_tokenizer(const char *path, const struct shape *s, struct error *err)
{
	struct tokenizer *t = NULL;
	struct error why = {0};
	enum status st = tokenizer_open(&t, path, &why);

	if (st == STATUS_UNAVAILABLE && why.cause == CAUSE_LIBRARY_MISSING)
		return STATUS_OK;
	if (st)
		*err = why;
	else
		st = tokenizer_check_rows(t, s->vocab, err);
	tokenizer_close(&t);
	return st;
}

static bool progress(void *arg, uint64_t done, uint64_t all)
{
	struct making *m = arg;

	return model_files_progress(&m->files, done, all);
}

/* Opens the written model like any other, to verify it. */
static enum status check(const char *dir, struct error *err)
{
	struct weights w;
	enum status st = weights_open(&w, dir, err);

	weights_release(&w);
	return st;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct make_opts *o = opts_;
	struct making m = {.o = o};
	struct shape shape;
	const struct folder_options fo = {
		.shape = &shape,
		.dtype = model_files_dtype(o->dtype),
		.shard_bytes = o->shard,
		.holes = o->holes,
		.rows = rows,
		.more = add_tokenizer,
		.progress = progress,
		.arg = &m,
	};
	struct error err = {0};
	struct text line = {0};
	enum status st;

	model_files_begin(&m.files, c);
	st = o->out ? shape_by_name(&shape, o->shape, &err)
		    : error_set(&err, STATUS_BAD_INPUT, "no folder given: assay make-model --out DIR");
	if (!st && o->tokenizer)
		st = check_tokenizer(o->tokenizer, &shape, &err);
	if (!st)
		st = folder_write(o->out, &fo, &err);
	if (!st)
		st = check(o->out, &err);
	model_files_end(&m.files);
	if (st)
		return command_complain(c, &err);
	text_addf(&line, "%s: %s, %" PRId64 " parameters, %s\n", o->out, o->shape, shape_parameters(&shape),
		  o->holes ? "no numbers" : "random numbers");
	show_text(&line, UTF8_KEEP_NOTHING);
	text_release(&line);
	return EXIT_PASS;
}

const struct command command_make_model = {
	.name = "make-model",
	.summary = "write a model with random weights in the usual file formats",
	.example = "assay make-model --shape qwen2-7b --out model   # 15 GB of random BF16 weights",
	.help = "Writes config.json, sharded safetensors and a tokenizer. The weights are random. Use such a "
		"model for timings, plans and tests on machines to which you may not copy real weights. The "
		"same seed gives the same weights on every machine.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct make_opts)},
	.alone = true,
	.run = run,
};
