/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <unistd.h>
#include "train/config.h"

static const char whole[] = "model:\n"
			    "  name_or_path: /models/qwen\n"
			    "lora: {r: 8, lora_alpha: 16, target_modules: [q_proj, v_proj]}\n"
			    "training:\n"
			    "  learning_rate: 2e-4\n"
			    "  lr_scheduler_type: cosine\n"
			    "  warmup_ratio: 0.1\n"
			    "data:\n"
			    "  train: rows.jsonl\n"
			    "  eval: [held.jsonl, /held/more.jsonl]\n";

static enum status parse(struct config *c, const char *text, struct error *err)
{
	return config_parse(c, "t.yaml", text, strlen(text), err);
}

static void settings_are_read_and_written_back(void **state)
{
	struct config c, again;
	struct text first = {0}, second = {0};
	struct error err = {0};
	char here[4096], expected[4200];

	(void)state;
	assert_int_equal(parse(&c, whole, &err), STATUS_OK);
	assert_string_equal(c.model.name_or_path, "/models/qwen");
	assert_int_equal(c.lora.r, 8);
	assert_true(c.lora.alpha == 16 && c.lora.dropout == 0);
	assert_int_equal(c.lora.target_modules.count, 2);
	assert_true(c.training.learning_rate == 2e-4);
	assert_int_equal(c.training.lr_scheduler_type, CONFIG_COSINE);
	assert_int_equal(c.training.save_total_limit, 2);
	assert_int_equal(c.data.eval.count, 2);
	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(expected, sizeof(expected), "%s/rows.jsonl", here);
	assert_string_equal(c.data.train.word[0], expected);
	assert_string_equal(c.data.eval.word[1], "/held/more.jsonl");

	config_write(&first, &c);
	assert_int_equal(config_parse(&again, "again", text_str(&first), first.size, &err), STATUS_OK);
	config_write(&second, &again);
	assert_string_equal(text_str(&first), text_str(&second));
	config_release(&c);
	config_release(&again);
	text_release(&first);
	text_release(&second);
}

/* A line instead of the one that begins with `where`, and what is said of it. */
static const struct {
	const char *where, *instead, *says;
} wrong[] = {
	{"  learning_rate", "  learning_rat: 1", "t.yaml:5: training: unknown option \"learning_rat\", did you mean "
						 "\"learning_rate\""},
	{"training:", "trainig:", "t.yaml:4: unknown key \"trainig\", did you mean \"training\""},
	{"lora", "lora: {r: 0}", "\"0\" is outside 1 to 4096"},
	{"lora", "lora: {r: -1}", "t.yaml:3: lora: r: "},
	{"lora", "lora: {target_modules: [q_prj]}", "unknown module \"q_prj\", did you mean \"q_proj\""},
	{"lora", "lora: {target_modules: [q_proj, q_proj]}", "stands there twice"},
	{"lora", "lora: {modules_to_save: [norm]}", "unknown module \"norm\""},
	{"lora", "lora: {alpha: 1, lora_alpha: 2}", "alpha is given twice"},
	{"lora", "lora: 7", "t.yaml:3: lora: a map of settings belongs here"},
	{"lora", "", "which is to be trained, an adapter or everything"},
	{"  warmup_ratio", "  full_finetuning: true", "contradict"},
	{"  warmup_ratio", "  fp16: true", "use bf16: true"},
	{"  warmup_ratio", "  max_steps: \"10\"", "no text"},
	{"  warmup_ratio", "  max_steps: 10.5", "max_steps"},
	{"  warmup_ratio", "  learning_rate: 1", "a second time"},
	{"  learning_rate", "  learning_rate: .nan", "learning_rate"},
	{"  learning_rate", "  learning_rate: 1e999", "learning_rate"},
	{"  warmup_ratio", "  early_stopping_patience: 2", "needs eval_steps"},
	{"  lr_scheduler_type", "  lr_scheduler_type: cosin", "did you mean \"cosine\""},
	{"  train:", "", "data: train is missing"},
	{"  train:", "  train: [a, [b]]", "a word belongs here"},
	{"  eval", "  max_seq_length: 4", "outside 8"},
	{"  name_or_path", "", "name_or_path is missing"},
	{"  warmup_ratio", "  warmup_steps: 20\n  max_steps: 10", "more than max_steps"},
	{"  warmup_ratio", "  gradient_checkpointing: true\n  recompute: cheap", "contradict"},
};

