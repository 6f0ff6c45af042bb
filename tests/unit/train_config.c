/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <unistd.h>
#include "train/config/config.h"

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
	{"  learning_rate", "  learning_rat: 1",
	 "t.yaml:5: training: unknown option \"learning_rat\", did you mean "
	 "\"learning_rate\""},
	{"training:", "trainig:", "t.yaml:4: unknown key \"trainig\", did you mean \"training\""},
	{"lora", "lora: {r: 0}", "\"0\" is outside 1 to 4096"},
	{"lora", "lora: {r: -1}", "t.yaml:3: lora: r: "},
	{"lora", "lora: {target_modules: [q_prj]}",
	 "t.yaml:3: lora: target_modules: unknown module \"q_prj\", did you mean \"q_proj\""},
	{"lora", "lora: {target_modules: [q_proj, q_proj]}", "is listed twice"},
	{"lora", "lora: {modules_to_save: [norm]}", "unknown module \"norm\""},
	{"lora", "lora: {alpha: 1, lora_alpha: 2}", "alpha is given twice"},
	{"lora", "lora: 7", "t.yaml:3: lora: expected a map of settings"},
	{"  name_or_path", "  name_or_path: /m\n  bnb_4bit_use_double_quant: false",
	 "t.yaml:3: model: bnb_4bit_use_double_quant: it has an effect only with load_in_4bit: true"},
	{"  name_or_path", "  name_or_path: /m\n  load_in_4bit: true\n  bnb_4bit_quant_type: nf5", "nf5"},
	{"lora", "", "add a section lora or set full_finetuning: true"},
	{"  warmup_ratio", "  full_finetuning: true",
	 "t.yaml:7: training: full_finetuning: it cannot be combined with a section lora"},
	{"  warmup_ratio", "  fp16: true", "t.yaml:7: training: fp16: float16"},
	{"lora", "lora: {target_modules: [all-linear, q_proj]}",
	 "t.yaml:3: lora: target_modules: all-linear already includes every module"},
	{"  warmup_ratio", "  warmup_ratio: 0.1\n  warmup_steps: 3",
	 "t.yaml:7: training: warmup_ratio: warmup_steps is given"},
	{"  warmup_ratio", "  max_seq_length: 512",
	 "t.yaml:7: training: \"max_seq_length\" belongs under data"},
	{"training:", "cutoff_len: 512\ntraining:", "t.yaml:4: \"cutoff_len\" belongs under data"},
	{"  name_or_path", "  name_or_path: /m\n  chat_template: qwen",
	 "t.yaml:3: model: chat_template: \"qwen\" is not one of auto, "},
	{"  warmup_ratio", "  bf16: yes", "t.yaml:7: training: bf16: \"yes\" is neither true nor false"},
	{"  warmup_ratio", "  precision: float32",
	 "precision: \"float32\" is not one of auto, fp32, tf32, bf16, fp8"},
	{"  warmup_ratio", "  fp8_layers: [1-2]",
	 "t.yaml:7: training: fp8_layers: it has an effect only with precision: fp8"},
	{"  warmup_ratio", "  precision: fp8\n  fp8_layers: [0, first]",
	 "t.yaml:8: training: fp8_layers: \"first\" is neither a layer"},
	{"  warmup_ratio", "  precision: fp8\n  fp8_layers: [3-2]", "\"3-2\" is neither a layer"},
	{"  warmup_ratio", "  precision: fp8\n  fp8_layers: [3-]", "\"3-\" is neither a layer"},
	{"  warmup_ratio", "  precision: fp8\n  fp8_layers: [-3]", "\"-3\" is neither a layer"},
	{"  warmup_ratio", "  precision: fp8\n  fp8_layers: [1-2x]", "\"1-2x\" is neither a layer"},
	{"  warmup_ratio", "  precision: tf32\n  bf16: true",
	 "t.yaml:8: training: bf16: it contradicts precision"},
	{"  warmup_ratio", "  bf16: false\n  precision: bf16",
	 "t.yaml:7: training: bf16: it contradicts precision"},
	{"  warmup_ratio", "  gradient_checkpointing: True\n  recompute: none",
	 "t.yaml:7: training: gradient_checkpointing: it means"},
	{"  warmup_ratio", "  gradient_checkpointing: false\n  recompute: full",
	 "recompute has another value"},
	{"  warmup_ratio", "  max_steps: \"10\"", "not a quoted text"},
	{"  warmup_ratio", "  max_steps: 10.5", "max_steps"},
	{"  warmup_ratio", "  learning_rate: 1", "is given twice"},
	{"  learning_rate", "  learning_rate: .nan", "learning_rate"},
	{"  learning_rate", "  learning_rate: 1e999", "learning_rate"},
	{"  warmup_ratio", "  early_stopping_patience: 2",
	 "t.yaml:7: training: early_stopping_patience: it needs eval_steps"},
	{"  lr_scheduler_type", "  lr_scheduler_type: cosin", "did you mean \"cosine\""},
	{"  train:", "", "t.yaml:8: data: train: it is missing"},
	{"  train:", "  train: [a, [b]]", "expected a word"},
	{"  eval", "  max_seq_length: 4", "outside 8"},
	{"  name_or_path", "", "t.yaml:1: model: name_or_path: it is missing"},
	{"  warmup_ratio", "  warmup_steps: 20\n  max_steps: 10",
	 "t.yaml:7: training: warmup_steps: it is larger than max_steps"},
	{"  warmup_ratio", "  gradient_checkpointing: true\n  recompute: cheap",
	 "recompute has another value"},
	{"  warmup_ratio", "  optim: adamw_8bits",
	 "t.yaml:7: training: optim: \"adamw_8bits\" is not one of "},
	{"  warmup_ratio", "  optim: adamw_8bits", "did you mean \"adamw_8bit\""},
	{"  warmup_ratio", "  optim: lion_8bit", "is not one of adamw, adamw_torch, adamw_8bit, "},
	{"  warmup_ratio", "  master_weights: splt", "did you mean \"split\""},
	{"  warmup_ratio", "  master_weights: split",
	 "t.yaml:7: training: master_weights: adapters always have float32 weights"},
	{"  warmup_ratio", "  master_weights: none",
	 "t.yaml:7: training: master_weights: adapters always have float32 weights"},
	{"  warmup_ratio", "  deterministic: true\n  attention: cudnn",
	 "t.yaml:8: training: attention: cuDNN's gradients differ"},
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

