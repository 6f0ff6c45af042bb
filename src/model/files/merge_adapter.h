/* SPDX-License-Identifier: Apache-2.0 */
/* A base model and an adapter as one model folder: W + scale B A, tensor by tensor, never a whole model in
 * memory. */
#ifndef MODEL_FILES_MERGE_ADAPTER_H
#define MODEL_FILES_MERGE_ADAPTER_H
#include "core/log.h"
#include "model/files/weights.h"

struct merge_options {
	const char *adapter; /* PEFT's folder; NULL: the base alone, in another type or out of a GGUF */
	enum dtype dtype; /* of the result; DTYPE_COUNT: the base's where it is F32, BF16 or F16, else BF16 */
	uint64_t shard_bytes;
	bool any_base;	       /* an adapter of other weights is warned of alone (model/files/peft/base.h) */
	const struct log *log; /* NULL: nobody is warned */
	bool (*progress)(void *arg, uint64_t done, uint64_t all); /* as folder_write's; NULL: none */
	void *arg;
};

/* Writes `out`, a new folder with configuration, weights and tokenizer, and opens it as any model is. */
enum status merge_write(const char *out, const struct weights *base, const struct merge_options *o,
			struct error *err);
#endif
