/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of probe scaling compares sampled gradients with double-precision sums over the inputs of all
 * ranks. Any rank can regenerate these inputs, so the check covers GEMMs and averages together. Probe
 * collective verifies every element of a collective.
 */
#include <inttypes.h>
#include <math.h>
#include "core/math/random.h"
#include "probe/gemm/gemm.h"
#include "probe/scaling/scaling.h"

enum { SAMPLES = 32 };

/* Value of the element with these bits. */
static double number(enum scaling_type type, uint16_t bits)
{
	int exponent = type == SCALING_BF16 ? bits >> 7 & 0xff : bits >> 10 & 0x1f;
	int digits = type == SCALING_BF16 ? 7 : 10, most = type == SCALING_BF16 ? 0xff : 0x1f;
	double fraction = bits & ((1u << digits) - 1), sign = bits >> 15 ? -1 : 1;
	int bias = most >> 1;

	if (exponent == most)
		return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
	if (!exponent)
		return sign * ldexp(fraction, 1 - bias - digits);
	return sign * ldexp(fraction + ldexp(1, digits), exponent - bias - digits);
}

static double element(const struct scaling_state *s, uint32_t stream, uint64_t i)
{
	enum gemm_type type = s->opts.type == SCALING_BF16 ? GEMM_BF16 : GEMM_FP16;

	return gemm_round_in(type, (double)random_f32(s->bench->seed, stream, i));
}

/* Contribution of rank `rank` to (row, column) of a layer's gradient. */
static double given(const struct scaling_state *s, unsigned rank, uint32_t layer, uint64_t row,
		    uint64_t column)
{
	uint32_t set = rank * SCALING_SETS + layer % SCALING_SETS;
	double sum = 0;

	for (uint64_t i = 0; i < s->opts.m; i++)
		sum += element(s, SCALING_STREAM_GRADIENT + set, i * s->opts.width + row) *
		       element(s, SCALING_STREAM_INPUT + set, i * s->opts.width + column);
	return scaling_alpha(s, SCALING_TO_WEIGHT) * sum;
}

/* Mean over the ranks. *tolerance: largest error from rounding of the products and of each partial sum. */
static double expected(const struct scaling_state *s, uint64_t place, double *tolerance)
{
	uint64_t width = s->opts.width, layer = place / (width * width), in_layer = place % (width * width);
	double sum = 0, size = 0, unit = s->opts.type == SCALING_BF16 ? 0x1p-8 : 0x1p-11;

	for (unsigned r = 0; r < s->team->size; r++) {
		double one = given(s, r, (uint32_t)layer, in_layer / width, in_layer % width);

		sum += one / s->team->size;
		size += fabs(one) / s->team->size;
	}
	*tolerance = (s->team->size + 3) * unit / 2 * size + 1e-5 * sqrt(s->opts.m);
	return sum;
}

static enum status run_one(struct scaling_state *s, struct error *err)
{
	uint64_t words = (uint64_t)s->opts.layers * s->opts.width * s->opts.width / 2;
	enum status st = gpu_stream_fill32(s->bench->stream[0], s->gradient, 0xffffffff, words, err);

	return st ? st : scaling_step(s, NULL, err);
}

static void compare(const struct scaling_state *s, uint64_t place, uint16_t bits, struct wrong *wrong)
{
	double tolerance, want = expected(s, place, &tolerance), found = number(s->opts.type, bits);
	uint64_t width = s->opts.width;

	wrong->checked++;
	if (fabs(found - want) <= tolerance) /* a NaN fails this comparison */
		return;
	if (!wrong->count++) {
		wrong->first_index = place;
		wrong->expected = want;
		wrong->found = found;
		snprintf(wrong->place, sizeof(wrong->place),
			 "layer %" PRIu64 " row %" PRIu64 " column %" PRIu64, place / (width * width),
			 place % (width * width) / width, place % width);
	}
	wrong->nan = wrong->nan || isnan(found);
}

enum status scaling_verify(void *state, struct wrong *wrong, struct error *err)
{
	struct scaling_state *s = state;
	uint64_t total = (uint64_t)s->opts.layers * s->opts.width * s->opts.width;
	enum status st = s->steps ? STATUS_OK : run_one(s, err);

	*wrong = (struct wrong){.total = total};
	if (!st)
		st = scaling_wait(s, err);
	for (uint64_t i = 0; i < SAMPLES && !st; i++) {
		/* one sample in each part of the gradients; the place differs by rank */
		uint64_t part = total / SAMPLES, at = i * part;
		uint16_t bits;

		at += part ? random_u32(s->bench->seed, 1 + s->team->rank, i) % part : 0;
		st = gpu_copy_from(s->bench->device, &bits, s->gradient + 2 * at, sizeof(bits), err);
		if (!st)
			compare(s, at, bits, wrong);
	}
	if (st || !wrong->count)
		return st;
	return error_set_cause(err, STATUS_MISMATCH, wrong->nan ? CAUSE_NAN : CAUSE_WRONG_RESULT,
			       "scaling: %" PRIu64 " of %" PRIu64
			       " sampled gradients are wrong, the first at %s: found %g, expected %g",
			       wrong->count, wrong->checked, wrong->place, wrong->found, wrong->expected);
}
