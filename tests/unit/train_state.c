/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>
#include "train/checkpoint/trainer_state.h"

static const struct config_training training = {.logging_steps = 1, .num_train_epochs = 1};

static void it_reads_back_bit_for_bit(void **state)
{
	struct train_state s = {.step = 7,
				.max_steps = 9,
				.epoch = 0.1 + 0.2,
				.tokens = 123,
				.targets = 45,
				.rows = 6,
				.flop = 1e18 / 3,
				.has_loss = true,
				.loss_first = 1.0 / 7,
				.loss = 1.0 / 13},
			   again;
	struct error err = {0};
	char *text;
	json_t *j;

	(void)state;
	s.diagnose = (struct diagnose){.count = DIAGNOSE_WINDOW + 5, .step_s = 0.1 + 0.7, .wait_s = 1.0 / 9};
	s.diagnose.loss[3] = 1.0 / 11;
	s.diagnose.norm[DIAGNOSE_WINDOW - 1] = 1e-300;
	s.diagnose.reported[FINDING_LOSS_SPIKE] = true;
	s.inputs = json_pack("[{s:s}]", "path", "rows.jsonl");
	s.times.gemm_s = 0.1 + 0.6;
	s.times.tokens = 99;
	s.times.rows = 1.0 / 19;
	s.times.flop = 1e17 / 3;
	s.times.start_s = 1.0 / 21;
	s.times.tuning_s = 1.0 / 23;
	s.memory_bytes = 1e9;
	train_state_time(&s, 1.0 / 3);
	train_state_time(&s, 1.0 / 17);
	assert_true(train_state_evaluated(&s, 1.0 / 3, 0));
	train_state_log(&s, json_pack("{s:f}", "eval_loss", 1.0 / 3));
	j = train_state_json(&s, &training);
	assert_true(json_is_null(json_object_get(j, "best_model_checkpoint")));
	json_decref(j);
	s.best_saved = true;
	j = train_state_json(&s, &training);
	assert_string_equal(json_string_value(json_object_get(j, "best_model_checkpoint")), "checkpoint-7");
	text = json_dumps(j, JSON_REAL_PRECISION(17));
	json_decref(j);
	j = json_loads(text, 0, NULL);
	free(text);
	assert_int_equal(train_state_parse(&again, j, "f", &err), STATUS_OK);
	json_decref(j);
	assert_true(again.epoch == s.epoch && again.flop == s.flop && again.best_loss == s.best_loss);
	assert_true(again.has_best && again.best_step == 7 && again.worse == 0 && again.step == 7);
	assert_true(again.has_loss && again.loss_first == s.loss_first && !again.has_eval);
	assert_true(again.loss == s.loss && again.best_saved && again.memory_bytes == s.memory_bytes);
	assert_true(again.times.gemm_s == s.times.gemm_s && again.times.step_s == s.times.step_s);
	assert_true(json_equal(again.times.each_s, s.times.each_s));
	assert_true(again.times.tokens == s.times.tokens && again.times.rows == s.times.rows);
	assert_true(again.times.flop == s.times.flop && again.times.start_s == s.times.start_s);
	assert_true(again.times.tuning_s == s.times.tuning_s);
	assert_int_equal(again.tokens, 123);
	assert_int_equal(json_array_size(again.history), 1);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(again.history, 0), "step")), 7);
	assert_memory_equal(again.diagnose.loss, s.diagnose.loss, sizeof(s.diagnose.loss));
	assert_memory_equal(again.diagnose.norm, s.diagnose.norm, sizeof(s.diagnose.norm));
	assert_memory_equal(again.diagnose.reported, s.diagnose.reported, sizeof(s.diagnose.reported));
	assert_true(again.diagnose.step_s == s.diagnose.step_s && again.diagnose.wait_s == s.diagnose.wait_s);
	assert_int_equal(again.diagnose.count, s.diagnose.count);
	assert_true(json_equal(again.inputs, s.inputs));
	train_state_release(&s);
	train_state_release(&again);
}

/* Times of all steps are no times of steady ones: none is known. */
static void times_of_an_earlier_version_are_not_taken(void **state)
{
	json_t *j = json_pack("{s:i, s:i, s:f, s:[], s:{s:i, s:i, s:i, s:i, s:i, s:{s:f, s:f, s:[f, f]}}}",
			      "global_step", 2, "max_steps", 9, "epoch", 0.5, "log_history", "assay", "tokens", 1,
			      "targets", 1, "rows", 1, "best_step", 0, "worse", 0, "times", "forward_s", 1.5,
			      "memory_bytes", 7.0, "step_s", 1.0, 2.0);
	struct error err = {0};
	struct train_state s;

	(void)state;
	assert_non_null(j);
	assert_int_equal(train_state_parse(&s, j, "f", &err), STATUS_OK);
	assert_true(s.memory_bytes == 7);
	assert_true(s.times.forward_s == 0 && s.times.step_s == 0 && !s.times.each_s);
	train_state_release(&s);
	json_decref(j);
}

static void the_best_is_by_more_than_the_threshold(void **state)
{
	struct train_state s = {.step = 1};

	(void)state;
	assert_false(train_state_evaluated(&s, NAN, 0));
	assert_int_equal(s.worse, 1);
	assert_true(train_state_evaluated(&s, 2, 0.1));
	s.step = 2;
	assert_false(train_state_evaluated(&s, 1.95, 0.1));
	assert_int_equal(s.worse, 1);
	assert_int_equal(s.best_step, 1);
	assert_true(train_state_evaluated(&s, 1.8, 0.1));
	assert_int_equal(s.best_step, 2);
	assert_int_equal(s.worse, 0);
}

static void what_is_missing_is_told(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"{\"global_step\": -1, \"max_steps\": 1, \"epoch\": 0, \"log_history\": []}",
		"{\"global_step\": 1, \"max_steps\": 1, \"epoch\": 0, \"log_history\": []}",
		"{\"global_step\": 1, \"max_steps\": 1, \"epoch\": 0, \"log_history\": [], \"assay\": "
		"{\"tokens\":1,\"targets\":1,\"rows\":1,\"best_step\":0,\"worse\":99999999999}}",
		"{\"global_step\": 1, \"max_steps\": 1, \"epoch\": 0, \"log_history\": [], \"assay\": "
		"{\"tokens\":1,\"targets\":1,\"rows\":1,\"best_step\":0,\"worse\":0,"
		"\"diagnose\":{\"steps\":2,\"loss\":[1],\"grad_norm\":[1,2]}}}"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *j = json_loads(texts[i], 0, NULL);
		struct error err = {0};
		struct train_state s;

		assert_non_null(j);
		assert_int_equal(train_state_parse(&s, j, "f.json", &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "f.json: it has no"));
		json_decref(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_reads_back_bit_for_bit),
		cmocka_unit_test(times_of_an_earlier_version_are_not_taken),
		cmocka_unit_test(the_best_is_by_more_than_the_threshold),
		cmocka_unit_test(what_is_missing_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
