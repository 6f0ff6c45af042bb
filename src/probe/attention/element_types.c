/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/attention/element_types.h"
#include <math.h>
#include <string.h>

/* IEEE formats, except that E4M3 has no infinity: its largest exponent also encodes finite numbers, up to
 * `most`. */
struct format {
	unsigned fraction, bias; /* bits of the fraction */
	uint32_t most, nan;	 /* largest finite value; a NaN */
	bool infinity;
};

static const struct format formats[] = {
	[ATTENTION_F16] = {10, 15, 0x7bff, 0x7e00, true},
	[ATTENTION_BF16] = {7, 127, 0x7f7f, 0x7fc0, true},
	[ATTENTION_E4M3] = {3, 7, 0x7e, 0x7f, false},
};

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static float float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline uint32_t encode(const struct format *f, unsigned bytes, float x)
{
	const unsigned shift = 23 - f->fraction;
	uint32_t bits = bits_of(x), sign = bits >> 31 << (8 * bytes - 1), size = bits & 0x7fffffff, out;
	/* Adding `magic` to a number below the smallest normal one aligns the last bit of its fraction with
	 * the float's. */
	uint32_t magic = (127 - f->bias + 1 + shift) << 23;

	if (size > 0x7f800000)
		return f->nan;
	if (size < (128 - f->bias) << 23 && f->bias < 127)
		return sign | (bits_of(float_of(size) + float_of(magic)) - magic);
	out = (size + (1u << (shift - 1)) - 1 + (size >> shift & 1)) >> shift;
	if (out < (127 - f->bias) << f->fraction)
		return sign;
	out -= (127 - f->bias) << f->fraction;
	return sign | (out > f->most ? f->most : out);
}

static inline float decode(const struct format *f, unsigned bytes, uint32_t bits)
{
	uint32_t size = bits & ((1u << (8 * bytes - 1)) - 1), sign = bits >> (8 * bytes - 1) << 31;
	uint32_t exponent = size >> f->fraction;
	float least;

	if (f->infinity ? exponent == (1u << (8 * bytes - 1 - f->fraction)) - 1 : size > f->most)
		return f->infinity && size == f->most + 1 ? float_of(sign | 0x7f800000) : NAN;
	if (!exponent && f->bias < 127) {
		least = float_of((127 - f->bias + 1 - f->fraction) << 23);
		return float_of(sign | bits_of((float)size * least));
	}
	return float_of(sign | (size + ((127 - f->bias) << f->fraction)) << (23 - f->fraction));
}

/* A separate loop per type, so that its format is a constant in the loop. */
#define EACH_TYPE(type, loop)                                                                                \
	switch (type) {                                                                                      \
	case ATTENTION_F16:                                                                                  \
		loop(ATTENTION_F16, 2, uint16_t);                                                            \
		break;                                                                                       \
	case ATTENTION_BF16:                                                                                 \
		loop(ATTENTION_BF16, 2, uint16_t);                                                           \
		break;                                                                                       \
	default:                                                                                             \
		loop(ATTENTION_E4M3, 1, uint8_t);                                                            \
	}

void attention_store(enum attention_type type, void *to, const float *from, size_t count)
{
#define STORE(type, bytes, word)                                                                             \
	for (size_t i = 0; i < count; i++)                                                                   \
	((word *)to)[i] = (word)encode(&formats[type], bytes, from[i])
	EACH_TYPE(type, STORE)
#undef STORE
}

void attention_load(enum attention_type type, float *to, const void *from, size_t count)
{
#define LOAD(type, bytes, word)                                                                              \
	for (size_t i = 0; i < count; i++)                                                                   \
	to[i] = decode(&formats[type], bytes, ((const word *)from)[i])
	EACH_TYPE(type, LOAD)
#undef LOAD
}

/* Rounds away the bits of a normal number that the type does not have, with carry into the exponent. */
static inline float rounded(const struct format *f, unsigned bytes, float x)
{
	const unsigned shift = 23 - f->fraction;
	const uint32_t low = (1u << shift) - 1, bits = bits_of(x), size = bits & 0x7fffffff;
	uint32_t out = (size + (low >> 1) + (size >> shift & 1)) & ~low;

	if (size < (128 - f->bias) << 23 || out > (f->most << shift) + ((127 - f->bias) << 23))
		return decode(f, bytes, encode(f, bytes, x));
	return float_of((bits & 0x80000000) | out);
}

void attention_round(enum attention_type type, float *x, size_t count)
{
#define ROUND(type, bytes, word)                                                                             \
	for (size_t i = 0; i < count; i++)                                                                   \
	x[i] = rounded(&formats[type], bytes, x[i])
	EACH_TYPE(type, ROUND)
#undef ROUND
}

double attention_roundoff(enum attention_type type)
{
	return ldexp(1, -(int)formats[type].fraction - 1);
}

double attention_underflow(enum attention_type type)
{
	return ldexp(1, -(int)formats[type].bias - (int)formats[type].fraction);
}

double attention_rounding(enum attention_type type, double x)
{
	return fmax(attention_roundoff(type) * fabs(x), attention_underflow(type));
}
