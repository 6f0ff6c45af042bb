/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/test_data/gemm.cu and the loops of kernel/mma/args.h on the host, on core/math/random.c and
 * encodings of its own. */
#include "core/math/random.h"
#include "kernel/test_data/gemm.h"
#include "probe/shared/mma.h"
#include "ref.h"
#include "ref_narrow.h"
#include "ref_table.h"
#include <math.h>
#include <string.h>

/* A floating-point format below FP32: bits of the fraction, bias, largest finite value and its code. */
struct narrow {
	int fraction, bias;
	double max;
	uint32_t max_code;
};

static const struct narrow narrows[] = {
	[OPERAND_F16] = {10, 15, 65504, 0x7bff},
	[OPERAND_BF16] = {7, 127, 0x1.fep127, 0x7f7f},
	[OPERAND_E4M3] = {3, 7, 448, 0x7e},
	[OPERAND_E5M2] = {2, 15, 57344, 0x7b},
};

static const unsigned element_bytes[] = {8, 4, 2, 2, 1, 1, 1, 4};

/* To nearest, ties to even, saturating: sign, exponent, fraction. */
static uint32_t encode(const struct narrow *f, unsigned bytes, double v)
{
	uint32_t sign = signbit(v) ? 1u << (8 * bytes - 1) : 0;
	double a = fabs(v), quantum, steps;
	uint32_t code;
	int exponent;

	if (ref_narrow_code((int)(8 * bytes), f->fraction, f->bias, f->max_code, v, &code))
		return code;
	if (a == 0)
		return sign;
	frexp(a, &exponent);
	exponent = exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
	quantum = ldexp(1, exponent - f->fraction);
	steps = nearbyint(fmin(a, f->max) / quantum);
	if (steps >= ldexp(1, f->fraction + 1)) { /* rounded up to the next power of two */
		steps /= 2;
		exponent++;
	}
	if (steps < ldexp(1, f->fraction)) /* subnormal */
		return sign | (uint32_t)steps;
	return sign | (uint32_t)(exponent + f->bias) << f->fraction | ((uint32_t)steps - (1u << f->fraction));
}

static double decode(unsigned type, uint32_t bits)
{
	const struct narrow *f = &narrows[type];
	unsigned bytes = element_bytes[type];
	int exponent_bits = (int)(8 * bytes) - 1 - f->fraction;
	int exponent = (int)(bits >> f->fraction) & ((1 << exponent_bits) - 1);
	double fraction = bits & ((1u << f->fraction) - 1), value;

	if (exponent == (1 << exponent_bits) - 1 && bytes == 2)
		value = fraction != 0 ? (double)NAN : (double)INFINITY;
	else if (exponent)
		value = ldexp(fraction + ldexp(1, f->fraction), exponent - f->bias - f->fraction);
	else
		value = ldexp(fraction, 1 - f->bias - f->fraction);
	return bits >> (8 * bytes - 1) ? -value : value;
}

static inline void put(uint32_t type, void *out, uint64_t i, double v)
{
	uint32_t bits;

	if (type == OPERAND_F64)
		((double *)out)[i] = v;
	else if (type == OPERAND_F32)
		((float *)out)[i] = (float)v;
	else if (type == OPERAND_S8)
		((int8_t *)out)[i] = (int8_t)v;
	else if (type == OPERAND_S32)
		((int32_t *)out)[i] = (int32_t)v;
	else {
		bits = isnan(v) ? 0x7fff : encode(&narrows[type], element_bytes[type], v);
		memcpy((char *)out + i * element_bytes[type], &bits, element_bytes[type]);
	}
}

void ref_operand_put(uint32_t type, void *out, uint64_t i, double v)
{
	put(type, out, i, v);
}

/* BF16 without what depends on the format: most products are written in it. */
static void put_bf16_line(uint16_t *out, uint64_t count, const double *v)
{
	const struct narrow f = narrows[OPERAND_BF16];
	uint32_t code;

	for (uint64_t i = 0; i < count; i++)
		if (ref_narrow_code(16, f.fraction, f.bias, f.max_code, v[i], &code))
			out[i] = (uint16_t)code;
		else
			put(OPERAND_BF16, out, i, v[i]);
}

