/* SPDX-License-Identifier: Apache-2.0 */
/* The expected sums, computed by the host alone from the generator: sums of A B under two weights. */
#include "core/math/random.h"
#include "probe/gemm/gemm.h"
#include "probe/stress/stress.h"

int stress_element(uint64_t seed, uint32_t stream, unsigned bits, uint64_t i)
{
	return (int8_t)(random_u32(seed, stream, i / 4) >> i % 4 * 8) >> (8 - bits);
}

uint64_t stress_pattern(uint64_t i, uint64_t pass)
{
	uint64_t v = i * 0x9e3779b97f4a7c15u + pass * 0xc2b2ae3d27d4eb4fu;

	return pass & 1 ? ~v : v;
}

/* Row r of an n x n matrix. n is a multiple of 16, so every row starts with a new block of the generator. */
static void row_of(int8_t *row, uint64_t seed, uint32_t stream, unsigned bits, uint32_t n, uint32_t r)
{
	const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	uint64_t block = (uint64_t)r * n / 16;
	uint32_t word[4];

	for (uint32_t j = 0; j < n; j += 16, block++) {
		philox4x32(word, (const uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), stream, 0},
			   key);
		for (unsigned i = 0; i < 16; i++)
			row[j + i] = (int8_t)((int8_t)(word[i / 4] >> i % 4 * 8) >> (8 - bits));
	}
}

/* right[w] = M x[w]; left[w] += y[w]^T M if left is not NULL. */
static void pass(int8_t *row, uint64_t seed, uint32_t stream, unsigned bits, uint32_t n, int64_t *const x[2],
		 int64_t *const right[2], int64_t *const y[2], int64_t *const left[2])
{
	for (uint32_t r = 0; r < n; r++) {
		row_of(row, seed, stream, bits, n, r);
		for (unsigned w = 0; w < 2; w++) {
			int64_t sum = 0;

			for (uint32_t j = 0; x && j < n; j++)
				sum += row[j] * x[w][j];
			if (x)
				right[w][r] = sum;
			for (uint32_t j = 0; y && j < n; j++)
				left[w][j] += row[j] * y[w][r];
		}
	}
}

enum status stress_expect(struct stress_sums *out, uint64_t seed, unsigned set, unsigned bits, uint32_t n,
			  struct error *err)
{
	uint32_t b = set ? STRESS_STREAM_G2 : STRESS_STREAM_G;
	int64_t *all = calloc(10 * (size_t)n, sizeof(*all));
	int64_t *weight[2], *bw[2], *wa[2];
	int8_t *row = malloc(n);

	*out = (struct stress_sums){0};
	if (!all || !row) {
		free(all);
		free(row);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "stress: not enough memory for the expected sums");
	}
	for (unsigned w = 0; w < 2; w++) {
		out->cw[w] = all + (size_t)w * n; /* the first pointer owns the allocation of all arrays */
		out->wc[w] = all + (2 + (size_t)w) * n;
		weight[w] = all + (4 + (size_t)w) * n;
		bw[w] = all + (6 + (size_t)w) * n;
		wa[w] = all + (8 + (size_t)w) * n;
		for (uint32_t i = 0; i < n; i++)
			weight[w][i] = gemm_weight(w, i);
	}
	/* The stored matrix is G, and B = G^T. So B w = G^T w, and (w^T A) B = G (w^T A)^T. */
	pass(row, seed, b, bits, n, NULL, NULL, weight, bw);
	pass(row, seed, STRESS_STREAM_A, bits, n, bw, out->cw, weight, wa);
	pass(row, seed, b, bits, n, wa, out->wc, NULL, NULL);
	free(row);
	return STATUS_OK;
}

void stress_sums_free(struct stress_sums *s)
{
	free(s->cw[0]);
	*s = (struct stress_sums){0};
}
