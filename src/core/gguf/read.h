/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the head of a GGUF step by step, and never beyond its end. */
#ifndef CORE_GGUF_READ_H
#define CORE_GGUF_READ_H
#include "core/gguf/metadata.h"

struct gguf_cursor {
	const uint8_t *begin, *at;
	uint64_t left; /* remaining bytes */
	const char *path;
	struct error *err;
};

/* `what` names the item in the error message of a truncated file. */
enum status gguf_take(struct gguf_cursor *c, uint64_t size, const uint8_t **out, const char *what);
enum status gguf_take_u32(struct gguf_cursor *c, uint32_t *out, const char *what);
enum status gguf_take_u64(struct gguf_cursor *c, uint64_t *out, const char *what);
/* Reads a name into a NUL-terminated copy. Owner: caller, free. */
enum status gguf_take_name(struct gguf_cursor *c, const char **out, const char *what);
/* Reads key, type and value. gguf_metadata_release frees key and texts, after a failure too. */
enum status gguf_take_value(struct gguf_cursor *c, struct gguf_value *v);
#endif
