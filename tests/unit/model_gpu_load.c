/* SPDX-License-Identifier: Apache-2.0 */
/* The choices of a loaded model, and steps with fewer layers. */
#include "model_gpu_choose_bed.h"
#include "engine/load/choose.h"

/* A model with random weights, as load_open leaves one. */
static void open_loaded(struct loaded *l, bool e4m3)
{
	const struct gpu_backend_options options = {
		.attention = GPU_ATTENTION_OWN, .graphs = true, .few_rows = true};
	const struct model_options model = {.inference = true,
					    .storage.form = e4m3 ? STORAGE_E4M3_ROWS : STORAGE_NUMBERS,
					    .positions = 64};
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	struct error err = {0};
	size_t count = 0;
	struct shape shape;

	fakes_take();
	head_dim = 64;
	shape = shape_of(FAMILY_QWEN2);
	shape.ffn = 48; /* rows of E4M3 begin at multiples of 16 bytes */
	memset(l, 0, sizeof(*l));
	l->most = (struct paged_limits){.rows = 24,
					.sequences = 8,
					.outputs = 24,
					.pages = 4,
					.vocab = shape.vocab,
					.page_tokens = 16};
	must(gpu_backend_create(&l->back, &options, &l->arena, &err), &err);
	must(gpu_backend_take(&l->back, 64 << 20, &err), &err);
	must(model_create(&l->model, &shape, &model, &err), &err);
	must(model_place(l->model, &l->back, &err), &err);
	must(paged_step_create(&l->step, l->model, &l->back,
			       &(struct paged_step_options){.most = l->most, .places = 8, .replays = true},
			       &err),
	     &err);
	must(paged_step_pages(l->step, 16, &err), &err);
	must(model_weight_slots(l->model, &slots, &names, &count, &err), &err);
	for (size_t i = 0; i < count; i++) {
		const struct made_rows made = {.make = make_small, .arg = &slots[i].to, .dtype = DTYPE_BF16};

		must(gpu_backend_put_made(&l->back, slots[i].to, &made, &err), &err);
	}
	free(slots);
	free(names);
	must(model_loaded(l->model, &l->back, &err), &err);
}

/* Nothing of it is left: neither choices nor plans nor other bits. */
static void an_ordinary_time_leaves_a_deterministic_back_end_as_it_was(void **state)
{
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		uint16_t before[MOST * OUT], after[MOST * OUT];
		struct gpu_ordinary kept;
		struct error err = {0};
		struct choose_bed b;
		size_t plans;

		skip_without_kernels();
		open_bed(&b, e4m3, true);
		gpu_of(&b.back)->options.invariant = gpu_of(&b.back)->options.deterministic = true;
		get_h(&b, before);
		plans = gpu_of(&b.back)->products->count;
		gpu_backend_ordinary_begin(&b.back, &kept);
		assert_false(gpu_of(&b.back)->options.invariant || gpu_of(&b.back)->options.deterministic);
		must(choose(&b, MOST, 10, &err), &err);
		assert_non_null(way_of(&b, MOST));
		gpu_backend_ordinary_end(&b.back, &kept);
		assert_true(gpu_of(&b.back)->options.invariant && gpu_of(&b.back)->options.deterministic);
		assert_null(way_of(&b, MOST));
		assert_int_equal(gpu_of(&b.back)->products->count, plans);
		get_h(&b, after);
		assert_memory_equal(before, after, sizeof(before));
		gpu_backend_release(&b.back);
	}
	(void)state;
}

static void a_model_has_choices_for_its_rows(void **state)
{
	struct error err = {0};
	struct loaded l;
	size_t choices;

	(void)state;
	skip_without_kernels();
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		bool has[25] = {false};

		open_loaded(&l, e4m3);
		must(load_choose(&l, 100, &err), &err);
		choices = gpu_of(&l.back)->choices->count;
		for (size_t i = 0; i < choices; i++)
			has[gpu_of(&l.back)->choices->choice[i].rows] = true;
		assert_true(has[1] && has[8] && !has[16]);
		load_close(&l);
	}
}

