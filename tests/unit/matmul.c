/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix plans over the fake driver and the fake cuBLASLt: layouts, search, and every way the library can
 * refuse. */
#include "test.h"
#include "fake_gpu.h"
#include "gpu/matmul/matmul.h"

struct fixture {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct matmul *matmul;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return !f || !fake_gpu_open(&f->device, &f->stream) ||
	       matmul_open(&f->matmul, f->device, NULL, 0, NULL);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	unsetenv("FAKE_CUBLASLT");
	matmul_close(&f->matmul);
	fake_gpu_close(&f->device, &f->stream);
	free(f);
	return 0;
}

static struct matmul_shape small(void)
{
	return (struct matmul_shape){.a = MATMUL_F32,
				     .b = MATMUL_F32,
				     .d = MATMUL_F32,
				     .compute = MATMUL_COMPUTE_F32,
				     .m = 3,
				     .n = 5,
				     .k = 4};
}

static float a_at(unsigned i, unsigned l)
{
	return (float)(10 * i + l);
}

static float b_at(unsigned l, unsigned j)
{
	return (float)l - 2 * (float)j;
}

/* Runs `shape` with rows longer than needed and holds every element, and the gaps, against plain loops. */
static void check_product(struct fixture *f, struct matmul_shape s, double alpha, double beta)
{
	enum { M = 3, N = 5, K = 4, ROW_A = 7, ROW_B = 9, ROW_D = 8 };
	float a[5 * ROW_A] = {0}, b[6 * ROW_B] = {0}, d[M * ROW_D], bias[N] = {1, 2, 3, 4, 5};
	gpu_ptr pa = 0, pb = 0, pd = 0, pbias = 0;
	struct matmul_plan *p = NULL;
	struct matmul_operands o;

	s.row_a = ROW_A;
	s.row_b = ROW_B;
	s.row_d = ROW_D;
	for (unsigned i = 0; i < M; i++)
		for (unsigned l = 0; l < K; l++)
			a[s.transpose_a ? l * ROW_A + i : i * ROW_A + l] = a_at(i, l);
	for (unsigned l = 0; l < K; l++)
		for (unsigned j = 0; j < N; j++)
			b[s.transpose_b ? j * ROW_B + l : l * ROW_B + j] = b_at(l, j);
	for (unsigned i = 0; i < M * ROW_D; i++)
		d[i] = 1000;
	assert_int_equal(gpu_alloc(f->device, &pa, sizeof(a), NULL), STATUS_OK);
	assert_int_equal(gpu_alloc(f->device, &pb, sizeof(b), NULL), STATUS_OK);
	assert_int_equal(gpu_alloc(f->device, &pd, sizeof(d), NULL), STATUS_OK);
	assert_int_equal(gpu_alloc(f->device, &pbias, sizeof(bias), NULL), STATUS_OK);
	assert_int_equal(gpu_copy_to(f->device, pa, a, sizeof(a), NULL), STATUS_OK);
	assert_int_equal(gpu_copy_to(f->device, pb, b, sizeof(b), NULL), STATUS_OK);
	assert_int_equal(gpu_copy_to(f->device, pd, d, sizeof(d), NULL), STATUS_OK);
	assert_int_equal(gpu_copy_to(f->device, pbias, bias, sizeof(bias), NULL), STATUS_OK);
	o = (struct matmul_operands){.a = pa, .b = pb, .d = pd, .bias = pbias, .alpha = alpha, .beta = beta};
	assert_int_equal(matmul_plan_create(&p, f->matmul, &s, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_first(p, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_enqueue(p, &o, f->stream, NULL), STATUS_OK);
	assert_int_equal(gpu_copy_from(f->device, d, pd, sizeof(d), NULL), STATUS_OK);
	for (unsigned i = 0; i < M; i++)
		for (unsigned j = 0; j < ROW_D; j++) {
			double sum = j < N ? beta * 1000 : 1000;

			for (unsigned l = 0; j < N && l < K; l++)
				sum += alpha * (double)(a_at(i, l) * b_at(l, j));
			if (j < N && (s.epilogue == MATMUL_BIAS || s.epilogue == MATMUL_RELU_BIAS))
				sum += (double)bias[j];
			if (j < N && s.epilogue == MATMUL_RELU_BIAS && sum < 0)
				sum = 0;
			assert_float_equal(d[i * ROW_D + j], sum, 1e-4);
		}
	matmul_plan_destroy(&p);
	gpu_free(f->device, &pa);
	gpu_free(f->device, &pb);
	gpu_free(f->device, &pd);
	gpu_free(f->device, &pbias);
}

static void test_matmul__all_transposes_and_leading_dimensions(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct matmul_shape s = small();

		s.transpose_a = i & 1;
		s.transpose_b = i & 2;
		check_product(*state, s, 1, 0);
		check_product(*state, s, -0.5, 2);
	}
}

static void test_matmul__bias_is_one_value_a_column(void **state)
{
	struct matmul_shape s = small();

	s.bias = MATMUL_F32;
	s.epilogue = MATMUL_BIAS;
	check_product(*state, s, 1, 0);
	s.epilogue = MATMUL_RELU_BIAS;
	check_product(*state, s, 1, 0);
}

static void test_matmul__candidates_are_described(void **state)
{
	struct fixture *f = *state;
	struct matmul_shape s = small();
	struct matmul_description d;
	struct matmul_plan *p;

	assert_int_equal(matmul_plan_create(&p, f->matmul, &s, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_candidates(p, 8, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_count(p), 2);
	matmul_plan_describe(p, 0, &d);
	assert_int_equal(d.id, 66);
	assert_int_equal(d.tile_m, 128);
	assert_int_equal(d.tile_n, 256);
	assert_int_equal(d.stage_k, 64);
	assert_int_equal(d.split_k, 1);
	assert_string_equal(d.name, "algo66 128x256 stages64xauto");
	assert_int_equal(matmul_plan_select(p, 1, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_select(p, 2, NULL), STATUS_BUG);
	matmul_plan_destroy(&p);
}

static void test_matmul__wide_clusters_are_passed_over_where_there_is_another_way(void **state)
{
	struct fixture *f = *state;
	struct matmul_shape s = small();
	uint64_t wide[MATMUL_ALGORITHM_WORDS];
	struct matmul_description d;
	struct matmul_plan *p;

	setenv("FAKE_CUBLASLT", "wide=3", 1);
	assert_int_equal(matmul_plan_create(&p, f->matmul, &s, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_first(p, NULL), STATUS_OK); /* any number of blocks */
	matmul_plan_describe(p, 0, &d);
	assert_int_equal(d.cluster_m * d.cluster_n, 8);
	matmul_plan_algorithm(p, 0, wide);
	matmul_plan_destroy(&p);

	s.cluster_most = 4;
	assert_int_equal(matmul_plan_create(&p, f->matmul, &s, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_first(p, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_count(p), 1);
	matmul_plan_describe(p, 0, &d);
	assert_int_equal(d.cluster_m * d.cluster_n, 2);
	assert_int_equal(matmul_plan_candidates(p, 4, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_count(p), 1);
	assert_int_equal(matmul_plan_recall(p, wide, NULL), STATUS_UNSUPPORTED);
	assert_int_equal(matmul_plan_count(p), 1);
	setenv("FAKE_CUBLASLT", "wide=99", 1); /* there is no other */
	assert_int_equal(matmul_plan_candidates(p, 4, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_count(p), 4);
	setenv("FAKE_CUBLASLT", "cublasLtMatmulAlgoGetHeuristic=14", 1);
	assert_int_equal(matmul_plan_candidates(p, 4, NULL), STATUS_VENDOR);
	matmul_plan_destroy(&p);
}

static void test_matmul__a_search_offers_each_configuration_once(void **state)
{
	struct fixture *f = *state;
	struct matmul_shape s = small();
	struct matmul_plan *p;
	struct matmul_description d, e;
	unsigned all;

	assert_int_equal(matmul_plan_create(&p, f->matmul, &s, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_candidates(p, 8, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_exhaust(p, 1000, NULL, NULL), STATUS_OK);
	all = matmul_plan_count(p);
	/* 3 tiles x 2 stages plain, 2 x 2 swizzled, 3 x 2 x 9 split: the two heuristics are among the plain
	 * ones */
	assert_int_equal(all, 6 + 4 + 54);
	for (unsigned i = 0; i < all; i++)
		for (unsigned j = i + 1; j < all; j++) {
			matmul_plan_describe(p, i, &d);
			matmul_plan_describe(p, j, &e);
			assert_string_not_equal(d.name, e.name);
		}
	assert_int_equal(matmul_plan_candidates(p, 1, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_exhaust(p, 5, NULL, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_count(p), 5);
	matmul_plan_destroy(&p);
}

/* Lets so many configurations be looked at, then says that it is enough or that it was stopped. */
struct patience {
	unsigned left;
	enum status then;
};

static enum status wait_no_longer(void *arg, bool *enough, struct error *err)
{
	struct patience *p = arg;

	if (p->left) {
		p->left--;
		return STATUS_OK;
	}
	*enough = !p->then;
	return p->then ? error_set(err, p->then, "stopped on request") : STATUS_OK;
}

static void test_matmul__a_search_keeps_its_pace_and_heeds_a_stop(void **state)
{
	struct fixture *f = *state;
	struct matmul_shape s = small();
	struct patience p = {.left = 7};
	const struct matmul_pace pace = {wait_no_longer, &p};
	struct matmul_plan *plan;
	struct error err = {0};
	unsigned found;

	assert_int_equal(matmul_plan_create(&plan, f->matmul, &s, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_candidates(plan, 8, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_exhaust(plan, 1000, &pace, &err), STATUS_OK);
	found = matmul_plan_count(plan);
	assert_true(found > 2 && found <= 2 + 7); /* the two heuristics, and some of the seven looked at */
	p = (struct patience){.left = 0};
	assert_int_equal(matmul_plan_exhaust(plan, 1000, &pace, &err), STATUS_OK);
	assert_int_equal(matmul_plan_count(plan), found);
	p = (struct patience){.left = 9, .then = STATUS_CANCELLED};
	assert_int_equal(matmul_plan_exhaust(plan, 1000, &pace, &err), STATUS_CANCELLED);
	matmul_plan_destroy(&plan);
}

static void refuse(struct fixture *f, const char *staged, enum status expected, const char *word)
{
	struct matmul_shape s = small();
	struct matmul_plan *p = NULL;
	struct error err = {0};
	enum status st;

	setenv("FAKE_CUBLASLT", staged, 1);
	st = matmul_plan_create(&p, f->matmul, &s, &err);
	if (!st)
		st = matmul_plan_first(p, &err);
	assert_int_equal(st, expected);
	assert_non_null(strstr(err.text, word));
	matmul_plan_destroy(&p);
	unsetenv("FAKE_CUBLASLT");
}

static void test_matmul__every_refusal_is_told_apart(void **state)
{
	struct fixture *f = *state;

	refuse(f, "cublasLtMatmulAlgoGetHeuristic=15", STATUS_UNSUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED");
	refuse(f, "cublasLtMatmulAlgoGetHeuristic=7", STATUS_UNSUPPORTED, "no kernel");
	refuse(f, "cublasLtMatmulAlgoGetHeuristic=14", STATUS_VENDOR, "heuristic");
	refuse(f, "empty=1", STATUS_UNSUPPORTED, "no kernel for fp32");
	refuse(f, "cublasLtMatmulDescCreate=3", STATUS_NO_RESOURCE, "desc_create");
	refuse(f, "cublasLtMatrixLayoutCreate=14", STATUS_VENDOR, "layout_create");
	refuse(f, "cublasLtMatmulPreferenceCreate=3", STATUS_NO_RESOURCE, "preference_create");
}

static void test_matmul__a_failed_handle_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct matmul *mm;
	struct error err = {0};

	setenv("FAKE_CUBLASLT", "cublasLtCreate=3", 1);
	assert_int_equal(matmul_open(&mm, f->device, NULL, 0, &err), STATUS_NO_RESOURCE);
	assert_null(mm);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
}

static void test_matmul__a_missing_library_or_symbol_is_unavailable(void **state)
{
	struct fixture *f = *state;
	struct matmul *mm;
	struct error err = {0};

	assert_int_equal(matmul_open(&mm, f->device, "/nowhere/libcublasLt.so.13", 0, &err),
			 STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	error_clear(&err);
	/* the fake driver is a library, but not this one */
	assert_int_equal(matmul_open(&mm, f->device, FAKE_DIR "/libcuda.so.1", 0, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "cublasLt"));
}

static void test_matmul__a_run_that_fails_says_which_call(void **state)
{
	struct fixture *f = *state;
	struct matmul_shape s = small();
	struct matmul_operands o = {.alpha = 1};
	struct matmul_plan *p;
	struct error err = {0};

	assert_int_equal(matmul_plan_create(&p, f->matmul, &s, NULL), STATUS_OK);
	assert_int_equal(matmul_plan_enqueue(p, &o, f->stream, NULL), STATUS_BUG); /* nothing selected */
	assert_int_equal(matmul_plan_first(p, NULL), STATUS_OK);
	setenv("FAKE_CUBLASLT", "cublasLtMatmul=13", 1);
	assert_int_equal(matmul_plan_enqueue(p, &o, f->stream, &err), STATUS_VENDOR);
	assert_non_null(strstr(err.text, "matmul"));
	matmul_plan_destroy(&p);
}

static void test_matmul__shapes_that_would_read_past_their_rows_are_refused(void **state)
{
	struct fixture *f = *state;
	struct matmul_plan *p;
	struct matmul_shape bad[4] = {small(), small(), small(), small()};

	bad[0].m = 0;
	bad[1].row_a = 3;
	bad[2].row_d = 4;
	bad[3].batch = 2;
	bad[3].stride_d = 14;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(matmul_plan_create(&p, f->matmul, &bad[i], NULL), STATUS_BAD_INPUT);
		assert_null(p);
	}
}

static void test_matmul__block_scales_give_the_librarys_own_answer(void **state)
{
	struct fixture *f = *state;
	struct matmul_shape s = small();
	struct matmul_plan *p;
	struct error err = {0};

	s.a = s.b = MATMUL_E4M3;
	s.d = MATMUL_BF16;
	s.scale_a = s.scale_b = MATMUL_SCALE_BLOCK32;
	assert_int_equal(matmul_plan_create(&p, f->matmul, &s, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "CUBLAS_STATUS_NOT_SUPPORTED"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(test_matmul__##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(all_transposes_and_leading_dimensions),
		T(bias_is_one_value_a_column),
		T(candidates_are_described),
		T(a_search_offers_each_configuration_once),
		T(a_search_keeps_its_pace_and_heeds_a_stop),
		T(wide_clusters_are_passed_over_where_there_is_another_way),
		T(every_refusal_is_told_apart),
		T(a_failed_handle_leaves_nothing),
		T(a_missing_library_or_symbol_is_unavailable),
		T(a_run_that_fails_says_which_call),
		T(shapes_that_would_read_past_their_rows_are_refused),
		T(block_scales_give_the_librarys_own_answer),
	};
#undef T

	return cmocka_run_group_tests_name("matmul", tests, NULL, NULL);
}
