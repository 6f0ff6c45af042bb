/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a few steps that keep data on the device or offload it. */
#ifndef TESTS_OFFLOAD_BED_H
#define TESTS_OFFLOAD_BED_H
#include "fake_gpu.h"
#include "model_gpu_bed.h"

enum { STEPS = 3, MICROS = 2 };
struct variant {
	bool gpu;
	enum family family;
	int64_t layers;
	const char *what, *model, *training; /* of both runs */
	const char *plain, *offload;	     /* settings of training of one run each */
};

static inline enum status open_run(struct work *w, const struct variant *v, bool offload, struct error *err)
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
		 "training: {device: %s, per_device_train_batch_size: %d, gradient_accumulation_steps: %d, learning_rate: 1e-2, "
		 "graphs: false%s%s%s}\n",
		 v->model, *v->what == 'l' ? v->what : "", LENGTH, v->gpu ? "gpu" : "cpu", ROWS / LENGTH, MICROS,
		 v->gpu ? ", deterministic: true" : "", v->training, offload ? v->offload : v->plain);
	*w = (struct work){0};
	st = config_parse(&c, "t", text, strlen(text), err);
	if (st)
		return st;
	st = stepper_create(&w->s, &shape, &c, THREADS, err);
	config_release(&c);
	if (!st)
		st = host_params_create(&w->gradient, &w->s.model->params, &w->s.back, NULL, err);
	if (st)
		stepper_release(&w->s);
	return st;
}

/* Weights as in fill(), but those in 4 bits, which are loaded. */
static inline void load(struct work *w)
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
static inline enum status train_step(struct work *w, uint64_t number, struct result *out, struct error *err)
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

static inline bool same_states(struct work *a, struct work *b)
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
#endif
