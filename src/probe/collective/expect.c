/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/collective/expect.h"
#include <math.h>
#include <string.h>
#include "core/math/random.h"

/* Size in bytes; largest integer up to which all integers are exact; for floats, bits of the exponent and of
 * the fraction. */
static const struct shape {
	unsigned bytes;
	uint32_t exact;
	int exponent, fraction;
} shapes[] = {
	[OPERAND_F64] = {8, 1 << 24, 11, 52}, [OPERAND_F32] = {4, 1 << 24, 8, 23},
	[OPERAND_F16] = {2, 2048, 5, 10},     [OPERAND_BF16] = {2, 256, 8, 7},
	[OPERAND_E4M3] = {1, 16, 4, 3},	      [OPERAND_E5M2] = {1, 8, 5, 2},
	[OPERAND_S8] = {1, 127, 0, 0},	      [OPERAND_S32] = {4, 1 << 24, 0, 0},
};
enum { SLOTS = 8 };

unsigned collective_type_bytes(enum operand_type type)
{
	return shapes[type].bytes;
}

struct collective_inputs collective_inputs(enum operand_type type, enum collective_rule rule, unsigned ranks,
					   uint64_t seed)
{
	const struct shape *t = &shapes[type];
	bool power = !(ranks & (ranks - 1)), integer = !t->fraction;
	struct collective_inputs in = {.seed = seed,
				       .type = type,
				       .rule = rule,
				       .ranks = ranks,
				       .slots = 1,
				       .most = t->exact,
				       .unit = 1};

	if (rule == COLLECTIVE_MIN || rule == COLLECTIVE_MAX || rule == COLLECTIVE_MOVE)
		return in;
	if (rule == COLLECTIVE_SUM || (power && !integer))
		in.slots = ranks < SLOTS ? ranks : SLOTS;
	if (rule == COLLECTIVE_AVG && integer)
		in.unit = ranks; /* so that the average is an integer */
	if (rule == COLLECTIVE_AVG && !integer && !power)
		in.ulp = 2; /* error of 1 / ranks, and of the multiplication by it */
	in.most = t->exact / in.slots / in.unit;
	if (!in.most)
		in.most = 1;
	return in;
}

static uint32_t mixed(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

static uint32_t word(const struct collective_inputs *in, uint64_t i, unsigned k)
{
	return random_u32(in->seed, COLLECTIVE_STREAM, 4 * i + k);
}

static double slot_value(const struct collective_inputs *in, uint64_t i, uint32_t slot)
{
	uint32_t h = mixed(word(in, i, 1) + slot * 0x9e3779b9u);
	double m = (1 + (h >> 1) % in->most) * (double)in->unit;

	return h & 1 ? m : -m;
}

static double extreme(const struct collective_inputs *in, uint64_t i, unsigned rank)
{
	uint32_t h = mixed(word(in, i, 1) + rank * 0x9e3779b9u), half = in->most / 2;

	if (rank != word(in, i, 0) % in->ranks)
		return (double)(h % (2 * half + 1)) - half;
	return (in->rule == COLLECTIVE_MIN ? -1.0 : 1.0) * (half + 1 + h % half);
}

double collective_given(const struct collective_inputs *in, unsigned rank, uint64_t i)
{
	uint32_t slot;

	if (in->rule == COLLECTIVE_MIN || in->rule == COLLECTIVE_MAX)
		return extreme(in, i, rank);
	slot = (rank + in->ranks - word(in, i, 0) % in->ranks) % in->ranks;
	return slot < in->slots ? slot_value(in, i, slot) : 0;
}

double collective_answer(const struct collective_inputs *in, uint64_t i)
{
	double sum = 0;

	if (in->rule == COLLECTIVE_MIN || in->rule == COLLECTIVE_MAX)
		return extreme(in, i, word(in, i, 0) % in->ranks);
	for (uint32_t slot = 0; slot < in->slots; slot++)
		sum += slot_value(in, i, slot);
	return in->rule == COLLECTIVE_AVG ? sum / in->ranks : sum;
}

uint64_t collective_moved(const struct collective_inputs *in, unsigned from, unsigned to, uint64_t i)
{
	const struct shape *t = &shapes[in->type];
	uint32_t stream = COLLECTIVE_MOVED + COLLECTIVE_RANKS * from + to;
	uint64_t bits = random_u32(in->seed, stream, 4 * i);

	if (t->bytes == 8)
		bits |= (uint64_t)random_u32(in->seed, stream, 4 * i + 1) << 32;
	else
		bits &= UINT64_MAX >> (64 - 8 * t->bytes);
	return t->fraction ? bits & ~((uint64_t)1 << (8 * t->bytes - 2)) : bits;
}

static double small_float(const struct shape *t, uint64_t bits)
{
	uint64_t fraction = bits & (((uint64_t)1 << t->fraction) - 1);
	int exponent = (int)(bits >> t->fraction & ((1u << t->exponent) - 1)), top = (1 << t->exponent) - 1;
	int bias = (1 << (t->exponent - 1)) - 1;
	double sign = bits >> (8 * t->bytes - 1) & 1 ? -1 : 1;

	if (t->exponent == 4 && exponent == top) { /* e4m3 has no infinity and one NaN */
		if (fraction == 7)
			return NAN;
	} else if (exponent == top) {
		return fraction ? NAN : sign * (double)INFINITY;
	}
	if (!exponent)
		return sign * ldexp((double)fraction, 1 - bias - t->fraction);
	return sign * ldexp(1 + ldexp((double)fraction, -t->fraction), exponent - bias);
}

double collective_number(enum operand_type type, const void *element)
{
	uint64_t bits = 0;
	double wide;
	float single;
	int32_t whole;

	memcpy(&bits, element, shapes[type].bytes);
	switch (type) {
	case OPERAND_F64:
		memcpy(&wide, element, sizeof(wide));
		return wide;
	case OPERAND_F32:
		memcpy(&single, element, sizeof(single));
		return (double)single;
	case OPERAND_S32:
		memcpy(&whole, element, sizeof(whole));
		return whole;
	case OPERAND_S8:
		return (int8_t)bits;
	default:
		return small_float(&shapes[type], bits);
	}
}

bool collective_suspect(const unsigned long long *suspect, unsigned ranks, unsigned *rank, bool *twice)
{
	unsigned long long looked = suspect[2 * ranks];
	unsigned found = 0;

	for (unsigned i = 0; i < 2 * ranks; i++) {
		if (!looked || suspect[i] * 100 < looked * 99)
			continue;
		found++;
		*rank = i % ranks;
		*twice = i >= ranks;
	}
	return found == 1;
}
