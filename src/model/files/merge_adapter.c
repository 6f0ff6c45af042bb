/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/merge_adapter.h"

#include <limits.h>
#include "core/file/mapped.h"
#include "model/tensor/dtype.h"
#include "model/files/model_folder.h"
#include "model/files/gguf/gguf.h"
#include "core/json/file.h"
#include "model/files/peft/base.h"
#include "model/files/peft/delta.h"
#include "model/files/peft/names.h"
#include "model/files/rounded_weights.h"
#include "text/files/tokenizer_files.h"

enum { CONFIG_MAX = 16 << 20 };

struct merging {
	const struct weights *base;
	const struct merge_options *o;
	struct shape shape;  /* shape of the result */
	struct peft adapter; /* empty: no adapter */
	json_t *config;
	/* Of the present tensor. rounded is used if the adapter's base model was quantized in training. */
	struct peft_delta delta;
	struct rounded_weights rounded;
};

/* Whether the adapter was trained with the numbers that remain of this weight in 4 bits. The file of a weight
 * that it has in 4 bits has these numbers. */
static bool is_rounded(const struct merging *m, const struct named *n)
{
	struct weights_raw raw;

	return !storage_is_resident(&m->adapter.config.base_storage) && peft_target_of(n->hf) &&
	       weights_find(&raw, m->base, n->hf) && !raw.bnb4;
}

/* Reads the adapter of the next tensor, before several threads ask for its rows. */
static enum status begin(void *arg, const struct named *n, struct error *err)
{
	struct merging *m = arg;

	enum status st;

	peft_delta_release(&m->delta);
	rounded_weights_release(&m->rounded);
	st = peft_delta_read(&m->delta, &m->adapter, n->hf, err);
	return st || !is_rounded(m, n)
		       ? st
		       : rounded_weights_read(&m->rounded, m->base, n, &m->adapter.config.base_storage, err);
}

static enum status rows(void *arg, const struct named *n, int64_t row, int64_t count, float *out,
			struct error *err)
{
	const struct merging *m = arg;
	const struct tensor *whole = peft_find(&m->adapter, n->hf, PEFT_WHOLE);
	const char *name = n->hf;
	enum status st = STATUS_OK;

	if (whole) {
		uint64_t size = whole->size / (uint64_t)n->rows;

		dtype_unpack(whole->dtype, whole->data + size * (uint64_t)row, out,
			     (size_t)(count * n->cols));
		return mapped_check(STATUS_OK, err);
	}
	if (m->base->shape.tied &&
	    !strcmp(name,
		    "lm_head.weight")) /* the adapter trained the head separately from the tied embedding */
		name = "model.embed_tokens.weight";
	if (is_rounded(m, n))
		rounded_weights_rows(&m->rounded, row, count, out);
	else
		st = weights_rows(m->base, name, row, count, out, err);
	if (!st)
		peft_delta_apply(&m->delta, row, count, out, NULL);
	return mapped_check(st, err);
}

/* Called when all numbers are written, but the folder is not a model yet: the last moment to detect a
 * truncated input file. */
static enum status more(void *arg, const char *dir, struct error *err)
{
	const struct merging *m = arg;
	enum status st = m->base->gguf ? tokenizer_files_of_gguf(dir, &m->base->gguf->metadata, err)
				       : tokenizer_files_copy(dir, m->base->path, err);

	return mapped_check_sizes(st, err);
}

static bool progress(void *arg, uint64_t done, uint64_t all)
{
	const struct merging *m = arg;

	return !m->o->progress || m->o->progress(m->o->arg, done, all);
}

static enum dtype dtype_of(const struct merging *m)
{
	struct weights_raw raw;
	bool known = weights_find(&raw, m->base, "model.embed_tokens.weight");
	enum dtype dtype = known ? raw.tensor->dtype : DTYPE_BF16;

	if (m->o->dtype != DTYPE_COUNT)
		return m->o->dtype;
	return dtype == DTYPE_F32 || dtype == DTYPE_F16 ? dtype : DTYPE_BF16;
}

