/* SPDX-License-Identifier: Apache-2.0 */
/* Products with weights in blocks against the numbers that the blocks stand for. */
#include "unit/test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/cpu/cpu.h"
#include "model/backend/cost.h"
#include "model/cpu/quantised_gemm.h"
#include "model/tensor/dtype.h"
#include "model/backend/plan_backend.h"

enum { K = 96, N = 37, ROWS = 20 };
static const enum dtype types[] = {DTYPE_Q8_0, DTYPE_Q4_0, DTYPE_Q4_1};

/* Random bytes, with scales that are small numbers: halves around 2^-4, of both signs. */
static void random_blocks(enum dtype dtype, uint8_t *out, size_t elements)
{
	const size_t block = dtype_bytes(dtype, CPU_BLOCK);

	for (size_t i = 0; i < dtype_bytes(dtype, elements); i++)
		out[i] = (uint8_t)random_u32(1, (uint32_t)dtype, i);
	for (size_t b = 0; b < elements / CPU_BLOCK; b++)
		for (size_t half = 0; half < (dtype == DTYPE_Q4_1 ? 2u : 1u); half++)
			out[b * block + 2 * half + 1] = (uint8_t)(0x2c | (b & 1) << 7);
}

static void test_blocks__every_width_gives_the_sum_of_its_numbers(void **state)
{
	static struct cpu_block x[K / CPU_BLOCK];
	uint8_t w[K * 2];
	float numbers[K];
	int widths = 0;

	(void)state;
	for (int b = 0; b < K / CPU_BLOCK; b++) {
		int sum = 0;

		x[b].scale = 0.5f + (float)b;
		for (int i = 0; i < CPU_BLOCK; i++) {
			x[b].q[i] = (int8_t)(random_u32(2, 0, (uint64_t)(b * CPU_BLOCK + i)) % 255 - 127);
			sum += x[b].q[i];
		}
		x[b].sum = x[b].scale * (float)sum;
	}
	for (int t = 0; t < 3; t++)
		for (int width = CPU_PLAIN; width < CPU_WIDTHS; width++) {
			row_dot dot = cpu_blocks_dot(types[t], width);
			double sum = 0, size = 0;

			assert_true(dot || width != CPU_PLAIN);
			if (!dot)
				continue;
			random_blocks(types[t], w, K);
			if (types[t] == DTYPE_Q8_0)
				w[2] = w[3] = 0x80; /* the largest magnitude, in a pair */
			dtype_unpack(types[t], w, numbers, K);
			for (int i = 0; i < K; i++) {
				double part = (double)numbers[i] * (double)x[i / CPU_BLOCK].scale *
					      x[i / CPU_BLOCK].q[i % CPU_BLOCK];

				sum += part;
				size += fabs(part);
			}
			assert_true(fabs((double)dot(w, x, K / CPU_BLOCK) - sum) < 1e-5 * size);
			widths++;
		}
	assert_true(widths >= 3);
}

/* d = x W' + 0.5 c + bias, by blocks and by their numbers; few rows are rounded to 127 steps a block first.
 */
static void check_product(enum dtype dtype, int64_t rows)
{
	static float x[ROWS * K], d[ROWS * N], c[ROWS * N], bias[N], numbers[N * K];
	static uint8_t w[N * K * 2];
	struct arena arena = {.size = 1 << 20}, plan_arena = {0};
	struct backend back, plan;
	struct error err = {0};
	struct gemm g = {
		.a = {.data = x, .rows = rows, .cols = K, .ld = K, .dtype = DTYPE_F32},
		.b = {.data = w, .rows = N, .cols = K, .ld = K, .dtype = dtype},
		.c = {.data = c, .rows = rows, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.d = {.data = d, .rows = rows, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.bias = {.data = bias, .rows = 1, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.trans_b = true,
		.alpha = 1,
		.beta = 0.5f,
	};

	arena.base = aligned_alloc(ARENA_ALIGN, arena.size);
	assert_non_null(arena.base);
	assert_int_equal(cpu_backend_create(&back, &(struct cpu_options){.threads = 2}, &arena, &err),
			 STATUS_OK);
	random_blocks(dtype, w, N * K);
	dtype_unpack(dtype, w, numbers, N * K);
	for (int i = 0; i < ROWS * K; i++)
		x[i] = random_f32(3, 0, (uint64_t)i);
	for (int i = 0; i < ROWS * N; i++)
		c[i] = random_f32(3, 1, (uint64_t)i);
	for (int i = 0; i < N; i++)
		bias[i] = random_f32(3, 2, (uint64_t)i);
	assert_int_equal(back.ops->gemm(&back, &g, &err), STATUS_OK);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < N; j++) {
			double sum = 0.5 * (double)c[i * N + j] + (double)bias[j], size = 0;

			for (int64_t k = 0; k < K; k++) {
				sum += (double)x[i * K + k] * (double)numbers[j * K + k];
				size += (double)numbers[j * K + k] * (double)numbers[j * K + k];
			}
			assert_true(fabs(sum - (double)d[i * N + j]) <
				    (rows <= BLOCKS_ROWS ? 6 / 127. / sqrt(12) : 1e-5) * sqrt(size));
		}
	plan_backend_cpu(&plan, 2, &plan_arena);
	assert_int_equal(plan.ops->gemm(&plan, &g, &err), STATUS_OK);
	assert_int_equal(plan_arena.peak, arena.peak);
	assert_true(plan.cost.flop == back.cost.flop && plan.cost.bytes == back.cost.bytes);
	cpu_backend_release(&back);
	free(arena.base);
}

static void test_blocks__few_and_many_rows_give_the_product_and_the_plan_knows_their_room(void **state)
{
	(void)state;
	for (int t = 0; t < 3; t++) {
		check_product(types[t], 1);
		check_product(types[t], BLOCKS_ROWS);
		check_product(types[t], ROWS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks__every_width_gives_the_sum_of_its_numbers),
		cmocka_unit_test(
			test_blocks__few_and_many_rows_give_the_product_and_the_plan_knows_their_room),
	};

	return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
