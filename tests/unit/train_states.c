/* SPDX-License-Identifier: Apache-2.0 */
/* Training with small optimizer states: their size, the loss of whole runs, checkpoints. */
#include "test.h"
#include <math.h>
#include <unistd.h>
#include "core/file/file.h"
#include "must.h"
#include "train/checkpoint/manifest.h"
#include "train_step_bed.h"

/* 8 bytes of state for a parameter with split weights, 6 with BF16 weights alone, beside block scales. */
static void states_are_as_small_as_promised(void **state)
{
	static const struct {
		const char *training;
		double bytes;
	} expected[] = {
		{"device: gpu, optim: adamw", 18}, /* with the BF16 copy that GEMMs read */
		{"device: gpu, optim: adamw_8bit, master_weights: split", 8},
		{"device: gpu, optim: adamw_bnb_8bit, master_weights: none", 6},
		{"device: gpu, optim: adamw_bf16, master_weights: none", 8},
		{"device: cpu, optim: adamw", 16},
		{"device: cpu, optim: adamw_bf16", 12},
		{"device: cpu, optim: paged_adamw_8bit", 10},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		char training[160];
		struct error err = {0};
		struct stepper s;
		struct shape shape;
		struct config c;
		double bytes, small = 0, blocks = 0, length;

		snprintf(training, sizeof(training), "full_finetuning: true, %s", expected[i].training);
		configure(&c, "", training);
		must(shape_by_name(&shape, "smollm2-135m", &err), &err);
		must(stepper_plan(&s, &shape, &c, THREADS, &err), &err);
		length = (double)s.model->params.length;
		bytes = (double)s.arena.kind_at_peak[MEM_TRAINED] + (double)s.arena.kind_at_peak[MEM_GRADIENT] +
			(double)s.arena.kind_at_peak[MEM_OPTIMISER];
		if (s.model->params.format.moments == MOMENTS_8BIT) {
			small = 8 * (double)s.model->params.m_small.cols;
			blocks = 8 * (double)s.model->params.m_scale.cols;
			assert_true(s.model->params.m_small.cols > 0 && s.model->params.m_scale.cols > 0);
		}
		assert_true(fabs(bytes - small - blocks - expected[i].bytes * length) < 16 * ARENA_ALIGN);
		stepper_release(&s);
		config_release(&c);
	}
}

/* A hundred steps (under sanitizers ten) of full fine-tuning, and of an adapter: within 0.5 % of F32 states, on average and at the end. */
static void losses_are_those_of_f32_states(void **state)
{
	static const char *const lora[] = {"", "lora: {r: 64, target_modules: [q_proj, down_proj]}"};
	static const char *const optim[] = {"adamw", "adamw_8bit", "adamw_bf16"};
#ifdef __SANITIZE_ADDRESS__ /* the same code, which takes three times as long a step */
	enum { MANY = 10 };
#else
	enum { MANY = 100 };
#endif

	(void)state;
	for (int adapter = 0; adapter < 2; adapter++) {
		double mean[3] = {0}, last[3];

		for (int i = 0; i < 3; i++) {
			char training[128];
			struct stepper s;
			struct config c;
			double norm;

			snprintf(training, sizeof(training), "full_finetuning: %s, optim: %s", adapter ? "false" : "true", optim[i]);
			configure(&c, lora[adapter], training);
			begin(&s, &c);
			for (uint64_t k = 0; k < MANY; k++) {
				last[i] = step_with(&s, DOCS, k, 2e-4, &norm);
				mean[i] += last[i] / MANY;
			}
			stepper_release(&s);
			config_release(&c);
		}
		print_message("# mean %.5f %.5f %.5f, last %.5f %.5f %.5f\n", mean[0], mean[1], mean[2], last[0], last[1],
			      last[2]);
		for (int i = 1; i < 3; i++) {
			assert_true(mean[i] != mean[0]); /* it is another format */
			assert_true(fabs(mean[i] - mean[0]) < 0.005 * mean[0]);
			assert_true(fabs(last[i] - last[0]) < 0.005 * last[0]);
		}
	}
}

