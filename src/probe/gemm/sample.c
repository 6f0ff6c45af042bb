/* SPDX-License-Identifier: Apache-2.0 */
/* The random pass: compares sampled elements with double-precision dot products of the inputs as rounded to
 * their type. */
#include <inttypes.h>
#include <math.h>
#include "core/math/random.h"
#include "probe/shared/cpu.h"
#include "probe/gemm/gemm.h"

enum { STREAM_PLACES = 100 };

/* Bits of the significand (including the hidden bit), smallest normal exponent, largest finite value. */
struct format {
	int digits, exponent_min;
	double max;
};

static const struct format input_format[] = {
	[GEMM_FP64] = {53, -1022, 0x1.fffffffffffffp1023},
	[GEMM_FP32] = {24, -126, 0x1.fffffep127},
	[GEMM_TF32] = {24, -126, 0x1.fffffep127}, /* stored as FP32; the tensor core drops bits, which
						     gemm_tolerance allows for */
	[GEMM_FP16] = {11, -14, 65504},
	[GEMM_BF16] = {8, -126, 0x1.fep127},
	[GEMM_E4M3] = {4, -6, 448},
	[GEMM_E5M2] = {3, -14, 57344},
	[GEMM_INT8] = {8, 0, 127},
};

static enum gemm_type output_type(enum gemm_type type)
{
	return type == GEMM_E4M3 || type == GEMM_E5M2 ? GEMM_BF16 : type;
}

/* Rounds to nearest, ties to even. Subnormals are kept; values beyond the largest saturate. */
static double round_to(const struct format *f, double x)
{
	double quantum, rounded;
	int exponent;

	if (x == 0 || !isfinite(x))
		return x;
	if (f->digits == 53 || (f->digits == 24 && x == (double)(float)x)) /* the format contains x */
		return x;
	frexp(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
	if (exponent - 1 < f->exponent_min)
		exponent = f->exponent_min + 1;
	quantum = ldexp(1, exponent - f->digits);
	rounded = nearbyint(x / quantum) * quantum;
	return fabs(rounded) > f->max ? copysign(f->max, x) : rounded;
}

double gemm_round_in(enum gemm_type type, double x)
{
	if (type == GEMM_INT8)
		return x < -128 ? -128 : x > 127 ? 127 : nearbyint(x);
	return round_to(&input_format[type], x);
}

double gemm_round_out(enum gemm_type type, double x)
{
	return type == GEMM_INT8 ? nearbyint(x) : round_to(&input_format[output_type(type)], x);
}

static double half_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double value;

	if (exponent == 31)
		value = fraction ? (double)NAN : (double)INFINITY;
	else
		value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
	return bits & 0x8000 ? -value : value;
}

double gemm_value_out(enum gemm_type type, const void *c, uint64_t i)
{
	uint32_t bits;
	float value;

	switch (type) {
	case GEMM_FP64:
		return ((const double *)c)[i];
	case GEMM_FP32:
	case GEMM_TF32:
		return (double)((const float *)c)[i];
	case GEMM_INT8:
		return ((const int32_t *)c)[i];
	case GEMM_FP16:
		return half_value(((const uint16_t *)c)[i]);
	default: /* BF16 is the upper half of a float */
		bits = (uint32_t)((const uint16_t *)c)[i] << 16;
		memcpy(&value, &bits, sizeof(value));
		return (double)value;
	}
}

/*
 * A sum of k rounded products in any order has an error below k u sum|ab|. The errors are independent, so in
 * practice the error stays below 4 sqrt(k) + 4 of them (docs/explanation/methods/cpu-probes.md, "GEMM
 * tolerance"). u: 2^-53 for FP64, 2^-24 for FP32, 2^-22 for tensor cores with FP32 accumulators (aligned and
 * truncated), 2^-13 for the fast FP8 accumulator. TF32 drops 13 input bits: 2^-9 of each product.
 */
double gemm_tolerance(enum gemm_type type, uint32_t k, double exact, double magnitude)
{
	static const double accumulate[] = {
		[GEMM_FP64] = 0x1p-53, [GEMM_FP32] = 0x1p-24, [GEMM_TF32] = 0x1p-22, [GEMM_FP16] = 0x1p-22,
		[GEMM_BF16] = 0x1p-22, [GEMM_E4M3] = 0x1p-13, [GEMM_E5M2] = 0x1p-13, [GEMM_INT8] = 0};
	double tolerance = (4 * sqrt(k) + 4) * accumulate[type] * magnitude;

	if (type == GEMM_INT8)
		return 0;
	if (type == GEMM_TF32)
		tolerance += 0x1p-9 * magnitude;
	return tolerance + ldexp(fabs(exact) + tolerance, 1 - input_format[output_type(type)].digits);
}

