/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tensor/dtype.h"

struct row {
	const char *name, *word;
	int64_t ggml;
	size_t elements, bytes;
};

static const struct row rows[] = {
#define X(name, word, ggml, elements, bytes) [DTYPE_##name] = {#name, word, ggml, elements, bytes},
	DTYPE_LIST(X)
#undef X
};

const char *dtype_name(enum dtype dtype)
{
	return dtype < DTYPE_COUNT ? rows[dtype].name : "?";
}

const char *dtype_word(enum dtype dtype)
{
	return dtype < DTYPE_COUNT ? rows[dtype].word : "";
}

bool dtype_of_word(enum dtype *out, const char *word)
{
	for (int i = 0; i < DTYPE_COUNT; i++) {
		if (rows[i].word[0] && !strcmp(rows[i].word, word)) {
			*out = (enum dtype)i;
			return true;
		}
	}
	return false;
}

bool dtype_of_ggml(enum dtype *out, uint32_t id)
{
	for (int i = 0; i < DTYPE_COUNT; i++) {
		if (rows[i].ggml == (int64_t)id) {
			*out = (enum dtype)i;
			return true;
		}
	}
	return false;
}

uint64_t dtype_bytes(enum dtype dtype, uint64_t count)
{
	return count / rows[dtype].elements * rows[dtype].bytes;
}

bool dtype_measure(struct tensor *t)
{
	uint64_t count = 1, columns = t->rank ? (uint64_t)t->dim[t->rank - 1] : 1;
	const uint64_t most = (uint64_t)1 << 62;

	/* a zero dimension makes the total small, so every dimension is compared with the limit as well */
	for (int i = 0; i < t->rank; i++) {
		uint64_t n = t->dim[i] > 0 ? (uint64_t)t->dim[i] : 1;

		if (t->dim[i] < 0 || n > most / count)
			return false;
		count *= n;
	}
	if (count > most / rows[t->dtype].bytes || columns % rows[t->dtype].elements)
		return false;
	for (int i = 0; i < t->rank; i++)
		count = t->dim[i] ? count : 0;
	t->size = dtype_bytes(t->dtype, count);
	return true;
}

bool dtype_unpacks(enum dtype dtype)
{
	switch (dtype) {
	case DTYPE_F32:
	case DTYPE_BF16:
	case DTYPE_F16:
	case DTYPE_F64:
	case DTYPE_E4M3:
	case DTYPE_Q8_0:
	case DTYPE_Q4_1:
	case DTYPE_Q4_0:
		return true;
	default:
		return false;
	}
}

/* One multiplication moves a half's exponent, and handles subnormal numbers correctly. */
static inline float f16_to_f32(uint16_t h)
{
	uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13, bits;
	float f;

	memcpy(&f, &magnitude, sizeof(f));
	f *= 0x1p112f;
	memcpy(&bits, &f, sizeof(bits));
	if (magnitude >= 0x7c00u << 13)
		bits |= 0x7f800000u;
	bits |= (uint32_t)(h & 0x8000u) << 16;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* Rounds to nearest, ties to even, by adding a number whose last place is the half's. */
static inline uint16_t f16_of_f32(float f)
{
	uint32_t bits, magnitude, base;
	float rounded;

	memcpy(&bits, &f, sizeof(bits));
	magnitude = bits & 0x7fffffffu;
	if (magnitude > 0x7f800000u)
		return (uint16_t)((bits >> 16 & 0x8000u) | 0x7e00u);
	if (magnitude >= 0x477ff000u) /* 65520 and more rounds to infinity */
		return (uint16_t)((bits >> 16 & 0x8000u) | 0x7c00u);
	base = magnitude < 0x38800000u ? 0x3f000000u /* 0.5, whose last place is that of subnormal halves */
				       : (magnitude & 0x7f800000u) + (13u << 23);
	memcpy(&rounded, &base, sizeof(rounded));
	memcpy(&f, &magnitude, sizeof(f));
	rounded += f;
	memcpy(&magnitude, &rounded, sizeof(magnitude));
	magnitude -= base;
	if (base != 0x3f000000u)
		magnitude += ((base >> 23) - 13 - 113) << 10;
	return (uint16_t)((bits >> 16 & 0x8000u) | magnitude);
}

static inline uint16_t u16_at(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static void unpack_f16(const uint8_t *from, float *to, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = f16_to_f32(u16_at(from + 2 * i));
}

static void unpack_bf16(const uint8_t *from, float *to, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = bf16_to_f32(u16_at(from + 2 * i));
}

static void unpack_f64(const uint8_t *from, float *to, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double value;

		memcpy(&value, from + 8 * i, sizeof(value));
		to[i] = (float)value;
	}
}

/* Sign, four bits of exponent, three of mantissa; no infinity. Put where a BF16 has them, the bits mean
 * 2^-120 times the number. */
static void unpack_e4m3(const uint8_t *from, float *to, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint16_t bits = (uint16_t)((from[i] & 0x80) << 8 | (from[i] & 0x7f) << 4);

		to[i] = (from[i] & 0x7f) == 0x7f ? bf16_to_f32(0x7fc0) : bf16_to_f32(bits) * 0x1p120f;
	}
}

