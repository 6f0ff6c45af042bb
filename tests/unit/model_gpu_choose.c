/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of how generation's GEMMs run by themselves, before there are requests. */
#include "model_gpu_choose_bed.h"

static void one_choice_serves_the_rows_below_it(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct gpu_choice choice;
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	get_h(&b, after);
	assert_memory_equal(before, after, sizeof(before));
	assert_true(gpu_backend_choice(&b.back, 0, &choice));
	assert_true(choice.seconds > 0 && choice.seconds <= choice.first_seconds && !choice.recalled);
	assert_non_null(way_of(&b, MOST));
	assert_ptr_equal(way_of(&b, MOST), way_of(&b, MOST / 2 + 1));
	assert_null(way_of(&b, MOST / 2)); /* too far below */
	must(run_layers(&b, MOST / 2 + 1, &err), &err);
	assert_true(gpu_backend_choice(&b.back, 1, &choice));
	assert_true(choice.recalled);
	must(choose(&b, 8, 10, &err), &err);
	assert_non_null(way_of(&b, 1));
	assert_ptr_equal(way_of(&b, 1), way_of(&b, 8));
	assert_null(way_of(&b, 9));
	assert_int_equal(gpu_of(&b.back)->choices->count, 2);
	must(choose(&b, 8, 10, &err), &err); /* known: not timed again */
	assert_int_equal(gpu_of(&b.back)->choices->count, 2);
	gpu_backend_release(&b.back);
}

/* The choice may be an algorithm that rounds partial sums. */
static void whole_sums_need_a_choice_of_their_own(void **state)
{
	struct error err = {0};
	struct choose_bed b;
	struct gemm g;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	must(choose(&b, MOST, 10, &err), &err);
	g = (struct gemm){.a = b.x, .b = b.w[1], .d = b.d, .trans_b = true, .alpha = 1};
	assert_non_null(gemm_chosen(gpu_of(&b.back), &g));
	g.whole_sums = true;
	assert_null(gemm_chosen(gpu_of(&b.back), &g));
	gpu_backend_release(&b.back);
}

/* Which one is faster here does not matter, so both ways are set by hand after the timing. */
static void weights_in_bf16_may_take_own_kernels(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct gemm_way ways[FEW_ROWS_WAYS_MOST];
	struct error err = {0};
	struct choose_bed b;
	struct gemm g;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, true);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	assert_non_null(way_of(&b, MOST));
	get_h(&b, after);
	are_close(before, after);
	g = (struct gemm){.a = b.x, .b = b.w[1], .d = b.d, .trans_b = true, .alpha = 1};
	assert_false(few_rows_take(gpu_of(&b.back), &g));
	assert_true(few_rows_ways(gpu_of(&b.back), &g, &b.h, ways) > 1);
	for (int own = 0; own < 2; own++) {
		struct gemm_choice *choice = &gpu_of(&b.back)->choices->choice[0];

		choice->way = own ? ways[0] : (struct gemm_way){.engine = GEMM_LIBRARY};
		memset(after, 0, sizeof(after));
		get_h(&b, after);
		are_close(before, after);
	}
	g.alpha = 2; /* not a GEMM of own kernels, whatever was chosen for its form */
	assert_int_equal(few_rows_ways(gpu_of(&b.back), &g, &b.h, ways), 0);
	must(b.back.ops->gemm(&b.back, &g, &err), &err);
	gpu_backend_release(&b.back);
}

static void weights_in_e4m3_have_a_way_of_their_own(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, true, true);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	assert_non_null(way_of(&b, MOST));
	get_h(&b, after);
	are_close(before, after);
	gpu_backend_release(&b.back);
}

static void a_candidate_that_does_not_run_is_not_chosen(void **state)
{
	struct gpu_choice choice;
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	setenv("FAKE_CUBLASLT", "second=15", 1);
	must(choose(&b, MOST, 10, &err), &err);
	unsetenv("FAKE_CUBLASLT");
	assert_true(gpu_backend_choice(&b.back, 0, &choice));
	assert_true(choice.seconds == choice.first_seconds);
	gpu_backend_release(&b.back);
}

static void other_failures_are_reported(void **state)
{
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	setenv("FAKE_CUBLASLT", "second=13", 1);
	assert_int_not_equal(choose(&b, MOST, 10, &err), STATUS_OK);
	unsetenv("FAKE_CUBLASLT");
	assert_true(err.text[0]);
	gpu_backend_release(&b.back);
}

static void without_time_nothing_is_chosen(void **state)
{
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	must(gpu_backend_choose(&b.back, 10, &err), &err); /* nothing was watched */
	must(choose(&b, MOST, -1, &err), &err);
	assert_int_equal(gpu_of(&b.back)->choices->count, 0);
	assert_null(way_of(&b, MOST));
	gpu_backend_release(&b.back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_choice_serves_the_rows_below_it),
		cmocka_unit_test(whole_sums_need_a_choice_of_their_own),
		cmocka_unit_test(weights_in_bf16_may_take_own_kernels),
		cmocka_unit_test(weights_in_e4m3_have_a_way_of_their_own),
		cmocka_unit_test(a_candidate_that_does_not_run_is_not_chosen),
		cmocka_unit_test(other_failures_are_reported),
		cmocka_unit_test(without_time_nothing_is_chosen),
	};

	return cmocka_run_group_tests_name("model_gpu_choose", tests, NULL, NULL);
}
