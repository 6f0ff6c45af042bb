/* SPDX-License-Identifier: Apache-2.0 */
/* Merges an adapter into its base model and writes a model folder: W + scale B A, tensor by tensor, so the
 * model is never completely in memory. Without an adapter it only converts or quantizes the model. */
#ifndef MODEL_FILES_MERGE_ADAPTER_H
#define MODEL_FILES_MERGE_ADAPTER_H
#include "core/log.h"
#include "model/files/model_folder.h"
#include "model/files/weights.h"

struct merge_options {
	/* PEFT folder; NULL: only convert the base model to another type or out of a GGUF. */
	const char *adapter;
	/* Type of the result; DTYPE_COUNT: the base model's if it is F32, BF16 or F16, else BF16. */
	enum dtype dtype;
	/* NULL: the result is not quantized. Else the base must not be in 4 bits. */
	const struct folder_bnb4 *bnb4;
	uint64_t shard_bytes;
	/* An adapter of other weights causes only a warning (model/files/peft/base.h). */
	bool any_base;
	const struct log *log;					  /* NULL: no warnings */
	bool (*progress)(void *arg, uint64_t done, uint64_t all); /* see folder_write; NULL: none */
	void *arg;
};

/* Writes the new folder `out` with configuration, weights and tokenizer, and then opens it as a check. */
enum status merge_write(const char *out, const struct weights *base, const struct merge_options *o,
			struct error *err);
#endif
