/* SPDX-License-Identifier: Apache-2.0 */
/* Training in FP8 on a CPU, beside the same in F32. Scales, matrices with outliers, and every gradient of a model are
 * compared. Numbers that are not finite are counted, and wrong settings refused. */
#include "test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/cpu/cpu.h"
#include "model/tensor/fp8.h"
#include "model/tensor/matrix.h"
#include "model_fp8_bed.h"

enum { ARENA = 16 << 20 };

/* -- the arithmetic -- */

static void test_fp8__scale_makes_the_largest_magnitude_448(void **state)
{
	const float most[] = {1, 448, 3e38f, 1e-20f, 0x1p-99f};

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		const struct fp8_scale s = fp8_scale_of(most[i]);

		assert_int_equal(e4m3_of_f32(most[i] * s.inverse), 0x7e);
		assert_int_equal(e4m3_of_f32(-most[i] * s.inverse), 0xfe);
		assert_true(fabsf(s.scale * 448 - most[i]) <= 1e-6f * most[i]);
	}
}

static void test_fp8__scale_of_zeros_and_of_tiny_numbers_is_finite(void **state)
{
	(void)state;
	assert_true(fp8_scale_of(0).scale == 1 && fp8_scale_of(0).inverse == 1);
	for (float most = 0x1p-149f; most < FP8_LEAST; most *= 4) {
		const struct fp8_scale s = fp8_scale_of(most);

		assert_true(isfinite(s.inverse) && s.scale > 0);
		assert_true(e4m3_to_f32(e4m3_of_f32(most * s.inverse)) * s.scale <= most + FP8_LEAST);
	}
}

static void test_fp8__scale_of_what_is_not_finite_is_nan(void **state)
{
	(void)state;
	assert_true(isnan(fp8_scale_of((float)INFINITY).scale));
	assert_true(isnan(fp8_scale_of((float)NAN).scale));
	assert_true(isnan(fp8_larger((float)NAN, 1)) && isnan(fp8_larger(1, (float)NAN)));
	assert_true(fp8_larger(1, -2) == 2);
}

/* -- matrices -- */

struct back {
	struct arena arena;
	struct backend back;
};

static void open_back(struct back *b, unsigned threads)
{
	struct error err = {0};

	*b = (struct back){0};
	must(cpu_backend_create(&b->back, &(struct cpu_options){.threads = threads}, &b->arena, &err), &err);
	b->arena.size = ARENA;
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	memset(b->arena.base, 0xff, b->arena.size);
}

static void close_back(struct back *b)
{
	cpu_backend_release(&b->back);
	free(b->arena.base);
}

static struct mat place(struct back *b, int64_t rows, int64_t cols, enum dtype dtype)
{
	struct mat m = {.rows = rows, .cols = cols, .dtype = dtype};
	struct error err = {0};

	must(arena_mat(&b->arena, MEM_SCRATCH, &m, "m", &err), &err);
	return m;
}

static struct mat place_weights(struct back *b, int64_t rows, int64_t cols)
{
	struct mat m = place(b, rows, cols, DTYPE_E4M3);

	m.scales = fp8_scales_of_weights(place(b, 1, fp8_weight_scales(rows, cols), DTYPE_F32).data, cols);
	return m;
}

/* Random numbers. Element (5, 7) is larger by ten thousand, and with `outliers` row 3 has numbers of a hundred
 * times the size. */
static struct mat numbers(struct back *b, int64_t rows, int64_t cols, uint32_t stream, bool outliers)
{
	const struct mat m = place(b, rows, cols, DTYPE_F32);

	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			((float *)m.data)[i * m.ld + j] = random_f32(3, stream, (uint64_t)(i * cols + j)) *
							  (outliers && i == 3 ? 100.0f : 1.0f) *
							  (i == 5 && j == 7 ? 1e4f : 1.0f);
	return m;
}

/* The cosine of each row, at least; of the ones with outliers too. */
static double least_cosine(const struct mat *x, const struct mat *y)
{
	double least = 1;

	for (int64_t i = 0; i < x->rows; i++)
		least = fmin(least, cosine((const float *)x->data + i * x->ld,
					   (const float *)y->data + i * y->ld, x->cols));
	return least;
}

static const struct {
	int64_t tokens, out, in;
} sizes[] = {{37, 256, 384}, {16, 144, 80}, {130, 16, 400}};

