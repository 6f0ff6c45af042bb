/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>
#include "core/text/text.h"
#include "model/tensor/dtype.h"
#include "model/files/safetensors/safetensors.h"

static json_t *entry_of(const struct tensor *t, uint64_t begin)
{
	json_t *shape = json_array();

	for (int i = 0; i < t->rank; i++)
		json_array_append_new(shape, json_integer(t->dim[i]));
	return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_word(t->dtype), "shape", shape,
			 "data_offsets", (json_int_t)begin, (json_int_t)(begin + t->size));
}

/* Makes the header, with its length in front. It is padded with blanks, so that the numbers begin at a
 * multiple of 8. */
static enum status header_of(struct text *out, const struct tensor *tensors, size_t count,
			     const json_t *metadata, const char *path, struct error *err)
{
	json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
	enum status st = STATUS_OK;
	uint64_t at = 0;
	char *dumped = NULL;
	size_t size;

	if (metadata)
		json_object_update(json_object_get(header, "__metadata__"), (json_t *)metadata);
	for (size_t i = 0; i < count && !st; i++) {
		struct tensor t = tensors[i];

		if (!dtype_word(t.dtype)[0] || !dtype_measure(&t) || json_object_get(header, t.name))
			st = error_set(err, STATUS_BUG, "%s: %.100s cannot be stored in a safetensors file",
				       path, t.name);
		else if (json_object_set_new(header, t.name, entry_of(&t, at)))
			st = error_set(err, STATUS_NO_RESOURCE, "%s: no memory for its header", path);
		at += t.size;
	}
	if (!st)
		dumped = json_dumps(header, JSON_COMPACT);
	if (!st && dumped) {
		uint64_t padded = (size = strlen(dumped), (size + 7) / 8 * 8);

		for (int i = 0; i < 8; i++)
			text_add_bytes(out, &(char){(char)(padded >> 8 * i)}, 1);
		text_add_bytes(out, dumped, size);
		text_add_bytes(out, "       ", padded - size);
	}
	if (!st && (!dumped || out->failed))
		st = error_set(err, STATUS_NO_RESOURCE, "%s: no memory for its header", path);
	free(dumped);
	json_decref(header);
	return st;
}

enum status safetensors_write_begin(struct safetensors_writer *w, const char *path,
				    const struct tensor *tensors, size_t count, const json_t *metadata,
				    struct error *err)
{
	struct text header = {0};
	enum status st;

	*w = (struct safetensors_writer){.file = {.fd = -1}, .tensors = tensors, .count = count};
	st = header_of(&header, tensors, count, metadata, path, err);
	if (!st)
		st = file_new_begin(&w->file, path, err);
	if (!st)
		st = file_new_write(&w->file, header.data, header.size, err);
	text_release(&header);
	return st;
}

/* Skips complete and empty tensors; returns the size of the present one. */
static uint64_t under_way(struct safetensors_writer *w)
{
	for (; w->at < w->count; w->at++, w->written = 0) {
		struct tensor t = w->tensors[w->at];

		dtype_measure(&t);
		if (w->written < t.size)
			return t.size;
	}
	return 0;
}

enum status safetensors_write(struct safetensors_writer *w, const void *data, uint64_t size,
			      struct error *err)
{
	enum status st;

	if (size > under_way(w) - w->written)
		return error_set(err, STATUS_BUG, "%s: %" PRIu64 " bytes are more than %.100s has left",
				 w->file.path, size, w->at < w->count ? w->tensors[w->at].name : "the file");
	st = file_new_write(&w->file, data, size, err);
	if (!st)
		w->written += size;
	return st;
}

enum status safetensors_write_hole(struct safetensors_writer *w, struct error *err)
{
	uint64_t size, hole = 0;
	off_t at = lseek(w->file.fd, 0, SEEK_CUR);

	while ((size = under_way(w)) > 0) {
		hole += size - w->written;
		w->written = size;
	}
	if (at < 0 || ftruncate(w->file.fd, at + (off_t)hole))
		return error_errno(err, errno, "cannot write %s", w->file.path);
	return STATUS_OK;
}

enum status safetensors_write_end(struct safetensors_writer *w, enum status st, struct error *err)
{
	if (!st && under_way(w))
		st = error_set(err, STATUS_BUG, "%s: %.100s was not written completely", w->file.path,
			       w->tensors[w->at].name);
	return file_new_end(&w->file, st, err);
}
