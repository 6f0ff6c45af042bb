/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU's back end does not take: refused by name, and nothing is left of it. */
#include "model_gpu_bed.h"

#include "fake_gpu.h"

static const char adapter[] = "lora: {r: 4, alpha: 6}";

/* Heads that no kernel takes are refused by name, before anything is launched for them. */
static void heads_of_other_sizes_are_refused(void **state)
{
	static const int64_t sizes[] = {12, 264};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct error err = {0};
		char words[32];
		struct work w;
		struct rows r;

		head_dim = sizes[i];
		open_work(&w, true, FAMILY_LLAMA, adapter, "seed: 1");
		make(&r, equal, w.s.model->shape.vocab);
		must(stepper_begin(&w.s, &err), &err);
		assert_int_equal(
			stepper_micro(&w.s, &r.b, 0, (uint64_t)r.b.targets, &(struct step_part){0}, &err),
			STATUS_UNSUPPORTED);
		snprintf(words, sizeof(words), "%d", (int)sizes[i]);
		assert_non_null(strstr(err.text, words));
		close_work(&w);
	}
	head_dim = 8;
}

/* cuDNN alone, and documents of a length at which it is known to be wrong: no other way is taken unasked. */
static void a_length_that_the_library_is_not_trusted_with_is_refused(void **state)
{
	static const int single[] = {1, 1, 1, 0};
	struct step_part part = {0};
	struct error err = {0};
	struct work w;
	struct rows r;

	(void)state;
	skip_without_kernels();
	head_dim = 64;
	open_work(&w, true, FAMILY_QWEN2, adapter, "attention: cudnn");
	make(&r, single, w.s.model->shape.vocab);
	must(stepper_begin(&w.s, &err), &err);
	assert_int_equal(stepper_micro(&w.s, &r.b, 0, 3, &part, &err), STATUS_UNSUPPORTED);
	assert_string_equal(err.text, "cuDNN's attention is not used at length 1, where it is known to be wrong");
	error_clear(&err);
	make(&r, equal, w.s.model->shape.vocab); /* others go on */
	must(stepper_micro(&w.s, &r.b, 0, 100, &part, &err), &err);
	close_work(&w);
	head_dim = 8;
}

/* Three matrices of the arena, for operations by themselves. */
static void open_matrices(struct alone *a, struct mat m[3], int64_t rows, int64_t cols, enum dtype dtype)
{
	struct error err = {0};

	open_alone(a, 1 << 20, true);
	for (int i = 0; i < 3; i++) {
		m[i] = (struct mat){.rows = rows, .cols = cols, .dtype = dtype};
		must(arena_mat(&a->arena, MEM_WORKSPACE, &m[i], "a matrix", &err), &err);
	}
}

static struct gemm product_of(const struct mat m[3])
{
	return (struct gemm){.a = m[0], .b = m[1], .c = m[2], .d = m[2], .trans_b = true, .alpha = 1};
}

/* The same, of zeros to be multiplied. */
static struct gemm open_product(struct alone *a, int64_t size)
{
	struct error err = {0};
	struct mat m[3];

	open_matrices(a, m, size, size, DTYPE_BF16);
	must(a->back.ops->zero(&a->back, m[0], &err), &err);
	must(a->back.ops->zero(&a->back, m[1], &err), &err);
	return product_of(m);
}

static void says(struct error *err, enum status st, enum status wanted, const char *words)
{
	assert_int_equal(st, wanted);
	if (!strstr(err->text, words))
		fail_msg("\"%s\" is not said: %s", words, err->text);
	error_clear(err);
}

static void rows_and_types_that_no_kernel_takes_are_refused(void **state)
{
	struct error err = {0};
	struct gpu_choice c;
	struct alone a;
	struct mat m[3];
	struct gemm g;

	(void)state;
	skip_without_kernels();
	open_matrices(&a, m, 1, 16392, DTYPE_BF16);
	says(&err, a.back.ops->rmsnorm(&a.back, m[0], m[1], 1e-5f, m[2], m[2], &err), STATUS_UNSUPPORTED,
	     "a norm over 16392 elements; the kernel supports up to 16384");
	gpu_backend_release(&a.back);
	open_matrices(&a, m, 16, 16, DTYPE_F64);
	g = product_of(m);
	says(&err, a.back.ops->gemm(&a.back, &g, &err), STATUS_UNSUPPORTED,
	     "a GPU's GEMMs support only BF16 and F32");
	assert_false(gpu_backend_choice(&a.back, 0, &c));
	m[1].dtype = DTYPE_F32;
	says(&err, a.back.ops->convert(&a.back, m[0], m[1], &err), STATUS_UNSUPPORTED,
	     "a GPU converts only F32 and BF16");
	gpu_backend_release(&a.back);
}

