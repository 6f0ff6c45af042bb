/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_number.h"
#include <math.h>
#include "ref_narrow.h"
#include "ref_table.h"

struct format {
	int mantissa, exponent_min; /* bits after the point; of the smallest normal number */
	double largest;
	uint32_t largest_code;
};

static struct format format_of(enum attention_type type)
{
	switch (type) {
	case ATTENTION_F16:
		return (struct format){10, -14, 65504.0, 0x7bff};
	case ATTENTION_BF16:
		return (struct format){7, -126, 3.3895313892515355e38, 0x7f7f};
	case ATTENTION_E4M3:
		return (struct format){3, -6, 448.0, 0x7e};
	case ATTENTION_TYPE_COUNT:
		break;
	}
	return (struct format){0, 0, 0, 0};
}

/* Sign, exponent and mantissa of a number already rounded to the format. */
static uint32_t encode(struct format f, int bits, double value)
{
	int bias = 1 - f.exponent_min, exponent;
	double magnitude = fabs(value), fraction;
	uint32_t sign = signbit(value) ? 1u << (bits - 1) : 0;

	if (magnitude == 0.0)
		return sign;
	fraction = frexp(magnitude, &exponent); /* in [0.5, 1) */
	exponent--;
	if (exponent < f.exponent_min)
		return sign | (uint32_t)ldexp(magnitude, f.mantissa - f.exponent_min);
	return sign | (uint32_t)(exponent + bias) << f.mantissa |
	       (uint32_t)ldexp(2.0 * fraction - 1.0, f.mantissa);
}

static double round_to(struct format f, double value)
{
	int exponent;
	double step;

	if (value == 0.0 || !isfinite(value))
		return value;
	(void)frexp(value, &exponent);
	exponent = exponent - 1 < f.exponent_min ? f.exponent_min : exponent - 1;
	step = ldexp(1.0, exponent - f.mantissa);
	value = nearbyint(value / step) * step;
	return value > f.largest ? f.largest : value < -f.largest ? -f.largest : value;
}

void ref_number_store(enum attention_type type, void *to, uint64_t index, double value)
{
	struct format f = format_of(type);
	int bits = type == ATTENTION_E4M3 ? 8 : 16;
	uint32_t code;

	if (!ref_narrow_code(bits, f.mantissa, 1 - f.exponent_min, f.largest_code, value, &code))
		code = encode(f, bits, round_to(f, value));
	if (type == ATTENTION_E4M3)
		((uint8_t *)to)[index] = (uint8_t)code;
	else
		((uint16_t *)to)[index] = (uint16_t)code;
}

static double decode(unsigned type, uint32_t code)
{
	struct format f = format_of((enum attention_type)type);
	int bits = type == ATTENTION_E4M3 ? 8 : 16;
	uint32_t mantissa = code & ((1u << f.mantissa) - 1), top = (1u << (bits - 1 - f.mantissa)) - 1;
	uint32_t exponent = code >> f.mantissa & top;
	double sign = code >> (bits - 1) ? -1.0 : 1.0;

	if (exponent == top && (bits == 16 || mantissa == 7))
		return mantissa ? (double)NAN : sign * (double)INFINITY;
	if (!exponent)
		return sign * ldexp((double)mantissa, f.exponent_min - f.mantissa);
	return sign * ldexp(1.0 + ldexp((double)mantissa, -f.mantissa), (int)exponent - 1 + f.exponent_min);
}

double ref_number_load(enum attention_type type, const void *from, uint64_t index)
{
	static struct ref_table tables[ATTENTION_TYPE_COUNT];

	if (type == ATTENTION_E4M3)
		return ref_table_number(&tables[type], 1u << 8, ((const uint8_t *)from)[index], decode, type);
	if (type == ATTENTION_BF16)
		return ref_narrow_of_bf16(((const uint16_t *)from)[index]);
	return ref_table_number(&tables[type], 1u << 16, ((const uint16_t *)from)[index], decode, type);
}
