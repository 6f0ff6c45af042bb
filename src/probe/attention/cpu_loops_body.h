/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tile for one vector width. cpu_loops.c includes this file once per instruction set, with these macros:
 *   NAME(x)  the function's name   TARGET  its target attribute   LANES  floats per vector
 * Accumulators of four rows by two vectors keep the units busy; the numbers of rows and keys are multiples of
 * these.
 */
typedef float NAME(vec) __attribute__((vector_size(LANES * sizeof(float)), may_alias));
typedef int32_t NAME(ints) __attribute__((vector_size(LANES * sizeof(float)), may_alias));

#define VEC NAME(vec)
#define INTS NAME(ints)
#define SPLAT(x) ((VEC){0} + (x))

/* p += q k */
static void TARGET NAME(logits)(struct attention_tile *t, uint32_t d)
{
	for (unsigned r = 0; r < ATTENTION_ROWS; r += 4)
		for (unsigned c = 0; c < ATTENTION_KEYS; c += 2 * LANES) {
			VEC sum[4][2] = {0};

			for (uint32_t i = 0; i < d; i++) {
				VEC k0 = *(const VEC *)&t->k[i][c], k1 = *(const VEC *)&t->k[i][c + LANES];

#pragma GCC unroll 4
				for (unsigned j = 0; j < 4; j++) {
					sum[j][0] += t->q[r + j][i] * k0;
					sum[j][1] += t->q[r + j][i] * k1;
				}
			}
#pragma GCC unroll 4
			for (unsigned j = 0; j < 4; j++) {
				*(VEC *)&t->p[r + j][c] += sum[j][0];
				*(VEC *)&t->p[r + j][c + LANES] += sum[j][1];
			}
		}
}

/* 2^x for x <= 0, and 0 below 2^-126: the nearest integer becomes the exponent, a polynomial gives the rest
 * (error below 2^-23). */
static inline VEC TARGET NAME(exp2)(VEC x)
{
	const VEC magic = SPLAT(12582912.0f);
	VEC low = (VEC)((INTS)x & (x > -126.0f)), rounded = low + magic, f = low - (rounded - magic), y;

	y = f * 1.5403530e-4f + 1.3333558e-3f;
	y = y * f + 9.6181291e-3f;
	y = y * f + 5.5504109e-2f;
	y = y * f + 2.4022651e-1f;
	y = y * f + 6.9314718e-1f;
	y = y * f + 1.0f;
	y = (VEC)((INTS)y + ((INTS)rounded << 23));
	return (VEC)((INTS)y & (x > -126.0f));
}

/* Replaces the logits in p by 2^(logit - most), and rescales o and sum to the new largest logit. */
static void TARGET NAME(weights)(struct attention_tile *t, uint32_t d)
{
	for (unsigned r = 0; r < ATTENTION_ROWS; r++) {
		float most = t->most[r], shrink;
		VEC sum = {0};

		for (unsigned c = 0; c < ATTENTION_KEYS; c++)
			most = t->p[r][c] > most ? t->p[r][c] : most;
		for (unsigned c = 0; c < ATTENTION_KEYS; c += LANES) {
			VEC p = NAME(exp2)(*(const VEC *)&t->p[r][c] - most);

			*(VEC *)&t->p[r][c] = p;
			sum += p;
		}
		shrink = NAME(exp2)(SPLAT(t->most[r] - most))[0];
		t->sum[r] *= shrink;
		for (unsigned i = 0; i < LANES; i++)
			t->sum[r] += sum[i];
		for (uint32_t i = 0; i < d; i += LANES)
			*(VEC *)&t->o[r][i] *= shrink;
		t->most[r] = most;
	}
}

/* o += p v */
static void TARGET NAME(values)(struct attention_tile *t, uint32_t d)
{
	for (unsigned r = 0; r < ATTENTION_ROWS; r += 4)
		for (uint32_t i = 0; i < d; i += 2 * LANES) {
			VEC sum[4][2] = {0};

			for (unsigned c = 0; c < ATTENTION_KEYS; c++) {
				VEC v0 = *(const VEC *)&t->v[c][i], v1 = *(const VEC *)&t->v[c][i + LANES];

#pragma GCC unroll 4
				for (unsigned j = 0; j < 4; j++) {
					sum[j][0] += t->p[r + j][c] * v0;
					sum[j][1] += t->p[r + j][c] * v1;
				}
			}
#pragma GCC unroll 4
			for (unsigned j = 0; j < 4; j++) {
				*(VEC *)&t->o[r + j][i] += sum[j][0];
				*(VEC *)&t->o[r + j][i + LANES] += sum[j][1];
			}
		}
}

static void TARGET NAME(add)(struct attention_tile *t, uint32_t head_dim)
{
	NAME(logits)(t, head_dim);
	NAME(weights)(t, head_dim);
	NAME(values)(t, head_dim);
}

static const struct attention_loops NAME(loops) = {.isa = ISA, .isa_bits = ISA_BITS, .add = NAME(add)};

#undef VEC
#undef INTS
#undef SPLAT
#undef NAME
#undef TARGET
#undef LANES
#undef ISA
#undef ISA_BITS