/* A byte order mark, a model by its path alone, and YAML's other words for true. What is said one way is kept
 * both ways, so that what is kept is taken again. */
static void other_ways_to_say_it(void **state)
{
	static const char text[] = "\xef\xbb\xbfmodel: /m\nlora: {r: 4}\ndata: {train: /t, packing: FALSE}\n"
				   "training: {gradient_checkpointing: True, bf16: TRUE}\n";
	struct config c, again;
	struct text kept = {0};
	struct error err = {0};

	(void)state;
	if (parse(&c, text, &err))
		fail_msg("%s", err.text);
	assert_string_equal(c.model.name_or_path, "/m");
	assert_true(c.training.bf16 && c.training.gradient_checkpointing && !c.data.packing);
	assert_int_equal(c.training.recompute, CONFIG_RECOMPUTE_FULL);
	config_write(&kept, &c);
	if (parse(&again, text_str(&kept), &err))
		fail_msg("%s", err.text);
	assert_int_equal(again.training.recompute, CONFIG_RECOMPUTE_FULL);
	config_release(&c);
	config_release(&again);
	text_release(&kept);
}

/* Small master weights are for GPUs. Paged names are taken without paging, which a note says. */
static void optimizer_states_are_checked(void **state)
{
	static const char text[] =
		"model: {path: /m}\ndata: {train: /t}\n"
		"training: {full_finetuning: true, device: %s, optim: %s, master_weights: %s}\n";
	struct error err = {0};
	struct config c;
	char full[400];

	(void)state;
	snprintf(full, sizeof(full), text, "cpu", "adamw_8bit", "split");
	assert_int_equal(parse(&c, full, &err), STATUS_BAD_INPUT);
	assert_non_null(
		strstr(err.text, "t.yaml:3: training: master_weights: it saves memory only on a GPU"));
	error_clear(&err);
	snprintf(full, sizeof(full), text, "gpu", "adamw, precision: tf32", "none");
	assert_int_equal(parse(&c, full, &err), STATUS_BAD_INPUT);
	assert_non_null(
		strstr(err.text, "t.yaml:3: training: master_weights: its weights are BF16, but precision"));
	error_clear(&err);
	snprintf(full, sizeof(full), text, "gpu", "adamw_bf16", "none");
	assert_int_equal(parse(&c, full, &err), STATUS_OK);
	assert_int_equal(c.training.optim, CONFIG_ADAMW_BF16);
	assert_int_equal(c.training.master_weights, CONFIG_MASTER_NONE);
	assert_int_equal(c.notes.size, 0);
	config_release(&c);
	snprintf(full, sizeof(full), text, "auto", "paged_adamw_8bit", "fp32");
	assert_int_equal(parse(&c, full, &err), STATUS_OK);
	assert_non_null(strstr(text_str(&c.notes), "t.yaml:3: training: optim: "));
	assert_non_null(strstr(text_str(&c.notes), "so paged_adamw_8bit means adamw_8bit"));
	config_release(&c);
	snprintf(full, sizeof(full), text, "auto", "paged_adamw_32bit", "fp32");
	assert_int_equal(parse(&c, full, &err), STATUS_OK);
	assert_non_null(strstr(text_str(&c.notes), "so paged_adamw_32bit means adamw\n"));
	config_release(&c);
}