void ref_operand_put_line(uint32_t type, void *out, uint64_t first, uint64_t count, const double *v)
{
	if (type == OPERAND_BF16) {
		put_bf16_line((uint16_t *)out + first, count, v);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		put(type, out, first + i, v[i]);
}

static inline double get(uint32_t type, const void *in, uint64_t i)
{
	static struct ref_table tables[sizeof(narrows) / sizeof(narrows[0])];
	uint32_t bits = 0;

	if (type == OPERAND_F64)
		return ((const double *)in)[i];
	if (type == OPERAND_F32)
		return (double)((const float *)in)[i];
	if (type == OPERAND_S8)
		return ((const int8_t *)in)[i];
	if (type == OPERAND_S32)
		return ((const int32_t *)in)[i];
	if (type == OPERAND_BF16)
		return ref_narrow_of_bf16(((const uint16_t *)in)[i]);
	memcpy(&bits, (const char *)in + i * element_bytes[type], element_bytes[type]);
	return ref_table_number(&tables[type], 1u << 8 * element_bytes[type], bits, decode, type);
}

double ref_operand_get(uint32_t type, const void *in, uint64_t i)
{
	return get(type, in, i);
}

static void get_bf16_line(const uint16_t *in, uint64_t step, uint64_t count, double *out, uint64_t out_step)
{
	if (step == 1 && out_step == 1) { /* vectors */
		for (uint64_t i = 0; i < count; i++)
			out[i] = ref_narrow_of_bf16(in[i]);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		out[i * out_step] = ref_narrow_of_bf16(in[i * step]);
}

void ref_operand_get_line(uint32_t type, const void *in, uint64_t first, uint64_t step, uint64_t count,
			  double *out, uint64_t out_step)
{
	if (type == OPERAND_BF16) {
		get_bf16_line((const uint16_t *)in + first, step, count, out, out_step);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		out[i * out_step] = get(type, in, first + i * step);
}

static void fill(const char *entry, struct ref_grid grid, const void *args)
{
	const struct operand_fill_args *a = args;
	/* A thread fills one span and no more: a grid that is too small leaves the rest as it was. */
	uint64_t span = a->data == OPERAND_SPARSE ? 32 : a->data == OPERAND_DENSE ? 16 : 4;
	uint64_t reach = span * grid.blocks * grid.threads;

	(void)entry;
	for (uint64_t i = 0; i < a->count && i < reach; i++) {
		uint32_t nibble = random_u32(a->seed, a->stream, i / 8) >> (i % 8 * 4) & 15;
		double v = 0;

		if (a->data == OPERAND_SPARSE)
			v = nibble == 0 ? 1 : nibble == 1 ? -1 : 0;
		else if (a->data == OPERAND_DENSE)
			v = ref_integer(a->seed, a->stream, i) >> (8 - a->bits);
		else if (a->data == OPERAND_RANDOM && a->type >= OPERAND_S8)
			v = (int8_t)(random_u32(a->seed, a->stream, i) >> 24);
		else if (a->data == OPERAND_RANDOM)
			v = (double)random_f32(a->seed, a->stream, i);
		ref_operand_put(a->type, (void *)(uintptr_t)a->out, i, v);
	}
}

static int64_t weight(unsigned which, uint64_t p)
{
	return which ? 1 + (int64_t)((uint32_t)(p * 2654435761u) >> 20) : 1 + (int64_t)p;
}

static void sums(const char *entry, struct ref_grid grid, const void *args)
{
	const struct operand_sums_args *a = args;
	int64_t *cw = (int64_t *)(uintptr_t)a->cw, *wc = (int64_t *)(uintptr_t)a->wc;
	uint32_t *odd_row = (uint32_t *)(uintptr_t)a->odd_row,
		 *odd_column = (uint32_t *)(uintptr_t)a->odd_column;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->rows; i++)
		for (uint64_t j = 0; j < a->columns; j++) {
			double v =
				ref_operand_get(a->type, (const void *)(uintptr_t)a->c, i * a->row_step + j);

			if (!(fabs(v) <= a->limit && v == trunc(v))) {
				odd_row[i]++;
				odd_column[j]++;
				continue;
			}
			for (unsigned w = 0; w < 2; w++) {
				cw[w * a->rows + i] += (int64_t)v * weight(w, j);
				wc[w * a->columns + j] += (int64_t)v * weight(w, i);
			}
		}
}

static void note(struct operand_found *f, uint64_t i, uint64_t nan)
{
	f->wrong++;
	f->nan += nan;
	if (i < f->first)
		f->first = i;
}

static void compare(const char *entry, struct ref_grid grid, const void *args)
{
	const struct operand_compare_args *a = args;
	struct operand_found *f = (struct operand_found *)(uintptr_t)a->found;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		double p = ref_operand_get(a->type, (const void *)(uintptr_t)a->a, i);
		double q = ref_operand_get(a->type, (const void *)(uintptr_t)a->b, i);

		if (!(p == q || fabs(p - q) <= a->tolerance))
			note(f, i, isnan(p) || isnan(q));
	}
}

static void judge(const char *entry, struct ref_grid grid, const void *args)
{
	const struct operand_judge_args *a = args;
	uint64_t *sum = (uint64_t *)(uintptr_t)a->sums;
	const uint64_t *expected = (const uint64_t *)(uintptr_t)a->expected;
	uint32_t *odd = (uint32_t *)(uintptr_t)a->odd;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		if (odd[i] || sum[i] != expected[i] || sum[a->count + i] != expected[a->count + i])
			note((struct operand_found *)(uintptr_t)a->found, i, odd[i]);
		sum[i] = sum[a->count + i] = 0;
		odd[i] = 0;
	}
}

