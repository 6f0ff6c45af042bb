/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient's memory as the passes' memory (model/storage/lent.h): the same bits as with memory of their own, the
 * plan, and matrices that overlap by mistake. A configuration with gradient_accumulation_steps: 2 lends nothing. One
 * with 1 does, and both run here with one micro-batch a step.
 */
#include "fake_gpu.h"
#include "core/file/file.h"
#include "lending_bed.h"
#include "train/checkpoint/checkpoint.h"
#include "train/memory/memory_fit.h"

enum { STEPS = 4 };
#define HELD ", eval: /e"
struct variant {
	bool gpu;
	enum family family;
	const char *training; /* settings */
};

static enum status open_run(struct work *w, const struct variant *v, unsigned micros, const char *data, struct error *err)
{
	const struct shape s = lending_shape(v->family);
	struct config c;
	char text[768];

	snprintf(text, sizeof(text),
		 "model: {path: /m}\ndata: {train: /t, max_seq_length: %d%s}\n"
		 "training: {device: %s, full_finetuning: true, per_device_train_batch_size: %d, "
		 "per_device_eval_batch_size: %d, gradient_accumulation_steps: %u, learning_rate: 1e-2%s%s}\n",
		 LENGTH, data, v->gpu ? "gpu" : "cpu", ROWS / LENGTH, ROWS / LENGTH, micros, v->training,
		 v->gpu ? ", deterministic: true" : "");
	*w = (struct work){0};
	must(config_parse(&c, "t", text, strlen(text), err), err);
	must(stepper_create(&w->s, &s, &c, THREADS, err), err);
	must(host_params_create(&w->gradient, &w->s.model->params, &w->s.back, NULL, err), err);
	config_release(&c);
	fill(&w->s);
	w->s.begun = true;
	return STATUS_OK;
}

struct figures {
	double loss, norm, held;
};

/* A step of one micro-batch, and an evaluation, which uses the memory too. */
static enum status step(struct work *w, const int *docs, uint64_t number, struct figures *out, struct error *err)
{
	struct step_part took = {0};
	struct rows r, all;
	enum status st;

	poison(&w->s);
	st = stepper_begin(&w->s, err);
	*out = (struct figures){0};
	make(&r, docs, w->s.model->shape.vocab);
	make(&all, packed, w->s.model->shape.vocab);
	w->s.last = true;
	w->s.rate = 1e-2;
	if (!st)
		st = stepper_micro(&w->s, &r.b, number, (uint64_t)r.b.targets, &took, err);
	if (!st)
		st = stepper_end(&w->s, 1e-2, number, &out->loss, &out->norm, err);
	return st ? st : stepper_evaluate(&w->s, &all.b, &out->held, err);
}

static void states_are_equal(struct work *a, struct work *b)
{
	struct error err = {0};

	must(host_params_get(&a->gradient, &a->s.model->params, &a->s.back, &err), &err);
	must(host_params_get(&b->gradient, &b->s.model->params, &b->s.back, &err), &err);
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const uint64_t bytes = params_state_bytes(&a->gradient.params, (enum params_state)i);

		assert_int_equal(bytes, params_state_bytes(&b->gradient.params, (enum params_state)i));
		if (bytes)
			assert_memory_equal(params_state(&a->gradient.params, (enum params_state)i)->data,
					    params_state(&b->gradient.params, (enum params_state)i)->data, bytes);
	}
}

/* The gradient as the device has it. Owner: caller, free(). */
static void *gradient(struct work *w, size_t *bytes)
{
	const struct mat *grad = &w->s.model->params.grad;
	struct error err = {0};
	void *out;

	*bytes = dtype_bytes(grad->dtype, (uint64_t)grad->cols);
	out = malloc(*bytes);
	must(w->s.back.ops->get(&w->s.back, *grad, out, &err), &err);
	return out;
}

/* Steps of batches of unequal sizes. */
static void bits_are_equal(const struct variant *v)
{
	static const int *const docs[STEPS] = {equal, packed, fewer, packed};
	struct work own, lent;
	struct error err = {0};

	open_run(&own, v, 2, HELD, &err);
	open_run(&lent, v, 1, HELD, &err);
	assert_false(own.s.lending.on);
	assert_true(lent.s.lending.on && lent.s.lending.elements > 0);
	assert_true(lent.s.arena.size < own.s.arena.size);
	for (uint64_t i = 0; i < STEPS; i++) {
		struct figures a, b;

		must(step(&own, docs[i], i, &a, &err), &err);
		must(step(&lent, docs[i], i, &b, &err), &err);
		assert_true(isfinite(a.loss) && a.norm > 0 && a.held > 0);
		if (memcmp(&a, &b, sizeof(a)))
			fail_msg("%s %s: step %d: loss %.9g and %.9g, norm %.9g and %.9g", v->gpu ? "gpu" : "cpu",
				 v->training, (int)i, a.loss, b.loss, a.norm, b.norm);
	}
	states_are_equal(&own, &lent);
	close_work(&own);
	close_work(&lent);
}

