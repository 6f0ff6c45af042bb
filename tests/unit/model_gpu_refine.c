/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that decide among near ways of a GEMM, and devices that are shared with others. */
#include "model_gpu_choose_bed.h"

/* A step whose time depends on the present way of its GEMMs. */
struct slow_step {
	struct choose_bed *b;
	int64_t rows;
	struct gemm_way fast; /* with another way, the step has more work */
	bool fails;	      /* and with `fast` it does not run */
};

static bool is_fast(const struct slow_step *s)
{
	return !memcmp(way_of(s->b, s->rows), &s->fast, sizeof(s->fast));
}

static enum status run_slowly(void *arg, struct error *err)
{
	const struct slow_step *s = arg;
	const int turns = is_fast(s) ? 1 : 6;
	enum status st = STATUS_OK;

	if (s->fails && is_fast(s))
		return error_set(err, STATUS_UNSUPPORTED, "this way does not run");
	for (int i = 0; !st && i < turns; i++)
		st = run_layers(s->b, s->rows, err);
	return st;
}

static struct gemm_choice *only_choice(const struct choose_bed *b)
{
	struct gemm_choices *c = gpu_of(&b->back)->choices;

	assert_int_equal(c->count, 1);
	return c->choice;
}

/* Watches a step of the bed, then refines with steps in which way number `fast` takes the least time. */
static enum status refine(struct choose_bed *b, unsigned fast, bool fails, double seconds, struct error *err)
{
	struct slow_step step = {.b = b, .rows = MOST, .fast = only_choice(b)->near[fast], .fails = fails};
	enum status st = gpu_backend_watch(&b->back, true, err);

	if (!st)
		st = run_layers(b, MOST, err);
	if (!st)
		st = gpu_backend_refine(&b->back, MOST, seconds, run_slowly, &step, err);
	assert_int_equal(gpu_of(&b->back)->choices->uses,
			 LAYERS); /* those of the timed steps are forgotten */
	assert_int_equal(gpu_backend_watch(&b->back, false, st ? &(struct error){0} : err), STATUS_OK);
	return st;
}

static bool takes(const struct choose_bed *b, unsigned i)
{
	return !memcmp(way_of(b, MOST), &only_choice(b)->near[i], sizeof(struct gemm_way));
}

static void near_ways_are_the_fastest_in_order(const struct choose_bed *b)
{
	const struct gemm_choice *c = only_choice(b);

	assert_true(c->nears >= 2 && c->nears <= GEMM_NEAR_MOST);
	assert_memory_equal(&c->way, &c->near[0], sizeof(c->way));
	for (unsigned i = 0; i < c->nears; i++)
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(&c->near[i], &c->near[k], sizeof(c->near[i]));
}

/* On the fake device, every way takes about as long, so several are near. */
static void a_step_decides_among_near_ways(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};

	(void)state;
	skip_without_kernels();
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		struct choose_bed b;

		open_bed(&b, e4m3, true);
		get_h(&b, before);
		must(choose(&b, MOST, 10, &err), &err);
		near_ways_are_the_fastest_in_order(&b);
		for (unsigned fast = 0; fast < only_choice(&b)->nears; fast++) {
			must(refine(&b, fast, false, 10, &err), &err);
			assert_true(takes(&b, fast));
			get_h(&b, after);
			are_close(before, after);
		}
		gpu_backend_release(&b.back);
	}
}

static void a_way_that_does_not_run_in_a_step_is_not_taken(void **state)
{
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, true);
	must(choose(&b, MOST, 10, &err), &err);
	for (unsigned i = 0; i < 2; i++) {
		must(refine(&b, i, true, 10, &err), &err);
		assert_false(takes(&b, i));
	}
	gpu_backend_release(&b.back);
}

/* The library has only algorithms with wide clusters, and the device is shared. */
static void wide_algorithms_are_taken_if_there_are_no_others(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	gpu_of(&b.back)->is_shared = true;
	setenv("FAKE_CUBLASLT", "wide=99", 1);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	must(refine(&b, 1, false, 10, &err), &err);
	assert_true(takes(&b, 1));
	get_h(&b, after);
	unsetenv("FAKE_CUBLASLT");
	are_close(before, after);
	gpu_backend_release(&b.back);
}

/* Refines with steps in which way number `fast` takes the least time, while the library has a fault. */
static void refine_with_fault(struct choose_bed *b, unsigned fast, const char *fault)
{
	const struct slow_step step = {.b = b, .rows = MOST, .fast = only_choice(b)->near[fast]};
	struct error err = {0};

	must(gpu_backend_watch(&b->back, true, &err), &err);
	must(run_layers(b, MOST, &err), &err);
	setenv("FAKE_CUBLASLT", fault, 1);
	must(gpu_backend_refine(&b->back, MOST, 10, run_slowly, (void *)&step, &err), &err);
	unsetenv("FAKE_CUBLASLT");
	must(gpu_backend_watch(&b->back, false, &err), &err);
}

/* The library refuses each algorithm when its plan takes it. */
static void refused_algorithms_leave_the_first_way(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	refine_with_fault(&b, 1, "check=15");
	assert_true(takes(&b, 0));
	get_h(&b, after);
	are_close(before, after);
	gpu_backend_release(&b.back);
}