static void test_fp8__weights_and_their_transpose_have_the_same_numbers(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct error err = {0};
		struct mat w, q, t;
		struct back b;

		open_back(&b, THREADS);
		w = numbers(&b, sizes[k].out, sizes[k].in, 1, true);
		q = place_weights(&b, w.rows, w.cols);
		t = place_weights(&b, w.cols, w.rows);
		must(b.back.ops->quantize_e4m3(&b.back, w, q, t, NULL, &err), &err);
		for (int64_t i = 0; i < w.rows; i++)
			for (int64_t j = 0; j < w.cols; j++) {
				const float scale = *fp8_scale_at(&q, i, j);
				const float is =
					e4m3_to_f32(((const uint8_t *)q.data)[i * q.ld + j]) * scale;
				const float due = ((const float *)w.data)[i * w.ld + j];

				assert_int_equal(((const uint8_t *)t.data)[j * t.ld + i],
						 ((const uint8_t *)q.data)[i * q.ld + j]);
				assert_true(*fp8_scale_at(&t, j, i) == scale);
				assert_true(fabsf(is - due) <= fabsf(due) / 16 + scale * 0x1p-10f);
			}
		close_back(&b);
	}
}

/* y = x W', dx = dy W, dW = dy' x in F32 and in FP8. */
static void test_fp8__matrices_with_outliers_are_within_a_cosine_of_99(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		const int64_t tokens = sizes[k].tokens, out = sizes[k].out, in = sizes[k].in;
		struct error err = {0};
		struct mat x, dy, w, q, t, due[3], is[3];
		struct back b;

		open_back(&b, THREADS);
		x = numbers(&b, tokens, in, 1, true);
		dy = numbers(&b, tokens, out, 2, true);
		w = numbers(&b, out, in, 3, false);
		q = place_weights(&b, out, in);
		t = place_weights(&b, in, out);
		must(b.back.ops->quantize_e4m3(&b.back, w, q, t, NULL, &err), &err);
		for (int i = 0; i < 3; i++) {
			due[i] = place(&b, i < 2 ? tokens : out, i ? in : out, DTYPE_F32);
			is[i] = place(&b, due[i].rows, due[i].cols, DTYPE_F32);
		}
		{
			const struct gemm f32[] = {
				{.a = x, .b = w, .d = due[0], .trans_b = true, .alpha = 1},
				{.a = dy, .b = w, .d = due[1], .alpha = 1},
				{.a = dy, .b = x, .d = due[2], .trans_a = true, .alpha = 1},
			};
			const struct gemm fp8[] = {
				{.a = x, .b = q, .d = is[0], .trans_b = true, .alpha = 1},
				{.a = dy, .b = t, .d = is[1], .trans_b = true, .alpha = 1},
				{.a = dy, .b = x, .d = is[2], .trans_a = true, .alpha = 1, .fp8 = true},
			};

			for (int i = 0; i < 3; i++) {
				double least;

				must(b.back.ops->gemm(&b.back, &f32[i], &err), &err);
				must(b.back.ops->gemm(&b.back, &fp8[i], &err), &err);
				least = least_cosine(&due[i], &is[i]);
				if (least < 0.99)
					print_message("# GEMM %d of %d x %d x %d: cosine %.5f\n", i,
						      (int)tokens, (int)out, (int)in, least);
				assert_true(least >= 0.99);
				assert_true(least < 1 - 1e-6); /* it is not F32 */
			}
		}
		close_back(&b);
	}
}

static void test_fp8__bits_do_not_depend_on_threads(void **state)
{
	struct mat d[2];
	struct back b[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct error err = {0};
		struct mat w, q, t;

		open_back(&b[i], i ? 3 : 1);
		w = numbers(&b[i], 272, 400, 3, false);
		q = place_weights(&b[i], w.rows, w.cols);
		t = place_weights(&b[i], w.cols, w.rows);
		must(b[i].back.ops->quantize_e4m3(&b[i].back, w, q, t, NULL, &err), &err);
		d[i] = q;
	}
	assert_memory_equal(d[0].data, d[1].data, (size_t)(d[0].rows * d[0].cols));
	close_back(&b[0]);
	close_back(&b[1]);
}

static void test_fp8__numbers_that_are_not_finite_are_counted_by_scales(void **state)
{
	int32_t count = 5;
	struct error err = {0};
	struct mat x, w, q, t, d;
	struct back b;

	(void)state;
	open_back(&b, THREADS);
	x = numbers(&b, 40, 300, 1, true);
	w = numbers(&b, 144, 300, 3, false);
	q = place_weights(&b, w.rows, w.cols);
	t = place_weights(&b, w.cols, w.rows);
	d = place(&b, 40, 144, DTYPE_F32);
	must(b.back.ops->quantize_e4m3(&b.back, w, q, t, &count, &err), &err);
	assert_int_equal(count, 5);
	((float *)x.data)[2 * x.ld + 1] = (float)INFINITY;
	((float *)x.data)[2 * x.ld + 5] = (float)NAN; /* the same scale */
	((float *)x.data)[7 * x.ld + 299] = -(float)INFINITY;
	must(b.back.ops->gemm(&b.back,
			      &(struct gemm){.a = x,
					     .b = q,
					     .d = d,
					     .trans_b = true,
					     .alpha = 1,
					     .overflows = &count},
			      &err),
	     &err);
	assert_int_equal(count, 7);
	for (int64_t i = 0; i < 40; i++)
		assert_int_equal(!isfinite(((const float *)d.data)[i * d.ld]), i == 2 || i == 7);
	((float *)w.data)[130 * w.ld + 290] = (float)NAN;
	must(b.back.ops->quantize_e4m3(&b.back, w, q, t, &count, &err), &err);
	assert_int_equal(count, 8);
	close_back(&b);
}