static bool states_are_equal(struct params *a, struct params *b)
{
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const uint64_t bytes = params_state_bytes(a, (enum params_state)i);

		if (bytes != params_state_bytes(b, (enum params_state)i) ||
		    (bytes && memcmp(params_state(a, (enum params_state)i)->data,
				     params_state(b, (enum params_state)i)->data, bytes)))
			return false;
	}
	return true;
}

/* Ten steps, and five, a checkpoint, another process's five: the same bits in every state. */
static void a_resumed_run_is_the_uninterrupted_one(void **state)
{
	static const char *const lora[] = {"", "lora: {r: 64, dropout: 0.2, target_modules: [q_proj]}"};
	static const char *const optim[] = {"adamw_8bit", "adamw_bf16"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		char folder[] = "/tmp/train_states.XXXXXX", training[128];
		struct stepper whole, resumed;
		struct config c;
		double loss[10], norm;

		assert_non_null(mkdtemp(folder));
		snprintf(training, sizeof(training),
			 "full_finetuning: %s, gradient_accumulation_steps: 2, optim: %s", i % 2 ? "false" : "true",
			 optim[i / 2]);
		configure(&c, lora[i % 2], training);
		begin(&whole, &c);
		for (uint64_t k = 0; k < 10; k++) {
			loss[k] = step(&whole, 4, k, &norm);
			if (k == 4)
				save(folder, &whole, 5);
		}
		begin(&resumed, &c);
		load(folder, &resumed);
		for (uint64_t k = 5; k < 10; k++)
			assert_true(step(&resumed, 4, k, &norm) == loss[k]);
		assert_true(states_are_equal(&whole.model->params, &resumed.model->params));
		assert_true(loss[9] < loss[0]);
		stepper_release(&whole);
		stepper_release(&resumed);
		config_release(&c);
		file_remove_tree(folder);
	}
}

/* A checkpoint of other states is refused, in both directions, and the message names both. */
static void other_states_are_refused(void **state)
{
	static const char *const optim[] = {"adamw", "adamw_8bit", "adamw_bf16"};
	static const char *const names[] = {"F32 moments", "8bit moments", "BF16 moments"};

	(void)state;
	for (int from = 0; from < 3; from++) {
		char folder[] = "/tmp/train_states.XXXXXX", training[128];
		struct stepper s;
		struct config c;
		double norm;

		assert_non_null(mkdtemp(folder));
		for (int to = from; to < from + 3; to++) {
			struct checkpoint_found f;
			struct text note = {0};
			struct error err = {0};

			snprintf(training, sizeof(training), "full_finetuning: true, gradient_accumulation_steps: 2, optim: %s",
				 optim[to % 3]);
			configure(&c, "", training);
			begin(&s, &c);
			if (to == from) {
				step(&s, 4, 0, &norm);
				save(folder, &s, 1);
			}
			must(checkpoint_find(&f, folder, &note, &err), &err);
			if (to == from) {
				must(checkpoint_load(&f, &s.model->params, &err), &err);
			} else {
				assert_int_equal(checkpoint_load(&f, &s.model->params, &err), STATUS_BAD_INPUT);
				assert_non_null(strstr(err.text, names[from]));
				assert_non_null(strstr(err.text, names[to % 3]));
				assert_non_null(strstr(err.text, "same optim and master_weights"));
			}
			checkpoint_found_release(&f);
			text_release(&note);
			stepper_release(&s);
			config_release(&c);
		}
		file_remove_tree(folder);
	}
}

