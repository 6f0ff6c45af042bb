/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of one row on the fake driver, by the persistent kernel (model/gpu/decode.h): their logits are near
 * those of the CPU, whose sums are F32. Pages are in descending order.
 */
#include "test.h"
#include <math.h>
#include "engine/load/load.h"
#include "engine/step/row_lists.h"
#include "fake_gpu.h"
#include "kernel/fatbin.h"
#include "model/files/model_folder.h"
#include "model/files/random_weights.h"
#include "model/tensor/matrix.h"
#include "must.h"
#include "scratch.h"

enum { PAGE = 16, PAGES = 4, PROMPT = 21, TEXT = 13, ALL = PROMPT + TEXT };
static const char *const shapes[] = {"tiny-64", "tiny-qwen3-64", "tiny-llama-64"};

struct bed {
	struct loaded l;
	struct row_lists *lists;
};

static enum status numbers(void *arg, const struct named *n, int64_t row, int64_t rows, float *out,
			   struct error *err)
{
	(void)arg;
	(void)err;
	random_weights(n, 1, row, rows, out);
	return STATUS_OK;
}

static void make_model(const char *dir, const char *name)
{
	struct shape shape;
	const struct folder_options o = {.shape = &shape,
					 .dtype = DTYPE_BF16,
					 .shard_bytes = 1 << 30,
					 .replace = true,
					 .rows = numbers};
	struct error err = {0};

	must(shape_by_name(&shape, name, &err), &err);
	must(folder_write(dir, &o, &err), &err);
}

static bool tuned; /* whether bed_open's models time their ways */

static void bed_open(struct bed *b, const char *dir, struct load_options o)
{
	struct error err = {0};

	o.model = dir;
	o.no_tuning = !o.deterministic && !tuned; /* so steps with one row use the persistent kernel, fast or not */
	o.positions = PAGES * PAGE;
	o.sequences = 2;
	o.rows = 64;
	o.page_tokens = PAGE;
	o.pages = 2 * PAGES;
	must(load_open(&b->l, &o, &err), &err);
	must(row_lists_create(&b->lists, &b->l.most, &err), &err);
}

static void bed_close(struct bed *b)
{
	row_lists_destroy(&b->lists);
	load_close(&b->l);
}

/* Logits of the last of `rows` rows from position `first` on. Positions from `known` on take what was
 * sampled. */
static struct mat feed(struct bed *b, const int32_t *token, int64_t known, int64_t first, int64_t rows)
{
	static const uint32_t pages[PAGES] = {8, 5, 4, 1};
	const struct row_sequence s = {.token = token,
				       .known = known,
				       .first = first,
				       .rows = rows,
				       .outputs = 1,
				       .place = 1,
				       .page = pages};
	struct error err = {0};
	struct paged_rows lists;

	row_lists_clear(b->lists);
	row_lists_add(b->lists, &s);
	lists = row_lists_end(b->lists, rows, 1);
	must(paged_step_forward(b->l.step, &lists, &err), &err);
	return paged_step_logits(b->l.step);
}

static void tokens(int32_t *token)
{
	for (int i = 0; i < ALL; i++)
		token[i] = (37 * i + i * i) % 320;
}

static float number(const struct mat *m, int64_t i)
{
	return m->dtype == DTYPE_F32 ? ((const float *)m->data)[i]
				     : bf16_to_f32(((const uint16_t *)m->data)[i]);
}

static void near(const struct mat *made, const struct mat *due, double most)
{
	double largest = 0, worst = 0;

	assert_int_equal(made->rows, 1);
	assert_int_equal(made->cols, due->cols);
	for (int64_t i = 0; i < due->cols; i++) {
		largest = fmax(largest, fabs((double)number(due, i)));
		worst = fmax(worst, fabs((double)(number(made, i) - number(due, i))));
	}
	assert_true(largest > 0.1);
	if (!(worst <= most * largest))
		fail_msg("%.3g of %.3g", worst, largest);
}

static void skip_without_kernels(void)
{
	if (!kernel_fatbin_at(0))
		skip();
}

