/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs with weights in quantized blocks against the numbers that the blocks stand for. */
#include "unit/test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/backend/cost.h"
#include "model/backend/plan_backend.h"
#include "model/cpu/cpu.h"
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/tensor/dtype.h"
#include "unit/must.h"

enum { K = 96, BLOCKS = K / CPU_BLOCK, N = 37, ROWS = 70 };
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

struct gemm_bed {
	struct arena arena;
	struct backend back;
	struct gemm g;
	float x[ROWS * K], c[ROWS * N], d[ROWS * N], bias[N], numbers[N * K];
	uint8_t w[N * K * 2];
};

static void open_bed(struct gemm_bed *b, enum dtype dtype, bool packed)
{
	struct error err = {0};

	memset(b, 0, sizeof(*b));
	b->arena.size = 1 << 20;
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	must(cpu_backend_create(&b->back, &(struct cpu_options){.threads = 2}, &b->arena, &err), &err);
	random_blocks(dtype, b->w, N * K);
	dtype_unpack(dtype, b->w, b->numbers, N * K);
	for (int i = 0; i < ROWS * K; i++)
		b->x[i] = random_f32(3, 0, (uint64_t)i);
	for (int i = 0; i < ROWS * N; i++)
		b->c[i] = random_f32(3, 1, (uint64_t)i);
	for (int i = 0; i < N; i++)
		b->bias[i] = random_f32(3, 2, (uint64_t)i);
	b->g = (struct gemm){
		.a = {.data = b->x, .rows = ROWS, .cols = K, .ld = K, .dtype = DTYPE_F32},
		.b = {.data = b->w, .rows = N, .cols = K, .ld = K, .dtype = dtype},
		.c = {.data = b->c, .rows = ROWS, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.d = {.data = b->d, .rows = ROWS, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.bias = {.data = b->bias, .rows = 1, .cols = N, .ld = N, .dtype = DTYPE_F32},
		.trans_b = true,
		.alpha = 1,
		.beta = 0.5f,
	};
	if (packed)
		must(b->back.ops->pack(&b->back, &b->g.b, &err), &err);
	assert_int_equal(b->g.b.panels, packed);
}

static void close_bed(struct gemm_bed *b)
{
	cpu_backend_release(&b->back);
	free(b->arena.base);
}

static void multiply(struct gemm_bed *b)
{
	struct error err = {0};

	must(b->back.ops->gemm(&b->back, &b->g, &err), &err);
}

/* Rows of quantized x, and their exact products with the panel. */
struct rows_bed {
	int8_t q[ROWS * K];
	float scale[ROWS * BLOCKS];
	int32_t sum[ROWS * BLOCKS];
	struct cpu_rows rows;
};

static void make_rows(struct rows_bed *r)
{
	memset(r, 0, sizeof(*r));
	for (int b = 0; b < ROWS * BLOCKS; b++) {
		r->scale[b] = 0.5f + (float)(b % 7);
		for (int i = b * CPU_BLOCK; i < (b + 1) * CPU_BLOCK; i++) {
			r->q[i] = (int8_t)(b == 1 ? -127 : (int)(random_u32(2, 0, (uint64_t)i) % 255) - 127);
			r->sum[b] += r->q[i];
		}
	}
	r->rows = (struct cpu_rows){r->q, r->scale, r->sum, BLOCKS};
}

static void check_dots(const struct rows_bed *r, const float *numbers, int first, int rows, int columns,
		       const float *out)
{
	for (int i = 0; i < rows; i++)
		for (int col = 0; col < columns; col++) {
			double sum = 0, size = 0;

			for (int k = 0; k < K; k++) {
				const int at = (first + i) * K + k;
				const double part = (double)numbers[col * K + k] *
						    (double)r->scale[at / CPU_BLOCK] * r->q[at];

				sum += part;
				size += fabs(part);
			}
			assert_true(fabs((double)out[i * CPU_PANEL + col] - sum) < 1e-5 * size);
		}
}

static void test_blocks__every_width_gives_the_sum_of_its_numbers(void **state)
{
	static struct rows_bed r;
	static struct gemm_bed b;
	static float out[ROWS * CPU_PANEL], again[ROWS * CPU_PANEL];
	int widths = 0;

	(void)state;
	make_rows(&r);
	for (int t = 0; t < 3; t++)
		for (int width = CPU_PLAIN; width < CPU_WIDTHS; width++) {
			const panel_dot dot = cpu_panel_dot(types[t], width);

			assert_true(dot || width != CPU_PLAIN);
			if (!dot)
				continue;
			open_bed(&b, types[t], false);
			if (types[t] == DTYPE_Q8_0) /* the largest magnitude, wherever pairs are added */
				memset(b.w + dtype_bytes(DTYPE_Q8_0, K) + 2, 0x80, CPU_BLOCK);
			dtype_unpack(types[t], b.w, b.numbers, N * K);
			cpu_row_dot(types[t], b.w + dtype_bytes(types[t], K), &r.rows, 3, 5, out);
			check_dots(&r, b.numbers + K, 3, 5, 1, out);
			must(b.back.ops->pack(&b.back, &b.g.b, &(struct error){0}), &(struct error){0});
			dot(b.w, &r.rows, 0, ROWS, out);
			check_dots(&r, b.numbers, 0, ROWS, CPU_PANEL, out);
			for (int first = 0; first < 10; first++)
				for (int rows = 1; rows <= ROWS - first; rows++) {
					dot(b.w, &r.rows, first, rows, again);
					assert_memory_equal(again, out + first * CPU_PANEL,
							    (size_t)(rows * CPU_PANEL) * sizeof(*out));
				}
			widths++;
			close_bed(&b);
		}
	assert_true(widths >= 3);
	assert_null(cpu_panel_dot(DTYPE_Q8_0, CPU_WIDTHS));
}

/* d = x W' + 0.5 c + bias, where x is rounded to 127 steps a block first. */
static void check_product(enum dtype dtype, bool packed)
{
	static struct gemm_bed b;

	open_bed(&b, dtype, packed);
	multiply(&b);
	for (int64_t i = 0; i < ROWS; i++)
		for (int64_t j = 0; j < N; j++) {
			double sum = 0.5 * (double)b.c[i * N + j] + (double)b.bias[j], size = 0;

			for (int64_t k = 0; k < K; k++) {
				sum += (double)b.x[i * K + k] * (double)b.numbers[j * K + k];
				size += (double)b.numbers[j * K + k] * (double)b.numbers[j * K + k];
			}
			assert_true(fabs(sum - (double)b.d[i * N + j]) < 6 / 127. / sqrt(12) * sqrt(size));
		}
	close_bed(&b);
}

static void test_blocks__gemms_give_the_product(void **state)
{
	(void)state;
	for (int t = 0; t < 3; t++)
		for (int packed = 0; packed < 2; packed++)
			check_product(types[t], packed);
}

static void test_blocks__a_row_has_the_same_bits_for_every_number_of_rows(void **state)
{
	static struct gemm_bed b;
	static float whole[ROWS * N];

	(void)state;
	for (int t = 0; t < 3; t++) {
		open_bed(&b, types[t], true);
		multiply(&b);
		memcpy(whole, b.d, sizeof(whole));
		for (int rows = 1; rows < ROWS; rows++) {
			memset(b.d, 0xff, sizeof(b.d));
			for (int first = 0; first < ROWS; first += rows) {
				const int count = ROWS - first < rows ? ROWS - first : rows;

				b.g.a.rows = b.g.c.rows = b.g.d.rows = count;
				b.g.a.data = b.x + first * K;
				b.g.c.data = b.c + first * N;
				b.g.d.data = b.d + first * N;
				multiply(&b);
			}
			assert_memory_equal(b.d, whole, sizeof(whole));
		}
		close_bed(&b);
	}
}

static void test_blocks__the_plan_knows_room_and_cost(void **state)
{
	static struct gemm_bed b;
	struct arena arena = {0};
	struct error err = {0};
	struct backend plan;

	(void)state;
	open_bed(&b, DTYPE_Q4_0, true);
	multiply(&b);
	plan_backend_cpu(&plan, 2, &arena);
	must(plan.ops->gemm(&plan, &b.g, &err), &err);
	assert_true(arena.peak == b.arena.peak && arena.peak > 0);
	assert_true(plan.cost.flop == b.back.cost.flop && plan.cost.bytes == b.back.cost.bytes);
	close_bed(&b);
}

static void test_blocks__a_number_that_is_not_finite_spoils_its_row_only(void **state)
{
	static const float bad[] = {NAN, INFINITY, -INFINITY};
	static struct gemm_bed b;

	(void)state;
	for (int i = 0; i < 3; i++) {
		open_bed(&b, types[i], true);
		b.x[2 * K + 40] = bad[i];
		multiply(&b);
		for (int j = 0; j < N; j++)
			assert_true(!isfinite(b.d[2 * N + j]) && isfinite(b.d[N + j]) &&
				    isfinite(b.d[3 * N + j]));
		close_bed(&b);
	}
}

static void test_blocks__rows_come_back_from_packed_weights(void **state)
{
	static struct gemm_bed b;
	struct error err = {0};
	float row[K];

	(void)state;
	for (int t = 0; t < 3; t++) {
		open_bed(&b, types[t], true);
		must(b.back.ops->pack(&b.back, &b.g.b, &err), &err); /* packed already: no change */
		for (int j = 0; j < N; j++) {
			cpu_unpack_row(&b.g.b, j, row);
			assert_memory_equal(row, b.numbers + j * K, sizeof(row));
		}
		close_bed(&b);
	}
}

static void test_blocks__other_operands_are_refused(void **state)
{
	static struct gemm_bed b;
	struct error err = {0};

	(void)state;
	open_bed(&b, DTYPE_Q4_1, true);
	b.g.trans_b = false;
	assert_int_equal(b.back.ops->gemm(&b.back, &b.g, &err), STATUS_BUG);
	error_clear(&err);
	b.g.trans_b = true;
	b.arena.size = 100;
	assert_int_equal(b.back.ops->gemm(&b.back, &b.g, &err), STATUS_NO_RESOURCE);
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks__every_width_gives_the_sum_of_its_numbers),
		cmocka_unit_test(test_blocks__gemms_give_the_product),
		cmocka_unit_test(test_blocks__a_row_has_the_same_bits_for_every_number_of_rows),
		cmocka_unit_test(test_blocks__the_plan_knows_room_and_cost),
		cmocka_unit_test(test_blocks__a_number_that_is_not_finite_spoils_its_row_only),
		cmocka_unit_test(test_blocks__rows_come_back_from_packed_weights),
		cmocka_unit_test(test_blocks__other_operands_are_refused),
	};

	return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