/* -- a model -- */

static void compare(int64_t layers, const char *more, const char *training)
{
	struct work f32, fp8;
	const struct params *p;
	double least = 1;

	open_on(&f32, "cpu", layers, more, strstr(training, "full") ? ", full_finetuning: true" : "");
	open_on(&fp8, "cpu", layers, more, training);
	run(&f32);
	run(&fp8);
	p = &f32.s.model->params;
	for (int i = 0; i < p->count; i++) {
		const size_t at = p->table[i].offset;
		const double is = cosine(f32.gradient + at, fp8.gradient + at,
					 p->table[i].rows * p->table[i].cols);

		if (is < 0.99)
			print_message("# %s: cosine %.5f\n", p->table[i].name, is);
		least = fmin(least, is);
	}
	print_message("# least cosine of %d gradients %.5f, loss %.5f and %.5f\n", p->count, least, f32.loss,
		      fp8.loss);
	assert_true(least >= 0.99);
	assert_true(least < 1 - 1e-6);
	assert_true(fabs(fp8.loss - f32.loss) <= 0.01 * f32.loss);
	assert_int_equal(fp8.took.overflows, 0);
	close_work(&f32);
	close_work(&fp8);
}

static void test_fp8__gradients_of_adapters_are_within_a_cosine_of_99(void **state)
{
	(void)state;
	compare(1, lora, ", precision: fp8");
}

static void test_fp8__gradients_of_all_parameters_are_within_a_cosine_of_99(void **state)
{
	(void)state;
	compare(1, "", ", precision: fp8, full_finetuning: true");
}

/* The same bits in each run, and whatever is recomputed. */
static void test_fp8__gradient_has_the_same_bits_however_it_is_recomputed(void **state)
{
	static const char *const ways[] = {", precision: fp8, recompute: none", ", precision: fp8, recompute: none",
					   ", precision: fp8, recompute: cheap", ", precision: fp8, recompute: full"};
	struct work w[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		open_work(&w[i], lora, ways[i]);
		run(&w[i]);
		if (i)
			assert_memory_equal(w[i].gradient, w[0].gradient,
					    w[0].s.model->params.length * sizeof(float));
	}
	for (int i = 0; i < 4; i++)
		close_work(&w[i]);
}

static void test_fp8__layers_without_it_stay_as_they_are(void **state)
{
	struct work w;

	(void)state;
	open_work(&w, lora, ", precision: fp8, fp8_layers: [0, 2-2]");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(w.s.model->layer[i].down.is_fp8, i != 1);
		assert_int_equal(w.s.model->layer[i].down.w.w.dtype, i != 1 ? DTYPE_E4M3 : DTYPE_F32);
	}
	run(&w);
	assert_true(isfinite(w.loss));
	close_work(&w);
}

static void test_fp8__overflow_names_the_layer_and_the_linear_layer(void **state)
{
	struct error err = {0};
	struct work w;

	(void)state;
	open_work(&w, lora, ", precision: fp8");
	/* the second layer's norm before gate and up: a channel overflows */
	must(w.s.back.ops->put(&w.s.back, mat_cols(&w.s.model->layer[1].norm2.w, 0, 1),
			       (const float[]){3e38f}, &err),
	     &err);
	must(w.s.back.ops->put(&w.s.back, mat_cols(&w.s.model->layer[1].norm2.w, 1, 1),
			       (const float[]){(float)INFINITY}, &err),
	     &err);
	run(&w);
	assert_true(w.took.overflows > 0);
	assert_string_equal(w.took.overflow_at, "layer 1, inputs of gate and up");
	must(stepper_begin(&w.s, &err), &err); /* a step's counts begin at 0 */
	w.took = (struct step_part){0};
	must(stepper_overflows(&w.s, &w.took, &err), &err);
	assert_int_equal(w.took.overflows, 0);
	close_work(&w);
}