static const char *const levels[] = {"none", "cheap", "full", "offload"};

static void a_cpu_has_the_same_bits(void **state)
{
	static const char *const more[] = {"", ", max_grad_norm: 0, offload: optimizer, bucket_cap_mb: 0.01",
					   ", max_grad_norm: 0.1, optim: adamw_8bit", ", optim: adamw_bf16"};

	(void)state;
	for (int level = 0; level < 4; level++)
		for (int i = 0; i < 4; i++) {
			char training[160];

			snprintf(training, sizeof(training), ", recompute: %s%s", levels[level], more[i]);
			bits_are_equal(&(struct variant){.family = i % 2 ? FAMILY_QWEN3 : FAMILY_QWEN2, .training = training});
		}
}

static void a_gpu_has_the_same_bits(void **state)
{
	static const char *const more[] = {", precision: fp32", ", optim: adamw_8bit, master_weights: none",
					   ", max_grad_norm: 0, master_weights: split, offload: optimizer, bucket_cap_mb: 0.01",
					   ", max_grad_norm: 0.1, optim: adamw_bf16", ", graphs: false"};

	(void)state;
	skip_without_kernels();
	for (int level = 0; level < 4; level++)
		for (int i = 0; i < 5; i++) {
			char training[160];

			snprintf(training, sizeof(training), ", recompute: %s%s", levels[level], more[i]);
			bits_are_equal(&(struct variant){
				.gpu = true, .family = i % 2 ? FAMILY_QWEN3 : FAMILY_LLAMA, .training = training});
		}
}

/* After a pass without targets the gradient is zero, also where the pass had its matrices. */
static void a_batch_without_targets_has_no_gradient(void **state)
{
	const struct variant v = {.family = FAMILY_LLAMA, .training = ", recompute: none"};
	struct step_part took = {0};
	struct error err = {0};
	struct rows r;
	struct work w;
	size_t bytes;
	uint8_t *grad;

	(void)state;
	open_run(&w, &v, 1, "", &err);
	make(&r, packed, w.s.model->shape.vocab);
	for (int64_t i = 0; i < r.b.tokens; i++)
		r.target[i] = BATCH_UNTRAINED;
	r.b.targets = 0;
	must(stepper_begin(&w.s, &err), &err);
	must(stepper_micro(&w.s, &r.b, 0, 1, &took, &err), &err);
	grad = gradient(&w, &bytes);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(grad[i], 0);
	free(grad);
	close_work(&w);
}

static void a_second_micro_batch_is_refused(void **state)
{
	const struct variant v = {.family = FAMILY_LLAMA, .training = ""};
	struct step_part took = {0};
	struct error err = {0};
	struct work own, lent;
	struct figures a, b;
	struct rows r;

	(void)state;
	open_run(&own, &v, 2, HELD, &err);
	open_run(&lent, &v, 1, HELD, &err);
	make(&r, packed, lent.s.model->shape.vocab);
	must(stepper_begin(&lent.s, &err), &err);
	must(stepper_micro(&lent.s, &r.b, 0, 1, &took, &err), &err);
	assert_int_equal(stepper_micro(&lent.s, &r.b, 0, 1, &took, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "second micro-batch"));
	err = (struct error){0};
	/* the next step is sound */
	must(step(&own, equal, 0, &a, &err), &err);
	must(step(&lent, equal, 0, &b, &err), &err);
	assert_memory_equal(&a, &b, sizeof(a));
	states_are_equal(&own, &lent);
	close_work(&own);
	close_work(&lent);
}

/* The passes' memory is shifted up to a part of the gradient, which then lies in it. All other parts seem to be far away,
 * so each part's own check must find it. */
