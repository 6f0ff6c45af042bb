/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training in FP8 by the GPU's back end on the fake driver, whose kernels are their references. It is compared with the
 * CPU's, which has the same scales. The CPU rounds to F32 where the GPU rounds to BF16.
 */
#include "test.h"
#include "fake_gpu.h"
#include "kernel/fatbin.h"
#include "model/gpu/backend.h"
#include "model_fp8_bed.h"

static const char *const ways[] = {
	", precision: fp8",
	", precision: fp8, recompute: cheap",
	", precision: fp8, recompute: full",
	", precision: fp8, fp8_layers: [1]",
};

static void take_fakes(const char *cuda, const char *cublaslt)
{
	fakes_take();
	setenv("FAKE_CUDA", cuda, 1);
	setenv("FAKE_CUBLASLT", cublaslt, 1);
}

static void skip_without_kernels(void)
{
	if (!kernel_fatbin_find("train_fp8"))
		skip();
}

/* Relative distance of two gradients of one parameter. */
static double apart(const float *x, const float *y, int64_t count)
{
	double apart = 0, norm = 0;

	for (int64_t i = 0; i < count; i++) {
		apart += (double)(x[i] - y[i]) * (x[i] - y[i]);
		norm += (double)x[i] * x[i];
	}
	assert_true(norm > 0);
	return sqrt(apart / norm);
}

static void compare(const struct shape *shape, const char *more, const char *training)
{
	struct work cpu, gpu;
	const struct params *p;
	double least = 1, most = 0;
	struct shape one = *shape;

	one.layers = 1;
	open_shape(&cpu, "cpu", &one, more, training);
	open_shape(&gpu, "gpu", &one, more, training);
	run(&cpu);
	run(&gpu);
	p = &cpu.s.model->params;
	for (int i = 0; i < p->count; i++) {
		const int64_t count = p->table[i].rows * p->table[i].cols;
		const size_t at = p->table[i].offset;

		least = fmin(least, cosine(cpu.gradient + at, gpu.gradient + at, count));
		most = fmax(most, apart(cpu.gradient + at, gpu.gradient + at, count));
	}
	print_message("# %s: least cosine %.5f, most apart %.4f, loss %.5f and %.5f\n", training, least, most,
		      cpu.loss, gpu.loss);
	assert_true(least >= 0.99);
	assert_true(fabs(cpu.loss - gpu.loss) <= 2e-3 * cpu.loss);
	assert_int_equal(gpu.took.overflows, 0);
	close_work(&cpu);
	close_work(&gpu);
}

static void test_gpu_fp8__gradients_of_adapters_are_the_cpus(void **state)
{
	(void)state;
	skip_without_kernels();
	take_fakes("", "");
	for (int i = 0; i < 3; i++)
		compare(&small, lora, ways[i]);
}

static void test_gpu_fp8__gradients_of_all_parameters_are_the_cpus(void **state)
{
	(void)state;
	skip_without_kernels();
	take_fakes("", "");
	compare(&small, "", ", precision: fp8, full_finetuning: true");
	compare(&small, "", ", precision: fp8, full_finetuning: true, recompute: full");
}

/* Tiles of scales end with gate and with up, so SwiGLU writes its gradient and h only in E4M3. */
static struct shape whole_tiles(void)
{
	struct shape s = small;

	s.ffn = 256;
	return s;
}

static void test_gpu_fp8__gradients_from_copies_alone_are_the_cpus(void **state)
{
	const struct shape shape = whole_tiles();

	(void)state;
	skip_without_kernels();
	take_fakes("", "");
	compare(&shape, "", ", precision: fp8, full_finetuning: true");
	compare(&shape, "", ", precision: fp8, full_finetuning: true, recompute: full");
}

static void test_gpu_fp8__a_bias_that_the_library_lacks_is_added_by_a_pass(void **state)
{
	(void)state;
	skip_without_kernels();
	take_fakes("", "nobias=1");
	compare(&small, lora, ways[0]);
}

/* Work of other streams is late, and the bits are the same; so are those of each way of recomputing. */
static void check_bits(const struct shape *shape, const char *more, const char *trains)
{
	float *first = NULL;

	for (int i = 0; i < 4; i++) {
		char training[128];
		struct work w;
		size_t size;

		take_fakes(i == 1 ? "late=1" : "", "");
		snprintf(training, sizeof(training), "%s, deterministic: true%s", ways[i < 2 ? 0 : i - 1],
			 trains);
		open_shape(&w, "gpu", shape, more, training);
		run(&w);
		size = w.s.model->params.length * sizeof(float);
		assert_true(isfinite(w.loss) && w.loss > 0);
		if (first)
			assert_memory_equal(w.gradient, first, size);
		else
			first = memcpy(test_malloc(size), w.gradient, size);
		close_work(&w);
	}
	test_free(first);
}

static void test_gpu_fp8__bits_are_the_same_in_each_run(void **state)
{
	const struct shape shape = whole_tiles();

	(void)state;
	skip_without_kernels();
	check_bits(&small, lora, "");
	check_bits(&shape, "", ", full_finetuning: true");
}

