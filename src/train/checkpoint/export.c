/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/export.h"
#include <stdlib.h>
#include "core/file/file.h"
#include "model/files/gguf/gguf.h"
#include "model/files/model_folder.h"
#include "text/files/tokenizer_files.h"

enum status export_adapter(const char *dir, const struct model *m, const struct mat *master, bool or_none,
			   struct error *err)
{
	struct peft_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = model_peft_slots(m, master, &slots, &names, &count, err);

	if (!st && !(or_none && peft_slots_do_nothing(slots, count))) {
		st = file_make_dir(dir, err);
		if (!st)
			st = peft_write(dir, &m->lora, &m->shape, slots, count, err);
	}
	free(slots);
	free(names);
	return st;
}

struct whole {
	const struct params *params;
	const struct checkpoint_found *saved; /* NULL: params has the weights */
	const struct weights *from;
};

static enum status rows_of(void *arg, const struct named *n, int64_t row, int64_t rows, float *out,
			   struct error *err)
{
	const struct whole *w = arg;
	const struct params *p = w->params;
	const struct param *one = params_find(p, n->hf);

	if (!one)
		return error_set(err, STATUS_BUG, "%s is not a trained parameter", n->hf);
	if (w->saved)
		return checkpoint_weights(w->saved, p, one, (size_t)(row * one->cols),
					  (size_t)(rows * one->cols), out, err);
	params_master(p, one->offset + (size_t)(row * one->cols), (size_t)(rows * one->cols), out);
	return STATUS_OK;
}

static enum status write_tokenizer(void *arg, const char *dir, struct error *err)
{
	const struct whole *w = arg;

	return w->from->gguf ? tokenizer_files_of_gguf(dir, &w->from->gguf->metadata, err)
			     : tokenizer_files_copy(dir, w->from->path, err);
}

enum status export_model(const char *dir, const struct model *m, const struct params *host,
			 const struct checkpoint_found *saved, const struct weights *from, struct error *err)
{
	struct whole w = {host, saved, from};
	const struct folder_options o = {.shape = &m->shape,
					 .dtype = host->format.master == MASTER_NONE ? DTYPE_BF16 : DTYPE_F32,
					 .replace = true,
					 .shard_bytes = 5000000000u,
					 .rows = rows_of,
					 .more = write_tokenizer,
					 .arg = &w};

	return folder_write(dir, &o, err);
}
