/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of layers and optimizer states in host memory: every step has the bits of a run that keeps them on the device.
 * On the fake driver, streams whose work is late show a wait that is missing. */
#include "fake_gpu.h"
#include "offload_bed.h"

#include "core/file/file.h"
#include "model/backend/plan_backend.h"
#include "train/checkpoint/checkpoint.h"
#include "train/memory/memory_fit.h"

/* Streams that do nothing before somebody waits for them. Copies that are late show who does not wait for them. A main
 * stream that is late shows copies that do not wait for it. */
enum late { LATE_COPIES = 1, LATE_MAIN = 2, LATE_WORK = 4 /* the third stream of a lane, that of its work */ };


static const char lora[] = "lora: {r: 8, alpha: 6}";

static void name(char out[400], const struct variant *v, int late)
{
	snprintf(out, 400, "%s, %d layers%s%s%s%s, late %d", v->gpu ? "gpu" : "cpu", (int)v->layers, v->what, v->model,
		 v->training, v->offload, late);
}

/* Another run is open, so the main stream is not the process's first, which is never late. */
static void open_late(struct work *w, const struct variant *v, int late)
{
	struct error err = {0};

	setenv("FAKE_CUDA", late & LATE_MAIN ? "late=1" : "", 1);
	must(open_run(w, v, true, &err), &err);
	setenv("FAKE_CUDA", late & LATE_COPIES ? "late=1" : "", 1);
	load(w);
}

static void has_the_bits(const struct variant *v, int late)
{
	struct work plain, moved;
	struct error err = {0};
	char what[400];

	name(what, v, late);
	must(open_run(&plain, v, false, &err), &err);
	load(&plain);
	open_late(&moved, v, late);
	assert_true(moved.s.host.size > 0 || moved.s.model->shape.layers <= LANE_SLOTS);
	for (uint64_t i = 0; i < STEPS; i++) {
		struct result a, b;

		must(train_step(&plain, i, &a, &err), &err);
		must(train_step(&moved, i, &b, &err), &err);
		if (a.loss != b.loss || a.norm != b.norm || a.held != b.held)
			fail_msg("%s: step %d: loss %.9g norm %.9g held-out %.9g, without %.9g %.9g %.9g", what, (int)i,
				 b.loss, b.norm, b.held, a.loss, a.norm, a.held);
	}
	if (!same_states(&plain, &moved))
		fail_msg("%s: other states", what);
	/* no memory beyond the plan, which is the size of both arenas */
	assert_true(moved.s.arena.peak <= moved.s.arena.size);
	assert_true(moved.s.host.peak == moved.s.host.size);
	close_work(&moved);
	unsetenv("FAKE_CUDA");
	close_work(&plain);
}

#define FULL "", "", ", full_finetuning: true, weight_decay: 0.1"
#define INPUTS ", recompute: full", ", recompute: offload"
#define STATES "", ", offload: optimizer, bucket_cap_mb: 0.004"
#define BOTH ", recompute: full", ", recompute: offload, offload: optimizer, bucket_cap_mb: 0.01"