static void replaced(char *out, size_t size, const char *where, const char *instead)
{
	const char *at = strstr(whole, where), *end = strchr(at, '\n');

	assert_non_null(at);
	snprintf(out, size, "%.*s%s%s", (int)(at - whole), whole, instead, end);
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error err = {0};
		struct config c;
		char text[1024];

		replaced(text, sizeof(text), wrong[i].where, wrong[i].instead);
		if (parse(&c, text, &err) != STATUS_BAD_INPUT || !strstr(err.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].instead, err.text);
	}
}

static void evaluation_needs_rows(void **state)
{
	static const char *const wishes[] = {"eval_steps: 5", "eval_on_start: true", "load_best_model_at_end: true"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct error err = {0};
		struct config c;
		char text[512];

		snprintf(text, sizeof(text), "model: {path: /m}\nlora: {r: 4}\ndata: {train: /t}\ntraining: {%s}\n",
			 wishes[i]);
		assert_int_equal(parse(&c, text, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "data: eval"));
	}
}

static enum status deepspeed(struct config *c, const char *training, const char *json, struct error *err)
{
	char text[1024];

	snprintf(text, sizeof(text), "model: {path: /m}\nlora: {r: 4}\ndata: {train: /t}\ntraining: {%s}\ndeepspeed: %s\n",
		 training, json);
	return parse(c, text, err);
}

static void deepspeed_says_stage_batch_and_clipping(void **state)
{
	struct error err = {0};
	struct config c;

	(void)state;
	assert_int_equal(deepspeed(&c, "bf16: true",
				   "{\"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true}, "
				   "\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": \"auto\", "
				   "\"gradient_clipping\": 0.5, \"bf16\": {\"enabled\": \"auto\"}, \"optimizer\": {}}",
				   &err),
			 STATUS_OK);
	assert_int_equal(c.training.zero_stage, 2);
	assert_int_equal(c.training.per_device_train_batch_size, 4);
	assert_int_equal(c.training.gradient_accumulation_steps, 1);
	assert_true(c.training.max_grad_norm == 0.5);
	assert_non_null(strstr(text_str(&c.ignored), "zero_optimization.overlap_comm means nothing here"));
	assert_non_null(strstr(text_str(&c.ignored), "optimizer means nothing here"));
	assert_null(strstr(text_str(&c.ignored), "gradient_clipping"));
	config_release(&c);
}

static void deepspeed_must_agree(void **state)
{
	static const struct {
		const char *training, *json, *says;
	} cases[] = {
		{"max_grad_norm: 1", "{gradient_clipping: 0.5}",
		 "gradient_clipping is 0.5, and training: max_grad_norm is 1"},
		{"fp16: false", "{fp16: {enabled: true}}", "fp16.enabled is true"},
		{"", "{fp16: {enabled: true}}", "use bf16: true"},
		{"per_device_train_batch_size: 3", "{train_batch_size: 8}", "no multiple"},
		{"", "{zero_optimization: {stage: 4}}", "outside 0 to 3"},
		{"", "/there/is/none.json", "/there/is/none.json"},
		{"", "[1]", "a file or a map"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = {0};
		struct config c;

		if (!deepspeed(&c, cases[i].training, cases[i].json, &err) || !strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].json, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_read_and_written_back),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(evaluation_needs_rows),
		cmocka_unit_test(deepspeed_says_stage_batch_and_clipping),
		cmocka_unit_test(deepspeed_must_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
