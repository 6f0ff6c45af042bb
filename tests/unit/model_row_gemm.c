/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs of inference with weights in F32, BF16 and F16: their results, and that a row's bits do not depend on
 * the other rows. */
#include "unit/test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/cpu/cpu.h"
#include "model/cpu/invariant/row_gemm.h"
#include "model/tensor/dtype.h"
#include "unit/must.h"

enum { K = 83, N = 45, ROWS = 70, WIDE_K = 20000 };
static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};

static float x[ROWS * K], c[ROWS * N], d[ROWS * N], whole[ROWS * N], bias[N], numbers[N * K];
static uint8_t w[N * K * 4];

static void fill(enum dtype dtype)
{
	for (int i = 0; i < ROWS * K; i++)
		x[i] = random_f32(3, 0, (uint64_t)i);
	for (int i = 0; i < ROWS * N; i++)
		c[i] = random_f32(3, 1, (uint64_t)i);
	for (int i = 0; i < N; i++)
		bias[i] = random_f32(3, 2, (uint64_t)i);
	for (int i = 0; i < N * K; i++) /* with subnormal halves */
		numbers[i] = random_f32(3, 3, (uint64_t)i) * (i % 5 ? 1 : 0x1p-16f);
	assert_true(dtype_pack(dtype, numbers, w, N * K));
	dtype_unpack(dtype, w, numbers, N * K);
}

static void test_row_gemm__every_width_gives_each_row_the_same_bits(void **state)
{
	int widths = 0;

	(void)state;
	for (int t = 0; t < 3; t++)
		for (int width = ROW_PLAIN; width < ROW_WIDTHS; width++) {
			const row_multiply multiply = cpu_row_multiply(types[t], width);
			struct row_product p = {
				.w = w, .columns = N, .k = K, .ldw = K, .ldx = K, .ldo = N, .rows = ROWS};

			assert_true(multiply || width != ROW_PLAIN);
			if (!multiply)
				continue;
			fill(types[t]);
			p.x = x;
			p.out = whole;
			multiply(&p);
			for (int i = 0; i < ROWS * N; i++) {
				double sum = 0;

				for (int k = 0; k < K; k++)
					sum += (double)x[i / N * K + k] * (double)numbers[i % N * K + k];
				assert_true(fabs(sum - (double)whole[i]) < 1e-5);
			}
			for (int rows = 1; rows < ROWS; rows++) {
				memset(d, 0xff, sizeof(d));
				for (int first = 0; first < ROWS; first += rows) {
					p.x = x + first * K;
					p.out = d + first * N;
					p.rows = ROWS - first < rows ? ROWS - first : rows;
					multiply(&p);
				}
				assert_memory_equal(d, whole, sizeof(whole));
			}
			widths++;
		}
	assert_true(widths >= 3);
	assert_null(cpu_row_multiply(DTYPE_F32, ROW_WIDTHS));
}