static void a_cpu_has_the_same_bits(void **state)
{
	static const struct variant variants[] = {
		{false, FAMILY_LLAMA, 1, lora, "", "", INPUTS},
		{false, FAMILY_LLAMA, 2, lora, "", "", INPUTS},
		{false, FAMILY_QWEN2, 3, lora, "", "", INPUTS},
		{false, FAMILY_QWEN3, 6, lora, ", load_in_4bit: true", "", INPUTS},
		{false, FAMILY_QWEN2, 5, "lora: {r: 4, dropout: 0.2, target_modules: [v_proj, down_proj]}", "", "", INPUTS},
		{false, FAMILY_LLAMA, 4, "lora: {r: 4, target_modules: [q_proj], modules_to_save: [lm_head]}", "", "", INPUTS},
		{false, FAMILY_LLAMA, 5, FULL, BOTH},
		{false, FAMILY_QWEN2, 3, FULL, STATES},
		{false, FAMILY_QWEN2, 3, "", "", ", full_finetuning: true, optim: adamw_8bit", STATES},
		{false, FAMILY_QWEN3, 3, "", "", ", full_finetuning: true, optim: adamw_bf16, max_grad_norm: 0", STATES},
		{false, FAMILY_LLAMA, 3, "", "", ", full_finetuning: true, max_grad_norm: 0, global_batch_size: 0", BOTH},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		has_the_bits(&variants[i], 0);
}

static void a_gpu_has_the_same_bits(void **state)
{
	static const struct variant variants[] = {
		{true, FAMILY_LLAMA, 2, lora, "", "", INPUTS},
		{true, FAMILY_LLAMA, 3, lora, "", "", INPUTS},
		{true, FAMILY_QWEN2, 6, lora, "", ", adapters: separate", INPUTS},
		{true, FAMILY_QWEN3, 5, lora, ", load_in_4bit: true", "", INPUTS},
		{true, FAMILY_QWEN2, 5, "lora: {r: 8, dropout: 0.2}", "", "", INPUTS},
		{true, FAMILY_LLAMA, 5, FULL, INPUTS},
		{true, FAMILY_LLAMA, 5, FULL, BOTH},
		{true, FAMILY_LLAMA, 4, "", "", ", full_finetuning: true, max_grad_norm: 0", BOTH},
		{true, FAMILY_QWEN2, 4, "", "", ", full_finetuning: true, precision: fp32", BOTH},
	};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		for (int late = LATE_COPIES; late <= LATE_MAIN; late++)
			has_the_bits(&variants[i], late);
}

/* Every format of the states, stepped after the whole pass and layer by layer. */
static void every_format_passes_through_the_device(void **state)
{
	static const char *const optims[] = {"adamw", "adamw_8bit", "adamw_bf16"}, *const masters[] = {"fp32", "split", "none"};

	(void)state;
	skip_without_kernels();
	for (int i = 0; i < 18; i++) {
		char training[160];
		const struct variant v = {true, FAMILY_QWEN2, 3, "", "", training, STATES};

		snprintf(training, sizeof(training),
			 ", full_finetuning: true, weight_decay: 0.1, optim: %s, master_weights: %s, max_grad_norm: %d", optims[i % 3],
			 masters[i / 3 % 3], i < 9);
		has_the_bits(&v, 1 + i % 2);
	}
}

/* Two steps in which one wait of the lanes is forgotten. false: nothing shows it. */
static bool shows(const struct variant *v, struct work *plain, const struct result *expected, int late, int wait)
{
	struct result got = {0};
	struct error err = {0};
	struct work moved;
	struct rows r;
	double held = 0;
	char word[40];
	bool told;

	open_late(&moved, v, late);
	make(&r, packed, moved.s.model->shape.vocab);
	must(stepper_evaluate(&moved.s, &r.b, &held, &err), &err); /* makes every stream but the lanes' */
	snprintf(word, sizeof(word), "%sdeaf=%d",
		 late & LATE_COPIES ? "late=1," : late & LATE_WORK ? "late_only=3," : "", wait);
	setenv("FAKE_CUDA", word, 1);
	for (uint64_t i = 0; i < 2; i++)
		must(train_step(&moved, i, &got, &err), &err);
	unsetenv("FAKE_CUDA");
	told = got.loss != expected->loss || got.held != expected->held || got.norm != expected->norm ||
	       !same_states(plain, &moved);
	close_work(&moved);
	return told;
}

/* Waits of a step, in order. '-': another wait includes it, or the event was never recorded. */
struct waits {
	struct variant v;
	const char *told;
};

/* A program that forgets one wait computes other bits. */
static void a_missing_wait_changes_the_bits(void **state)
{
	static const struct waits cases[] = {
		/* Forward, layers 0 to 3: a copy out waits for the input; the next layer but one waits for that copy. Backward,
		 * layers 3 to 0: a copy in waits for a copy out, which is over, and for the slot; the layer for the copy. */
		{{true, FAMILY_LLAMA, 6, lora, "", "", INPUTS}, "xxxxxxxx" "-xx-xx-xx-xx"},
		/* Two buckets are copied in. Then each bucket's work waits for its copy in and for the gradient. The second bucket of
		 * a layer knows the gradient from the first. The copy out waits for the work, and the next copy in for the copy out. */
		{{true, FAMILY_LLAMA, 2, "", "", ", full_finetuning: true, max_grad_norm: 0", "",
		  ", offload: optimizer, bucket_cap_mb: 0.05"},
		 "----xxxx-x-xx-"},
	};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct waits *c = &cases[i];
		char told[64] = "";
		struct result expected;
		struct error err = {0};
		struct work plain;

		must(open_run(&plain, &c->v, false, &err), &err);
		load(&plain);
		for (uint64_t k = 0; k < 2; k++)
			must(train_step(&plain, k, &expected, &err), &err);
		for (size_t wait = 0; wait < strlen(c->told); wait++)
			told[wait] = shows(&c->v, &plain, &expected, LATE_COPIES, (int)wait + 1) ||
						     shows(&c->v, &plain, &expected, LATE_MAIN, (int)wait + 1) ||
						     shows(&c->v, &plain, &expected, LATE_WORK, (int)wait + 1)
					     ? 'x'
					     : '-';
		assert_string_equal(told, c->told);
		close_work(&plain);
	}
}

