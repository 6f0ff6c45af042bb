/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/model/model_files.h"

const char *const model_files_dtypes[] = {"bf16", "f16", "f32", NULL};

enum dtype model_files_dtype(uint32_t choice)
{
	static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};

	return dtypes[choice];
}

const char *const model_files_base_dtypes[] = {"base", "bf16", "f16", "f32", NULL};

enum dtype model_files_base_dtype(uint32_t choice)
{
	return choice ? model_files_dtype(choice - 1) : DTYPE_COUNT;
}

bool model_files_is_gguf(const char *path)
{
	size_t size = strlen(path);

	return size > 5 && !strcmp(path + size - 5, ".gguf");
}

void model_files_begin(struct model_files *f, const struct command_context *c)
{
	*f = (struct model_files){.context = c};
}

bool model_files_progress(void *files, uint64_t done, uint64_t all)
{
	struct model_files *f = files;
	int percent = all ? (int)((double)done / (double)all * 100) : 100;

	if (f->context->terminal && (!f->shown || percent != f->percent)) {
		fprintf(stderr, "\r%d %% of %.1f GB written\033[K", percent, (double)all / 1e9);
		fflush(stderr);
		f->percent = percent;
		f->shown = true;
	}
	return !*f->context->stop;
}

void model_files_end(struct model_files *f)
{
	if (f->shown)
		fprintf(stderr, "\r\033[K");
	f->shown = false;
}

enum status model_files_write(struct model_files *f, const char *model, const char *out,
			      const struct merge_options *options, struct error *err)
{
	struct merge_options o = *options;
	struct weights base;
	enum status st = weights_open(&base, model, err);

	o.log = f->context->log;
	o.progress = model_files_progress;
	o.arg = f;
	if (!st)
		st = merge_write(out, &base, &o, err);
	weights_release(&base);
	return st;
}
