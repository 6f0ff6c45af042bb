/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands that write models: data type names and progress. */
#ifndef CMD_MODEL_MODEL_FILES_H
#define CMD_MODEL_MODEL_FILES_H
#include "cmd/command.h"
#include "model/files/merge_adapter.h"
#include "model/files/model_folder.h"

extern const char *const model_files_dtypes[]; /* choices of --dtype: bf16, f16, f32 */
enum dtype model_files_dtype(uint32_t choice);
extern const char *const model_files_base_dtypes[]; /* the same after "base" */
enum dtype model_files_base_dtype(uint32_t choice); /* base: DTYPE_COUNT */
bool model_files_is_gguf(const char *path);	    /* decided by the file name */

struct model_files {
	const struct command_context *context;
	int percent; /* last percentage shown */
	bool shown;
};
void model_files_begin(struct model_files *f, const struct command_context *c);
/* Progress callback for folder_options: shows a line on the terminal. False after Ctrl-C. */
bool model_files_progress(void *files, uint64_t done, uint64_t all);
/* Writes the folder `out` with the weights of a model, and the adapter that the options name. Shows the
 * progress. */
enum status model_files_write(struct model_files *f, const char *model, const char *out,
			      const struct merge_options *options, struct error *err);
void model_files_end(struct model_files *f); /* removes the line */
#endif
