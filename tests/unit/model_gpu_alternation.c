/* SPDX-License-Identifier: Apache-2.0 */
/* What crosses to and from the GPU on streams of its own, while it works: with a driver whose other streams do nothing before
 * somebody waits for them (FAKE_CUDA=late=1), so that a wait that is missing shows. */
#include "fake_gpu.h"
#include "model_gpu_bed.h"

#include "model/backend/cost.h"
#include "model/tensor/matrix.h"

static const char adapter[] = "lora: {r: 4, alpha: 6}";
static const int half[] = {16, 16, 32, 0};
static const int *const documents[] = {packed, equal, half, short_ones, packed, half};
enum { BATCHES = sizeof(documents) / sizeof(documents[0]) };

enum ahead { AHEAD_NOT, AHEAD_NEXT, AHEAD_OTHER /* which then does not come */ };

/* The gradient of all micro-batches. */
static float *gradient(const char *staged, enum ahead ahead)
{
	struct rows r[BATCHES], other;
	struct error err = {0};
	struct work w;
	float *out;

	setenv("FAKE_CUDA", staged, 1);
	open_work(&w, true, FAMILY_QWEN2, adapter, "deterministic: true");
	out = malloc(w.s.model->params.length * sizeof(*out));
	must(stepper_begin(&w.s, &err), &err);
	for (int i = 0; i < BATCHES; i++)
		make(&r[i], documents[i], w.s.model->shape.vocab);
	make(&other, half, w.s.model->shape.vocab);
	for (int i = 0; i < BATCHES; i++) {
		must(stepper_micro(&w.s, &r[i].b, (uint64_t)i, 100, &(struct step_part){0}, &err), &err);
		if (ahead == AHEAD_NEXT && i + 1 < BATCHES)
			must(stepper_prefetch(&w.s, &r[i + 1].b, &err), &err);
		if (ahead == AHEAD_OTHER)
			must(stepper_prefetch(&w.s, &other.b, &err), &err);
	}
	must(w.s.back.ops->get(&w.s.back, w.s.model->params.grad, out, &err), &err);
	close_work(&w);
	unsetenv("FAKE_CUDA");
	return out;
}

/* What is copied ahead, or late, or for nothing, changes no bit. */
static void micro_batches_take_turns(void **state)
{
	const struct {
		const char *staged;
		enum ahead ahead;
	} ways[] = {{"", AHEAD_NEXT}, {"", AHEAD_OTHER}, {"late=1", AHEAD_NOT}, {"late=1", AHEAD_NEXT}, {"late=1", AHEAD_OTHER}};
	float *first;
	size_t length;

	(void)state;
	skip_without_kernels();
	first = gradient("", AHEAD_NOT);
	{
		struct work w;

		open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
		length = w.s.model->params.length;
		close_work(&w);
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		float *g = gradient(ways[i].staged, ways[i].ahead);

		assert_memory_equal(g, first, length * sizeof(*g));
		free(g);
	}
	free(first);
}

/* What is wrong with the next micro-batch is told when it comes. */
static void a_wrong_batch_is_told_in_its_turn(void **state)
{
	struct error err = {0};
	struct work w;
	struct rows r;

	(void)state;
	skip_without_kernels();
	open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
	make(&r, packed, w.s.model->shape.vocab);
	r.token[3] = (int32_t)w.s.model->shape.vocab;
	must(stepper_prefetch(&w.s, &r.b, &err), &err);
	must(stepper_begin(&w.s, &err), &err);
	assert_int_equal(stepper_micro(&w.s, &r.b, 0, 10, &(struct step_part){0}, &err), STATUS_BAD_INPUT);
	close_work(&w);
}

/* More than the pieces that are on their way hold, while nothing is waited for but what is fetched. */
static void numbers_are_fetched_beside_the_stream(void **state)
{
	enum { COLS = 1 << 20, ROWS_OF = 5 }; /* 20 MiB, and a rest */
	const struct gpu_backend_options options = {.attention = GPU_ATTENTION_OWN};
	const struct random_fill fill = {.seed = 3, .width = 1};
	struct mat m = {.rows = 1, .cols = (int64_t)COLS * ROWS_OF + 77, .dtype = DTYPE_F32};
	float *by_stream, *beside;
	struct error err = {0};
	struct arena arena;
	struct backend back;

	(void)state;
	skip_without_kernels();
	by_stream = malloc((size_t)m.cols * sizeof(float));
	beside = calloc((size_t)m.cols, sizeof(float));
	setenv("FAKE_CUDA", "late=1", 1);
	must(gpu_backend_create(&back, &options, &arena, &err), &err);
	must(gpu_backend_take(&back, (uint64_t)m.cols * sizeof(float) + ARENA_ALIGN, &err), &err);
	must(arena_mat(&arena, MEM_TRAINED, &m, "m", &err), &err);
	must(back.ops->random(&back, m, &fill, &err), &err);
	must(back.ops->get(&back, m, by_stream, &err), &err);
	must(gpu_backend_mark(&back, &err), &err);
	must(gpu_backend_get_marked(&back, m, beside, &err), &err);
	assert_memory_equal(beside, by_stream, (size_t)m.cols * sizeof(float));
	setenv("FAKE_CUDA", "cuMemcpyDtoHAsync_v2=1@3", 1);
	must(gpu_backend_mark(&back, &err), &err);
	assert_int_not_equal(gpu_backend_get_marked(&back, m, beside, &err), STATUS_OK);
	unsetenv("FAKE_CUDA");
	gpu_backend_release(&back);
	free(by_stream);
	free(beside);
}

/* Memory that is not there, waits that fail: an error, and nothing is left. */
static void what_fails_is_told(void **state)
{
	static const char *const faults[] = {"cuMemHostAlloc=2", "cuStreamCreate=2", "cuEventCreate=2", "cuStreamWaitEvent=719",
					     "cuEventRecord=719@2"};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct error err = {0};
		enum status st;
		struct work w;
		struct rows r;

		open_failing(&w, &r, adapter, "deterministic: true", faults[i]);
		st = stepper_prefetch(&w.s, &r.b, &err);
		if (!st)
			st = stepper_micro(&w.s, &r.b, 0, 10, &(struct step_part){0}, &err);
		error_clear(&err);
		if (i < 3)
			assert_int_not_equal(gpu_backend_mark(&w.s.back, &err), STATUS_OK);
		close_failing(&w, st);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(micro_batches_take_turns),
		cmocka_unit_test(a_wrong_batch_is_told_in_its_turn),
		cmocka_unit_test(numbers_are_fetched_beside_the_stream),
		cmocka_unit_test(what_fails_is_told),
	};

	fakes_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
