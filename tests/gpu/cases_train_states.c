/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW with small states. Neither A nor B: F32 weights and gradients; A: halves of weights, BF16 gradients; B:
 * BF16 weights and gradients; A and B: as A, with F32 moments. C: a norm that is not finite. */
#include <math.h>
#include "cases_train.h"
#include "kernel/train/adamw_states.h"
#include "kernel/train/dynamic_map.h"

#define OF(member) offsetof(struct train_states_args, member)

static const struct tolerance f32 = {4e-6, 1e-6}, bf16 = {0x1p-7, 0};
/* A number between two codes may get the other one, if F32 rounds it otherwise: one in a hundred at most. */
static const struct tolerance one_code = {0, 0.02};
/* Last places of F32. A carry into the upper half makes a few elements differ by all of it. */
static const struct tolerance last_places = {0, 0.003};

static double moment(const struct train_build *b, const char *name, const char *scale, const float *map,
		     int64_t i)
{
	const struct train_states_args *a = (const void *)b->args;
	const double n = train_before(b, name, 0, i);

	return a->moments == TRAIN_MOMENTS_CODES
		       ? (double)map[(int)n] * train_before(b, scale, 0, i / TRAIN_STATES_BLOCK)
		       : n;
}

static double gradient(const struct train_build *b, int64_t i)
{
	const struct train_states_args *a = (const void *)b->args;
	const double clip = a->max_norm / (sqrt(train_before(b, "norm", 0, 0)) + 1e-6);

	return fmin(1, clip) * train_before(b, "gradient", 0, i);
}

/* The magnitudes of both terms of the first moment. */
static double first_terms(const struct train_build *b, int64_t i)
{
	static const float map[DYNAMIC_CODES] = {DYNAMIC_SIGNED};
	const struct train_states_args *a = (const void *)b->args;
	const double beta = (double)a->beta1;

	return fabs(beta * moment(b, "first moment", "first scale", map, i)) +
	       fabs((1 - beta) * gradient(b, i));
}

/* beta1 m is rounded as a product and in the sum. (1 - beta1) g is so too, and g twice before, as the clip's
 * factor and as its product. The fifth is for a step of BF16's stochastic rounding, which grows with the
 * number by at most 2^-7 of the difference; the step itself is the tolerance's 2^-7. */
static double moment_cancels(const struct train_build *b, int64_t row, int64_t i)
{
	(void)row;
	return 5 * TRAIN_F32_HALF_UNIT * first_terms(b, i);
}

/* The weight and its step likewise: about ten roundings of the step's quotient, and five of the first
 * moment's terms. */
static double weight_cancels(const struct train_build *b, int64_t row, int64_t i)
{
	static const float map[DYNAMIC_CODES] = {DYNAMIC_UNSIGNED};
	const struct train_states_args *a = (const void *)b->args;
	const double beta = (double)a->beta2, g = gradient(b, i);
	const double v = beta * moment(b, "second moment", "second scale", map, i) + (1 - beta) * g * g;
	const double step = (double)a->lr / (double)a->correction1 * first_terms(b, i) /
			    (sqrt(v / (double)a->correction2) + (double)a->eps);

	(void)row;
	return 16 * TRAIN_F32_HALF_UNIT * (fabs(train_before(b, "weight", 0, i)) + step);
}

static struct operand *vector(struct train_build *b, const char *name, size_t at, enum number type,
			      int64_t count, const struct tolerance *t)
{
	struct operand *o = train_operand(b, name, at, type, 1, count, t ? USE_ADDED : USE_IN);

	if (t)
		o->tolerance = *t;
	return o;
}

static void weights(struct train_build *b, const struct train_states_args *a)
{
	struct operand *o;

	o = vector(b, "weight", OF(w), a->weight == TRAIN_WEIGHT_F32 ? NUMBER_F32 : NUMBER_BF16,
		   b->rows * b->cols, a->weight == TRAIN_WEIGHT_F32 ? &f32 : &bf16);
	o->cancels = weight_cancels;
	if (a->weight != TRAIN_WEIGHT_SPLIT)
		return;
	o = vector(b, "lower half", OF(rest), NUMBER_I16, b->rows * b->cols, &last_places);
	o->outliers = 0.005;
}

static void moments(struct train_build *b, const struct train_states_args *a)
{
	const int64_t count = b->rows * b->cols, blocks = (count + TRAIN_STATES_BLOCK - 1) / TRAIN_STATES_BLOCK;
	const bool codes = a->moments == TRAIN_MOMENTS_CODES;
	const enum number type = codes				   ? NUMBER_BYTE
				 : a->moments == TRAIN_MOMENTS_F32 ? NUMBER_F32
								   : NUMBER_BF16;
	const struct tolerance *const t = codes ? &one_code : type == NUMBER_F32 ? &f32 : &bf16;
	struct operand *o = vector(b, "first moment", OF(m), type, count, t);

	o->centre = codes ? 1 : 0;
	o->cancels = codes ? NULL : moment_cancels;
	o = vector(b, "second moment", OF(v), type, count, t);
	o->centre = codes ? 1 : 1.5; /* it is no less than 0 */
	for (int i = 0; codes && i < 2; i++) {
		o = vector(b, i ? "second scale" : "first scale", i ? OF(v_scale) : OF(m_scale), NUMBER_F32, blocks, &f32);
		o->centre = 0.5;
		o->width = 0.4;
	}
}

static void states(struct train_build *b)
{
	const bool codes = !strcmp(b->c->entry, "train_adamw_8bit"), halves = b->flags & TRAIN_A;
	const bool plain = !(b->flags & (TRAIN_A | TRAIN_B)), f32_moments = halves && b->flags & TRAIN_B;
	const struct train_states_args a = {
		.count = (uint64_t)(b->rows * b->cols),
		.first = b->flags & TRAIN_ODD ? 3 : (uint64_t)1 << 34,
		.seed = 42,
		.max_norm = 0.5,
		.lr = 1e-2f,
		.beta1 = 0.9f,
		.beta2 = 0.95f,
		.eps = 1e-8f,
		.decay = 0.1f,
		.correction1 = 1 - 0.9f * 0.9f,
		.correction2 = 1 - 0.95f * 0.95f,
		.step = 2,
		.g_bf16 = !plain,
		.moments = codes ? TRAIN_MOMENTS_CODES : f32_moments ? TRAIN_MOMENTS_F32 : TRAIN_MOMENTS_BF16,
		.weight = plain ? TRAIN_WEIGHT_F32 : halves ? TRAIN_WEIGHT_SPLIT : TRAIN_WEIGHT_BF16,
	};
	struct operand *o;

	b->file = "train_adamw";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	b->threads = TRAIN_THREADS;
	b->grid[0] = codes ? train_states_blocks(a.count) : train_blocks(1, a.count);
	vector(b, "gradient", OF(g), a.g_bf16 ? NUMBER_BF16 : NUMBER_F32, (int64_t)a.count, NULL);
	moments(b, &a);
	weights(b, &a);
	o = train_operand(b, "norm", OF(norm_squares), NUMBER_F64, 1, 1, USE_IN);
	o->shift = 0;
	o->centre = b->flags & TRAIN_C ? (double)INFINITY : 9;
	o->width = 0;
}

const struct train_maker makers_train_states[] = {
	{"train_adamw_states", states},
	{"train_adamw_8bit", states},
	{NULL, NULL},
};
