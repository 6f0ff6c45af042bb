/* SPDX-License-Identifier: Apache-2.0 */
/* Reads GGUF files: metadata by key, tensors by name, in a mapped file. */
#ifndef MODEL_FILES_GGUF_GGUF_H
#define MODEL_FILES_GGUF_GGUF_H
#include "core/gguf/metadata.h"
#include "model/tensor/tensor.h"

struct gguf {
	struct gguf_metadata metadata; /* it owns the mapped file */
	struct tensor *tensors;	       /* sorted by name; outermost dimension first */
	size_t tensor_count;
};

/* Opens a file. Owner: caller, gguf_release. */
enum status gguf_open(struct gguf *g, const char *path, struct error *err);
/* The same for bytes in memory, which must outlive *g. */
enum status gguf_parse(struct gguf *g, const char *path, const void *data, uint64_t size, struct error *err);
void gguf_release(struct gguf *g);
/* NULL: no such tensor. */
const struct tensor *gguf_tensor(const struct gguf *g, const char *name);
#endif
