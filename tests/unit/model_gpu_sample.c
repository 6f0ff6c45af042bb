/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling of a step on the fake driver, with its lists, results and graphs. With FAKE_CUDA=late=1 streams beside the
 * first do nothing before somebody waits for them. */
#include "model_gpu_step_bed.h"

static void the_largest_logit_is_sampled_and_kept(void **state)
{
	const char *staged[] = {"", "late=1"};
	struct bed b;

	(void)state;
	skip_without_kernels();
	for (int i = 0; i < 2; i++) {
		const struct sample_result *r;

		open_sampling(&b, staged[i]);
		r = sampled(&b, 0);
		for (int row = 0; row < ROWS; row++) {
			assert_int_equal(r[row].status, SAMPLE_OK);
			assert_int_equal(r[row].id, largest(&b, row));
			assert_int_equal(((int32_t *)b.last.data)[row], r[row].id);
		}
		assert_true(b.back.cost.bytes >= 2.0 * ROWS * VOCAB);
		close_bed(&b);
	}
}

/* More calls than turns, none waited for in between: each has its own lists. */
static void calls_have_lists_of_their_own(void **state)
{
	enum { CALLS = 11 };
	struct error err = {0};
	struct mat results[CALLS];
	struct bed b;

	(void)state;
	skip_without_kernels();
	open_sampling(&b, "late=1");
	for (int i = 0; i < CALLS; i++) {
		place(&b, &results[i], ROWS, SAMPLE_RESULT_WORDS, DTYPE_I32);
		b.s.results = results[i];
		for (int row = 0; row < ROWS; row++) {
			b.row[row].given = (i * 7 + row) % VOCAB;
			b.row[row].place = row + i % 3;
		}
		b.s.lists.plain = b.s.lists.greedy = false;
		must(b.back.ops->sample(&b.back, &b.s, &err), &err);
		memset(b.row, 0xff, sizeof(b.row));
		for (int row = 0; row < ROWS; row++)
			b.row[row] =
				(struct sample_row){.top_p = 1, .repetition = 1, .mask = -1, .logprobs = -1};
	}
	for (int i = 0; i < CALLS; i++)
		for (int row = 0; row < ROWS; row++)
			assert_int_equal(((int32_t *)results[i].data)[row * SAMPLE_RESULT_WORDS],
					 (i * 7 + row) % VOCAB);
	close_bed(&b);
}

static void options_reach_the_device(void **state)
{
	const int32_t text[] = {5, 6, 7, 7, 7};
	const struct sample_history history = {.place = 4, .id = text, .prompt = 2, .count = 5};
	const struct sample_result *r;
	struct error err = {0};
	struct bed b;

	(void)state;
	skip_without_kernels();
	open_sampling(&b, "late=1");
	memset(b.counts.data, 0x11, (size_t)(PLACES * VOCAB) * 2);
	must(b.back.ops->sample_count(&b.back, b.counts, &history, &err), &err);
	b.s.lists.plain = b.s.lists.greedy = false;
	b.s.lists.biases = 3;
	b.s.lists.masks = 2;
	b.bias[2] = (struct sample_bias){.id = 77, .add = 100};
	b.row[0].biases = 1;
	b.row[0].bias_begin = 2;
	b.mask[WORDS + 60 / 32] = 1u << 60 % 32;
	b.row[1].mask = 1;
	b.row[2].mask = 0; /* nothing is allowed */
	b.row[3].logprobs = 3;
	b.row[4].counted = 1;
	b.row[4].frequency = 1000;
	b.row[4].repetition = 1.5f;
	((uint16_t *)b.logits.data)[4 * LD + 7] = bf16_of_f32(50);
	((uint16_t *)b.logits.data)[5 * LD + 3] = 0x7fc0; /* NaN */
	r = sampled(&b, 3);
	assert_int_equal(r[0].id, 77);
	assert_int_equal(r[1].id, 60);
	assert_int_equal(r[2].status, SAMPLE_EMPTY);
	assert_int_equal(r[2].id, 0);
	assert_int_equal(r[3].id, largest(&b, 3));
	assert_int_equal(r[3].tops, 3);
	assert_int_equal(r[3].top_id[0], r[3].id);
	assert_true(r[3].logprob == r[3].top_logprob[0] && r[3].logprob < 0);
	assert_int_not_equal(r[4].id, 7);
	assert_int_equal(r[5].status, SAMPLE_NOT_FINITE);
	assert_int_equal(((uint16_t *)b.counts.data)[4 * VOCAB + 5], SAMPLE_IN_PROMPT);
	assert_int_equal(((uint16_t *)b.counts.data)[4 * VOCAB + 7], 3);
	assert_int_equal(((uint16_t *)b.counts.data)[4 * VOCAB + r[4].id], 1);
	assert_int_equal(((uint16_t *)b.counts.data)[3 * VOCAB], 0x1111);
	close_bed(&b);
}

