/* SPDX-License-Identifier: Apache-2.0 */
/* A step by the GPU's back end on the fake driver, whose kernels are their references, and the same by the
 * CPU's. */
#ifndef TESTS_MODEL_GPU_BED_H
#define TESTS_MODEL_GPU_BED_H
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include "core/math/random.h"
#include "kernel/fatbin.h"
#include "model/files/random_weights.h"
#include "model/tensor/matrix.h"
#include "train/checkpoint/host_params.h"
#include "train/step/stepper.h"
#include "must.h"

enum { ROWS = 64, LENGTH = 32, THREADS = 2 };

static int64_t head_dim = 8; /* that our plain attention alone takes; 64: the tensor-core kernels do */

static inline struct shape shape_of(enum family family)
{
	return (struct shape){
		.family = family,
		.hidden = family == FAMILY_QWEN3 ? 32 : 48,
		.layers = 2,
		.heads = head_dim == 8 ? 6 : 2,
		.kv_heads = head_dim == 8 ? 2 : 1,
		.head_dim = head_dim,
		.ffn = 40,
		.vocab = 56,
		.context = 256,
		.tied = family == FAMILY_LLAMA,
		.qkv_bias = family == FAMILY_QWEN2,
		.qk_norm = family == FAMILY_QWEN3,
		.norm_eps = 1e-5,
		.rope_theta = 10000,
	};
}

struct rows {
	int32_t token[ROWS], position[ROWS], target[ROWS], trained[ROWS], start[ROWS + 1];
	struct batch b;
};

/* Documents of these lengths, 0 ends, end to end. */
static inline void make(struct rows *r, const int *docs, int64_t vocab)
{
	*r = (struct rows){0};
	for (; docs[r->b.docs]; r->start[++r->b.docs] = (int32_t)r->b.tokens) {
		const int length = docs[r->b.docs];

		r->b.doc_len_max = length > r->b.doc_len_max ? length : r->b.doc_len_max;
		for (int i = 0; i < length; i++) {
			const int64_t at = r->b.tokens++;
			const uint32_t word = random_u32(9, 0, (uint64_t)at);

			r->token[at] = (int32_t)(word % (uint32_t)vocab);
			r->position[at] = i;
			r->target[at] =
				word >> 16 & 3 ? (int32_t)((word >> 8) % (uint32_t)vocab) : BATCH_UNTRAINED;
			if (r->target[at] >= 0)
				r->trained[r->b.targets++] = (int32_t)at;
		}
	}
	r->b.token = r->token;
	r->b.position = r->position;
	r->b.target = r->target;
	r->b.doc_start = r->start;
	r->b.trained = r->trained;
	r->b.row_begin = 5;
}

static const int packed[] = {1, 2, 7, 3, 32, 19, 0}, fewer[] = {2, 2, 7, 3, 5, 0}, equal[] = {32, 32, 0},
		 short_ones[] = {1, 3, 2, 1, 3, 3, 2, 0};

/* One step's micro-batch on one device. */
struct work {
	struct stepper s;
	struct host_params gradient; /* its master is the gradient */
	double loss;
};

static inline void configure(struct config *c, bool gpu, const char *what, const char *training)
{
	struct error err = {0};
	char text[512];

	snprintf(text, sizeof(text),
		 "model: {path: /m}\n%s\ndata: {train: /t, max_seq_length: %d}\n"
		 "training: {device: %s, per_device_train_batch_size: %d, learning_rate: 1e-2, %s}\n",
		 what, LENGTH, gpu ? "gpu" : "cpu", ROWS / LENGTH, training);
	must(config_parse(c, "t", text, strlen(text), &err), &err);
}

/* Numbers of weights that are the same on both but for their rounding to BF16. */
static inline void fill(struct stepper *s)
{
	struct backend *back = &s->back;
	const struct params *p = &s->model->params;
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	struct error err = {0};
	size_t count = 0;

	must(model_weight_slots(s->model, &slots, &names, &count, &err), &err);
	for (size_t i = 0; i < count; i++) {
		struct random_fill f;
		struct named n;

		assert_true(names_find(&n, &s->model->shape, slots[i].name));
		f = random_weights_fill(&n, 3);
		f.width *= 8;
		must(back->ops->random(back, slots[i].to, &f, &err), &err);
	}
	free(slots);
	free(names);
	for (int i = 0; i < p->count; i++)
		if (strstr(p->table[i].name, ".lora_")) {
			const struct random_fill f = {.seed = 4, .stream = (uint32_t)i, .width = 0.3f};

			must(back->ops->random(back, params_view(&p->master, &p->table[i]), &f, &err), &err);
		}
	must(model_loaded(s->model, back, &err), &err);
}

static inline void open_work(struct work *w, bool gpu, enum family family, const char *what,
			     const char *training)
{
	const struct shape shape = shape_of(family);
	struct error err = {0};
	struct config c;

	configure(&c, gpu, what, training);
	must(stepper_create(&w->s, &shape, &c, THREADS, &err), &err);
	must(host_params_create(&w->gradient, &w->s.model->params, &w->s.back, NULL, &err), &err);
	config_release(&c);
	fill(&w->s);
	w->s.begun = true; /* choices are not held, as in no step but a run's first */
}

static inline void close_work(struct work *w)
{
	host_params_release(&w->gradient);
	stepper_release(&w->s);
}

/* Gradient and loss of the documents. */
static inline const float *run(struct work *w, const int *docs)
{
	struct params *p = &w->s.model->params;
	struct step_part took = {0};
	struct error err = {0};
	double sums[SUMS];
	struct rows r;
	struct mat grad = p->grad;
	float *out = malloc(p->length * sizeof(*out));

	make(&r, docs, w->s.model->shape.vocab);
	must(stepper_begin(&w->s, &err), &err);
	must(stepper_micro(&w->s, &r.b, 0, (uint64_t)r.b.targets, &took, &err), &err);
	must(w->s.back.ops->get(&w->s.back, grad, out, &err), &err);
	must(w->s.back.ops->get(&w->s.back, w->s.sums, sums, &err), &err);
	w->loss = sums[SUM_LOSS] / (double)r.b.targets;
	return out;
}

/* Documents `packed`, and from here on a driver that fails so. */
static inline void open_failing(struct work *w, struct rows *r, const char *what, const char *training,
				const char *fault)
{
	open_work(w, true, FAMILY_QWEN2, what, training);
	make(r, packed, w->s.model->shape.vocab);
	setenv("FAKE_CUDA", fault, 1);
}

static inline void close_failing(struct work *w, enum status st)
{
	assert_int_not_equal(st, STATUS_OK);
	unsetenv("FAKE_CUDA");
	close_work(w);
}

/* A back end by itself over so much memory; the caller releases it. */
struct alone {
	struct backend back;
	struct arena arena;
};

static inline void open_alone(struct alone *a, uint64_t bytes, bool tune)
{
	const struct gpu_backend_options options = {.attention = GPU_ATTENTION_OWN, .tune = tune};
	struct error err = {0};

	must(gpu_backend_create(&a->back, &options, &a->arena, &err), &err);
	must(gpu_backend_take(&a->back, bytes, &err), &err);
}

static inline void skip_without_kernels(void)
{
	if (!kernel_fatbin_find("train_rows"))
		skip();
}
#endif