enum { QUANTS = 32 }; /* elements of a block of Q8_0, Q4_0, Q4_1 */

/* A half d, then 32 signed bytes q: d q. */
static void unpack_q8_0(const uint8_t *from, float *to, size_t count)
{
	for (; count; count -= QUANTS, from += 2 + QUANTS, to += QUANTS) {
		float d = f16_to_f32(u16_at(from));

		for (int i = 0; i < QUANTS; i++)
			to[i] = d * (float)(int8_t)from[2 + i];
	}
}

/* Four bits per element: the low halves of bytes are the first 16 elements, the high halves the others. */
static void unpack_q4(const uint8_t *quants, float scale, float least, float *to)
{
	for (int i = 0; i < QUANTS / 2; i++) {
		to[i] = scale * (float)(quants[i] & 15) + least;
		to[i + QUANTS / 2] = scale * (float)(quants[i] >> 4) + least;
	}
}

/* A half d: d (q - 8). */
static void unpack_q4_0(const uint8_t *from, float *to, size_t count)
{
	for (; count; count -= QUANTS, from += 2 + QUANTS / 2, to += QUANTS) {
		float d = f16_to_f32(u16_at(from));

		unpack_q4(from + 2, d, -8 * d, to);
	}
}

/* Halves d and m: d q + m. */
static void unpack_q4_1(const uint8_t *from, float *to, size_t count)
{
	for (; count; count -= QUANTS, from += 4 + QUANTS / 2, to += QUANTS)
		unpack_q4(from + 4, f16_to_f32(u16_at(from)), f16_to_f32(u16_at(from + 2)), to);
}

void dtype_unpack(enum dtype dtype, const void *from, float *to, size_t count)
{
	switch (dtype) {
	case DTYPE_F32:
		if (count)
			memcpy(to, from, count * sizeof(*to));
		break;
	case DTYPE_BF16:
		unpack_bf16(from, to, count);
		break;
	case DTYPE_F16:
		unpack_f16(from, to, count);
		break;
	case DTYPE_F64:
		unpack_f64(from, to, count);
		break;
	case DTYPE_E4M3:
		unpack_e4m3(from, to, count);
		break;
	case DTYPE_Q8_0:
		unpack_q8_0(from, to, count);
		break;
	case DTYPE_Q4_0:
		unpack_q4_0(from, to, count);
		break;
	case DTYPE_Q4_1:
		unpack_q4_1(from, to, count);
		break;
	default: /* excluded by dtype_unpacks */
		break;
	}
}

bool dtype_pack(enum dtype dtype, const float *from, void *to, size_t count)
{
	uint16_t *half = to;

	if (dtype == DTYPE_F32 && count)
		memcpy(to, from, count * sizeof(*from));
	for (size_t i = 0; dtype == DTYPE_BF16 && i < count; i++)
		half[i] = bf16_of_f32(from[i]);
	for (size_t i = 0; dtype == DTYPE_F16 && i < count; i++)
		half[i] = f16_of_f32(from[i]);
	return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F16;
}

/* An exponent with all bits set means NaN or infinity. */
bool dtype_finite(enum dtype dtype, const void *data, size_t count)
{
	const uint16_t *half = data, mask = dtype == DTYPE_BF16 ? 0x7f80 : 0x7c00;
	const uint32_t *word = data;
	unsigned bad = 0;

	if (dtype == DTYPE_F32) {
		for (size_t i = 0; i < count; i++)
			bad |= (word[i] & 0x7f800000u) == 0x7f800000u;
	} else {
		for (size_t i = 0; i < count; i++)
			bad |= (half[i] & mask) == mask;
	}
	return !bad;
}
