/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of probe attention: options, an engine begun and ended, its gradients verified. */
#ifndef TESTS_UNIT_ATTENTION_BACKWARD_BED_H
#define TESTS_UNIT_ATTENTION_BACKWARD_BED_H
#include "attention_bed.h"
#include "probe/attention/verify/gradient.h"

static inline enum status options(struct bed *b, const char *words)
{
	char text[256];

	snprintf(text, sizeof(text), "pass=backward %s", words);
	return attention_words(&b->opts, text, &b->err);
}

static inline void begin(struct bed *b, const struct engine *e, const char *words)
{
	assert_int_equal(options(b, words), STATUS_OK);
	cpu_bench_make(&b->bench);
	b->engine = e;
	if (e != &attention_cpu_engine)
		on_device(b);
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