static void test_fp8__plan_is_what_is_used(void **state)
{
	static const char *const ways[] = {", precision: fp8", ", precision: fp8, full_finetuning: true"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct error err = {0};
		struct stepper plan;
		struct config c;
		struct work w;

		must(read_settings(&c, "cpu", i ? "" : lora, ways[i], &err), &err);
		must(stepper_plan(&plan, &small, &c, THREADS, &err), &err);
		config_release(&c);
		open_work(&w, i ? "" : lora, ways[i]);
		run(&w);
		assert_int_equal(w.s.arena.peak, plan.arena.peak);
		assert_true(w.took.flop > 0);
		close_work(&w);
		stepper_release(&plan);
	}
}

/* Few rows, so that a weight before it is quantized needs more than the passes, behind all that is placed. */
static void test_fp8__plan_counts_the_loading_behind_what_is_placed(void **state)
{
	const struct shape wide = {
		.family = FAMILY_QWEN2,
		.hidden = 512,
		.layers = 1,
		.heads = 4,
		.kv_heads = 1,
		.head_dim = 128,
		.ffn = 8192,
		.vocab = 64,
		.context = 256,
		.qkv_bias = true,
		.norm_eps = 1e-5,
		.rope_theta = 10000,
	};
	const size_t gate_up = (size_t)2 * wide.ffn * wide.hidden * sizeof(uint16_t);
	struct error err = {0};
	struct stepper plan;
	struct config c;

	(void)state;
	must(read_settings(&c, "gpu", lora, ", precision: fp8, recompute: full", &err), &err);
	must(stepper_plan(&plan, &wide, &c, THREADS, &err), &err);
	config_release(&c);
	assert_true(plan.placed.kind_used[MEM_SAVED] + plan.placed.kind_used[MEM_WORKSPACE] > 0);
	assert_int_equal(plan.arena.peak, plan.placed.used + gate_up);
	stepper_release(&plan);
}

/* -- what is refused -- */

static enum status plan_of(const struct shape *shape, const char *more, const char *training,
			   struct error *err)
{
	struct stepper s;
	struct config c;
	enum status st;

	must(read_settings(&c, "cpu", more, training, err), err);
	st = stepper_plan(&s, shape, &c, THREADS, err);
	config_release(&c);
	stepper_release(&s);
	return st;
}

static void test_fp8__sizes_of_no_multiple_of_16_are_refused_by_name(void **state)
{
	struct shape odd = small;
	struct error err = {0};

	(void)state;
	odd.ffn = 264;
	assert_int_equal(plan_of(&odd, lora, ", precision: fp8", &err), STATUS_UNSUPPORTED);
	assert_string_equal(err.text, "FP8 needs linear layers whose sizes are multiples of 16; down of layer 0 is "
				      "160 x 264");
}

static void test_fp8__layers_that_the_model_lacks_are_refused(void **state)
{
	struct error err = {0};

	(void)state;
	assert_int_equal(plan_of(&small, lora, ", precision: fp8, fp8_layers: [1-3]", &err),
			 STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "fp8_layers: the model has no layer 3; its layers are 0 to 2"));
}

static void test_fp8__inference_is_refused(void **state)
{
	const bool all[3] = {true, true, true};
	struct model *m = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(model_create(&m, &small,
				      &(struct model_options){.inference = true, .fp8 = all, .positions = 8},
				      &err),
			 STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "only for training"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fp8__scale_makes_the_largest_magnitude_448),
		cmocka_unit_test(test_fp8__scale_of_zeros_and_of_tiny_numbers_is_finite),
		cmocka_unit_test(test_fp8__scale_of_what_is_not_finite_is_nan),
		cmocka_unit_test(test_fp8__weights_and_their_transpose_have_the_same_numbers),
		cmocka_unit_test(test_fp8__matrices_with_outliers_are_within_a_cosine_of_99),
		cmocka_unit_test(test_fp8__bits_do_not_depend_on_threads),
		cmocka_unit_test(test_fp8__numbers_that_are_not_finite_are_counted_by_scales),
		cmocka_unit_test(test_fp8__gradients_of_adapters_are_within_a_cosine_of_99),
		cmocka_unit_test(test_fp8__gradients_of_all_parameters_are_within_a_cosine_of_99),
		cmocka_unit_test(test_fp8__gradient_has_the_same_bits_however_it_is_recomputed),
		cmocka_unit_test(test_fp8__layers_without_it_stay_as_they_are),
		cmocka_unit_test(test_fp8__overflow_names_the_layer_and_the_linear_layer),
		cmocka_unit_test(test_fp8__plan_is_what_is_used),
		cmocka_unit_test(test_fp8__plan_counts_the_loading_behind_what_is_placed),
		cmocka_unit_test(test_fp8__sizes_of_no_multiple_of_16_are_refused_by_name),
		cmocka_unit_test(test_fp8__layers_that_the_model_lacks_are_refused),
		cmocka_unit_test(test_fp8__inference_is_refused),
	};

	return cmocka_run_group_tests_name("model_fp8", tests, NULL, NULL);
}