static void test_gpu_fp8__plan_is_what_is_used(void **state)
{
	static const char *const more[] = {lora, "", ""};
	static const char *const training[] = {", precision: fp8",
					       ", precision: fp8, full_finetuning: true, recompute: cheap",
					       ", precision: fp8, full_finetuning: true, recompute: full"};
	const struct shape whole = whole_tiles(), *const shapes[] = {&small, &small, &whole};

	(void)state;
	skip_without_kernels();
	take_fakes("", "");
	for (int i = 0; i < 3; i++) {
		struct error err = {0};
		struct stepper plan;
		struct config c;
		struct work w;

		must(read_settings(&c, "gpu", more[i], training[i], &err), &err);
		must(stepper_plan(&plan, shapes[i], &c, THREADS, &err), &err);
		config_release(&c);
		open_shape(&w, "gpu", shapes[i], more[i], training[i]);
		run(&w);
		assert_true(w.s.arena.peak <= plan.arena.peak);
		assert_true((double)w.s.arena.peak >= 0.98 * (double)plan.arena.peak);
		close_work(&w);
		stepper_release(&plan);
	}
}

static void test_gpu_fp8__overflow_names_the_layer_and_the_linear_layer(void **state)
{
	struct error err = {0};
	struct work w;

	(void)state;
	skip_without_kernels();
	take_fakes("", "");
	open_on(&w, "gpu", small.layers, lora, ways[0]);
	must(w.s.back.ops->put(&w.s.back, mat_cols(&w.s.model->layer[1].norm2.w, 1, 1), (const uint16_t[]){0x7f80},
			       &err),
	     &err);
	run(&w);
	assert_true(w.took.overflows > 0);
	assert_string_equal(w.took.overflow_at, "layer 1, inputs of gate and up");
	close_work(&w);
}

/* A document of 37 rows is padded. It has the gradient that it has on a CPU, which pads nothing. */
static void test_gpu_fp8__rows_are_padded_to_multiples_of_16(void **state)
{
	struct work w[2];

	(void)state;
	skip_without_kernels();
	take_fakes("", "");
	for (int i = 0; i < 2; i++) {
		open_on(&w[i], i ? "gpu" : "cpu", 1, "", ", precision: fp8, full_finetuning: true");
		w[i].start[1] = 37;
		w[i].b.tokens = w[i].b.targets = w[i].b.doc_len_max = 37;
		run(&w[i]);
	}
	assert_true(cosine(w[0].gradient, w[1].gradient, (int64_t)w[0].s.model->params.length) >= 0.99);
	assert_true(fabs(w[0].loss - w[1].loss) <= 2e-3 * w[0].loss);
	close_work(&w[0]);
	close_work(&w[1]);
}

/* -- what is refused -- */

static enum status create(const char *training, struct error *err)
{
	struct stepper s = {0};
	struct config c;
	enum status st;

	must(read_settings(&c, "gpu", lora, training, err), err);
	st = stepper_create(&s, &small, &c, THREADS, err);
	config_release(&c);
	stepper_release(&s);
	return st;
}

static void test_gpu_fp8__a_library_without_block_scales_is_refused(void **state)
{
	struct error err = {0};

	(void)state;
	skip_without_kernels();
	take_fakes("", "version=120805");
	assert_int_equal(create(ways[0], &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "precision: fp8 needs cuBLASLt 12.9 or newer"));
	assert_non_null(strstr(err.text, "is 12.8"));
}

static void test_gpu_fp8__modes_that_the_library_refuses_are_an_error(void **state)
{
	struct error err = {0};
	struct step_part took = {0};
	struct work w;

	(void)state;
	skip_without_kernels();
	take_fakes("", "blocks=15");
	open_on(&w, "gpu", 1, lora, ways[0]);
	must(stepper_begin(&w.s, &err), &err);
	assert_int_equal(stepper_micro(&w.s, &w.b, 0, 96, &took, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "NOT_SUPPORTED"));
	close_work(&w);
}

static void test_gpu_fp8__tokens_of_no_multiple_of_16_are_refused(void **state)
{
	struct error err = {0};
	struct config c;
	struct stepper s;
	const char text[] = "model: {path: /m}\nlora: {r: 8}\ndata: {train: /t, max_seq_length: 100}\n"
			    "training: {device: gpu, precision: fp8, per_device_train_batch_size: 3}\n";

	(void)state;
	must(config_parse(&c, "t", text, strlen(text), &err), &err);
	assert_int_equal(stepper_plan(&s, &small, &c, THREADS, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "per_device_train_batch_size x data: max_seq_length is 300"));
	config_release(&c);
	stepper_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpu_fp8__gradients_of_adapters_are_the_cpus),
		cmocka_unit_test(test_gpu_fp8__gradients_of_all_parameters_are_the_cpus),
		cmocka_unit_test(test_gpu_fp8__gradients_from_copies_alone_are_the_cpus),
		cmocka_unit_test(test_gpu_fp8__a_bias_that_the_library_lacks_is_added_by_a_pass),
		cmocka_unit_test(test_gpu_fp8__bits_are_the_same_in_each_run),
		cmocka_unit_test(test_gpu_fp8__plan_is_what_is_used),
		cmocka_unit_test(test_gpu_fp8__overflow_names_the_layer_and_the_linear_layer),
		cmocka_unit_test(test_gpu_fp8__rows_are_padded_to_multiples_of_16),
		cmocka_unit_test(test_gpu_fp8__a_library_without_block_scales_is_refused),
		cmocka_unit_test(test_gpu_fp8__modes_that_the_library_refuses_are_an_error),
		cmocka_unit_test(test_gpu_fp8__tokens_of_no_multiple_of_16_are_refused),
	};

	return cmocka_run_group_tests_name("model_gpu_fp8", tests, NULL, NULL);
}
