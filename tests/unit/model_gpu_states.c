/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of optimizer states in full fine-tuning on the fake driver: steps beside the CPU's, the plan, checkpoints,
 * the exported model. */
#include "fake_gpu.h"
#include "core/file/file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/export.h"
#include "model_gpu_bed.h"

enum { STEPS = 6 };

struct format {
	const char *optim, *master;
	double state_bytes; /* of a parameter, without block scales */
};
static const struct format formats[] = {
	{"adamw", "fp32", 18}, /* with the BF16 copy that GEMMs read */
	{"adamw_8bit", "fp32", 12},  {"adamw_bf16", "fp32", 14},
	{"adamw", "split", 14},	     {"adamw_8bit", "split", 8}, {"adamw_bf16", "split", 10},
	{"adamw", "none", 12},	     {"adamw_8bit", "none", 6},	 {"adamw_bf16", "none", 8},
};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* Most of its tensors are large enough for 8-bit moments; biases and norms are not. */
static struct shape large_shape(void)
{
	struct shape s = shape_of(FAMILY_QWEN2);

	s.hidden = 72;
	s.ffn = 72;
	s.vocab = 128;
	return s;
}

static void open_format(struct work *w, bool gpu, const struct format *f)
{
	const struct shape shape = large_shape();
	struct error err = {0};
	char training[200];
	struct config c;

	snprintf(training, sizeof(training),
		 "full_finetuning: true, gradient_accumulation_steps: 2, weight_decay: 0.1, deterministic: %s, "
		 "optim: %s, master_weights: %s",
		 gpu ? "true" : "false", f->optim, f->master); /* a CPU's would add packs along a tree */
	configure(&c, gpu, "", training);
	must(stepper_create(&w->s, &shape, &c, THREADS, &err), &err);
	must(host_params_create(&w->gradient, &w->s.model->params, &w->s.back, NULL, &err), &err);
	config_release(&c);
	fill(&w->s);
}

static double step(struct work *w, int number, double rate)
{
	struct error err = {0};
	struct rows r;
	double norm, loss;

	make(&r, packed, w->s.model->shape.vocab);
	must(stepper_begin(&w->s, &err), &err);
	for (int i = 0; i < 2; i++) /* a second micro-batch adds to the gradient */
		must(stepper_micro(&w->s, &r.b, (uint64_t)number, 2 * (uint64_t)r.b.targets, &(struct step_part){0}, &err),
		     &err);
	must(stepper_end(&w->s, rate, (uint64_t)number, &loss, &norm, &err), &err);
	assert_true(isfinite(norm) && norm > 0);
	return loss / (2 * (double)r.b.targets);
}

/* Each format's losses follow those of F32 on the CPU, which all begin at the same weights but for BF16. */
static void losses_are_near_the_cpus(void **state)
{
	static const struct format plain = {"adamw", "fp32", 0};
	struct work cpu;
	double expected[STEPS];

	(void)state;
	skip_without_kernels();
	open_format(&cpu, false, &plain);
	for (int i = 0; i < STEPS; i++)
		expected[i] = step(&cpu, i, 1e-3);
	close_work(&cpu);
	assert_true(expected[STEPS - 1] < 0.9 * expected[0]);
	for (int f = 0; f < FORMATS; f++) {
		struct work w;

		open_format(&w, true, &formats[f]);
		for (int i = 0; i < STEPS; i++) {
			const double loss = step(&w, i, 1e-3);

			if (fabs(loss - expected[i]) > 0.02 * expected[i])
				fail_msg("%s, %s: loss %g of step %d, on the CPU %g", formats[f].optim,
					 formats[f].master, loss, i, expected[i]);
		}
		close_work(&w);
	}
}

static void the_plan_is_what_is_used(void **state)
{
	(void)state;
	skip_without_kernels();
	for (int f = 0; f < FORMATS; f++) {
		const struct params *p;
		struct work w;
		double bytes, extra;

		open_format(&w, true, &formats[f]);
		step(&w, 0, 1e-3);
		p = &w.s.model->params;
		assert_true(w.s.arena.peak <= w.s.arena.size); /* its size is the plan */
		bytes = (double)(w.s.arena.kind_at_peak[MEM_TRAINED] + w.s.arena.kind_at_peak[MEM_GRADIENT] +
				 w.s.arena.kind_at_peak[MEM_OPTIMISER]);
		extra = p->format.moments == MOMENTS_8BIT ? 8 * (double)(p->m_small.cols + p->m_scale.cols) : 0;
		assert_true(fabs(bytes - extra - formats[f].state_bytes * (double)p->length) < 16 * ARENA_ALIGN);
		assert_true(p->format.moments != MOMENTS_8BIT || (p->m_small.cols > 0 && p->m_scale.cols > 0));
		close_work(&w);
	}
}

