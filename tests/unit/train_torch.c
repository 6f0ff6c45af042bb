/* SPDX-License-Identifier: Apache-2.0 */
/* Fifty steps against PyTorch's (tests/oracles/model_gradients.py), by what a run trains with: stepper,
 * optimiser, clip and schedule, from the configuration that says the same as the script. */
#include "test.h"
#include <math.h>
#include "train/step/schedule.h"
#include "train/step/stepper.h"
#include "must.h"

enum { ROWS = 64, DOCS = 4, LENGTH = 16, STEPS = 50, MICROS = 2 };
static const char *const models[] = {"qwen2", "qwen3", "llama", "llama_tied"};

/* Some of the documents as a micro-batch. */
struct micro {
	int32_t position[ROWS], trained[ROWS], start[DOCS + 1];
	struct batch batch;
};

/* The settings of `model` for a curve of tests/oracles/model_qlora.py, and its loss of held-out documents. */
static const struct {
	const char *curve, *held, *settings;
} forms[] = {
	{"nf4.double", "nf4.double.held", ", load_in_4bit: true"},
	{"fp4", "fp4.held",
	 ", load_in_4bit: true, bnb_4bit_quant_type: fp4, bnb_4bit_use_double_quant: false"},
};

struct bed {
	const char *settings; /* further settings of `model` */
	char dir[512];
	struct config config;
	struct weights weights;
	struct safetensors expected;
	struct peft adapter;
	struct schedule schedule;
	struct stepper stepper;
	struct micro micro[MICROS];
};

static const int32_t *numbers(const struct safetensors *s, const char *name)
{
	return (const int32_t *)(const void *)tensor_of(s, name)->data;
}

/* Documents [first, last) of those that torch saw in one step. */
static void make_micro(struct micro *m, const struct safetensors *s, int first, int last)
{
	const int32_t *docs = numbers(s, "documents"), *target = numbers(s, "target");
	int32_t row = 0, begin = 0;

	*m = (struct micro){0};
	for (int d = 0; d < first; d++)
		begin += docs[d];
	for (int d = first; d < last; d++) {
		for (int32_t t = 0; t < docs[d]; t++, row++) {
			m->position[row] = t;
			if (target[begin + row] >= 0)
				m->trained[m->batch.targets++] = row;
		}
		m->start[++m->batch.docs] = row;
		m->batch.doc_len_max = docs[d] > m->batch.doc_len_max ? docs[d] : m->batch.doc_len_max;
	}
	m->batch.tokens = row;
	m->batch.token = numbers(s, "token") + begin;
	m->batch.target = target + begin;
	m->batch.position = m->position;
	m->batch.trained = m->trained;
	m->batch.doc_start = m->start;
	m->batch.row_begin = (uint64_t)begin;
}

/* As the oracle has it; what is adapted stands in PEFT's own file. */
static void configure(struct bed *b, bool lora)
{
	char text[2048], part[512] = "";
	struct error err = {0};

	if (lora) {
		int n = snprintf(part, sizeof(part),
				 "lora: {r: %d, alpha: %g, use_rslora: %s, target_modules: [",
				 (int)b->adapter.config.rank, b->adapter.config.alpha,
				 b->adapter.config.rslora ? "true" : "false");

		for (int i = 0; i < PEFT_TARGET_COUNT; i++)
			if (b->adapter.config.targets & 1u << i)
				n += snprintf(part + n, sizeof(part) - (size_t)n, "%s, ",
					      peft_target_name((enum peft_target)i));
		snprintf(part + n - 2, sizeof(part) - (size_t)n + 2, "]}\n");
	}
	snprintf(
		text, sizeof(text),
		"model: {path: %s%s}\n%sdata: {train: /rows, max_seq_length: %d}\n"
		"training: {per_device_train_batch_size: %d, gradient_accumulation_steps: %d, max_steps: %d, learning_rate: 1e-3, "
		"lr_scheduler_type: constant, weight_decay: 0.01, adam_beta1: 0.9, adam_beta2: 0.999, "
		"adam_epsilon: 1e-8, max_grad_norm: 1, full_finetuning: %s}\n",
		b->dir, b->settings, part, LENGTH, ROWS / LENGTH, MICROS, STEPS, lora ? "false" : "true");
	must(config_parse(&b->config, "as torch", text, strlen(text), &err), &err);
	must(schedule_of(&b->schedule, &b->config.training, STEPS, &err), &err);
}

static void load(struct bed *b, bool lora)
{
	struct model *m = b->stepper.model;
	const struct model_source from = {.weights = &b->weights};
	struct peft_slot *adapter = NULL;
	struct named *names = NULL;
	struct error err = {0};
	size_t count;

	must(model_load(m, &b->stepper.back, &from, &err), &err);
	must(model_loaded(m, &b->stepper.back, &err), &err);
	if (!lora)
		return;
	must(model_peft_slots(m, &m->params.master, &adapter, &names, &count, &err), &err);
	must(peft_load(&b->adapter, adapter, count, &err), &err);
	free(adapter);
	free(names);
	must(model_refresh(m, &b->stepper.back, &err), &err);
}