static void an_overlap_is_an_error(void **state)
{
	const struct variant v = {.family = FAMILY_LLAMA, .training = ", recompute: none"};

	(void)state;
	for (int part = 0; part < LAYERS + 2; part++) {
		struct step_part took = {0};
		struct error err = {0};
		struct work w;
		struct rows r;
		char name[32];

		open_run(&w, &v, 1, "", &err);
		make(&r, equal, w.s.model->shape.vocab);
		must(stepper_begin(&w.s, &err), &err);
		w.s.lending.room.base += w.s.lending.lead + w.s.saved.lent.begin[part] * sizeof(float);
		for (int i = 0; i < LAYERS + 2; i++)
			if (i != part)
				w.s.saved.lent.begin[i] = 4 * w.s.model->params.length;
		if (stepper_micro(&w.s, &r.b, 0, 1, &took, &err) != STATUS_BUG)
			fail_msg("an overlap of part %d is not found", part);
		snprintf(name, sizeof(name), "part %d ", part);
		assert_non_null(strstr(err.text, name));
		close_work(&w);
	}
}

/* A full micro-batch uses all that the plan gives to a pass, and the run places what the plan does. */
static void the_plan_is_what_is_used(void **state)
{
	(void)state;
	for (int gpu = 0; gpu < 2 && (!gpu || kernel_fatbin_find("train_rows")); gpu++)
		for (int level = 0; level < 4; level++) {
			char training[64];
			const struct variant v = {.gpu = gpu, .family = FAMILY_QWEN2, .training = training};
			struct lending *l;
			struct error err = {0};
			struct figures f;
			struct work w;

			snprintf(training, sizeof(training), ", recompute: %s", levels[level]);
			open_run(&w, &v, 1, HELD, &err);
			l = &w.s.lending;
			assert_int_equal(w.s.arena.used, w.s.arena.size);
			l->room.peak = l->saved.peak = 0;
			must(step(&w, equal, 0, &f, &err), &err);
			assert_true(l->room.peak <= l->trained.scratch && l->room.peak > l->trained.scratch / 2);
			assert_int_equal(l->saved.peak, l->trained.saved);
			assert_int_equal(w.s.arena.peak, w.s.arena.size);
			assert_int_equal(l->shared + l->lead, l->trained.scratch + l->trained.saved);
			close_work(&w);
		}
}

/* Three steps, and one, a checkpoint, and another process's two. */
static void a_resumed_run_has_the_same_bits(void **state)
{
	const struct variant v = {.family = FAMILY_QWEN2, .training = ", recompute: full, optim: adamw_8bit, max_grad_norm: 0.5"};
	char run[] = "/tmp/train_lending.XXXXXX";
	json_t *none = json_object();
	struct checkpoint_source source = {.run = run, .step = 1, .state = none};
	struct checkpoint_found found;
	struct text note = {0};
	struct error err = {0};
	struct work whole, resumed;
	struct figures a[3], b;

	(void)state;
	assert_non_null(mkdtemp(run));
	open_run(&whole, &v, 1, HELD, &err);
	for (uint64_t i = 0; i < 3; i++) {
		must(step(&whole, packed, i, &a[i], &err), &err);
		source.params = &whole.s.model->params;
		if (!i)
			must(checkpoint_write(&source, &err), &err);
	}
	open_run(&resumed, &v, 1, HELD, &err);
	must(checkpoint_find(&found, run, &note, &err), &err);
	must(checkpoint_load(&found, &resumed.s.model->params, &err), &err);
	must(model_refresh(resumed.s.model, &resumed.s.back, &err), &err);
	for (uint64_t i = 1; i < 3; i++) {
		must(step(&resumed, packed, i, &b, &err), &err);
		assert_memory_equal(&b, &a[i], sizeof(b));
	}
	states_are_equal(&whole, &resumed);
	checkpoint_found_release(&found);
	text_release(&note);
	json_decref(none);
	close_work(&whole);
	close_work(&resumed);
	file_remove_tree(run);
}

static void planned(struct memory_plan *m, const char *name, const char *lora, const char *training)
{
	struct error err = {0};
	struct shape s;
	struct config c;
	char text[512];

	snprintf(text, sizeof(text), "model: {path: /m}\n%s\ndata: {train: /t, max_seq_length: 4096}\ntraining: {%s}\n", lora,
		 training);
	must(shape_by_name(&s, name, &err), &err);
	must(config_parse(&c, "t", text, strlen(text), &err), &err);
	must(memory_plan(m, &s, &c, THREADS, &err), &err);
	config_release(&c);
}

