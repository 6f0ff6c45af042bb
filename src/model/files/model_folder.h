/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a model folder that Hugging Face's programs can read: config.json, and safetensors in shards with an
 * index. The folder appears completely or not at all.
 */
#ifndef MODEL_FILES_MODEL_FOLDER_H
#define MODEL_FILES_MODEL_FOLDER_H
#include "core/process/cpu_pool.h"
#include "model/bnb4/bnb4.h"
#include "model/shape/tensor_names.h"

/* The matrices of the layers become 4 bits of bitsandbytes, as transformers quantizes a model: embedding and
 * head stay. */
struct folder_bnb4 {
	enum bnb4_type type;
	bool nested; /* double quantization */
};

struct folder_options {
	const struct shape *shape;
	enum dtype dtype;		/* F32, BF16 or F16 */
	const struct folder_bnb4 *bnb4; /* NULL: nothing is quantized; else without `holes` */
	uint64_t shard_bytes; /* limit for one file, except for a file with a single larger tensor */
	const json_t *config; /* config.json; NULL: made from the shape */
	bool replace;	      /* `dir` may hold a model, which is removed when the new one is complete */
	bool holes;	      /* write no numbers: sparse files of zeros, which take no disk space */
	/* Optional. Called once before a tensor's first rows, on one thread. */
	enum status (*begin)(void *arg, const struct named *n, struct error *err);
	/* Produces rows [row, row + rows) of the tensor as floats. Several threads call it, each with its
	 * own rows. */
	enum status (*rows)(void *arg, const struct named *n, int64_t row, int64_t rows, float *out,
			    struct error *err);
	/* Optional. Writes further files (tokenizer) into `dir`. */
	enum status (*more)(void *arg, const char *dir, struct error *err);
	/* Optional. Bytes written so far, and in total; false stops (CANCELLED). */
	bool (*progress)(void *arg, uint64_t done, uint64_t all);
	void *arg;
};

/* `dir` must be new or empty, both at the start and at the end of writing, unless `replace` is set; else
 * BAD_INPUT. After a failure nothing new remains, and earlier contents are unchanged. */
enum status folder_write(const char *dir, const struct folder_options *o, struct error *err);
#endif
