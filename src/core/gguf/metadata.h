/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the metadata of GGUF files, versions 2 and 3, little-endian: values by key. Every length and count is
 * compared with the remaining bytes of the file before it is used. model/files/gguf/gguf.h reads the tensors.
 */
#ifndef CORE_GGUF_METADATA_H
#define CORE_GGUF_METADATA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* name, bytes (0: variable) */
/* clang-format off */
#define GGUF_TYPES(X) \
	X(U8, 1) X(I8, 1) X(U16, 2) X(I16, 2) X(U32, 4) X(I32, 4) X(F32, 4) X(BOOL, 1) X(TEXT, 0) X(ARRAY, 0) \
	X(U64, 8) X(I64, 8) X(F64, 8)
/* clang-format on */
#define X(name, ...) GGUF_##name,
enum gguf_type { GGUF_TYPES(X) GGUF_TYPE_COUNT };
#undef X

struct gguf_text {
	const char *data; /* arbitrary bytes, not NUL-terminated */
	size_t size;
};

struct gguf_value {
	const char *key;
	enum gguf_type type;
	enum gguf_type item;	       /* ARRAY: type of the items; never ARRAY */
	uint64_t count;		       /* ARRAY: number of items; otherwise 1 */
	const uint8_t *data;	       /* items other than texts, as in the file; unaligned */
	const struct gguf_text *texts; /* TEXT, ARRAY of TEXT */
};

struct gguf_metadata {
	char *path;
	void *map; /* NULL: parsed from the caller's memory */
	uint64_t map_size;
	uint32_t version;
	uint64_t tensors, end;	   /* number of tensors; offset of their table */
	struct gguf_value *values; /* sorted by key */
	size_t value_count;
};

/* Maps a file and reads its metadata. mapped_check tells afterwards whether all of it could be read. Owner:
 * caller, gguf_metadata_release. */
enum status gguf_metadata_open(struct gguf_metadata *m, const char *path, struct error *err);
/* The same for bytes in memory, which must outlive *m. Messages begin with `path`. */
enum status gguf_metadata_parse(struct gguf_metadata *m, const char *path, const void *data, uint64_t size,
				struct error *err);
void gguf_metadata_release(struct gguf_metadata *m);
/* NULL: no such key. */
const struct gguf_value *gguf_find(const struct gguf_metadata *m, const char *key);
/* Read a value with checks. If the key is absent, *out is unchanged and the result is OK. BAD_INPUT: another
 * type, or a number outside the range. */
enum status gguf_i64(const struct gguf_metadata *m, const char *key, int64_t min, int64_t max, int64_t *out,
		     struct error *err);
enum status gguf_f64(const struct gguf_metadata *m, const char *key, double *out, struct error *err);
enum status gguf_bool(const struct gguf_metadata *m, const char *key, bool *out, struct error *err);
enum status gguf_string(const struct gguf_metadata *m, const char *key, struct gguf_text *out,
			struct error *err);
/* An item of an array of integers (index < count). */
int64_t gguf_item(const struct gguf_value *v, uint64_t index);
#endif
