/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs of generation by the GPU's back end on the fake driver: weights in BF16 and in E4M3, few rows and
 * many, and SwiGLU in the same operation. */
#include "model_gpu_bed.h"

#include "model/backend/plan_backend.h"
#include "model/gpu/internal.h"
#include "model/tensor/dtype.h"

enum { OUT = 48, IN = 64, MOST = 300, STREAM_W = 1, STREAM_X = 2, STREAM_C = 3, STREAM_BIAS = 4 };

struct gemm_bed {
	struct backend back;
	struct arena arena;
	struct mat w, x, c, d, h, bias;
	/* The same in host memory, as they are after rounding. */
	float wide[2 * OUT * IN], x_host[MOST * IN], c_host[MOST * OUT], bias_host[2 * OUT];
};

static enum status make_weights(void *arg, int64_t first, int64_t rows, void *out, struct error *err)
{
	uint16_t *to = out;

	(void)arg;
	(void)err;
	for (int64_t i = 0; i < rows * IN; i++)
		to[i] = bf16_of_f32(random_f32(7, STREAM_W, (uint64_t)(first * IN + i)));
	return STATUS_OK;
}

static void place(struct gemm_bed *b, struct mat *m, int64_t rows, int64_t cols, enum dtype dtype)
{
	struct error err = {0};

	*m = (struct mat){.rows = rows, .cols = cols, .dtype = dtype};
	must(arena_mat(&b->arena, MEM_WEIGHTS, m, "a matrix", &err), &err);
}

static void put_random(struct gemm_bed *b, const struct mat *m, float *host, uint32_t stream)
{
	const size_t count = (size_t)(m->rows * m->cols);
	uint16_t *half = malloc(2 * count);
	struct error err = {0};

	for (size_t i = 0; i < count; i++) {
		half[i] = bf16_of_f32(random_f32(7, stream, i));
		host[i] = bf16_to_f32(half[i]);
	}
	must(b->back.ops->put(&b->back, *m, half, &err), &err);
	free(half);
}

/* The numbers that the weights have on the device. */
static void get_weights(struct gemm_bed *b)
{
	const struct mat scale = {
		.data = b->w.scales.data, .rows = 1, .cols = 2 * OUT, .ld = 2 * OUT, .dtype = DTYPE_F32};
	float factor[2 * OUT];
	uint8_t *bytes = malloc(2 * 2 * OUT * IN);
	struct error err = {0};

	must(b->back.ops->get(&b->back, b->w, bytes, &err), &err);
	dtype_unpack(b->w.dtype, bytes, b->wide, 2 * OUT * IN);
	if (b->w.scales.data) {
		must(b->back.ops->get(&b->back, scale, factor, &err), &err);
		for (int i = 0; i < 2 * OUT * IN; i++)
			b->wide[i] *= factor[i / IN];
	}
	free(bytes);
}

static void open_bed(struct gemm_bed *b, bool e4m3, bool invariant)
{
	const struct gpu_backend_options options = {
		.attention = GPU_ATTENTION_OWN, .few_rows = true, .invariant = invariant};
	const struct made_rows made = {.make = make_weights, .dtype = DTYPE_BF16};
	struct error err = {0};
	struct mat scale;

	must(gpu_backend_create(&b->back, &options, &b->arena, &err), &err);
	must(gpu_backend_take(&b->back, 4 << 20, &err), &err);
	place(b, &b->w, 2 * OUT, IN, e4m3 ? DTYPE_E4M3 : DTYPE_BF16);
	place(b, &scale, 1, 2 * OUT, DTYPE_F32);
	b->w.scales = e4m3 ? scales_of_rows(scale.data, b->w.cols) : (struct scales){0};
	place(b, &b->x, MOST, IN, DTYPE_BF16);
	place(b, &b->c, MOST, OUT, DTYPE_BF16);
	place(b, &b->d, MOST, 2 * OUT, DTYPE_BF16);
	place(b, &b->h, MOST, OUT, DTYPE_BF16);
	place(b, &b->bias, 1, 2 * OUT, DTYPE_BF16);
	must(gpu_backend_put_made(&b->back, b->w, &made, &err), &err);
	put_random(b, &b->x, b->x_host, STREAM_X);
	put_random(b, &b->c, b->c_host, STREAM_C);
	put_random(b, &b->bias, b->bias_host, STREAM_BIAS);
	get_weights(b);
}

static double dot(const struct gemm_bed *b, int64_t t, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < IN; i++)
		sum += (double)b->x_host[t * IN + i] * (double)b->wide[n * IN + i];
	return sum;
}