/* bf16 and precision are kept in agreement, so that what is kept is taken again. */
static void precision_and_bf16_agree(void **state)
{
	static const struct {
		const char *given;
		uint32_t precision;
		bool bf16;
	} ways[] = {{"seed: 1", CONFIG_PRECISION_AUTO, true},
		    {"bf16: true", CONFIG_PRECISION_AUTO, true},
		    {"bf16: false", CONFIG_PRECISION_FP32, false},
		    {"precision: fp32", CONFIG_PRECISION_FP32, false},
		    {"precision: tf32", CONFIG_PRECISION_TF32, false},
		    {"precision: tf32, bf16: false", CONFIG_PRECISION_TF32, false},
		    {"precision: bf16", CONFIG_PRECISION_BF16, true},
		    {"precision: bf16, bf16: true", CONFIG_PRECISION_BF16, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct config c, again;
		struct text kept = {0};
		struct error err = {0};
		char text[512];

		snprintf(text, sizeof(text),
			 "model: {path: /m}\nlora: {r: 4}\ndata: {train: /t}\ntraining: {%s}\n",
			 ways[i].given);
		if (parse(&c, text, &err))
			fail_msg("%s: %s", ways[i].given, err.text);
		assert_int_equal(c.training.precision, ways[i].precision);
		assert_int_equal(c.training.bf16, ways[i].bf16);
		config_write(&kept, &c);
		if (parse(&again, text_str(&kept), &err))
			fail_msg("%s: %s", ways[i].given, err.text);
		assert_int_equal(again.training.precision, ways[i].precision);
		assert_int_equal(again.training.bf16, ways[i].bf16);
		config_release(&c);
		config_release(&again);
		text_release(&kept);
	}
}

static void more_workers_than_one_are_noted(void **state)
{
	static const char text[] = "model: {path: /m}\nlora: {r: 4}\ndata: {train: /t}\n"
				   "training: {dataloader_num_workers: 4}\n";
	struct config c;
	struct error err = {0};

	(void)state;
	if (parse(&c, text, &err))
		fail_msg("%s", err.text);
	assert_int_equal(c.training.dataloader_num_workers, 4);
	assert_non_null(strstr(text_str(&c.notes),
			       "t.yaml:4: training: dataloader_num_workers: 4 has the effect of 1"));
	config_release(&c);
}

static void evaluation_needs_rows(void **state)
{
	static const char *const wishes[] = {"eval_steps: 5", "eval_on_start: true",
					     "load_best_model_at_end: true"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct error err = {0};
		struct config c;
		char text[512];

		snprintf(text, sizeof(text),
			 "model: {path: /m}\nlora: {r: 4}\ndata: {train: /t}\ntraining: {%s}\n", wishes[i]);
		assert_int_equal(parse(&c, text, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "data: eval"));
	}
}

static void nothing_to_save_where_nothing_is_saved(void **state)
{
	static const char *const wishes[] = {"save_steps: 5", "load_best_model_at_end: true"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct error err = {0};
		struct config c;
		char text[512];

		snprintf(text, sizeof(text),
			 "model: {path: /m}\nlora: {r: 4}\ndata: {train: /t, eval: /e}\n"
			 "training: {save_strategy: no, %s}\n",
			 wishes[i]);
		assert_int_equal(parse(&c, text, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "save_strategy: no"));
	}
}

static enum status deepspeed(struct config *c, const char *training, const char *json, struct error *err)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "model: {path: /m}\nlora: {r: 4}\ndata: {train: /t}\ntraining: {%s}\ndeepspeed: %s\n",
		 training, json);
	return parse(c, text, err);
}