/* One algorithm does not run in a step. Another one runs in its place, whose time does not count for it. */
static void an_algorithm_that_a_step_replaces_is_not_taken(void **state)
{
	unsigned left = 0, nears;
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	must(choose(&b, MOST, 10, &err), &err);
	nears = only_choice(&b)->nears;
	for (unsigned fast = 0; fast < nears; fast++) {
		refine_with_fault(&b, fast, "second=15");
		left += !takes(&b, fast);
		must(refine(&b, 0, false, 10, &err), &err); /* a way that runs, for the noted step */
	}
	assert_int_equal(left, 1);
	gpu_backend_release(&b.back);
}

static enum status run_never(void *arg, struct error *err)
{
	(void)arg;
	return error_set(err, STATUS_UNSUPPORTED, "no step runs");
}

static enum status run_badly(void *arg, struct error *err)
{
	(void)arg;
	return error_set(err, STATUS_UNAVAILABLE, "the device is lost");
}

static void without_steps_the_fastest_way_by_itself_stays(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, true);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	assert_true(gpu_backend_has_ways(&b.back, MOST));
	assert_false(gpu_backend_has_ways(&b.back, MOST - 1));
	must(gpu_backend_watch(&b.back, true, &err), &err);
	must(run_layers(&b, MOST, &err), &err);
	must(gpu_backend_refine(&b.back, MOST, 10, run_never, &b, &err), &err);
	assert_true(takes(&b, 0));
	assert_int_equal(gpu_backend_refine(&b.back, MOST, 10, run_badly, &b, &err), STATUS_UNAVAILABLE);
	assert_string_equal(err.text, "the device is lost");
	must(gpu_backend_watch(&b.back, false, &err), &err);
	get_h(&b, after);
	are_close(before, after);
	gpu_backend_release(&b.back);
}

static void steps_decide_nothing_without_time_or_choices(void **state)
{
	struct gemm_way way;
	struct error err = {0};
	struct slow_step step = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, true);
	must(gpu_backend_refine(&b.back, MOST, 10, run_slowly, &step, &err), &err);
	must(choose(&b, MOST, 10, &err), &err);
	way = *way_of(&b, MOST);
	must(refine(&b, 1, false, -1, &err), &err);
	assert_memory_equal(way_of(&b, MOST), &way, sizeof(way));
	must(gpu_backend_refine(&b.back, MOST - 1, 10, run_slowly, &step, &err), &err); /* other rows */
	assert_memory_equal(way_of(&b, MOST), &way, sizeof(way));
	gpu_backend_release(&b.back);
}

/* `first` and `then`: what others have of the device's memory, in MiB, when the back end begins and before it
 * takes `own` bytes. */
static bool finds_sharing(const char *first, const char *then, uint64_t own)
{
	const struct gpu_backend_options options = {.attention = GPU_ATTENTION_OWN};
	struct error err = {0};
	struct backend back;
	struct arena arena;
	bool is_shared;

	setenv("FAKE_CUDA", first, 1);
	must(gpu_backend_create(&back, &options, &arena, &err), &err);
	setenv("FAKE_CUDA", then, 1);
	must(gpu_backend_take(&back, own, &err), &err);
	is_shared = gpu_backend_is_shared(&back);
	gpu_backend_release(&back);
	unsetenv("FAKE_CUDA");
	return is_shared;
}

static void a_device_whose_memory_is_in_use_is_shared(void **state)
{
	(void)state;
	skip_without_kernels();
	fakes_take();
	assert_false(finds_sharing("context=1000", "context=1000", 1 << 20));
	assert_false(finds_sharing("context=1000", "context=1000", (uint64_t)5 << 30)); /* its own */
	assert_true(finds_sharing("context=3000", "context=1000", 1 << 20));
	assert_true(finds_sharing("context=1000", "context=3000", 1 << 20)); /* they came meanwhile */
}

/* Clusters of eight blocks are for a device that nobody else uses (model/gpu/gemm/gemm.c). */
static void a_shared_device_has_no_wide_clusters(void **state)
{
	(void)state;
	skip_without_kernels();
	for (int shared = 0; shared < 2; shared++) {
		struct error err = {0};
		struct choose_bed b;

		open_bed(&b, false, true);
		gpu_of(&b.back)->is_shared = shared;
		must(run_layers(&b, MOST, &err), &err);
		assert_int_equal(gpu_of(&b.back)->products->planned[0].shape.cluster_most, shared ? 4 : 0);
		gpu_of(&b.back)->options.deterministic = true; /* whoever uses the device */
		must(run_layers(&b, MOST - 1, &err), &err);
		assert_int_equal(gpu_of(&b.back)->products->planned[1].shape.cluster_most, 4);
		gpu_backend_release(&b.back);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_decides_among_near_ways),
		cmocka_unit_test(a_way_that_does_not_run_in_a_step_is_not_taken),
		cmocka_unit_test(wide_algorithms_are_taken_if_there_are_no_others),
		cmocka_unit_test(refused_algorithms_leave_the_first_way),
		cmocka_unit_test(an_algorithm_that_a_step_replaces_is_not_taken),
		cmocka_unit_test(without_steps_the_fastest_way_by_itself_stays),
		cmocka_unit_test(steps_decide_nothing_without_time_or_choices),
		cmocka_unit_test(a_device_whose_memory_is_in_use_is_shared),
		cmocka_unit_test(a_shared_device_has_no_wide_clusters),
	};

	return cmocka_run_group_tests_name("model_gpu_refine", tests, NULL, NULL);
}
