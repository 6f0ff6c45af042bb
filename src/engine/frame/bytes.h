/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian numbers in a growing text, and out of received bytes with checked bounds. */
#ifndef ENGINE_FRAME_BYTES_H
#define ENGINE_FRAME_BYTES_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/text/text.h"

static inline void bytes_put(struct text *out, uint64_t value, unsigned size)
{
	char bytes[8];

	for (unsigned i = 0; i < size; i++)
		bytes[i] = (char)(value >> (8 * i) & 0xff);
	text_add_bytes(out, bytes, size);
}

/* Prompts are long, so hosts with the frame's byte order copy them as a whole. */
static inline void bytes_put_i32s(struct text *out, const int32_t *values, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	text_add_bytes(out, (const char *)values, count * sizeof(*values));
#else
	for (size_t i = 0; i < count; i++)
		bytes_put(out, (uint32_t)values[i], 4);
#endif
}

static inline void bytes_put_f32(struct text *out, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bytes_put(out, bits, 4);
}

static inline void bytes_put_f64(struct text *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bytes_put(out, bits, 8);
}

/* A body being read. After its end, every number is 0 and `bad` is set. */
struct bytes_in {
	const unsigned char *at;
	size_t left;
	bool bad;
};

static inline const unsigned char *bytes_take(struct bytes_in *in, size_t size)
{
	const unsigned char *at = in->at;

	if (in->bad || size > in->left) {
		in->bad = true;
		return NULL;
	}
	in->at += size;
	in->left -= size;
	return at;
}

static inline uint64_t bytes_get(struct bytes_in *in, unsigned size)
{
	const unsigned char *at = bytes_take(in, size);
	uint64_t value = 0;

	for (unsigned i = 0; at && i < size; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static inline int32_t bytes_get_i32(struct bytes_in *in)
{
	return (int32_t)(uint32_t)bytes_get(in, 4);
}

static inline void bytes_get_i32s(struct bytes_in *in, int32_t *values, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	const unsigned char *at = bytes_take(in, count * sizeof(*values));

	if (at && count)
		memcpy(values, at, count * sizeof(*values));
#else
	for (size_t i = 0; i < count; i++)
		values[i] = bytes_get_i32(in);
#endif
}

static inline int64_t bytes_get_i64(struct bytes_in *in)
{
	return (int64_t)bytes_get(in, 8);
}

static inline float bytes_get_f32(struct bytes_in *in)
{
	uint32_t bits = (uint32_t)bytes_get(in, 4);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline double bytes_get_f64(struct bytes_in *in)
{
	uint64_t bits = bytes_get(in, 8);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}
#endif
