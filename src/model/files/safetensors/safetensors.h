/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors: 8 bytes of length, a JSON header, the numbers. Read: one mapped file, every claim of its
 * header checked (sizes, order, no gap, no overlap, no end beyond the file). Written: the table first, then
 * the numbers tensor by tensor, so that no model is ever whole in memory.
 */
#ifndef MODEL_FILES_SAFETENSORS_SAFETENSORS_H
#define MODEL_FILES_SAFETENSORS_SAFETENSORS_H
#include <jansson.h>
#include "core/error.h"
#include "core/file/file.h"
#include "model/tensor/tensor.h"

struct safetensors {
	char *path; /* for messages */
	void *map;  /* NULL: parsed from memory of the caller's */
	uint64_t map_size;
	json_t *metadata;	/* NULL: the header has none */
	char *names;		/* of the tensors, one behind the other, each with its NUL */
	struct tensor *tensors; /* in order of their place in the file */
	size_t count;
};

/* Owner: caller, safetensors_release. */
enum status safetensors_open(struct safetensors *s, const char *path, struct error *err);
/* The same from memory, which must outlive *s. */
enum status safetensors_parse(struct safetensors *s, const char *path, const void *data, uint64_t size,
			      struct error *err);
void safetensors_release(struct safetensors *s);
/* A text of its metadata; "" where there is none. */
const char *safetensors_metadata(const struct safetensors *s, const char *key);

struct safetensors_writer {
	struct file_new file;
	const struct tensor *tensors; /* the caller's */
	size_t count, at;	      /* tensors; the one under way */
	uint64_t written;	      /* bytes of it */
};

/* tensors: name, dtype, rank, dim; in the order in which the numbers will come. `metadata`: texts by name;
 * NULL: none. Whatever comes after, safetensors_write_end closes. */
enum status safetensors_write_begin(struct safetensors_writer *w, const char *path,
				    const struct tensor *tensors, size_t count, const json_t *metadata,
				    struct error *err);
/* The next bytes of the tensor under way, or the first of the next one: never across a border. */
enum status safetensors_write(struct safetensors_writer *w, const void *data, uint64_t size,
			      struct error *err);
/* The rest of the file as a hole: zeros that take no disk. */
enum status safetensors_write_hole(struct safetensors_writer *w, struct error *err);
/* st OK and all bytes there: on disk, renamed. Else nothing of it stays. Returns the first that failed. */
enum status safetensors_write_end(struct safetensors_writer *w, enum status st, struct error *err);
#endif