/* Temperature and top_p alone, from BF16; the same with a log probability by the general kernels. */
static void both_kernels_choose_the_same(void **state)
{
	int32_t id[ROWS];
	const struct sample_result *r;
	struct bed b;

	(void)state;
	skip_without_kernels();
	open_sampling(&b, "");
	for (int row = 0; row < ROWS; row++) {
		b.row[row].temperature = 0.5f + (float)row;
		b.row[row].top_p = row % 2 ? 0.8f : 1;
		b.row[row].seed = 5;
		b.row[row].index = (uint32_t)row;
	}
	b.s.lists.greedy = false;
	r = sampled(&b, 1);
	for (int row = 0; row < ROWS; row++) {
		id[row] = r[row].id;
		b.row[row].logprobs = 0;
	}
	r = sampled(&b, 1);
	for (int row = 0; row < ROWS; row++)
		assert_int_equal(r[row].id, id[row]);
	close_bed(&b);
}

static void wrong_lists_are_refused(void **state)
{
	struct error err = {0};
	struct bed b;

	(void)state;
	skip_without_kernels();
	open_sampling(&b, "");
	b.row[2].place = PLACES;
	assert_int_equal(b.back.ops->sample(&b.back, &b.s, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "row 2"));
	b.row[2].place = 2;
	b.row[2].temperature = -1;
	assert_int_equal(b.back.ops->sample(&b.back, &b.s, &err), STATUS_BUG);
	b.row[2].temperature = 0;
	b.row[2].biases = 1;
	b.s.lists.biases = 1;
	b.bias[0].id = VOCAB;
	assert_int_equal(b.back.ops->sample(&b.back, &b.s, &err), STATUS_BUG);
	b.row[2].biases = 0;
	b.s.lists.rows = ROWS + 1;
	assert_int_equal(b.back.ops->sample(&b.back, &b.s, &err), STATUS_BUG);
	b.s.lists.rows = ROWS;
	b.s.logits.dtype = DTYPE_F16;
	assert_int_equal(b.back.ops->sample(&b.back, &b.s, &err), STATUS_UNSUPPORTED);
	assert_int_equal(
		b.back.ops->sample_count(&b.back, b.counts, &(struct sample_history){.place = PLACES}, &err),
		STATUS_BUG);
	assert_int_equal(
		b.back.ops->sample_count(&b.back, b.counts,
					 &(struct sample_history){.id = &(int32_t){VOCAB}, .count = 1}, &err),
		STATUS_BUG);
	must(b.back.ops->sample_count(&b.back, b.counts, &(struct sample_history){.place = 1}, &err), &err);
	close_bed(&b);
}

static void faults_of_the_driver_are_told(void **state)
{
	static const char *const faults[] = {"cuStreamCreate=2",     "cuEventCreate=2",
					     "cuMemHostAlloc=2",     "cuMemcpyHtoDAsync_v2=719",
					     "cuLaunchKernelEx=719", "cuStreamWaitEvent=719"};
	struct error err = {0};
	struct bed b;

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		open_sampling(&b, "");
		setenv("FAKE_CUDA", faults[i], 1);
		if (!b.back.ops->sample(&b.back, &b.s, &err))
			fail_msg("%s changes nothing", faults[i]);
		setenv("FAKE_CUDA", "", 1);
		close_bed(&b);
	}
}