static void plan_of(struct memory_plan *m, const struct shape *shape, const char *text)
{
	struct error err = {0};
	struct config c;

	must(config_parse(&c, "t", text, strlen(text), &err), &err);
	must(memory_plan(m, shape, &c, THREADS, &err), &err);
	config_release(&c);
}

/* The 8B shape of Llama as a checkpoint with YaRN has it. */
static struct shape long_llama(int64_t context)
{
	struct error err = {0};
	struct shape short_one, s;
	json_t *config;

	must(shape_by_name(&short_one, "llama-3.1-8b", &err), &err);
	config = shape_config(&short_one, DTYPE_BF16);
	json_object_set_new(config, "max_position_embeddings", json_integer(context));
	json_object_set_new(config, "rope_scaling",
			    json_pack("{s:s, s:f, s:i}", "rope_type", "yarn", "factor",
				      (double)context / 131072, "original_max_position_embeddings", 131072));
	must(shape_of_config(&s, config, "config.json", &err), &err);
	json_decref(config);
	return s;
}

/* 342 thousand tokens of an 8B model on a GPU of 80 GB, with 96 GB of host memory. */
static void a_long_context_fits(void **state)
{
	static const char config[] =
		"model: {path: /m, load_in_4bit: true}\nlora: {r: 32, alpha: 32}\n"
		"data: {train: /t, max_seq_length: %d}\n"
		"training: {device: gpu, attention: own, recompute: %s}\n";
	enum { TOKENS = 342784 };
	const uint64_t inputs = 30ull * TOKENS * 4096 * 2; /* all but the last two, which are in slots */
	const struct shape shape = long_llama(TOKENS);
	struct memory_plan full, offload;
	char text[400];

	(void)state;
	assert_true(shape.rope.yarn && shape.context == TOKENS);
	snprintf(text, sizeof(text), config, TOKENS, "full");
	plan_of(&full, &shape, text);
	snprintf(text, sizeof(text), config, TOKENS, "offload");
	plan_of(&offload, &shape, text);
	assert_true(offload.bytes < 80000000000u);
	assert_int_equal(full.arena[MEM_SAVED] - offload.arena[MEM_SAVED], inputs);
	assert_int_equal(offload.outside[MEMORY_OFFLOADED], inputs);
	assert_int_equal(offload.host_bytes - full.host_bytes, inputs);
	assert_true(offload.host_bytes < 96000000000u);
}

/* Four steps, and two, a checkpoint, another process's two: the same bits in every state. */
static void a_resumed_run_has_the_same_bits(void **state)
{
	static const struct variant variants[] = {
		{false, FAMILY_QWEN2, 3, FULL, BOTH},
		{true, FAMILY_QWEN2, 3, "", "", ", full_finetuning: true, optim: adamw_8bit", STATES},
		{true, FAMILY_QWEN2, 3, "", "", ", full_finetuning: true, optim: adamw_bf16, master_weights: split, max_grad_norm: 0", BOTH},
		{true, FAMILY_LLAMA, 4, lora, "", "", INPUTS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		char folder[] = "/tmp/train_offload.XXXXXX";
		json_t *none = json_object();
		struct checkpoint_source source = {.run = folder, .step = 2, .state = none};
		struct checkpoint_found found;
		struct work whole, resumed;
		struct text note = {0};
		struct error err = {0};
		struct result made[4], again;

		if (variants[i].gpu && !kernel_fatbin_find("train_rows")) {
			json_decref(none);
			continue;
		}
		assert_non_null(mkdtemp(folder));
		must(open_run(&whole, &variants[i], true, &err), &err);
		setenv("FAKE_CUDA", "late=1", 1);
		load(&whole);
		for (uint64_t k = 0; k < 4; k++) {
			must(train_step(&whole, k, &made[k], &err), &err);
			if (k != 1)
				continue;
			must(host_params_get(&whole.gradient, &whole.s.model->params, &whole.s.back, &err), &err);
			source.params = &whole.gradient.params;
			must(checkpoint_write(&source, &err), &err);
		}
		must(open_run(&resumed, &variants[i], true, &err), &err);
		load(&resumed);
		must(checkpoint_find(&found, folder, &note, &err), &err);
		must(checkpoint_load(&found, &resumed.gradient.params, &err), &err);
		must(host_params_put(&resumed.gradient, &resumed.s.model->params, &resumed.s.back, &err), &err);
		must(model_refresh(resumed.s.model, &resumed.s.back, &err), &err);
		for (uint64_t k = 2; k < 4; k++) {
			must(train_step(&resumed, k, &again, &err), &err);
			assert_true(again.loss == made[k].loss && again.norm == made[k].norm && again.held == made[k].held);
		}
		assert_true(same_states(&whole, &resumed));
		unsetenv("FAKE_CUDA");
		checkpoint_found_release(&found);
		text_release(&note);
		json_decref(none);
		close_work(&whole);
		close_work(&resumed);
		file_remove_tree(folder);
	}
}

/* The driver cannot pin the memory: the setting to change is named, and nothing leaks. */
static void memory_that_cannot_be_pinned_is_told(void **state)
{
	static const struct {
		struct variant v;
		const char *says;
	} cases[] = {
		{{true, FAMILY_LLAMA, 4, lora, "", "", INPUTS}, "recompute: full"},
		{{true, FAMILY_LLAMA, 4, FULL, STATES}, "offload: none, optim: adamw_8bit"},
		{{true, FAMILY_LLAMA, 4, FULL, BOTH}, "recompute: full, offload: none"},
	};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = {0};
		struct work w;

		setenv("FAKE_CUDA", "cuMemHostRegister_v2=2", 1);
		assert_int_not_equal(open_run(&w, &cases[i].v, true, &err), STATUS_OK);
		unsetenv("FAKE_CUDA");
		assert_int_equal(err.cause, CAUSE_NO_MEMORY);
		assert_non_null(strstr(err.text, "cannot pin"));
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s", err.text);
	}
}