static void test_decode__logits_are_near_those_of_the_cpu(void **state)
{
	int32_t token[ALL];

	skip_without_kernels();
	fakes_take();
	tokens(token);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct bed cpu, gpu;

		make_model(*state, shapes[i]);
		bed_open(&cpu, *state, (struct load_options){.device = LOAD_CPU});
		bed_open(&gpu, *state, (struct load_options){.device = LOAD_GPU});
		/* a prompt of one row, then a longer piece, then row by row over the borders of pages */
		for (int64_t at = 0, rows = 1; at < ALL; at += rows, rows = at == 1 ? PROMPT - 1 : 1) {
			const struct mat due = feed(&cpu, token, ALL, at, rows);
			const struct mat made = feed(&gpu, token, ALL, at, rows);

			assert_int_equal(made.dtype, rows == 1 ? DTYPE_F32 : DTYPE_BF16);
			near(&made, &due, rows == 1 && at == 0 ? 5e-3 : 3e-2);
		}
		bed_close(&cpu);
		bed_close(&gpu);
	}
}

/* FP8 weights differ from those of the file, so the bound is wide. */
static void test_decode__fp8_weights_are_near_too(void **state)
{
	struct bed cpu, gpu;
	int32_t token[ALL];

	skip_without_kernels();
	fakes_take();
	tokens(token);
	make_model(*state, shapes[0]);
	bed_open(&cpu, *state, (struct load_options){.device = LOAD_CPU});
	bed_open(&gpu, *state, (struct load_options){.device = LOAD_GPU, .weights_e4m3 = true});
	for (int64_t at = 0; at < PROMPT; at++) {
		const struct mat due = feed(&cpu, token, ALL, at, 1), made = feed(&gpu, token, ALL, at, 1);

		assert_int_equal(made.dtype, DTYPE_F32);
		near(&made, &due, 0.15);
	}
	bed_close(&cpu);
	bed_close(&gpu);
}

static void test_decode__a_row_takes_the_token_that_was_sampled(void **state)
{
	struct sample_row row = {
		.top_p = 1, .repetition = 1, .given = -1, .place = 1, .mask = -1, .logprobs = -1};
	const struct sample_lists lists = {.row = &row, .rows = 1, .plain = true, .greedy = true};
	int32_t token[ALL];
	const struct sample_result *result;
	struct error err = {0};
	float due[320];
	struct bed b;
	int turn;

	skip_without_kernels();
	fakes_take();
	tokens(token);
	make_model(*state, shapes[0]);
	bed_open(&b, *state, (struct load_options){.device = LOAD_GPU});
	feed(&b, token, ALL, 0, PROMPT);
	for (int64_t at = PROMPT; at < PROMPT + 3; at++) { /* of a step of many rows, then of one */
		struct mat logits;

		must(paged_step_sample(b.l.step, &lists, &turn, &err), &err);
		logits = feed(&b, token, at, at, 1);
		memcpy(due, logits.data, sizeof(due));
		must(paged_step_results(b.l.step, turn, &result, &err), &err);
		assert_int_equal(result->status, SAMPLE_OK);
		token[at] = result->id;
		logits = feed(&b, token, ALL, at, 1);
		assert_memory_equal(due, logits.data, sizeof(due));
	}
	bed_close(&b);
}

static void test_decode__is_not_used_where_it_must_not_or_cannot(void **state)
{
	static const struct load_options others[] = {
		{.device = LOAD_GPU, .deterministic = true},
		{.device = LOAD_GPU, .cache_e4m3 = true},
	};
	int32_t token[ALL];
	struct bed b;

	skip_without_kernels();
	fakes_take();
	tokens(token);
	make_model(*state, shapes[0]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		bed_open(&b, *state, others[i]);
		assert_int_equal(feed(&b, token, ALL, 0, 1).dtype, DTYPE_BF16);
		assert_int_equal(b.l.deterministic_cost.rows, others[i].deterministic ? 2 : 0); /* the sequences */
		assert_int_equal(b.l.deterministic_cost.step_s > 0, others[i].deterministic);
		assert_int_equal(b.l.deterministic_cost.ordinary_s > 0, others[i].deterministic);
		bed_close(&b);
	}
	setenv("FAKE_CUDA", "optin=65536", 1); /* bytes of shared memory per block */
	bed_open(&b, *state, (struct load_options){.device = LOAD_GPU});
	assert_int_equal(feed(&b, token, ALL, 0, 1).dtype, DTYPE_BF16);
	bed_close(&b);
}