static void bed_open(struct bed *b, const char *name, const char *settings, bool lora)
{
	struct error err = {0};
	char path[1024];

	memset(b, 0, sizeof(*b));
	b->settings = settings;
	snprintf(b->dir, sizeof(b->dir), "%s/tests/data/model/%s", SOURCE_DIR, name);
	must(weights_open(&b->weights, b->dir, &err), &err);
	snprintf(path, sizeof(path), "%s/expected.safetensors", b->dir);
	must(safetensors_open(&b->expected, path, &err), &err);
	snprintf(path, sizeof(path), "%s/adapter", b->dir);
	must(peft_open(&b->adapter, path, &b->weights.shape, &err), &err);
	configure(b, lora);
	must(stepper_create(&b->stepper, &b->weights.shape, &b->config, 2, &err), &err);
	load(b, lora);
	for (int i = 0; i < MICROS; i++)
		make_micro(&b->micro[i], &b->expected, i * DOCS / MICROS, (i + 1) * DOCS / MICROS);
}

static void bed_close(struct bed *b)
{
	stepper_release(&b->stepper);
	config_release(&b->config);
	peft_release(&b->adapter);
	safetensors_release(&b->expected);
	weights_release(&b->weights);
}

/* One step of all documents, in two micro-batches: its mean loss before it. */
static double one_step(struct bed *b, uint64_t step)
{
	uint64_t targets = (uint64_t)(b->micro[0].batch.targets + b->micro[1].batch.targets);
	struct step_part took = {0};
	struct error err = {0};
	double loss, norm;

	must(stepper_begin(&b->stepper, &err), &err);
	for (int i = 0; i < MICROS; i++)
		must(stepper_micro(&b->stepper, &b->micro[i].batch, step, targets, &took, &err), &err);
	must(stepper_end(&b->stepper, schedule_rate(&b->schedule, step), step, &loss, &norm, &err), &err);
	return loss / (double)targets;
}

static void follow(struct bed *b, const struct tensor *curve)
{
	assert_int_equal(curve->dim[0], STEPS);
	for (uint64_t step = 0; step < STEPS; step++) {
		double loss = one_step(b, step);
		float expected;

		memcpy(&expected, curve->data + 4 * step, 4);
		if (!(fabs(loss - (double)expected) <= 1e-4))
			fail_msg("%s %s: step %d: loss %.6f, torch %.6f", b->dir, curve->name, (int)step,
				 loss, (double)expected);
	}
}

static void check_curve(const char *name, bool lora)
{
	struct bed b;

	bed_open(&b, name, "", lora);
	follow(&b, tensor_of(&b.expected, lora ? "lora.curve" : "full.curve"));
	bed_close(&b);
}

/* Mean loss of the held-out documents, which have the trained ones' lengths and targets. */
static double held_out(struct bed *b, const struct safetensors *expected)
{
	const int32_t *token = numbers(expected, "held.token");
	struct error err = {0};
	double sum = 0, targets = 0;

	for (int i = 0; i < MICROS; i++) {
		struct batch held = b->micro[i].batch;

		held.token = token + held.row_begin;
		must(stepper_evaluate(&b->stepper, &held, &sum, &err), &err); /* adds */
		targets += (double)held.targets;
	}
	return sum / targets;
}

static void check_held_out(double before, double after, const struct tensor *expected)
{
	float torch;

	memcpy(&torch, expected->data, 4);
	if (!(fabs(after - (double)torch) <= 0.01 * (double)torch) ||
	    !(fabs(before - (double)torch) > 0.01 * (double)torch))
		fail_msg("%s: %.6f before and %.6f after training, torch %.6f", expected->name, before, after,
			 (double)torch);
}

static void check_quantized(const char *name, size_t form)
{
	struct safetensors expected;
	struct error err = {0};
	char path[1024];
	double before;
	struct bed b;

	bed_open(&b, name, forms[form].settings, true);
	snprintf(path, sizeof(path), "%s/expected_4bit.safetensors", b.dir);
	must(safetensors_open(&expected, path, &err), &err);
	before = held_out(&b, &expected);
	follow(&b, tensor_of(&expected, forms[form].curve));
	check_held_out(before, held_out(&b, &expected), tensor_of(&expected, forms[form].held));
	safetensors_release(&expected);
	bed_close(&b);
}

static void test_train_torch__fifty_steps_of_full_fine_tuning(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		check_curve(models[i], false);
}

static void test_train_torch__fifty_steps_of_an_adapter(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		check_curve(models[i], true);
}

static void test_train_torch__fifty_steps_of_an_adapter_of_weights_in_4_bits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		for (size_t form = 0; form < sizeof(forms) / sizeof(forms[0]); form++)
			check_quantized(models[i], form);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_train_torch__fifty_steps_of_full_fine_tuning),
		cmocka_unit_test(test_train_torch__fifty_steps_of_an_adapter),
		cmocka_unit_test(test_train_torch__fifty_steps_of_an_adapter_of_weights_in_4_bits),
	};

	return cmocka_run_group_tests_name("train_torch", tests, NULL, NULL);
}