/* With E4M3 weights, activations are E4M3 too: 4 bits each, in sums of 64. Of the rest, three
 * roundings to BF16 are the most. */
static void assert_near(double is, double due, bool coarse)
{
	if (!(fabs(is - due) <= (coarse ? 0.5 : 0.004) + fabs(due) * 0x1p-6))
		fail_msg("%g is not %g", is, due);
}

static uint16_t *result(struct gemm_bed *b, struct mat m)
{
	uint16_t *got = malloc(2 * (size_t)(m.rows * m.cols));
	struct error err = {0};

	must(b->back.ops->get(&b->back, m, got, &err), &err);
	return got;
}

/* x W' + bias + c, with the first half of W. */
static uint16_t *run_plain(struct gemm_bed *b, int64_t rows)
{
	const struct gemm g = {
		.a = mat_rows(&b->x, 0, rows),
		.b = mat_rows(&b->w, 0, OUT),
		.c = mat_rows(&b->c, 0, rows),
		.d = mat_view(&b->d, 0, 0, rows, OUT),
		.bias = mat_cols(&b->bias, 0, OUT),
		.trans_b = true,
		.alpha = 1,
		.beta = 1,
	};
	struct gemm dense = g;
	struct error err = {0};

	dense.d.ld = OUT; /* cuBLASLt adds matrices of one pitch */
	must(b->back.ops->gemm(&b->back, &dense, &err), &err);
	return result(b, dense.d);
}

static void check(bool e4m3, bool invariant)
{
	static const int64_t numbers[] = {1, 5, 128, 129, 256, MOST};
	struct gemm_bed *b = calloc(1, sizeof(*b));
	uint16_t *widest;

	open_bed(b, e4m3, invariant);
	widest = run_plain(b, MOST);
	for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
		const int64_t rows = numbers[k];
		const bool coarse = e4m3 && !invariant;
		uint16_t *got = run_plain(b, rows);

		for (int64_t t = 0; t < rows; t++)
			for (int64_t n = 0; n < OUT; n++)
				assert_near((double)bf16_to_f32(got[t * OUT + n]),
					    dot(b, t, n) + (double)b->bias_host[n] +
						    (double)b->c_host[t * OUT + n],
					    coarse);
		if (invariant)
			assert_memory_equal(got, widest, 2 * (size_t)(rows * OUT));
		free(got);
	}
	free(widest);
	gpu_backend_release(&b->back);
	free(b);
}

static void test_few_rows__results_are_those_of_double_precision(void **state)
{
	(void)state;
	skip_without_kernels();
	check(false, false);
	check(true, false);
}

/* cuBLASLt before 12.9. */
static void test_few_rows__without_row_scales_in_the_library_own_kernels_do_all(void **state)
{
	(void)state;
	skip_without_kernels();
	setenv("FAKE_CUBLASLT", "rows=15", 1);
	check(true, false);
	unsetenv("FAKE_CUBLASLT");
}

static void test_few_rows__the_invariant_form_does_not_see_the_number_of_rows(void **state)
{
	(void)state;
	skip_without_kernels();
	check(false, true);
	check(true, true);
}

static void test_few_rows__swiglu_is_in_the_same_operation(void **state)
{
	static const int64_t numbers[] = {3, 128, 200, MOST};

	(void)state;
	skip_without_kernels();
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		struct gemm_bed *b = calloc(1, sizeof(*b));

		open_bed(b, e4m3, false);
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
			const int64_t rows = numbers[k];
			const struct gemm g = {.a = mat_rows(&b->x, 0, rows),
					       .b = b->w,
					       .d = mat_rows(&b->d, 0, rows),
					       .trans_b = true,
					       .alpha = 1};
			struct error err = {0};
			uint16_t *got;

			must(b->back.ops->gemm_swiglu(&b->back, &g, mat_rows(&b->h, 0, rows), &err), &err);
			got = result(b, mat_rows(&b->h, 0, rows));
			for (int64_t i = 0; i < rows * OUT; i++) {
				const double gate = dot(b, i / OUT, i % OUT),
					     up = dot(b, i / OUT, OUT + i % OUT);
				const double due = gate / (1 + exp(-gate)) * up;

				/* The error of either factor is multiplied by the other. */
				assert_near((double)bf16_to_f32(got[i]) / (1 + fabs(gate) + fabs(up)),
					    due / (1 + fabs(gate) + fabs(up)), e4m3);
			}
			free(got);
		}
		gpu_backend_release(&b->back);
		free(b);
	}
}