static void results_are_fetched_in_turns(void **state)
{
	const void *out[FETCHES], *none;
	struct error err = {0};
	struct mat m, part;
	struct bed b;

	(void)state;
	skip_without_kernels();
	must(open_bed(&b, "", &err), &err);
	place(&b, &m, 3, 8, DTYPE_I32);
	assert_int_equal(b.back.ops->fetch_wait(&b.back, 0, &none, &err), STATUS_BUG);
	assert_int_equal(b.back.ops->fetch_wait(&b.back, FETCHES, &none, &err), STATUS_BUG);
	assert_int_equal(b.back.ops->fetch_begin(&b.back, m, -1, &err), STATUS_BUG);
	for (int i = 0; i < FETCHES; i++) {
		for (int j = 0; j < 24; j++)
			((int32_t *)m.data)[j] = 100 * i + j;
		must(b.back.ops->fetch_begin(&b.back, m, i, &err), &err);
	}
	for (int i = 0; i < FETCHES; i++) {
		must(b.back.ops->fetch_wait(&b.back, i, &out[i], &err), &err);
		assert_int_equal(((const int32_t *)out[i])[23], 100 * i + 23);
	}
	part = m; /* columns 2 .. 4, then more than the turn had room for */
	part.cols = 3;
	part.data = (int32_t *)m.data + 2;
	must(b.back.ops->fetch_begin(&b.back, part, 0, &err), &err);
	must(b.back.ops->fetch_wait(&b.back, 0, &out[0], &err), &err);
	assert_int_equal(((const int32_t *)out[0])[3], 100 * (FETCHES - 1) + 10);
	place(&b, &m, 100, 8, DTYPE_I32);
	must(b.back.ops->fetch_begin(&b.back, m, 0, &err), &err);
	must(b.back.ops->fetch_wait(&b.back, 0, &out[0], &err), &err);
	assert_int_equal(((const int32_t *)out[0])[799], 0);
	setenv("FAKE_CUDA", "cuLaunchKernel=719", 1);
	assert_int_not_equal(b.back.ops->fetch_begin(&b.back, m, 0, &err), STATUS_OK);
	setenv("FAKE_CUDA", "", 1);
	place(&b, &m, 9000, 8, DTYPE_I32); /* more than a kernel copies */
	((int32_t *)m.data)[71999] = 7;
	must(b.back.ops->fetch_begin(&b.back, m, 0, &err), &err);
	must(b.back.ops->fetch_wait(&b.back, 0, &out[0], &err), &err);
	assert_int_equal(((const int32_t *)out[0])[71999], 7);
	setenv("FAKE_CUDA", "cuMemcpyDtoHAsync_v2=719", 1);
	assert_int_not_equal(b.back.ops->fetch_begin(&b.back, m, 0, &err), STATUS_OK);
	setenv("FAKE_CUDA", "cuMemHostGetDevicePointer_v2=1", 1); /* the copy engine copies */
	place(&b, &m, 10000, 8, DTYPE_I32);
	must(b.back.ops->fetch_begin(&b.back, m, 0, &err), &err);
	m.rows = 3;
	((int32_t *)m.data)[23] = 8;
	must(b.back.ops->fetch_begin(&b.back, m, 0, &err), &err);
	must(b.back.ops->fetch_wait(&b.back, 0, &out[0], &err), &err);
	assert_int_equal(((const int32_t *)out[0])[23], 8);
	setenv("FAKE_CUDA", "cuEventSynchronize=719", 1);
	assert_int_not_equal(b.back.ops->fetch_wait(&b.back, 1, &none, &err), STATUS_OK);
	assert_null(none);
	setenv("FAKE_CUDA", "", 1);
	close_bed(&b);
}

/* -- replay -- */

struct work {
	struct bed *b;
	struct mat from, to;
	int runs;
	bool fails;
};

static enum status copy(void *arg, struct error *err)
{
	struct work *w = arg;

	w->runs++;
	if (w->fails)
		return error_set(err, STATUS_BUG, "the work fails");
	return w->b->back.ops->convert(&w->b->back, w->from, w->to, err);
}

static void open_work(struct work *w, struct bed *b, const char *staged)
{
	struct error err = {0};

	must(open_bed(b, staged, &err), &err);
	*w = (struct work){.b = b};
	place(b, &w->from, 1, 8, DTYPE_I32);
	place(b, &w->to, 1, 8, DTYPE_I32);
}

static void replays(struct work *w, uint64_t key, int32_t number)
{
	const struct replay r = {.key = key, .run = copy, .arg = w};
	struct error err = {0};

	((int32_t *)w->from.data)[5] = number;
	must(w->b->back.ops->replay(&w->b->back, &r, &err), &err);
	assert_int_equal(((int32_t *)w->to.data)[5], number);
}

