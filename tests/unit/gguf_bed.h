/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files made in memory, byte by byte, so that a test can lie wherever it wants. */
#ifndef TESTS_UNIT_GGUF_BED_H
#define TESTS_UNIT_GGUF_BED_H
#include "core/text/text.h"
#include "model/files/gguf/gguf.h"

struct gguf_bed {
	struct text head; /* magic to the tensors' table */
	uint64_t data;	  /* bytes that the tensors so far take, padded */
};

static inline void bed_bytes(struct gguf_bed *b, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		text_add_bytes(&b->head, &(char){(char)(i < 8 ? value >> 8 * i : 0)}, 1);
}

static inline void bed_text(struct gguf_bed *b, const char *text)
{
	bed_bytes(b, strlen(text), 8);
	text_add(&b->head, text);
}

static inline void bed_begin(struct gguf_bed *b, uint32_t version, uint64_t tensors, uint64_t values)
{
	*b = (struct gguf_bed){0};
	text_add(&b->head, "GGUF");
	bed_bytes(b, version, 4);
	bed_bytes(b, tensors, 8);
	bed_bytes(b, values, 8);
}

static inline void bed_u32(struct gguf_bed *b, const char *key, uint32_t value)
{
	bed_text(b, key);
	bed_bytes(b, GGUF_U32, 4);
	bed_bytes(b, value, 4);
}

static inline void bed_f32(struct gguf_bed *b, const char *key, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bed_text(b, key);
	bed_bytes(b, GGUF_F32, 4);
	bed_bytes(b, bits, 4);
}

static inline void bed_string(struct gguf_bed *b, const char *key, const char *value)
{
	bed_text(b, key);
	bed_bytes(b, GGUF_TEXT, 4);
	bed_text(b, value);
}

/* An array's head: its items follow by bed_bytes or bed_text. */
static inline void bed_array(struct gguf_bed *b, const char *key, enum gguf_type item, uint64_t count)
{
	bed_text(b, key);
	bed_bytes(b, GGUF_ARRAY, 4);
	bed_bytes(b, item, 4);
	bed_bytes(b, count, 8);
}

/* rows 0: a vector. The offset is the next one due. */
static inline void bed_tensor(struct gguf_bed *b, const char *name, uint64_t rows, uint64_t cols,
			      uint32_t type, uint64_t bytes)
{
	bed_text(b, name);
	bed_bytes(b, rows ? 2 : 1, 4);
	bed_bytes(b, cols, 8);
	if (rows)
		bed_bytes(b, rows, 8);
	bed_bytes(b, type, 4);
	bed_bytes(b, b->data, 8);
	b->data = (b->data + bytes + 31) / 32 * 32;
}

/* Head, padding, b->data bytes that count up. Owner: caller; the head is released. */
static inline uint8_t *bed_end(struct gguf_bed *b, size_t *size)
{
	size_t head = (b->head.size + 31) / 32 * 32;
	uint8_t *file = calloc(1, head + b->data + 1);

	memcpy(file, b->head.data, b->head.size);
	for (size_t i = 0; i < b->data; i++)
		file[head + i] = (uint8_t)i;
	*size = head + b->data;
	text_release(&b->head);
	return file;
}
#endif
