/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of layers and optimizer states in host memory: every step has the bits of a run that keeps them on the device.
 * On the fake driver, streams whose work is late show a wait that is missing. */
#include "fake_gpu.h"
#include "model_gpu_bed.h"

#include <sys/resource.h>
#include "core/file/file.h"
#include "model/backend/plan_backend.h"
#include "train/checkpoint/checkpoint.h"
#include "train/memory/memory_fit.h"

enum { STEPS = 3, MICROS = 2 };

struct variant {
	bool gpu;
	enum family family;
	int64_t layers;
	const char *what, *model, *training; /* of both runs */
	const char *plain, *offload;	     /* settings of training of one run each */
};

static const char lora[] = "lora: {r: 8, alpha: 6}";

static enum status open_run(struct work *w, const struct variant *v, bool offload, struct error *err)
{
	struct shape shape = shape_of(v->family);
	struct config c;
	char text[768];
	enum status st;

	shape.layers = v->layers;
	shape.hidden = v->family == FAMILY_QWEN3 ? 32 : 80;
	shape.ffn = 64;
	shape.vocab = 128;
	snprintf(text, sizeof(text),
		 "model: {path: /m%s}\n%s\ndata: {train: /t, max_seq_length: %d}\n"
		 "training: {device: %s, per_device_train_batch_size: %d, learning_rate: 1e-2, graphs: false%s%s%s}\n",
		 v->model, *v->what == 'l' ? v->what : "", LENGTH, v->gpu ? "gpu" : "cpu", ROWS / LENGTH,
		 v->gpu ? ", deterministic: true" : "", v->training, offload ? v->offload : v->plain);
	*w = (struct work){0};
	st = config_parse(&c, "t", text, strlen(text), err);
	if (st)
		return st;
	st = stepper_create(&w->s, &shape, &c, THREADS, err);
	config_release(&c);
	if (!st)
		st = host_params_create(&w->gradient, &w->s.model->params, &w->s.back, err);
	if (st)
		stepper_release(&w->s);
	return st;
}

/* Weights as in fill(), but those in 4 bits, which are loaded. */
static void load(struct work *w)
{
	struct stepper *s = &w->s;
	const struct params *p = &s->model->params;
	struct weights none = {.shape = s->model->shape};
	const struct model_source from = {.weights = &none, .random = true, .seed = 3};
	struct error err = {0};

	must(model_load(s->model, &s->back, &from, &err), &err);
	for (int i = 0; i < p->count; i++)
		if (strstr(p->table[i].name, ".lora_")) {
			const struct random_fill f = {.seed = 4, .stream = (uint32_t)i, .width = 0.3f};

			must(s->back.ops->random(&s->back, params_view(&p->master, &p->table[i]), &f, &err), &err);
		}
	must(model_loaded(s->model, &s->back, &err), &err);
	s->begun = true;
}

struct result {
	double loss, norm, held;
};

/* A step of two micro-batches of other sizes, and an evaluation. */
static enum status train_step(struct work *w, uint64_t number, struct result *out, struct error *err)
{
	static const int *const docs[MICROS] = {packed, fewer};
	struct step_part took = {0};
	struct rows r[MICROS];
	enum status st = stepper_begin(&w->s, err);

	*out = (struct result){0};
	for (int i = 0; !st && i < MICROS; i++) {
		make(&r[i], docs[i], w->s.model->shape.vocab);
		w->s.last = i == MICROS - 1;
		w->s.rate = 1e-2;
		st = stepper_micro(&w->s, &r[i].b, number, 2 * (uint64_t)r[0].b.targets, &took, err);
	}
	if (!st)
		st = stepper_end(&w->s, 1e-2, number, &out->loss, &out->norm, err);
	return st ? st : stepper_evaluate(&w->s, &r[0].b, &out->held, err);
}

static bool same_states(struct work *a, struct work *b)
{
	struct error err = {0};
	bool same = true;

	must(host_params_get(&a->gradient, &a->s.model->params, &a->s.back, &err), &err);
	must(host_params_get(&b->gradient, &b->s.model->params, &b->s.back, &err), &err);
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const uint64_t bytes = params_state_bytes(&a->gradient.params, (enum params_state)i);

		same = same && bytes == params_state_bytes(&b->gradient.params, (enum params_state)i);
		if (same && bytes)
			same = !memcmp(params_state(&a->gradient.params, (enum params_state)i)->data,
				       params_state(&b->gradient.params, (enum params_state)i)->data, bytes);
	}
	return same;
}

static void name(char out[400], const struct variant *v, int late)
{
	snprintf(out, 400, "%s, %d layers%s%s%s%s, late %d", v->gpu ? "gpu" : "cpu", (int)v->layers, v->what, v->model,
		 v->training, v->offload, late);
}

static void has_the_bits(const struct variant *v, int late)
{
	struct work plain, moved;
	struct error err = {0};
	char what[400], word[16];

	name(what, v, late);
	snprintf(word, sizeof(word), "late=%d", late);
	must(open_run(&plain, v, false, &err), &err);
	load(&plain);
	if (late)
		setenv("FAKE_CUDA", word, 1);
	must(open_run(&moved, v, true, &err), &err);
	load(&moved);
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
	for (int late = 0; late < 3; late++)
		for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
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

/* A program that forgets one wait of a step computes other bits, whenever another wait does not include it. */
static void a_missing_wait_changes_the_bits(void **state)
{
	static const struct variant variants[] = {
		{true, FAMILY_LLAMA, 6, lora, "", "", INPUTS},
		{true, FAMILY_LLAMA, 3, "", "", ", full_finetuning: true, max_grad_norm: 0", STATES},
	};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < 2; i++) {
		int waits = 0, told = 0;

		for (int wait = 1; wait <= 60; wait++) {
			struct result expected, got, after;
			struct work plain, moved;
			struct error err = {0};
			char word[40];

			must(open_run(&plain, &variants[i], false, &err), &err);
			load(&plain);
			must(train_step(&plain, 0, &expected, &err), &err);
			setenv("FAKE_CUDA", "late=2", 1);
			must(open_run(&moved, &variants[i], true, &err), &err);
			load(&moved);
			snprintf(word, sizeof(word), "late=2,deaf=%d", wait);
			setenv("FAKE_CUDA", word, 1);
			must(train_step(&moved, 0, &got, &err), &err);
			setenv("FAKE_CUDA", "late=2", 1);
			must(train_step(&moved, 1, &after, &err), &err);
			must(train_step(&plain, 1, &expected, &err), &err);
			waits++;
			told += after.loss != expected.loss || after.held != expected.held || !same_states(&plain, &moved);
			close_work(&moved);
			unsetenv("FAKE_CUDA");
			close_work(&plain);
		}
		print_message("%s: %d of %d waits\n", variants[i].offload, told, waits);
		assert_true(told >= 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpu_has_the_same_bits),
		cmocka_unit_test(a_gpu_has_the_same_bits),
		cmocka_unit_test(every_format_passes_through_the_device),
		cmocka_unit_test(a_missing_wait_changes_the_bits),
	};

	fakes_take();
	return cmocka_run_group_tests_name("train_offload", tests, NULL, NULL);
}
