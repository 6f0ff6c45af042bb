/* SPDX-License-Identifier: Apache-2.0 */
/* A small model of random weights, steps of it, and its checkpoints. */
#ifndef TESTS_UNIT_TRAIN_STEP_BED_H
#define TESTS_UNIT_TRAIN_STEP_BED_H
#include "test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/files/random_weights.h"
#include "train/checkpoint/checkpoint.h"
#include "train/step/stepper.h"

enum { DOCS = 8, LENGTH_MAX = 24, THREADS = 2 };

/* Documents of unequal length, with unequal numbers of targets: 1 and 2 tokens among them. */
static const int lengths[DOCS] = {1, 2, 24, 7, 16, 3, 11, 5};
static const int first_target[DOCS] = {0, 0, 20, 1, 3, 0, 9, 2};

struct rows {
	int32_t token[DOCS * LENGTH_MAX], position[DOCS * LENGTH_MAX], target[DOCS * LENGTH_MAX],
		trained[DOCS * LENGTH_MAX], start[DOCS + 1];
	struct batch b;
};

/* Documents [first, last) end to end. */
static inline void make(struct rows *r, const struct shape *s, int first, int last)
{
	uint64_t begin = 0;

	*r = (struct rows){0};
	for (int d = 0; d < first; d++)
		begin += (uint64_t)lengths[d];
	for (int d = first; d < last; d++) {
		for (int i = 0; i < lengths[d]; i++) {
			int64_t at = r->b.tokens++;

			r->token[at] =
				(int32_t)(random_u32(7, (uint32_t)d, (uint64_t)i) % (uint32_t)s->vocab);
			r->position[at] = i;
			r->target[at] = BATCH_UNTRAINED;
			if (i >= first_target[d] && i + 1 < lengths[d]) {
				r->target[at] = (int32_t)(random_u32(7, (uint32_t)d, (uint64_t)i + 1) %
							  (uint32_t)s->vocab);
				r->trained[r->b.targets++] = (int32_t)at;
			}
		}
		r->start[++r->b.docs] = (int32_t)r->b.tokens;
		r->b.doc_len_max = lengths[d] > r->b.doc_len_max ? lengths[d] : r->b.doc_len_max;
	}
	r->b.token = r->token;
	r->b.position = r->position;
	r->b.target = r->target;
	r->b.doc_start = r->start;
	r->b.trained = r->trained;
	r->b.row_begin = begin;
}

static inline void configure(struct config *c, const char *lora, const char *training)
{
	struct error err = {0};
	char text[512];

	snprintf(text, sizeof(text),
		 "model: {path: /m}\n%s\ndata: {train: /t, max_seq_length: %d}\n"
		 "training: {per_device_train_batch_size: %d, learning_rate: 1e-2, weight_decay: 0.01, %s}\n",
		 lora, LENGTH_MAX, DOCS, training);
	if (config_parse(c, "t", text, strlen(text), &err))
		fail_msg("%s", err.text);
}

static inline void begin(struct stepper *s, const struct config *c)
{
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	struct error err = {0};
	struct shape shape;
	size_t count = 0;

	assert_int_equal(shape_by_name(&shape, "tiny", &err), STATUS_OK);
	if (stepper_create(s, &shape, c, THREADS, &err))
		fail_msg("%s", err.text);
	assert_int_equal(model_weight_slots(s->model, &slots, &names, &count, &err), STATUS_OK);
	for (size_t i = 0; i < count; i++) {
		struct named n;

		assert_true(names_find(&n, &shape, slots[i].name));
		assert_true(slots[i].to.rows == 1 || slots[i].to.ld == slots[i].to.cols);
		random_weights(&n, 3, 0, n.rows, slots[i].to.data);
	}
	free(slots);
	free(names);
	assert_int_equal(model_init_adapter(s->model, &s->back, 5, &err), STATUS_OK);
	assert_int_equal(model_loaded(s->model, &s->back, &err), STATUS_OK);
}

/* One step of all documents in micro-batches of `each`, with learning rate `rate`. */
static inline double step_with(struct stepper *s, int each, uint64_t number, double rate, double *norm)
{
	struct step_part took = {0};
	struct error err = {0};
	struct rows r, all;
	double loss;

	make(&all, &s->model->shape, 0, DOCS);
	assert_int_equal(stepper_begin(s, &err), STATUS_OK);
	for (int d = 0; d < DOCS; d += each) {
		make(&r, &s->model->shape, d, d + each);
		assert_int_equal(batch_check(&r.b, s->model->shape.vocab, &err), STATUS_OK);
		assert_int_equal(stepper_micro(s, &r.b, number, (uint64_t)all.b.targets, &took, &err),
				 STATUS_OK);
	}
	assert_int_equal(stepper_end(s, rate, number, &loss, norm, &err), STATUS_OK);
	assert_true(took.forward_s > 0 && took.backward_s > 0);
	assert_true(took.gemm_s > 0 && took.gemm_s <= took.forward_s + took.backward_s + 1e-6);
	return loss / (double)all.b.targets;
}

static inline double step(struct stepper *s, int each, uint64_t number, double *norm)
{
	return step_with(s, each, number, 1e-2, norm);
}

static inline void save(const char *run, const struct stepper *s, uint64_t number)
{
	json_t *state = json_object();
	struct checkpoint_source source = {
		.run = run, .step = number, .params = &s->model->params, .state = state};
	struct error err = {0};

	assert_int_equal(checkpoint_write(&source, &err), STATUS_OK);
	json_decref(state);
}

static inline void load(const char *run, struct stepper *s)
{
	struct checkpoint_found f;
	struct text note = {0};
	struct error err = {0};

	assert_int_equal(checkpoint_find(&f, run, &note, &err), STATUS_OK);
	assert_int_equal(checkpoint_load(&f, &s->model->params, &err), STATUS_OK);
	assert_int_equal(model_refresh(s->model, &s->back, &err), STATUS_OK);
	checkpoint_found_release(&f);
	text_release(&note);
}
#endif