/* A fault of the driver on the way of a lane ends the step with its message. */
static void faults_of_the_driver_are_told(void **state)
{
	static const struct variant v = {true, FAMILY_LLAMA, 4, FULL, BOTH};
	static const char *const faults[] = {"cuMemcpyDtoHAsync_v2=719@1", "cuMemcpyHtoDAsync_v2=719@9", "cuEventRecord=719@9",
					     "cuStreamWaitEvent=719@5", "cuStreamCreate=2", "cuEventCreate=2"};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct error err = {0};
		enum status st = STATUS_OK;
		struct result r;
		struct work w;

		must(open_run(&w, &v, true, &err), &err);
		load(&w);
		setenv("FAKE_CUDA", faults[i], 1);
		for (uint64_t k = 0; !st && k < STEPS; k++)
			st = train_step(&w, k, &r, &err);
		unsetenv("FAKE_CUDA");
		if (!st || !err.text[0])
			fail_msg("%s is not told", faults[i]);
		close_work(&w);
	}
}

/* A plan that is too large for the host, or for the device, names what to change. */
static void a_plan_that_does_not_fit_names_the_setting(void **state)
{
	static const struct {
		const char *settings;
		uint64_t device, host;
		const char *says[2];
	} cases[] = {
		{"recompute: full, full_finetuning: true", 80000000000, 2000000000000, {"training: offload: optimizer (", "GPU memory"}},
		{"recompute: full, full_finetuning: true, offload: optimizer", 2000000000000, 60000000000,
		 {"training: optim: adamw_8bit (", "host memory"}},
		{"recompute: offload, full_finetuning: true, per_device_train_batch_size: 64", 2000000000000, 10000000000,
		 {"training: recompute: full (", "host memory"}},
		{"recompute: full, full_finetuning: true, per_device_train_batch_size: 64, gradient_accumulation_steps: 2", 200000000000, 2000000000000,
		 {"training: recompute: offload (", "GPU memory"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = {0};
		struct memory_plan m;
		struct shape shape;
		struct config c;
		struct memory_fit fit = {
			.shape = &shape, .threads = THREADS, .available = cases[i].device, .host = cases[i].host};
		char text[400];

		must(shape_by_name(&shape, "qwen2-7b", &err), &err);
		snprintf(text, sizeof(text), "model: {path: /m}\ndata: {train: /t, max_seq_length: 4096}\ntraining: {device: gpu, %s}\n",
			 cases[i].settings);
		must(config_parse(&c, "t", text, strlen(text), &err), &err);
		must(memory_plan(&m, &shape, &c, THREADS, &err), &err);
		assert_int_equal(memory_fit_check(&c, &fit, &m, &err), STATUS_NO_RESOURCE);
		for (int k = 0; k < 2; k++)
			if (!strstr(err.text, cases[i].says[k]))
				fail_msg("no \"%s\" in: %s", cases[i].says[k], err.text);
		config_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpu_has_the_same_bits),
		cmocka_unit_test(a_gpu_has_the_same_bits),
		cmocka_unit_test(every_format_passes_through_the_device),
		cmocka_unit_test(a_missing_wait_changes_the_bits),
		cmocka_unit_test(a_resumed_run_has_the_same_bits),
		cmocka_unit_test(memory_that_cannot_be_pinned_is_told),
		cmocka_unit_test(faults_of_the_driver_are_told),
		cmocka_unit_test(a_plan_that_does_not_fit_names_the_setting),
		cmocka_unit_test(a_long_context_fits),
	};

	fakes_take();
	return cmocka_run_group_tests_name("train_offload", tests, NULL, NULL);
}
