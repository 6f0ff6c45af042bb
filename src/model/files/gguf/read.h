/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a GGUF's head, taken one thing after another; nothing is taken that is not there. */
#ifndef MODEL_FILES_GGUF_READ_H
#define MODEL_FILES_GGUF_READ_H
#include "model/files/gguf/gguf.h"

struct gguf_cursor {
	const uint8_t *begin, *at;
	uint64_t left; /* bytes from `at` on */
	const char *path;
	struct error *err;
};

/* `what` stands in the message of a file that ends too early. */
enum status gguf_take(struct gguf_cursor *c, uint64_t size, const uint8_t **out, const char *what);
enum status gguf_take_u32(struct gguf_cursor *c, uint32_t *out, const char *what);
enum status gguf_take_u64(struct gguf_cursor *c, uint64_t *out, const char *what);
/* Key, type and value. Key and texts are the value's own, freed by gguf_release, after a failure too. */
enum status gguf_take_value(struct gguf_cursor *c, struct gguf_value *v);
/* Name (freed by gguf_release), type, dimensions outermost first, size; *offset: where its data lies, not yet
 * checked. */
enum status gguf_take_tensor(struct gguf_cursor *c, struct tensor *t, uint64_t *offset);
#endif
