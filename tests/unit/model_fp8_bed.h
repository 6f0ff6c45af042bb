/* SPDX-License-Identifier: Apache-2.0 */
/* A small model with planted outliers that trains in FP8, or in F32 or BF16, on a CPU or on the fake driver. */
#ifndef UNIT_MODEL_FP8_BED_H
#define UNIT_MODEL_FP8_BED_H
#include <math.h>
#include "core/math/random.h"
#include "model/files/random_weights.h"
#include "model/tensor/matrix.h"
#include "train/step/stepper.h"
#include "must.h"

#ifndef BED_ROWS
#define BED_ROWS 96
#endif
enum { THREADS = 2, ROWS = BED_ROWS };

static inline double cosine(const float *x, const float *y, int64_t count)
{
	double xy = 0, xx = 0, yy = 0;

	for (int64_t i = 0; i < count; i++) {
		xy += (double)x[i] * y[i];
		xx += (double)x[i] * x[i];
		yy += (double)y[i] * y[i];
	}
	assert_true(xx > 0 && yy > 0);
	return xy / sqrt(xx * yy);
}

static const char lora[] = "lora: {r: 8, alpha: 16}\n";
static const struct shape small = {
	.family = FAMILY_QWEN2,
	.hidden = 160,
	.layers = 3,
	.heads = 5,
	.kv_heads = 1,
	.head_dim = 32,
	.ffn = 272,
	.vocab = 64,
	.context = 256,
	.qkv_bias = true,
	.norm_eps = 1e-5,
	.rope_theta = 10000,
};

struct work {
	struct stepper s;
	int32_t token[ROWS], position[ROWS], target[ROWS], trained[ROWS], start[2];
	struct batch b;
	float *gradient;
	double loss;
	struct step_part took;
};

static inline enum status read_settings(struct config *c, const char *device, const char *more,
					const char *training, struct error *err)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "model: {path: /m}\n%sdata: {train: /t, max_seq_length: %d}\n"
		 "training: {device: %s, learning_rate: 1e-2%s}\n",
		 more, ROWS, device, training);
	return config_parse(c, "t", text, strlen(text), err);
}

/* On the fake driver memory of a device is memory of the host. */
static inline void multiply(const struct mat *m, int64_t i, float by)
{
	uint16_t *bf16 = m->data;

	if (m->dtype == DTYPE_BF16)
		bf16[i] = bf16_of_f32(bf16_to_f32(bf16[i]) * by);
	else
		((float *)m->data)[i] *= by;
}

/* Outliers: rows of the embedding, and a channel that every norm makes large. */
static inline void plant_outliers(struct model *m)
{
	for (int64_t row = 0; row < m->embed.w.rows; row += 16)
		for (int64_t j = 0; j < m->embed.w.cols; j++) {
			multiply(&m->embed.w, row * m->embed.w.ld + j, 300);
			if (m->embed.master.rows && m->embed.master.data != m->embed.w.data)
				multiply(&m->embed.master, row * m->embed.master.ld + j, 300);
		}
	for (int64_t i = 0; i < m->shape.layers; i++) {
		struct weight *norms[] = {&m->layer[i].norm1, &m->layer[i].norm2};

		for (int k = 0; k < 2; k++) {
			multiply(&norms[k]->w, 9, 10);
			if (norms[k]->master.rows && norms[k]->master.data != norms[k]->w.data)
				multiply(&norms[k]->master, 9, 10);
		}
	}
}

static inline void make_rows(struct work *w, int64_t vocab)
{
	w->start[1] = ROWS;
	w->b = (struct batch){.token = w->token,
			      .position = w->position,
			      .target = w->target,
			      .trained = w->trained,
			      .doc_start = w->start,
			      .tokens = ROWS,
			      .docs = 1,
			      .doc_len_max = ROWS};
	for (int32_t i = 0; i < ROWS; i++) {
		w->token[i] = (int32_t)(random_u32(5, 0, (uint64_t)i) % (uint32_t)vocab);
		w->position[i] = i;
		w->target[i] = (int32_t)(random_u32(5, 1, (uint64_t)i) % (uint32_t)vocab);
		w->trained[w->b.targets++] = i;
	}
}

static inline void open_shape(struct work *w, const char *device, const struct shape *shape, const char *more,
			      const char *training)
{
	struct error err = {0};
	const struct params *p;
	struct config c;

	*w = (struct work){0};
	must(read_settings(&c, device, more, training, &err), &err);
	must(stepper_create(&w->s, shape, &c, THREADS, &err), &err);
	config_release(&c);
	must(model_load(w->s.model, &w->s.back, &(struct model_source){.random = true, .seed = 3}, &err), &err);
	plant_outliers(w->s.model);
	p = &w->s.model->params;
	for (int i = 0; i < p->count; i++)
		if (strstr(p->table[i].name, ".lora_")) {
			const struct random_fill f = {.seed = 4, .stream = (uint32_t)i, .width = 0.1f};

			must(w->s.back.ops->random(&w->s.back, params_view(&p->master, &p->table[i]), &f,
						   &err),
			     &err);
		}
	must(model_loaded(w->s.model, &w->s.back, &err), &err);
	make_rows(w, shape->vocab);
	w->gradient = malloc(p->length * sizeof(*w->gradient));
	assert_non_null(w->gradient);
}

static inline void open_on(struct work *w, const char *device, int64_t layers, const char *more,
			   const char *training)
{
	struct shape shape = small;

	shape.layers = layers;
	open_shape(w, device, &shape, more, training);
}

static inline void open_work(struct work *w, const char *more, const char *training)
{
	open_on(w, "cpu", small.layers, more, training);
}

static inline void close_work(struct work *w)
{
	free(w->gradient);
	stepper_release(&w->s);
}

static inline void run(struct work *w)
{
	struct error err = {0};
	double sums[SUMS];

	w->took = (struct step_part){0};
	must(stepper_begin(&w->s, &err), &err);
	must(stepper_micro(&w->s, &w->b, 0, (uint64_t)w->b.targets, &w->took, &err), &err);
	must(stepper_overflows(&w->s, &w->took, &err), &err);
	must(w->s.back.ops->get(&w->s.back, w->s.model->params.grad, w->gradient, &err), &err);
	must(w->s.back.ops->get(&w->s.back, w->s.sums, sums, &err), &err);
	w->loss = sums[SUM_LOSS] / (double)w->b.targets;
}
#endif