/* The logits of a step with one row. */
static void logits_of(struct loaded *l, uint16_t *out)
{
	const int32_t ids[] = {3}, zeros[] = {0}, begin[] = {0, 1}, keys[] = {1};
	const struct paged_rows step = {.token = ids,
					.position = zeros,
					.slot = (int32_t[]){16},
					.begin = begin,
					.keys = keys,
					.page = (int32_t[]){1},
					.output = zeros,
					.rows = 1,
					.sequences = 1,
					.outputs = 1,
					.page_ld = 1,
					.keys_most = 1,
					.page_tokens = 16};
	struct error err = {0};

	paged_step_persistent(l->step, false);
	must(paged_step_forward(l->step, &step, &err), &err);
	must(l->back.ops->get(&l->back, paged_step_logits(l->step), out, &err), &err);
}

/* On the fake device a step takes the host's time, so it decides only if asked to anyway. */
static void steps_as_served_decide(void **state)
{
	uint16_t before[4096], after[4096];
	struct error err = {0};
	struct loaded l;

	(void)state;
	skip_without_kernels();
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		open_loaded(&l, e4m3);
		must(load_choose(&l, 100, &err), &err);
		logits_of(&l, before);
		assert_true(gpu_backend_has_ways(&l.back, 8));
		must(load_refine(&l, 8, 100, true, &err), &err);
		must(load_refine(&l, 1, 100, true, &err), &err);
		must(load_refine(&l, 7, 100, true, &err), &err); /* no choices */
		assert_false(gpu_of(&l.back)->choices->watching);
		logits_of(&l, after);
		for (int64_t i = 0; i < l.model->shape.vocab; i++)
			assert_true(fabsf(bf16_to_f32(before[i]) - bf16_to_f32(after[i])) < 0.05f);
		load_close(&l);
	}
}

static void a_step_can_end_after_some_layers(void **state)
{
	uint16_t all[4096], first[4096], again[4096];
	struct error err = {0};
	struct loaded l;
	size_t bytes;

	(void)state;
	skip_without_kernels();
	open_loaded(&l, false);
	assert_true(l.model->shape.layers > 1 && l.model->shape.vocab <= 4096);
	bytes = (size_t)l.model->shape.vocab * sizeof(*all);
	logits_of(&l, all);
	paged_step_layers(l.step, 1);
	logits_of(&l, first);
	assert_memory_not_equal(all, first, bytes);
	paged_step_layers(l.step, INT64_MAX);
	logits_of(&l, again);
	assert_memory_equal(all, again, bytes);
	must(load_choose(&l, 100, &err), &err); /* leaves all layers */
	logits_of(&l, again);
	for (size_t i = 0; i < bytes / sizeof(*all); i++)
		assert_true(fabsf(bf16_to_f32(all[i]) - bf16_to_f32(again[i])) < 0.05f);
	load_close(&l);
}

static void a_failing_device_is_reported(void **state)
{
	struct error err = {0};
	struct loaded l;

	(void)state;
	skip_without_kernels();
	open_loaded(&l, false);
	setenv("FAKE_CUBLASLT", "cublasLtMatmul=14", 1);
	assert_int_not_equal(load_choose(&l, 100, &err), STATUS_OK);
	unsetenv("FAKE_CUBLASLT");
	assert_false(gpu_of(&l.back)->choices->watching);
	load_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_time_leaves_a_deterministic_back_end_as_it_was),
		cmocka_unit_test(a_model_has_choices_for_its_rows),
		cmocka_unit_test(steps_as_served_decide),
		cmocka_unit_test(a_step_can_end_after_some_layers),
		cmocka_unit_test(a_failing_device_is_reported),
	};

	return cmocka_run_group_tests_name("model_gpu_load", tests, NULL, NULL);
}