/* A product that the library has no kernel for leaves no plan behind: the next one is asked for anew. */
static void a_product_without_a_kernel_is_an_error(void **state)
{
	static const char *const faults[] = {"cublasLtMatmulAlgoGetHeuristic=15",
					     "cublasLtMatmulDescCreate=3", "empty=1"};
	struct error err = {0};
	struct gpu_choice c;
	struct alone a;
	struct gemm g;

	(void)state;
	skip_without_kernels();
	g = open_product(&a, 16);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		setenv("FAKE_CUBLASLT", faults[i], 1);
		says(&err, a.back.ops->gemm(&a.back, &g, &err),
		     i == 1 ? STATUS_NO_RESOURCE : STATUS_UNSUPPORTED, "cublasLt ");
		unsetenv("FAKE_CUBLASLT");
		assert_false(gpu_backend_choice(&a.back, 0, &c));
	}
	must(a.back.ops->gemm(&a.back, &g, &err), &err);
	assert_true(gpu_backend_choice(&a.back, 0, &c));
	assert_false(gpu_backend_choice(&a.back, 1, &c));
	gpu_backend_release(&a.back);
}

/* What is the fastest of nearly as many rows serves others, but where the library does not take it for them:
 * those are timed. */
static void an_algorithm_of_other_rows_may_be_refused(void **state)
{
	static const int64_t rows[] = {32, 24, 40};
	struct error err = {0};
	struct gpu_choice c;
	struct alone a;
	struct gemm g;

	(void)state;
	skip_without_kernels();
	g = open_product(&a, 64);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		g.a.rows = g.c.rows = g.d.rows = rows[i];
		if (i == 2)
			setenv("FAKE_CUBLASLT", "check=15", 1);
		must(a.back.ops->gemm(&a.back, &g, &err), &err);
		unsetenv("FAKE_CUBLASLT");
		assert_true(gpu_backend_choice(&a.back, i, &c));
		assert_int_equal(c.alike, i == 1);
		assert_int_equal(c.seconds > 0, i != 1);
	}
	gpu_backend_release(&a.back);
}

/* Where memory lacks is told: what a smaller plan takes less of is the device's alone. */
static void the_memory_that_lacks_is_named(void **state)
{
	static const struct {
		const char *fault, *words;
		bool planned;
	} cases[] = {{"cuMemHostAlloc=2",
		      " bytes of pinned host memory: cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY", false},
		     {"cuMemAlloc_v2=2", "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY", false},
		     {"cuMemAlloc_v2=2@2", "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY", true}};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct shape shape = shape_of(FAMILY_QWEN2);
		struct error err = {0};
		struct stepper s;
		struct config c;

		configure(&c, true, adapter, "seed: 1");
		setenv("FAKE_CUDA", cases[i].fault, 1);
		assert_int_equal(stepper_create(&s, &shape, &c, THREADS, &err), STATUS_NO_RESOURCE);
		unsetenv("FAKE_CUDA");
		assert_int_equal(err.cause, CAUSE_NO_MEMORY);
		assert_int_equal(strstr(err.text, "; the plan needs ") != NULL,
				 cases[i].planned);
		assert_int_equal(strstr(err.text, "recompute: full, ") != NULL, cases[i].planned);
		says(&err, err.status, STATUS_NO_RESOURCE, cases[i].words);
		stepper_release(&s);
		config_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_of_other_sizes_are_refused),
		cmocka_unit_test(a_length_that_the_library_is_not_trusted_with_is_refused),
		cmocka_unit_test(rows_and_types_that_no_kernel_takes_are_refused),
		cmocka_unit_test(a_product_without_a_kernel_is_an_error),
		cmocka_unit_test(an_algorithm_of_other_rows_may_be_refused),
		cmocka_unit_test(the_memory_that_lacks_is_named),
	};

	fakes_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