/* The plan refuses small weights where `device: auto` becomes the CPU, and with several ranks. */
static void small_weights_are_refused(void **state)
{
	struct error err = {0};
	struct stepper s;
	struct shape shape;
	struct config c;

	(void)state;
	configure(&c, "", "full_finetuning: true, master_weights: split");
	must(shape_by_name(&shape, "tiny", &err), &err);
	assert_int_equal(stepper_plan(&s, &shape, &c, THREADS, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "training: master_weights: split saves memory only on a GPU"));
	stepper_release(&s);
	config_release(&c);
	error_clear(&err);
	configure(&c, "", "full_finetuning: true, device: gpu, master_weights: none");
	c.place.ranks = 2; /* which add gradients in F32 */
	assert_int_equal(stepper_plan(&s, &shape, &c, THREADS, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "master_weights: none has gradients in BF16, but 2 ranks"));
	stepper_release(&s);
	config_release(&c);
}

/* A manifest whose words do not fit is refused, by its parser or when it is loaded. */
static const struct {
	const char *find, *put;
} lies[] = {
	{"\"schema\": 2", "\"schema\": 1"},
	{"\"schema\": 2", "\"schema\": 3"},
	{"\"moments\": \"8bit\"", "\"moments\": 8"},
	{"\"moments\": \"8bit\"", "\"moments\": \"BF16\""},
	{"\"master_weights\": \"fp32\"", "\"master\": \"fp32\""},
	{"\"name\": \"m_scale\"", "\"name\": \"scale\""},
	{"\"dtype\": \"U8\"", "\"dtype\": \"I8\""},
	{"\"dtype\": \"U8\"", "\"dtype\": \"X8\""},
	{"\"offset\": 0,\n      \"count\"", "\"offset\": -1,\n      \"count\""},
	{"\"state\": 0", "\"state\": -1"},
	{"\"state\": 0", "\"state\": 100000"},
	{"\"state\": 0", "\"states\": 0"},
	{"\"file\": \"optimizer.bin\"", "\"file\": \"optimizer\""},
};

static void manifests_that_lie_are_refused(void **state)
{
	char folder[] = "/tmp/train_states.XXXXXX", path[64], *text = NULL;
	struct error err = {0};
	struct stepper s;
	struct config c;
	size_t size;

	(void)state;
	assert_non_null(mkdtemp(folder));
	configure(&c, "", "full_finetuning: true, optim: adamw_8bit");
	begin(&s, &c);
	save(folder, &s, 1);
	snprintf(path, sizeof(path), "%s/checkpoint-1/checkpoint.json", folder);
	must(file_read(&text, &size, path, 1 << 20, &err), &err);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		const char *at = strstr(text, lies[i].find);
		struct text changed = {0}, note = {0};
		struct checkpoint_found f = {0};
		struct error why = {0};
		enum status st;

		if (!at)
			fail_msg("the manifest has no %s: %s", lies[i].find, text);
		text_addf(&changed, "%.*s%s%s", (int)(at - text), text, lies[i].put, at + strlen(lies[i].find));
		snprintf(f.path, sizeof(f.path), "%s/checkpoint-1", folder);
		st = manifest_parse(&f.manifest, path, text_str(&changed), changed.size, &why);
		if (!st)
			st = checkpoint_load(&f, &s.model->params, &why);
		if (st != STATUS_BAD_INPUT)
			fail_msg("%s: %s %s", lies[i].put, status_name(st), why.text);
		checkpoint_found_release(&f);
		text_release(&changed);
		text_release(&note);
		error_clear(&why);
	}
	free(text);
	stepper_release(&s);
	config_release(&c);
	file_remove_tree(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_are_as_small_as_promised),
		cmocka_unit_test(losses_are_those_of_f32_states),
		cmocka_unit_test(a_resumed_run_is_the_uninterrupted_one),
		cmocka_unit_test(other_states_are_refused),
		cmocka_unit_test(small_weights_are_refused),
		cmocka_unit_test(manifests_that_lie_are_refused),
	};

	cmocka_set_test_filter(getenv("TEST_FILTER"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
