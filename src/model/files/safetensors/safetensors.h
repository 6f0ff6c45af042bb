/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The safetensors format: 8 bytes of header length, a JSON header, the numbers. Reading maps the file and
 * checks every claim of the header (sizes, order, no gap, no overlap, no end beyond the file). Writing takes
 * the table of tensors first, then the numbers tensor by tensor, so the model is never completely in memory.
 */
#ifndef MODEL_FILES_SAFETENSORS_SAFETENSORS_H
#define MODEL_FILES_SAFETENSORS_SAFETENSORS_H
#include <jansson.h>
#include "core/error.h"
#include "core/file/file.h"
#include "model/tensor/tensor.h"

struct safetensors {
	char *path; /* for messages */
	void *map;  /* NULL: parsed from the caller's memory */
	uint64_t map_size;
	json_t *metadata;	/* NULL: the header has none */
	char *names;		/* names of the tensors, each NUL-terminated */
	struct tensor *tensors; /* in file order */
	size_t count;
};

/* Opens a file. Owner: caller, safetensors_release. */
enum status safetensors_open(struct safetensors *s, const char *path, struct error *err);
/* The same for bytes in memory, which must outlive *s. */
enum status safetensors_parse(struct safetensors *s, const char *path, const void *data, uint64_t size,
			      struct error *err);
void safetensors_release(struct safetensors *s);
/* A text of the metadata; "" if there is none. */
const char *safetensors_metadata(const struct safetensors *s, const char *key);

struct safetensors_writer {
	struct file_new file;
	const struct tensor *tensors; /* lent by the caller */
	size_t count, at;	      /* number of tensors; index of the present one */
	uint64_t written;	      /* bytes of the present tensor so far */
};

/* Starts a file. tensors: name, dtype, rank, dim, in the order in which their numbers will be written.
 * `metadata`: texts by name; NULL: none. safetensors_write_end must follow in any case. */
enum status safetensors_write_begin(struct safetensors_writer *w, const char *path,
				    const struct tensor *tensors, size_t count, const json_t *metadata,
				    struct error *err);
/* Writes the next bytes of the present tensor, or the first of the next one. One call must not cross a
 * border between tensors. */
enum status safetensors_write(struct safetensors_writer *w, const void *data, uint64_t size,
			      struct error *err);
/* Makes the rest of the file a hole: zeros that take no disk space. */
enum status safetensors_write_hole(struct safetensors_writer *w, struct error *err);
/* If st is OK and all bytes were written: syncs and renames the file. Otherwise removes it. Returns the
 * first error. */
enum status safetensors_write_end(struct safetensors_writer *w, enum status st, struct error *err);
#endif