static uint64_t pattern(uint64_t i, uint64_t pass)
{
	uint64_t v = i * 0x9e3779b97f4a7c15u + pass * 0xc2b2ae3d27d4eb4fu;

	return pass & 1 ? ~v : v;
}

static void memory(const char *entry, struct ref_grid grid, const void *args)
{
	const struct operand_memory_args *a = args;
	uint64_t *words = (uint64_t *)(uintptr_t)a->words, pass = *(uint64_t *)(uintptr_t)a->pass;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		if (pass && words[i] != pattern(i, pass))
			note((struct operand_found *)(uintptr_t)a->found, i, 0);
		words[i] = pattern(i, pass + 1);
	}
}

static void turn(const char *entry, struct ref_grid grid, const void *args)
{
	(void)entry, (void)grid;
	++*(uint64_t *)(uintptr_t)((const struct operand_memory_args *)args)->pass;
}

/* Every block is an SM that does what it must in the same time; sums are right where `expected` is. */
static void mma(const char *entry, struct ref_grid grid, const void *args)
{
	static const char *const names[] = {
#define X(name, text, bytes) "mma_" text,
		MMA_TYPES(X)
#undef X
	};
	const struct mma_args *a = args;
	const int64_t *expected = (const int64_t *)(uintptr_t)a->expected;
	unsigned wrong = 0, first = 0;
	int type = 0;

	while (type < MMA_INT8 && strcmp(names[type], entry))
		type++;
	for (unsigned t = 0; t < grid.threads; t++)
		if (expected[t] != mma_expect((enum mma_type)type, type != MMA_FP32, t) && !wrong++)
			first = t + 1;
	for (unsigned sm = 0; sm < grid.blocks && sm < a->records_count; sm++) {
		struct mma_record *r = (struct mma_record *)(uintptr_t)a->records + sm;

		if (a->only_sm >= 0 && sm != (unsigned)a->only_sm)
			continue;
		r->runs++;
		r->cycles_sum += 100 * (uint64_t)a->steps;
		r->cycles_min = r->cycles_max = 100 * (uint64_t)a->steps;
		r->ns_sum += 50 * (uint64_t)a->steps;
		r->ns_min = 50 * (uint64_t)a->steps;
		if (wrong && !r->wrong_threads)
			r->wrong_first = first;
		r->wrong_threads += wrong;
	}
}

/* Clusters of eight neighbours. */
static void cluster(const char *entry, struct ref_grid grid, const void *args)
{
	const struct sm_cluster_args *a = args;
	uint32_t *of_sm = (uint32_t *)(uintptr_t)a->of_sm;

	(void)entry;
	for (unsigned i = 0; i < grid.blocks && i < 128 && i < a->records_count; i++)
		of_sm[i] = 1 + i / 8;
}

const struct ref_row ref_operand[] = {
	{"mma_", mma, sizeof(struct mma_args), REF_NO_OUT},
	{"operand_compare", compare, sizeof(struct operand_compare_args), REF_NO_OUT},
	{"operand_fill", fill, sizeof(struct operand_fill_args), offsetof(struct operand_fill_args, out)},
	{"operand_judge", judge, sizeof(struct operand_judge_args), REF_NO_OUT},
	{"operand_memory", memory, sizeof(struct operand_memory_args),
	 offsetof(struct operand_memory_args, words)},
	{"operand_sums", sums, sizeof(struct operand_sums_args), REF_NO_OUT},
	{"operand_turn", turn, sizeof(struct operand_memory_args), REF_NO_OUT},
	{"sm_cluster", cluster, sizeof(struct sm_cluster_args), REF_NO_OUT},
	{NULL, NULL, 0, 0},
};
