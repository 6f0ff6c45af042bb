/* SPDX-License-Identifier: Apache-2.0 */
/* Each finding planted, and a healthy run that has none. */
#include "test.h"

#include <math.h>
#include "train/run/diagnose.h"

static struct diagnose_step healthy(uint64_t step)
{
	return (struct diagnose_step){.step = step,
				      .loss = 2.5 * exp(-(double)step / 50) + 0.05 * sin((double)step * 7),
				      .grad_norm = 1 + 0.3 * sin((double)step * 3),
				      .rate = 1e-4,
				      .targets = 100,
				      .step_s = 1,
				      .wait_s = 0.01};
}

static void a_healthy_run_has_none(void **state)
{
	struct diagnose d = {0};
	struct findings f;

	(void)state;
	for (uint64_t step = 1; step <= 200; step++) {
		struct diagnose_step s = healthy(step);

		diagnose_step(&d, &f, &s);
		if (f.count)
			fail_msg("step %d: %s", (int)step, f.found[0].text);
	}
}

/* Plants one step in a healthy run; what is found there, and only there. */
static enum finding planted(struct diagnose_step bad, const char *says)
{
	struct diagnose d = {0};
	struct findings f;
	enum finding found = FINDING_COUNT;

	for (uint64_t step = 1; step <= 40; step++) {
		struct diagnose_step s = step == 20 ? bad : healthy(step);

		s.step = step;
		diagnose_step(&d, &f, &s);
		assert_int_equal(f.count, step == 20);
		if (f.count) {
			found = f.found[0].what;
			assert_non_null(strstr(f.found[0].text, "step 20"));
			assert_non_null(strstr(f.found[0].text, says));
		}
	}
	return found;
}

static void a_step_that_stands_out_is_found(void **state)
{
	struct diagnose_step s = healthy(20);

	(void)state;
	s.loss = 9;
	assert_int_equal(planted(s, "the loss is 9 after a median of"), FINDING_LOSS_SPIKE);
	assert_false(finding_ends(FINDING_LOSS_SPIKE));
	assert_non_null(strstr(finding_knob(FINDING_LOSS_SPIKE), "learning_rate"));
	s = healthy(20);
	s.grad_norm = 500;
	assert_int_equal(planted(s, "norm is 500"), FINDING_EXPLODING);
	assert_non_null(strstr(finding_knob(FINDING_EXPLODING), "max_grad_norm"));
	s = healthy(20);
	s.loss = NAN;
	assert_int_equal(planted(s, "the loss is not a finite number"), FINDING_NOT_FINITE);
	s = healthy(20);
	s.grad_norm = INFINITY;
	assert_int_equal(planted(s, "the gradient is not a finite number"), FINDING_NOT_FINITE);
	assert_true(finding_ends(FINDING_NOT_FINITE));
	s = healthy(20);
	s.overflows = 3;
	s.overflow_at = "layer 7, inputs of down";
	assert_int_equal(planted(s, "3 scales of FP8 are not finite, because numbers are not; the first are of layer 7, "
				    "inputs of down"),
			 FINDING_FP8_SATURATES);
	assert_false(finding_ends(FINDING_FP8_SATURATES));
	assert_non_null(strstr(finding_knob(FINDING_FP8_SATURATES), "fp8_layers"));
	s = healthy(20);
	s.grad_norm = 0;
	assert_int_equal(planted(s, "every gradient is zero"), FINDING_ZERO_GRADIENT);
	s = healthy(20);
	s.targets = 0;
	assert_int_equal(planted(s, "it has no target tokens"), FINDING_ALL_MASKED);
	assert_true(finding_ends(FINDING_ALL_MASKED));
}

static void waiting_for_rows_is_told_once(void **state)
{
	struct diagnose d = {0};
	struct findings f;
	unsigned told = 0;

	(void)state;
	for (uint64_t step = 1; step <= 30; step++) {
		struct diagnose_step s = healthy(step);

		s.wait_s = 0.4;
		diagnose_step(&d, &f, &s);
		for (size_t i = 0; i < f.count; i++) {
			assert_int_equal(f.found[i].what, FINDING_DATA_BOUND);
			assert_string_equal(f.found[i].text, "40 % of the time is waiting for rows");
			told++;
		}
	}
	assert_int_equal(told, 1);
	assert_non_null(strstr(finding_knob(FINDING_DATA_BOUND), "cache_dir"));
}

static const struct diagnose_before sound = {
	.rate = 1e-4, .targets = 10, .rows = 2, .end_norm = 1, .median_norm = 1, .end_token = "<|im_end|>"};

static void before_the_first_step(void **state)
{
	struct diagnose_before b = sound;
	struct findings f;

	(void)state;
	diagnose_before(&f, &b);
	assert_int_equal(f.count, 0);
	b.rate = 0;
	diagnose_before(&f, &b);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.found[0].what, FINDING_RATE_ZERO);
	b = sound;
	b.targets = 0;
	diagnose_before(&f, &b);
	assert_int_equal(f.found[0].what, FINDING_ALL_MASKED);
	assert_string_equal(f.found[0].text, "none of the 2 rows has a target token");
	b = sound;
	b.end_norm = 0.1;
	diagnose_before(&f, &b);
	assert_int_equal(f.found[0].what, FINDING_END_UNTRAINED);
	assert_non_null(strstr(f.found[0].text, "the model never learned <|im_end|>"));
	assert_non_null(
		strstr(finding_knob(FINDING_END_UNTRAINED), "modules_to_save: [embed_tokens, lm_head]"));
	b.end_trained = true;
	diagnose_before(&f, &b);
	assert_int_equal(f.count, 0);
}

static void words_are_words(void **state)
{
	(void)state;
	for (int i = 0; i < FINDING_COUNT; i++)
		assert_null(strpbrk(finding_word((enum finding)i), " -"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_run_has_none),
		cmocka_unit_test(a_step_that_stands_out_is_found),
		cmocka_unit_test(waiting_for_rows_is_told_once),
		cmocka_unit_test(before_the_first_step),
		cmocka_unit_test(words_are_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