static void test_row_gemm__a_back_end_for_inference_does_not_look_at_other_rows(void **state)
{
	struct gemm g = {
		.a = {.data = x, .rows = ROWS, .cols = K, .ld = K, .dtype = DTYPE_F32},
		.b = {.data = w, .rows = N, .cols = K, .ld = K},
		.c = {.data = c, .rows = ROWS, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.d = {.data = d, .rows = ROWS, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.bias = {.data = bias, .rows = 1, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.trans_b = true,
		.alpha = 2,
		.beta = 0.5f,
	};
	const struct cpu_options options = {.threads = 2, .invariant = true};
	struct arena arena = {0};
	struct error err = {0};
	struct backend back;

	(void)state;
	must(cpu_backend_create(&back, &options, &arena, &err), &err);
	for (int t = 0; t < 3; t++) {
		fill(types[t]);
		g.b.dtype = types[t];
		g.a = (struct mat){.data = x, .rows = ROWS, .cols = K, .ld = K, .dtype = DTYPE_F32};
		g.c.data = c;
		g.d.data = d;
		g.c.rows = g.d.rows = ROWS;
		must(back.ops->gemm(&back, &g, &err), &err);
		for (int i = 0; i < ROWS * N; i++) {
			double sum = 0.5 * (double)c[i] + (double)bias[i % N];

			for (int k = 0; k < K; k++)
				sum += 2 * (double)x[i / N * K + k] * (double)numbers[i % N * K + k];
			assert_true(fabs(sum - (double)d[i]) < 2e-5);
		}
		memcpy(whole, d, sizeof(whole));
		memset(d, 0xff, sizeof(d));
		for (int first = 0, rows = 1; first < ROWS; first += rows, rows = 1 + rows * 7 % 11) {
			const int count = ROWS - first < rows ? ROWS - first : rows;

			g.a.rows = g.c.rows = g.d.rows = count;
			g.a.data = x + first * K;
			g.c.data = c + first * N;
			g.d.data = d + first * N;
			must(back.ops->gemm(&back, &g, &err), &err);
		}
		assert_memory_equal(d, whole, sizeof(whole));
	}
	cpu_backend_release(&back);
}

static void test_row_gemm__long_rows_and_transposed_operands_work(void **state)
{
	const int64_t k = WIDE_K, n = 6;
	float *long_x = calloc((size_t)k, sizeof(float)), *long_w = calloc((size_t)(k * n), sizeof(float));
	float out[6];
	struct gemm g = {
		.a = {.data = long_x, .rows = 1, .cols = k, .ld = k, .dtype = DTYPE_F32},
		.b = {.data = long_w, .rows = n, .cols = k, .ld = k, .dtype = DTYPE_F32},
		.d = {.data = out, .rows = 1, .cols = n, .ld = n, .dtype = DTYPE_F32},
		.trans_b = true,
		.alpha = 1,
	};
	const struct cpu_options options = {.threads = 2, .invariant = true};
	struct arena arena = {0};
	struct error err = {0};
	struct backend back;

	(void)state;
	assert_true(long_x && long_w);
	must(cpu_backend_create(&back, &options, &arena, &err), &err);
	for (int64_t i = 0; i < k; i++) {
		long_x[i] = 1;
		for (int64_t j = 0; j < n; j++)
			long_w[j * k + i] = (float)j;
	}
	must(back.ops->gemm(&back, &g, &err), &err);
	for (int j = 0; j < 6; j++)
		assert_true(out[j] == (float)(j * k));
	g.b = (struct mat){.data = long_w, .rows = k, .cols = n, .ld = n, .dtype = DTYPE_F32};
	g.trans_b = false;
	assert_false(cpu_rows_take(&g));
	must(back.ops->gemm(&back, &g, &err), &err); /* by the GEMM of training */
	g.b.dtype = DTYPE_F16;
	assert_int_equal(back.ops->gemm(&back, &g, &err), STATUS_BUG);
	cpu_backend_release(&back);
	free(long_x);
	free(long_w);
}

static void test_row_gemm__memory_for_an_arena_is_aligned(void **state)
{
	static const size_t sizes[] = {1000, 5 << 20};

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint8_t *memory = cpu_memory(sizes[i]);

		assert_non_null(memory);
		assert_int_equal((uintptr_t)memory % ARENA_ALIGN, 0);
		memory[0] = memory[sizes[i] - 1] = 1;
		free(memory);
	}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they abort */
	assert_null(cpu_memory((size_t)1 << 60));
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_row_gemm__every_width_gives_each_row_the_same_bits),
		cmocka_unit_test(test_row_gemm__a_back_end_for_inference_does_not_look_at_other_rows),
		cmocka_unit_test(test_row_gemm__long_rows_and_transposed_operands_work),
		cmocka_unit_test(test_row_gemm__memory_for_an_arena_is_aligned),
	};

	return cmocka_run_group_tests_name("row_gemm", tests, NULL, NULL);
}
