/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of probe attention on the fake libraries: options, an engine begun and ended, its gradients
 * verified. */
#ifndef TESTS_UNIT_ATTENTION_BACKWARD_BED_H
#define TESTS_UNIT_ATTENTION_BACKWARD_BED_H
#include "test.h"
#include "core/clock.h"
#include "gpu/gpu.h"
#include "probe/attention/gradient.h"
#include "unit/cpu_bench.h"

extern const struct probe probe_attention;

struct bed {
	struct cpu_bench bench;
	struct attention_opts opts;
	const struct engine *engine;
	struct attention *state;
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct error err;
};

static inline int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	setenv("ASSAY_LIB_CUDA", FAKE_DIR "/libcuda.so.1", 1);
	setenv("ASSAY_LIB_CUDNN", FAKE_DIR "/libcudnn.so.9", 1);
	unsetenv("FAKE_CUDA");
	unsetenv("FAKE_CUDNN");
	*state = b;
	return !b || gpu_open(&b->device, NULL, NULL) || gpu_stream_create(b->device, &b->stream, NULL);
}

static inline int tear_down(void **state)
{
	struct bed *b = *state;

	gpu_stream_destroy(&b->stream);
	gpu_close(&b->device);
	free(b);
	return 0;
}

static inline enum status options(struct bed *b, const char *words)
{
	static char text[256]; /* options point into it */
	char *save = NULL;
	enum status st = opt_defaults(&probe_attention.opts, &b->opts, &b->err);

	b->err = (struct error){0};
	snprintf(text, sizeof(text), "pass=backward %s", words);
	for (char *word = strtok_r(text, " ", &save); !st && word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		*value = '\0';
		st = opt_set(&probe_attention.opts, &b->opts, word, value + 1, "test", &b->err);
	}
	return st ? st : probe_attention.check(&b->opts, &b->err);
}

static inline void begin(struct bed *b, const struct engine *e, const char *words)
{
	assert_int_equal(options(b, words), STATUS_OK);
	cpu_bench_make(&b->bench);
	b->engine = e;
	if (e != &attention_cpu_engine) {
		b->bench.target = (struct target){.kind = TARGET_GPU, .gpu_count = 1};
		b->bench.bench.device = b->device;
		b->bench.bench.stream[0] = b->stream;
		b->bench.bench.clock = clock_monotonic();
	}
	b->state = calloc(1, e->state_size);
	assert_non_null(b->state);
	if (e->prepare(b->state, &b->bench.bench, &b->opts, &b->err))
		fail_msg("%s: %s", words, b->err.text);
}

static inline void end(struct bed *b)
{
	b->engine->release(b->state);
	free(b->state);
}

static inline void verified(struct bed *b, const char *words)
{
	struct wrong wrong;

	if (attention_verify(b->state, &wrong, &b->err))
		fail_msg("%s: %s", words, b->err.text);
	assert_true(wrong.total > 0 && wrong.checked == wrong.total && !wrong.count);
	for (uint64_t n = 0; n < b->state->sets; n++)
		assert_int_equal(b->engine->enqueue(b->state, n, &b->err), STATUS_OK);
	if (attention_verify(b->state, &wrong, &b->err))
		fail_msg("%s, after timing: %s", words, b->err.text);
	assert_true(wrong.checked == wrong.total && b->state->exact_done);
	assert_true(b->state->errors.count > 0);
	assert_true(b->state->errors.most < 0.3);
}
#endif