double gemm_exact(const struct gemm *g, enum gemm_data data, uint32_t b, uint32_t row, uint32_t column,
		  double *magnitude)
{
	const struct gemm_opts *o = &g->opts;
	uint64_t a_first = (uint64_t)b * o->m * o->k, b_first = (uint64_t)b * o->k * o->n;
	double sum = 0, absolute = 0;

	for (uint64_t l = 0; l < o->k; l++) {
		uint64_t ia = a_first + (o->ta == GEMM_T ? l * o->m + row : (uint64_t)row * o->k + l);
		uint64_t ib = b_first + (o->tb == GEMM_T ? (uint64_t)column * o->k + l : l * o->n + column);
		double x = gemm_round_in(o->type, gemm_element(g->seed, GEMM_STREAM_A, data, o->type, ia));
		double y = gemm_round_in(gemm_type_b(o->type),
					 gemm_element(g->seed, GEMM_STREAM_B, data, o->type, ib));

		sum += x * y;
		absolute += fabs(x * y);
	}
	if (o->bias) {
		double value = gemm_element(g->seed, GEMM_STREAM_BIAS, data, o->type, column);

		sum += gemm_round_out(o->type, value);
		absolute += fabs(value);
	}
	if (magnitude)
		*magnitude = absolute;
	return sum;
}

void gemm_note(const struct gemm *g, struct wrong *w, uint32_t b, uint32_t row, uint32_t column,
	       double expected, double found)
{
	char batch[24] = "";

	if (!isfinite(found))
		w->nan = true;
	if (w->count++)
		return;
	w->first_index = ((uint64_t)b * g->opts.m + (row == UINT32_MAX ? 0 : row)) * g->opts.n + column;
	w->expected = expected;
	w->found = found;
	if (g->opts.batch > 1)
		snprintf(batch, sizeof(batch), "batch %" PRIu32 " ", b);
	if (row == UINT32_MAX)
		snprintf(w->place, sizeof(w->place), "%scolumn %" PRIu32 ", its sum over all rows", batch,
			 column);
	else
		snprintf(w->place, sizeof(w->place), "%srow %" PRIu32 " column %" PRIu32, batch, row, column);
}

/* Chooses the four corners of the first and the last matrix, then random places from the generator. */
static void sample_places(const struct gemm *g, uint64_t *index)
{
	uint64_t each = (uint64_t)g->opts.m * g->opts.n, total = each * g->opts.batch, n = g->opts.n;
	const uint64_t corners[] = {
		0, n - 1, each - n, each - 1, total - each, total - each + n - 1, total - n, total - 1};

	for (unsigned i = 0; i < GEMM_SAMPLES; i++) {
		uint64_t high = random_u32(g->seed, STREAM_PLACES, 2 * (uint64_t)i);
		uint64_t low = random_u32(g->seed, STREAM_PLACES, 2 * (uint64_t)i + 1);

		index[i] = i < sizeof(corners) / sizeof(corners[0]) ? corners[i] : (high << 32 | low) % total;
	}
}

struct sampling {
	struct gemm *g;
	const uint64_t *index;
};

static void sample_work(void *arg, unsigned thread)
{
	const struct sampling *s = arg;
	struct gemm *g = s->g;
	uint64_t each = (uint64_t)g->opts.m * g->opts.n, first, last;

	cpu_share(GEMM_SAMPLES, 1, thread, g->pool ? cpu_pool_count(g->pool) : 1, &first, &last);
	for (uint64_t i = first; i < last; i++)
		g->sample[i].exact = gemm_exact(g, g->opts.data, (uint32_t)(s->index[i] / each),
						(uint32_t)(s->index[i] % each / g->opts.n),
						(uint32_t)(s->index[i] % g->opts.n), &g->sample[i].magnitude);
}

/* Computes the correct values once: places and data of a case never change. */
static void right_samples(struct gemm *g, const uint64_t *index)
{
	struct sampling s = {.g = g, .index = index};

	if (g->samples_known)
		return;
	if (g->pool)
		cpu_pool_run(g->pool, sample_work, &s);
	else
		sample_work(&s, 0);
	g->samples_known = true;
}

enum status gemm_check_samples(struct gemm *g, unsigned set, struct wrong *wrong, struct error *err)
{
	uint64_t index[GEMM_SAMPLES], each = (uint64_t)g->opts.m * g->opts.n;
	double found[GEMM_SAMPLES];
	enum status st;

	sample_places(g, index);
	st = g->access->elements(g, set, index, GEMM_SAMPLES, found, err);
	if (st)
		return st;
	right_samples(g, index);
	for (unsigned i = 0; i < GEMM_SAMPLES; i++) {
		const struct gemm_sample *s = &g->sample[i];
		double allowed = gemm_tolerance(g->opts.type, g->opts.k, s->exact, s->magnitude);

		if (!(fabs(found[i] - s->exact) <= allowed))
			gemm_note(g, wrong, (uint32_t)(index[i] / each),
				  (uint32_t)(index[i] % each / g->opts.n), (uint32_t)(index[i] % g->opts.n),
				  s->exact, found[i]);
	}
	wrong->checked += GEMM_SAMPLES;
	return STATUS_OK;
}
