/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model folder as Hugging Face's programs read it: config.json, safetensors in shards with their index. It
 * appears whole under its name or not at all.
 */
#ifndef MODEL_FILES_MODEL_FOLDER_H
#define MODEL_FILES_MODEL_FOLDER_H
#include "core/process/cpu_pool.h"
#include "model/shape/tensor_names.h"

struct folder_options {
	const struct shape *shape;
	enum dtype dtype;     /* F32, BF16 or F16 */
	uint64_t shard_bytes; /* the most that one file holds, beyond a tensor that is larger by itself */
	const json_t *config; /* config.json; NULL: made of the shape */
	bool replace; /* what `dir` holds may be a model's folder: it goes when the new one is whole */
	bool holes;   /* no numbers: files with holes, zeros that take no disk */
	/* Optional: before a tensor's first rows, alone. */
	enum status (*begin)(void *arg, const struct named *n, struct error *err);
	/* Rows [row, row + rows) of the tensor as floats. Called by several threads, each with rows of its
	 * own. */
	enum status (*rows)(void *arg, const struct named *n, int64_t row, int64_t rows, float *out,
			    struct error *err);
	/* Optional: what else the folder holds (tokenizer), written into `dir`. */
	enum status (*more)(void *arg, const char *dir, struct error *err);
	/* Optional: bytes written so far of all; false stops (CANCELLED). */
	bool (*progress)(void *arg, uint64_t done, uint64_t all);
	void *arg;
};

/* `dir` is new or an empty folder, before and after it was written, unless it may be replaced; else
 * BAD_INPUT. What fails leaves nothing
 * behind, and what was there. */
enum status folder_write(const char *dir, const struct folder_options *o, struct error *err);
#endif
