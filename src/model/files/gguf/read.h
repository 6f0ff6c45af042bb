/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the head of a GGUF step by step, and never beyond its end. */
#ifndef MODEL_FILES_GGUF_READ_H
#define MODEL_FILES_GGUF_READ_H
#include "model/files/gguf/gguf.h"

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
/* Reads key, type and value. gguf_release frees key and texts, after a failure too. */
enum status gguf_take_value(struct gguf_cursor *c, struct gguf_value *v);
/* Reads name (freed by gguf_release), type, dimensions (outermost first) and size. *offset: place of the
 * data, not yet checked. */
enum status gguf_take_tensor(struct gguf_cursor *c, struct tensor *t, uint64_t *offset);
#endif