static void only_one_micro_batch_is_lent_memory(void **state)
{
	static const struct {
		const char *shape, *lora, *training;
		bool lends;
	} cases[] = {
		{"qwen2-7b", "", "device: gpu, full_finetuning: true, recompute: full", true},
		{"qwen2-7b", "", "device: cpu, full_finetuning: true, recompute: full", true},
		{"qwen2-7b", "", "device: gpu, full_finetuning: true, deterministic: true", true},
		{"qwen2-7b", "", "device: gpu, full_finetuning: true, gradient_accumulation_steps: 2", false},
		{"qwen2-7b", "", "device: gpu, full_finetuning: true, per_device_train_batch_size: 2, global_batch_size: 4", false},
		{"qwen2-7b", "", "device: gpu, full_finetuning: true, per_device_train_batch_size: 4, global_batch_size: 4", true},
		/* one pack at a time */
		{"qwen2-7b", "", "device: cpu, full_finetuning: true, deterministic: true, per_device_train_batch_size: 1", true},
		{"qwen2-7b", "", "device: cpu, full_finetuning: true, deterministic: true, per_device_train_batch_size: 2", false},
		{"qwen2-7b", "lora: {r: 8}", "device: gpu", false},
		{"qwen2-0.5b", "", "device: gpu, full_finetuning: true", false}, /* tied */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct memory_plan m;
		uint64_t sum = 0;

		planned(&m, cases[i].shape, cases[i].lora, cases[i].training);
		if ((m.shared > 0) != cases[i].lends)
			fail_msg("%s: %llu bytes are shared", cases[i].training, (unsigned long long)m.shared);
		for (int k = 0; k < MEM_KINDS; k++)
			sum += m.arena[k];
		assert_int_equal(sum, m.arena_bytes);
	}
}

/* The row of docs/TARGETS.md: 43.2 GiB of PEFT's stack. All but 0.1 GB are weights, gradient and moments. */
static void full_fine_tuning_of_7b_fits_where_pefts_does(void **state)
{
	struct memory_plan m, own;
	static const char settings[] = "device: gpu, full_finetuning: true, per_device_train_batch_size: 2, recompute: full, "
				       "optim: adamw_8bit, master_weights: none";
	char several[sizeof(settings) + 40];

	(void)state;
	snprintf(several, sizeof(several), "%s, gradient_accumulation_steps: 2", settings);
	planned(&m, "qwen2-7b", "", settings);
	planned(&own, "qwen2-7b", "", several);
	assert_true((double)m.arena_bytes < 43.2 * 0x1p30);
	assert_true((double)m.arena_bytes < (double)(m.arena[MEM_TRAINED] + m.arena[MEM_GRADIENT] + m.arena[MEM_OPTIMISER]) + 0.1e9);
	assert_true((double)own.arena_bytes > 45.1 * 0x1p30); /* as without the gradient's memory */
	assert_int_equal(own.arena_bytes - m.arena_bytes, m.shared);
}

/* A micro-batch of the whole step fits. A smaller one does not, because the gradient then lends nothing. */
static void the_whole_step_is_tried_first(void **state)
{
	struct error err = {0};
	struct shape s;
	struct config c;
	struct memory_plan m;
	struct memory_fit fit = {.shape = &s, .threads = THREADS};
	static const char text[] = "model: {path: /m}\ndata: {train: /t, max_seq_length: 4096}\n"
				   "training: {device: gpu, full_finetuning: true, per_device_train_batch_size: 1, recompute: full, "
				   "gradient_accumulation_steps: 4, auto_find_batch_size: true, optim: adamw_8bit, master_weights: none}\n";

	(void)state;
	must(shape_by_name(&s, "qwen2-7b", &err), &err);
	must(config_parse(&c, "t", text, strlen(text), &err), &err);
	must(memory_plan(&m, &s, &c, THREADS, &err), &err);
	fit.available = (m.bytes - 100000000) / 9 * 10; /* less than one row needs if four are added up */
	memory_fit_settle(&c, &fit);
	assert_int_equal(c.training.per_device_train_batch_size, 4);
	assert_int_equal(c.training.gradient_accumulation_steps, 1);
	config_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpu_has_the_same_bits),
		cmocka_unit_test(a_gpu_has_the_same_bits),
		cmocka_unit_test(a_batch_without_targets_has_no_gradient),
		cmocka_unit_test(a_second_micro_batch_is_refused),
		cmocka_unit_test(an_overlap_is_an_error),
		cmocka_unit_test(the_plan_is_what_is_used),
		cmocka_unit_test(a_resumed_run_has_the_same_bits),
		cmocka_unit_test(only_one_micro_batch_is_lent_memory),
		cmocka_unit_test(full_fine_tuning_of_7b_fits_where_pefts_does),
		cmocka_unit_test(the_whole_step_is_tried_first),
	};

	fakes_take();
	return cmocka_run_group_tests_name("train_lending", tests, NULL, NULL);
}