/* The quantization_config that transformers writes for a model that it quantized with bitsandbytes. */
static enum status add_quantization(struct merging *m, const char *dtype, struct error *err)
{
	const struct folder_bnb4 *to = m->o->bnb4;
	json_t *made =
		json_pack("{s:b, s:b, s:s, s:s, s:s, s:b, s:b, s:b, s:n, s:f, s:b, s:b, s:s}",
			  "_load_in_4bit", 1, "_load_in_8bit", 0, "bnb_4bit_compute_dtype", dtype,
			  "bnb_4bit_quant_storage", "uint8", "bnb_4bit_quant_type", bnb4_type_name(to->type),
			  "bnb_4bit_use_double_quant", to->nested, "llm_int8_enable_fp32_cpu_offload", 0,
			  "llm_int8_has_fp16_weight", 0, "llm_int8_skip_modules", "llm_int8_threshold", 6.0,
			  "load_in_4bit", 1, "load_in_8bit", 0, "quant_method", "bitsandbytes");

	if (!made || json_object_set_new(m->config, "quantization_config", made))
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory",
				       m->base->path);
	return STATUS_OK;
}

/* Reads the base model's configuration, if it has one, and applies the changes of the merge. */
static enum status read_config(struct merging *m, enum dtype dtype, struct error *err)
{
	const char *type = dtype == DTYPE_F32 ? "float32" : dtype == DTYPE_F16 ? "float16" : "bfloat16";
	char path[PATH_MAX + 16];
	enum status st;

	if (m->base->gguf && m->o->bnb4)
		m->config = shape_config(&m->shape, dtype);
	if (m->base->gguf)
		return m->o->bnb4 ? add_quantization(m, type, err) : STATUS_OK;
	snprintf(path, sizeof(path), "%s/config.json", m->base->path);
	st = json_file_read(&m->config, path, CONFIG_MAX, err);
	if (st)
		return st;
	json_object_set_new(m->config, json_object_get(m->config, "dtype") ? "dtype" : "torch_dtype",
			    json_string(type));
	json_object_set_new(m->config, "tie_word_embeddings", json_boolean(m->shape.tied));
	json_object_del(m->config, "quantization_config"); /* the base's */
	return m->o->bnb4 ? add_quantization(m, type, err) : STATUS_OK;
}

static enum status check(const char *out, struct error *err)
{
	struct weights w;
	enum status st = weights_open(&w, out, err);

	weights_release(&w);
	return st;
}

enum status merge_write(const char *out, const struct weights *base, const struct merge_options *o,
			struct error *err)
{
	struct merging m = {.base = base, .o = o, .shape = base->shape};
	struct folder_options fo = {
		.shape = &m.shape,
		.shard_bytes = o->shard_bytes,
		.begin = begin,
		.rows = rows,
		.more = more,
		.progress = progress,
		.arg = &m,
	};
	enum status st = STATUS_OK;

	if (o->bnb4 && base->bnb4_count)
		st = error_set(
			err, STATUS_BAD_INPUT,
			"%s: %zu matrices are in 4 bits already; quantize the model that it was made from",
			base->path, base->bnb4_count);
	fo.bnb4 = o->bnb4;
	if (!st && o->adapter)
		st = peft_open(&m.adapter, o->adapter, &base->shape, err);
	if (!st && o->adapter)
		st = peft_check_base(&m.adapter, base, o->any_base, o->log, err);
	if (!st && o->adapter && peft_does_nothing(&m.adapter))
		st = error_set(
			err, STATUS_BAD_INPUT,
			"%s: every B is zero, so the adapter was never trained and the merge would change nothing",
			m.adapter.file.path);
	st = mapped_check(st, err);
	/* a tied model is untied if the adapter trained one end separately */
	if (m.adapter.config.save)
		m.shape.tied = false;
	fo.dtype = dtype_of(&m);
	if (!st)
		st = read_config(&m, fo.dtype, err);
	fo.config = m.config;
	if (!st && !base->gguf)
		st = tokenizer_files_check(base->path, err);
	if (!st)
		st = folder_write(out, &fo, err);
	if (!st)
		st = check(out, err);
	peft_release(&m.adapter);
	json_decref(m.config);
	peft_delta_release(&m.delta);
	rounded_weights_release(&m.rounded);
	return st;
}