/* x W' of E4M3 weights, with the rows in E4M3 that x already has, if any. */
static uint16_t *multiply(struct gemm_bed *b, struct mat x)
{
	const struct gemm g = {.a = x,
			       .b = mat_view(&b->w, 0, 0, OUT, x.cols),
			       .d = mat_view(&b->d, 0, 0, x.rows, OUT),
			       .trans_b = true,
			       .alpha = 1};
	struct gemm dense = g;
	struct error err = {0};

	dense.d.ld = OUT;
	must(b->back.ops->gemm(&b->back, &dense, &err), &err);
	return result(b, dense.d);
}

static void assert_same_product(struct gemm_bed *b, struct mat x)
{
	uint16_t *with = multiply(b, x), *without = multiply(b, mat_rows(&x, 0, x.rows));

	assert_non_null(x.e4m3);
	assert_memory_equal(with, without, 2 * (size_t)(x.rows * OUT));
	free(with);
	free(without);
}

static void place_short(struct gemm_bed *b, struct mat *rows, int64_t cols)
{
	struct mat scale;

	place(b, rows, MOST, cols, DTYPE_E4M3);
	place(b, &scale, 1, MOST, DTYPE_F32);
	rows->scales = scales_of_rows(scale.data, rows->cols);
}

/* Norm and SwiGLU write the rows in E4M3 that a GEMM would otherwise make. */
static void test_few_rows__norm_and_swiglu_quantize_their_rows(void **state)
{
	static const int64_t numbers[] = {1, 100, MOST};

	(void)state;
	skip_without_kernels();
	for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
		struct gemm_bed *b = calloc(1, sizeof(*b));
		struct mat n_short, h_short, rstd, n, h, x, w;
		struct gemm g = {.trans_b = true, .alpha = 1};
		struct error err = {0};

		open_bed(b, true, false);
		place_short(b, &n_short, IN);
		place_short(b, &h_short, OUT);
		place(b, &rstd, MOST, 1, DTYPE_F32);
		place(b, &n, MOST, IN, DTYPE_BF16);
		n.e4m3 = &n_short;
		n.rows = rstd.rows = numbers[k];
		h = b->h;
		h.e4m3 = &h_short;
		h.rows = numbers[k];
		x = mat_rows(&b->x, 0, numbers[k]);
		w = mat_rows(&b->x, MOST - 1, 1);
		must(b->back.ops->rmsnorm(&b->back, x, w, 1e-6f, n, rstd, &err), &err);
		assert_same_product(b, n);
		g.a = x;
		g.b = b->w;
		g.d = mat_rows(&b->d, 0, numbers[k]);
		must(b->back.ops->gemm_swiglu(&b->back, &g, h, &err), &err);
		assert_same_product(b, h);
		must(b->back.ops->gemm(&b->back, &g, &err), &err);
		must(b->back.ops->swiglu(&b->back, g.d, h, &err), &err);
		assert_same_product(b, h);
		gpu_backend_release(&b->back);
		free(b);
	}
}

/* Quantizes to `to`, which has zeros before, and returns its bytes. The driver leaves out the entry `dropped`, if it is
 * not NULL. */
static uint8_t *quantized(struct gemm_bed *b, bool is_swiglu, const struct mat *to, const char *dropped)
{
	const size_t bytes = (size_t)(MOST * to->cols);
	uint8_t *got = calloc(bytes, 1);
	const struct mat x = mat_rows(&b->x, 0, MOST);
	struct mat h = mat_rows(&b->h, 0, MOST);
	struct error err = {0};

	assert_non_null(got);
	h.e4m3 = to;
	must(b->back.ops->put(&b->back, *to, got, &err), &err);
	if (dropped)
		setenv("FAKE_CUDA", dropped, 1);
	must(is_swiglu ? b->back.ops->swiglu(&b->back, b->d, h, &err)
		       : few_rows_quantize(gpu_of(&b->back), &x, to, &err),
	     &err);
	unsetenv("FAKE_CUDA");
	must(b->back.ops->get(&b->back, *to, got, &err), &err);
	return got;
}

/* The entry that `drop` names quantizes: without it `to` stays zero. */
static void assert_quantized_by(struct gemm_bed *b, bool is_swiglu, const struct mat *to, const char *drop)
{
	const size_t bytes = (size_t)(MOST * to->cols);
	uint8_t *made = quantized(b, is_swiglu, to, NULL), *none = quantized(b, is_swiglu, to, drop);
	uint8_t *zeros = calloc(bytes, 1);

	assert_non_null(zeros);
	assert_true(memcmp(made, zeros, bytes));
	assert_memory_equal(none, zeros, bytes);
	free(made);
	free(none);
	free(zeros);
}