static void deepspeed_says_stage_batch_and_clipping(void **state)
{
	struct error err = {0};
	struct config c;

	(void)state;
	assert_int_equal(
		deepspeed(
			&c, "bf16: true",
			"{\"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true}, "
			"\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": \"auto\", "
			"\"gradient_clipping\": 0.5, \"communication_data_type\": \"fp32\", \"bf16\": {\"enabled\": \"auto\"}, \"optimizer\": {}}",
			&err),
		STATUS_OK);
	assert_int_equal(c.training.zero_stage, 2);
	assert_null(strstr(text_str(&c.notes), "zero_stage"));
	assert_int_equal(c.training.per_device_train_batch_size, 4);
	assert_int_equal(c.training.gradient_accumulation_steps, 1);
	assert_true(c.training.max_grad_norm == 0.5);
	assert_non_null(
		strstr(text_str(&c.notes), "zero_optimization.overlap_comm is not supported and is ignored"));
	assert_non_null(strstr(text_str(&c.notes), "optimizer is not supported and is ignored"));
	assert_null(strstr(text_str(&c.notes), "gradient_clipping"));
	assert_null(strstr(text_str(&c.notes), "communication_data_type"));
	config_release(&c);
}

static void deepspeed_must_agree(void **state)
{
	static const struct {
		const char *training, *json, *says;
	} cases[] = {
		{"max_grad_norm: 1", "{gradient_clipping: 0.5}",
		 "gradient_clipping is 0.5, but training: max_grad_norm is 1"},
		{"fp16: false", "{fp16: {enabled: true}}", "fp16.enabled is true"},
		{"", "{fp16: {enabled: true}}", "t.yaml:5: training: fp16: float16"},
		{"per_device_train_batch_size: 3", "{train_batch_size: 8}", "not a multiple"},
		{"", "{zero_optimization: {stage: 4}}", "outside 0 to 3"},
		{"", "{communication_data_type: \"bf16\"}",
		 "training: communication_data_type: ranks add the gradients of adapters in float32"},
		{"", "{communication_data_type: \"fp16\"}", "deepspeed: communication_data_type: "},
		{"", "/there/is/none.json", "t.yaml:5: deepspeed: cannot open /there/is/none.json"},
		{"", "{bf16: true}", "t.yaml:5: deepspeed: bf16: expected a map"},
		{"", "{zero_optimization: 3}", "deepspeed: zero_optimization: expected a map"},
		{"", "{fp16: [1]}", "deepspeed: fp16: expected a map"},
		{"", "{gradient_clipping: \"0.5\"}", "gradient_clipping: expected a number, true or false"},
		{"", "5", "t.yaml:5: deepspeed: "},
		{"", "[1]", "a file name or a map"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = {0};
		struct config c;

		if (!deepspeed(&c, cases[i].training, cases[i].json, &err) ||
		    !strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].json, err.text);
	}
}

/* A resumed run may divide its work in another way. Any other setting makes it another run. */
static void settings_that_make_another_run(void **state)
{
	static const struct {
		const char *setting;
		bool same_run;
	} cases[] = {
		{"gpus: 4", true},
		{"zero_stage: 2", true},
		{"zero_stage: 1, dp_shard_size: 2", true},
		{"tensor_parallel_size: 2", true},
		{"offload: optimizer", true},
		{"learning_rate: 1e-4", false},
		{"seed: 7", false},
		{"per_device_train_batch_size: 2", false},
	};
	char run[65], all[65], first_run[65], first_all[65];
	struct error err = {0};
	struct config c;

	(void)state;
	for (size_t i = 0; i <= sizeof(cases) / sizeof(cases[0]); i++) {
		const char *setting = i ? cases[i - 1].setting : "gpus: 1";
		char text[256];

		snprintf(text, sizeof(text),
			 "model: {path: /m}\ndata: {train: /t}\ntraining: {full_finetuning: true, %s}\n",
			 setting);
		if (parse(&c, text, &err))
			fail_msg("%s: %s", setting, err.text);
		config_run_hash(i ? run : first_run, &c);
		config_hash(i ? all : first_all, &c);
		config_release(&c);
		if (i && (!strcmp(all, first_all) || !strcmp(run, first_run) != cases[i - 1].same_run))
			fail_msg("%s: the hashes are wrong", setting);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_read_and_written_back),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(other_ways_to_say_it),
		cmocka_unit_test(optimizer_states_are_checked),
		cmocka_unit_test(precision_and_bf16_agree),
		cmocka_unit_test(more_workers_than_one_are_noted),
		cmocka_unit_test(evaluation_needs_rows),
		cmocka_unit_test(nothing_to_save_where_nothing_is_saved),
		cmocka_unit_test(deepspeed_says_stage_batch_and_clipping),
		cmocka_unit_test(deepspeed_must_agree),
		cmocka_unit_test(settings_that_make_another_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
