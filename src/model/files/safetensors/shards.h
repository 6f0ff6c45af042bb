/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors files of a folder, one or several with an index, as one set of tensors by name. */
#ifndef MODEL_FILES_SAFETENSORS_SHARDS_H
#define MODEL_FILES_SAFETENSORS_SHARDS_H
#include "model/files/safetensors/safetensors.h"

struct shards {
	struct safetensors *files;
	size_t file_count;
	const struct tensor **tensors; /* tensors of all files, sorted by name */
	size_t tensor_count;
};

/* Opens model.safetensors, or else the files in model.safetensors.index.json, which must agree with the
 * index. Owner: caller, shards_release. */
enum status shards_open(struct shards *s, const char *dir, struct error *err);
void shards_release(struct shards *s);
const struct tensor *shards_find(const struct shards *s, const char *name); /* NULL: none */
/* Path of the file that contains it. */
const char *shards_path(const struct shards *s, const struct tensor *t);
#endif