static void test_few_rows__rows_become_e4m3_by_one_kernel(void **state)
{
	struct gemm_bed *b;
	struct mat x_short, h_short;
	float *gate_up;

	(void)state;
	skip_without_kernels();
	b = calloc(1, sizeof(*b));
	assert_non_null(b);
	open_bed(b, true, false);
	place_short(b, &x_short, IN);
	place_short(b, &h_short, OUT);
	gate_up = malloc((size_t)(MOST * 2 * OUT) * sizeof(*gate_up));
	put_random(b, &b->d, gate_up, STREAM_X);
	free(gate_up);
	assert_quantized_by(b, false, &x_short, "drop=step_quantize");
	assert_quantized_by(b, true, &h_short, "drop=step_swiglu_e4m3");
	gpu_backend_release(&b->back);
	free(b);
}

static void test_few_rows__without_them_e4m3_is_refused(void **state)
{
	const struct made_rows made = {.make = make_weights, .dtype = DTYPE_BF16};
	struct mat w = {.rows = OUT, .cols = IN, .dtype = DTYPE_E4M3},
		   d = {.rows = 4, .cols = OUT, .dtype = DTYPE_BF16},
		   x = {.rows = 4, .cols = IN, .dtype = DTYPE_BF16};
	struct gemm g = {.trans_b = true, .alpha = 1};
	struct error err = {0};
	struct alone a;

	(void)state;
	skip_without_kernels();
	open_alone(&a, 1 << 20, false);
	must(arena_mat(&a.arena, MEM_WEIGHTS, &w, "w", &err), &err);
	must(arena_mat(&a.arena, MEM_WEIGHTS, &x, "x", &err), &err);
	must(arena_mat(&a.arena, MEM_WEIGHTS, &d, "d", &err), &err);
	assert_int_equal(gpu_backend_put_made(&a.back, w, &made, &err), STATUS_UNSUPPORTED);
	if (!strstr(err.text, "cannot hold weights in E4M3"))
		fail_msg("%s", err.text);
	g.a = x;
	g.b = w;
	g.d = d;
	err = (struct error){0};
	assert_int_equal(a.back.ops->gemm(&a.back, &g, &err), STATUS_UNSUPPORTED);
	if (!strstr(err.text, "on sm_90 operands in E4M3"))
		fail_msg("%s", err.text);
	gpu_backend_release(&a.back);
}

static void test_few_rows__the_plan_has_room_for_rows_in_e4m3(void **state)
{
	struct gemm_bed *b;
	struct backend plan;
	struct arena arena = {0};
	struct error err = {0};
	struct gemm g = {.trans_b = true, .alpha = 1};
	uint64_t before;

	(void)state;
	skip_without_kernels();
	b = calloc(1, sizeof(*b));
	assert_non_null(b);
	open_bed(b, true, false);
	g.a = b->x;
	g.b = b->w;
	g.d = b->d;
	before = b->arena.used;
	b->arena.peak = before;
	b->back.cost = (struct op_cost){0};
	must(b->back.ops->gemm(&b->back, &g, &err), &err);
	plan_backend_gpu(&plan, DTYPE_BF16, &arena);
	must(plan.ops->gemm(&plan, &g, &err), &err);
	assert_int_equal(arena.peak, b->arena.peak - before);
	assert_true(plan.cost.flop == b->back.cost.flop && plan.cost.bytes == b->back.cost.bytes);
	gpu_backend_release(&b->back);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_rows__results_are_those_of_double_precision),
		cmocka_unit_test(test_few_rows__without_row_scales_in_the_library_own_kernels_do_all),
		cmocka_unit_test(test_few_rows__the_invariant_form_does_not_see_the_number_of_rows),
		cmocka_unit_test(test_few_rows__swiglu_is_in_the_same_operation),
		cmocka_unit_test(test_few_rows__norm_and_swiglu_quantize_their_rows),
		cmocka_unit_test(test_few_rows__rows_become_e4m3_by_one_kernel),
		cmocka_unit_test(test_few_rows__without_them_e4m3_is_refused),
		cmocka_unit_test(test_few_rows__the_plan_has_room_for_rows_in_e4m3),
	};

	return cmocka_run_group_tests_name("model_gpu_few_rows", tests, NULL, NULL);
}