static void test_decode__is_used_if_it_is_faster(void **state)
{
	static const struct {
		const char *cuda;
		enum dtype type;
	} cases[] = {{"", DTYPE_F32}, {"cooperative_ns=100000000", DTYPE_BF16}};
	int32_t token[ALL];
	struct bed b;

	skip_without_kernels();
	fakes_take();
	tokens(token);
	make_model(*state, shapes[0]);
	tuned = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("FAKE_CUDA", cases[i].cuda, 1);
		bed_open(&b, *state, (struct load_options){.device = LOAD_GPU});
		assert_int_equal(feed(&b, token, ALL, 0, 1).dtype, cases[i].type);
		bed_close(&b);
	}
	tuned = false;
}

static void test_decode__the_ordinary_step_can_be_compared(void **state)
{
	static const enum dtype type[] = {DTYPE_BF16, DTYPE_F32};
	int32_t token[ALL];
	struct mat due;
	struct bed b;

	skip_without_kernels();
	fakes_take();
	tokens(token);
	make_model(*state, shapes[0]);
	bed_open(&b, *state, (struct load_options){.device = LOAD_CPU});
	assert_false(paged_step_persistent(b.l.step, true));
	feed(&b, token, ALL, 0, PROMPT);
	due = feed(&b, token, ALL, PROMPT, 1);
	for (int i = 0; i < 4; i++) {
		const int persistent = i % 2;
		struct mat made;
		struct bed g;

		bed_open(&g, *state, (struct load_options){.device = LOAD_GPU});
		assert_true(paged_step_persistent(g.l.step, i < 2 ? persistent : !persistent));
		feed(&g, token, ALL, 0, PROMPT);
		assert_true(paged_step_persistent(g.l.step, persistent)); /* between two steps, too */
		made = feed(&g, token, ALL, PROMPT, 1);
		assert_int_equal(made.dtype, type[persistent]);
		near(&made, &due, 0.02);
		bed_close(&g);
	}
	bed_close(&b);
}

static void test_decode__a_launch_that_fails_is_an_error(void **state)
{
	static const char *const staged[] = {"cuLaunchCooperativeKernel=719", "cuMemcpyHtoDAsync_v2=719"};
	const uint32_t page = 1;
	int32_t token[ALL];

	skip_without_kernels();
	tokens(token);
	make_model(*state, shapes[0]);
	for (size_t i = 0; i < sizeof(staged) / sizeof(staged[0]); i++) {
		const struct row_sequence s = {
			.token = token, .known = 1, .rows = 1, .outputs = 1, .page = &page};
		struct error err = {0};
		struct paged_rows lists;
		struct bed b;

		fakes_take();
		bed_open(&b, *state, (struct load_options){.device = LOAD_GPU});
		row_lists_clear(b.lists);
		row_lists_add(b.lists, &s);
		lists = row_lists_end(b.lists, 1, 1);
		setenv("FAKE_CUDA", staged[i], 1);
		assert_int_not_equal(paged_step_forward(b.l.step, &lists, &err), STATUS_OK);
		fakes_take();
		bed_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_decode__logits_are_near_those_of_the_cpu),
		scratch_test(test_decode__fp8_weights_are_near_too),
		scratch_test(test_decode__a_row_takes_the_token_that_was_sampled),
		scratch_test(test_decode__is_not_used_where_it_must_not_or_cannot),
		scratch_test(test_decode__is_used_if_it_is_faster),
		scratch_test(test_decode__the_ordinary_step_can_be_compared),
		scratch_test(test_decode__a_launch_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