static bool same_states(struct work *a, struct work *b)
{
	struct error err = {0};

	must(host_params_get(&a->gradient, &a->s.model->params, &a->s.back, &err), &err);
	must(host_params_get(&b->gradient, &b->s.model->params, &b->s.back, &err), &err);
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const uint64_t bytes = params_state_bytes(&a->gradient.params, (enum params_state)i);

		if (bytes && memcmp(params_state(&a->gradient.params, (enum params_state)i)->data,
				    params_state(&b->gradient.params, (enum params_state)i)->data, bytes))
			return false;
	}
	return true;
}

/* Four steps, and two, a checkpoint, another process's two: the same bits in every state. */
static void a_resumed_run_is_the_uninterrupted_one(void **state)
{
	(void)state;
	skip_without_kernels();
	for (int f = 0; f < FORMATS; f++) {
		char folder[] = "/tmp/model_gpu_states.XXXXXX";
		json_t *none = json_object();
		struct checkpoint_source source = {.run = folder, .step = 2, .state = none};
		struct checkpoint_found found;
		struct work whole, resumed;
		struct text note = {0};
		struct error err = {0};
		double loss[4];

		assert_non_null(mkdtemp(folder));
		open_format(&whole, true, &formats[f]);
		for (int i = 0; i < 4; i++) {
			loss[i] = step(&whole, i, 1e-2);
			if (i != 1)
				continue;
			must(host_params_get(&whole.gradient, &whole.s.model->params, &whole.s.back, &err), &err);
			source.params = &whole.gradient.params;
			must(checkpoint_write(&source, &err), &err);
		}
		open_format(&resumed, true, &formats[f]);
		must(checkpoint_find(&found, folder, &note, &err), &err);
		must(checkpoint_load(&found, &resumed.gradient.params, &err), &err);
		must(host_params_put(&resumed.gradient, &resumed.s.model->params, &resumed.s.back, &err), &err);
		must(model_refresh(resumed.s.model, &resumed.s.back, &err), &err);
		for (int i = 2; i < 4; i++)
			assert_true(step(&resumed, i, 1e-2) == loss[i]);
		assert_true(same_states(&whole, &resumed));
		checkpoint_found_release(&found);
		text_release(&note);
		json_decref(none);
		close_work(&whole);
		close_work(&resumed);
		file_remove_tree(folder);
	}
}

/* A checkpoint with other master weights is refused, and the message names both. */
static void other_master_weights_are_refused(void **state)
{
	char folder[] = "/tmp/model_gpu_states.XXXXXX";
	struct checkpoint_source source = {.run = folder, .step = 1};
	json_t *none;
	struct checkpoint_found found;
	struct text note = {0};
	struct error err = {0};
	struct work w;

	(void)state;
	skip_without_kernels();
	none = json_object();
	source.state = none;
	assert_non_null(mkdtemp(folder));
	open_format(&w, true, &formats[4]);
	must(host_params_get(&w.gradient, &w.s.model->params, &w.s.back, &err), &err);
	source.params = &w.gradient.params;
	must(checkpoint_write(&source, &err), &err);
	close_work(&w);
	open_format(&w, true, &formats[7]);
	must(checkpoint_find(&found, folder, &note, &err), &err);
	assert_int_equal(checkpoint_load(&found, &w.gradient.params, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "8bit moments with master_weights: split"));
	assert_non_null(strstr(err.text, "8bit moments with master_weights: none"));
	checkpoint_found_release(&found);
	text_release(&note);
	json_decref(none);
	close_work(&w);
	file_remove_tree(folder);
}

/* Weights that are read for export: the exact F32 numbers of halves. */
static void master_weights_are_read_in_f32(void **state)
{
	struct work w;
	struct error err = {0};
	bool finer = false;

	(void)state;
	skip_without_kernels();
	for (int f = 3; f < FORMATS; f += 3) {
		const struct params *host;
		float *x;

		open_format(&w, true, &formats[f]);
		step(&w, 0, 1e-3);
		must(host_params_get(&w.gradient, &w.s.model->params, &w.s.back, &err), &err);
		host = &w.gradient.params;
		x = malloc(host->length * sizeof(*x));
		assert_non_null(x);
		params_master(host, 0, host->length, x);
		for (size_t i = 0; i < host->length; i++) {
			const float half = bf16_to_f32(((const uint16_t *)host->master.data)[i]);

			assert_true(fabsf(x[i] - half) <= 0x1p-8f * fabsf(x[i]) + 1e-30f);
			finer = finer || x[i] != half;
		}
		assert_true(finer == (f == 3));
		finer = false;
		free(x);
		close_work(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_are_near_the_cpus),
		cmocka_unit_test(the_plan_is_what_is_used),
		cmocka_unit_test(a_resumed_run_is_the_uninterrupted_one),
		cmocka_unit_test(other_master_weights_are_refused),
		cmocka_unit_test(master_weights_are_read_in_f32),
	};

	fakes_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