static void work_is_captured_and_replayed(void **state)
{
	struct work w;
	struct bed b;
	double bytes;

	(void)state;
	skip_without_kernels();
	open_work(&w, &b, "");
	for (int i = 0; i < 10; i++) {
		bytes = b.back.cost.bytes;
		replays(&w, 7, i);
		assert_int_equal(w.runs, i == 0 ? 1 : 2);
		assert_true(b.back.cost.bytes - bytes == 64);
	}
	assert_null(gpu_backend_replay_refused(&b.back));
	for (int i = 0; i < 3; i++)
		replays(&w, 0, 40 + i); /* never captured */
	assert_int_equal(w.runs, 5);
	for (int round = 0; round < 2; round++)
		for (int key = 1; key <= 300; key++) /* more than are kept */
			replays(&w, (uint64_t)(1000 + key), key);
	assert_int_equal(w.runs, 605);
	replays(&w, 7, 3);
	replays(&w, 7, 4);
	replays(&w, 7, 5);
	assert_int_equal(w.runs, 607);
	close_bed(&b);
}

static void without_a_graph_the_work_runs(void **state)
{
	static const char *const faults[] = {"cuStreamBeginCapture_v2=900", "cuStreamEndCapture=901",
					     "cuGraphInstantiateWithFlags=2"};
	struct error err = {0};
	struct work w;
	struct bed b;

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		open_work(&w, &b, faults[i]);
		for (int j = 0; j < 4; j++)
			replays(&w, 7, j);
		assert_non_null(gpu_backend_replay_refused(&b.back));
		close_bed(&b);
	}
	open_work(&w, &b, "");
	w.fails = true;
	for (int j = 0; j < 3; j++)
		assert_int_equal(
			b.back.ops->replay(&b.back, &(struct replay){.key = 9, .run = copy, .arg = &w}, &err),
			STATUS_BUG);
	w.fails = false;
	replays(&w, 9, 1);
	replays(&w, 10, 1);
	replays(&w, 10, 2);
	setenv("FAKE_CUDA", "cuGraphLaunch=719", 1);
	assert_int_not_equal(
		b.back.ops->replay(&b.back, &(struct replay){.key = 10, .run = copy, .arg = &w}, &err),
		STATUS_OK);
	setenv("FAKE_CUDA", "", 1);
	close_bed(&b);
}

static enum status sample_in_a_graph(void *arg, struct error *err)
{
	struct bed *b = arg;

	return b->back.ops->sample(&b->back, &b->s, err);
}

/* The lists change from call to call, so sampling is never captured, and goes on. */
static void sampling_is_not_captured(void **state)
{
	struct error err = {0};
	struct bed b;

	(void)state;
	skip_without_kernels();
	open_sampling(&b, "");
	for (int i = 0; i < 3; i++) {
		b.row[0].mask = -1;
		must(b.back.ops->replay(
			     &b.back, &(struct replay){.key = 3, .run = sample_in_a_graph, .arg = &b}, &err),
		     &err);
	}
	assert_non_null(strstr(gpu_backend_replay_refused(&b.back), "cannot be part of a graph"));
	close_bed(&b);
}

/* -- rows -- */

/* What is planned for sampling is what its places need, for any number of rows up to the most. */
static void places_hold_every_number_of_rows(void **state)
{
	const struct paged_limits most = {.outputs = 200, .vocab = 152064};
	const struct sampling_places p = sampling_places_of(&most);
	struct arena arena = {0};
	struct paged_room room = {.limits = most};
	struct error err = {0};
	struct backend plan;

	(void)state;
	plan_backend_gpu(&plan, DTYPE_BF16, &arena);
	must(workspace_sampling(&plan, &room, &err), &err);
	assert_true(arena.peak >= p.end);
	assert_true(p.end - p.bins >= (uint64_t)200 * 4 * 8192 * 2 && p.end < 128u << 20);
	assert_true(p.bias - p.row >= 200 * 80 && p.part - p.mask >= 200 * 152064 / 8);
}

/* -- adapters -- */

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_logit_is_sampled_and_kept),
		cmocka_unit_test(calls_have_lists_of_their_own),
		cmocka_unit_test(options_reach_the_device),
		cmocka_unit_test(both_kernels_choose_the_same),
		cmocka_unit_test(wrong_lists_are_refused),
		cmocka_unit_test(faults_of_the_driver_are_told),
		cmocka_unit_test(results_are_fetched_in_turns),
		cmocka_unit_test(work_is_captured_and_replayed),
		cmocka_unit_test(without_a_graph_the_work_runs),
		cmocka_unit_test(sampling_is_not_captured),
		cmocka_unit_test(places_hold_every_number_of_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
