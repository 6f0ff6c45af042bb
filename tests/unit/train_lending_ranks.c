/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient's memory as the passes' memory on several ranks, which are threads. Runs have the same bits as with
 * memory of their own, for each zero_stage and with tensor parallel. Some ranks have no rows in a step, or rows without
 * a target.
 */
#include "fake_gpu.h"
#include <unistd.h>
#include "lending_bed.h"
#include "rank_threads.h"
#include "train/memory/process_memory.h"

enum { STEPS = 5, RANKS_MOST = 4 };
struct mesh_variant {
	unsigned ranks, tensor, stage;
	bool tied;
	const char *training; /* settings */
};

struct rank {
	struct stepper s;
	const struct mesh_variant *v;
	pthread_t thread;
	unsigned number;
	double loss[STEPS], norm[STEPS], held;
};

struct ranks {
	const struct mesh_variant *v;
	struct rank_threads data[RANKS_MOST], tensor[RANKS_MOST];
	struct rank rank[RANKS_MOST];
};

static unsigned split_size(const struct mesh_variant *v)
{
	return v->tensor ? v->tensor : 1;
}

/* With two micro-batches in a step the gradient lends nothing. */
static void open_stepper(struct stepper *s, const struct mesh_variant *v, unsigned rank, unsigned micros)
{
	struct shape shape = lending_shape(v->tensor ? FAMILY_LLAMA : FAMILY_QWEN2);
	struct error err = {0};
	struct config c;
	char text[768];

	shape.tied = v->tied;
	snprintf(text, sizeof(text),
		 "model: {path: /m}\ndata: {train: /t, max_seq_length: %d, eval: /e}\n"
		 "training: {device: cpu, full_finetuning: true, per_device_train_batch_size: %d, per_device_eval_batch_size: %d, "
		 "gradient_accumulation_steps: %u, learning_rate: 1e-2, zero_stage: %u, tensor_parallel_size: %u%s}\n",
		 LENGTH, ROWS / LENGTH, ROWS / LENGTH, micros, v->stage, split_size(v), v->training);
	must(config_parse(&c, "t", text, strlen(text), &err), &err);
	c.place.rank = rank;
	c.place.ranks = v->ranks;
	must(stepper_create(s, &shape, &c, 1, &err), &err);
	config_release(&c);
}

static void open_ranks(struct ranks *m, const struct mesh_variant *v, unsigned micros)
{
	const unsigned tensor = split_size(v), copies = v->ranks / tensor;

	*m = (struct ranks){.v = v};
	for (unsigned t = 0; t < tensor; t++)
		rank_threads_open(&m->data[t], copies);
	for (unsigned c = 0; c < copies; c++)
		rank_threads_open(&m->tensor[c], tensor);
	for (unsigned r = 0; r < v->ranks; r++) {
		struct rank *one = &m->rank[r];

		one->v = v;
		one->number = r;
		open_stepper(&one->s, v, r, micros);
		stepper_join(&one->s, copies > 1 ? &m->data[r % tensor].rank[r / tensor].comm : NULL,
			     tensor > 1 ? &m->tensor[r / tensor].rank[r % tensor].comm : NULL);
	}
}

static void close_ranks(struct ranks *m)
{
	const unsigned tensor = split_size(m->v);

	for (unsigned r = 0; r < m->v->ranks; r++)
		stepper_release(&m->rank[r].s);
	for (unsigned t = 0; t < tensor; t++)
		rank_threads_close(&m->data[t]);
	for (unsigned c = 0; c < m->v->ranks / tensor; c++)
		rank_threads_close(&m->tensor[c]);
}

/* The documents of a copy in a step; NULL: it has no rows. */
static const int *docs_of(unsigned copy, unsigned copies, unsigned step)
{
	static const int *const all[STEPS] = {equal, packed, packed, fewer, packed};

	if (step == 2 && copies > 1 && !copy)
		return NULL;
	return step == 1 && copy % 2 ? fewer : all[step];
}

static void rows_of(struct rows *r, unsigned copy, unsigned copies, unsigned step, int64_t vocab)
{
	const int *docs = docs_of(copy, copies, step);

	*r = (struct rows){0};
	if (docs)
		make(r, docs, vocab);
	if (step != 3 || copies == 1 || copy + 1 < copies)
		return;
	for (int64_t i = 0; i < r->b.tokens; i++)
		r->target[i] = BATCH_UNTRAINED;
	r->b.targets = 0;
}

static enum status one_step(struct rank *r, unsigned step, struct error *err)
{
	const unsigned copies = r->v->ranks / split_size(r->v), copy = r->number / split_size(r->v);
	const int64_t vocab = model_whole(r->s.model)->shape.vocab;
	struct step_part took = {0};
	uint64_t targets = 0;
	struct rows own;
	enum status st;

	for (unsigned c = 0; c < copies; c++) {
		rows_of(&own, c, copies, step, vocab);
		targets += (uint64_t)own.b.targets;
	}
	rows_of(&own, copy, copies, step, vocab);
	poison(&r->s);
	st = stepper_begin(&r->s, err);
	r->s.last = true;
	r->s.rate = 1e-2;
	if (!st && own.b.tokens)
		st = stepper_micro(&r->s, &own.b, step, targets, &took, err);
	else if (!st)
		st = stepper_idle(&r->s, true, err);
	if (!st)
		st = stepper_end(&r->s, 1e-2, step, &r->loss[step], &r->norm[step], err);
	make(&own, packed, vocab);
	return st ? st : stepper_evaluate(&r->s, &own.b, &r->held, err);
}

static enum status all_steps(struct rank *r, struct error *err)
{
	enum status st = model_load(r->s.model, &r->s.back, &(struct model_source){.random = true, .seed = 3}, err);

	if (!st)
		st = model_loaded(r->s.model, &r->s.back, err);
	if (!st)
		st = stepper_gather(&r->s, err);
	if (!st)
		st = model_refresh(r->s.model, &r->s.back, err);
	for (unsigned i = 0; i < STEPS && !st; i++)
		st = one_step(r, i, err);
	return st;
}

/* A failure ends the test at once, because the other ranks would wait for this one. */
static void *thread(void *arg)
{
	struct rank *r = arg;
	struct error err = {0};

	if (all_steps(r, &err)) {
		fprintf(stderr, "stage %u,%s: rank %u: %s\n", r->v->stage, r->v->training, r->number, err.text);
		_exit(1);
	}
	return NULL;
}

static void run_ranks(struct ranks *m)
{
	for (unsigned r = 0; r < m->v->ranks; r++)
		assert_int_equal(pthread_create(&m->rank[r].thread, NULL, thread, &m->rank[r]), 0);
	for (unsigned r = 0; r < m->v->ranks; r++)
		pthread_join(m->rank[r].thread, NULL);
}

static void ranks_are_equal(const struct rank *own, const struct rank *lent)
{
	const struct mesh_variant *v = own->v;
	struct params *a = &own->s.model->params, *b = &lent->s.model->params;

	for (unsigned i = 0; i < STEPS; i++) {
		assert_true(isfinite(own->norm[i]) && own->norm[i] > 0);
		if (memcmp(&own->norm[i], &lent->norm[i], sizeof(double)) || memcmp(&own->loss[i], &lent->loss[i], sizeof(double)))
			fail_msg("%u ranks, tensor %u, stage %u%s: rank %u, step %u: loss %.9g and %.9g, norm %.9g and %.9g", v->ranks,
				 split_size(v), v->stage, v->training, own->number, i, own->loss[i], lent->loss[i], own->norm[i], lent->norm[i]);
	}
	assert_true(own->held > 0);
	assert_memory_equal(&own->held, &lent->held, sizeof(double));
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const uint64_t bytes = params_state_bytes(a, (enum params_state)i);

		assert_int_equal(bytes, params_state_bytes(b, (enum params_state)i));
		if (bytes)
			assert_memory_equal(params_state(a, (enum params_state)i)->data, params_state(b, (enum params_state)i)->data, bytes);
	}
}

/* What the plan gives to passes and to the arena is what full micro-batches used. */
static void plan_is_used(const struct rank *r)
{
	const struct lending *l = &r->s.lending;

	assert_int_equal(r->s.arena.used, r->s.arena.size);
	assert_int_equal(r->s.arena.peak, r->s.arena.size);
	assert_true(l->room.peak <= l->lead + l->shared + l->trained.scratch);
	assert_int_equal(l->saved.peak, l->trained.saved > l->evaluated.saved ? l->trained.saved : l->evaluated.saved);
}

static void bits_are_equal(const struct mesh_variant *v)
{
	struct ranks own, lent;
	size_t saved = 0;

	open_ranks(&own, v, 2);
	open_ranks(&lent, v, 1);
	run_ranks(&own);
	run_ranks(&lent);
	for (unsigned r = 0; r < v->ranks; r++) {
		assert_false(own.rank[r].s.lending.on);
		assert_true(lent.rank[r].s.lending.on);
		assert_int_equal(lent.rank[r].s.lending.lead, lent.rank[0].s.lending.lead);
		saved += own.rank[r].s.arena.size - lent.rank[r].s.arena.size;
		ranks_are_equal(&own.rank[r], &lent.rank[r]);
		plan_is_used(&lent.rank[r]);
	}
	assert_true(saved > 0);
	close_ranks(&own);
	close_ranks(&lent);
}

static const char *const levels[] = {"none", "cheap", "full", "offload"};

/* Each stage has every level in the ordinary build, and every second one under ASan: each stage, level and further choice occurs. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static void each_stage_has_the_same_bits(void **state)
{
	static const char *const more[] = {"", ", max_grad_norm: 0, bucket_cap_mb: 0.01", ", max_grad_norm: 0.01, optim: adamw_8bit",
					   ", offload: optimizer, bucket_cap_mb: 0.01"};

	(void)state;
	for (unsigned stage = 0; stage < 4; stage++)
		for (unsigned level = SANITIZED ? stage / 2 : 0; level < 4; level += SANITIZED ? 2 : 1) {
			char training[128];

			snprintf(training, sizeof(training), ", recompute: %s%s", levels[level], more[(stage + level) % 4]);
			bits_are_equal(&(struct mesh_variant){.ranks = level % 2 ? 4 : 2, .stage = stage, .training = training});
		}
}

static void tensor_parallel_has_the_same_bits(void **state)
{
	(void)state;
	for (unsigned level = 0; level < 3; level++) {
		char training[128];

		snprintf(training, sizeof(training), ", recompute: %s, bucket_cap_mb: 0.01", levels[level]);
		bits_are_equal(&(struct mesh_variant){.ranks = 2, .tensor = 2, .training = training});
		for (unsigned stage = 0; stage < 4; stage++)
			bits_are_equal(&(struct mesh_variant){.ranks = 4, .tensor = 2, .stage = stage, .training = training});
	}
}

/* The head adds to the gradient of a tied embedding before the layers do, but to memory of its own. */
static void a_tied_head_has_the_same_bits_if_the_gradient_is_divided(void **state)
{
	(void)state;
	for (unsigned stage = 2; stage < 4; stage++)
		bits_are_equal(&(struct mesh_variant){.ranks = 2, .stage = stage, .tied = true, .training = ", recompute: none"});
}

/* Makes a step of one rank, without communication, whose passes begin so many bytes too late. */
static enum status late_step(struct stepper *s, size_t bytes, struct error *err)
{
	struct step_part took = {0};
	struct rows r;

	make(&r, equal, s->model->shape.vocab);
	must(model_load(s->model, &s->back, &(struct model_source){.random = true, .seed = 3}, err), err);
	must(model_loaded(s->model, &s->back, err), err);
	must(stepper_begin(s, err), err);
	s->lending.room.base += bytes;
	return stepper_micro(s, &r.b, 0, (uint64_t)r.b.targets, &took, err);
}

/* The lead of one rank is as small as its range allows: the passes of this rank may not begin any later. */
static void the_first_byte_of_an_overlap_is_an_error(void **state)
{
	static const struct mesh_variant v = {.ranks = 3, .stage = 3, .training = ", recompute: full"};
	unsigned found = 0;

	(void)state;
	for (unsigned rank = 0; rank < v.ranks; rank++) {
		struct error err = {0};
		struct stepper s;

		open_stepper(&s, &v, rank, 1);
		must(late_step(&s, 0, &err), &err);
		stepper_release(&s);
		open_stepper(&s, &v, rank, 1);
		if (late_step(&s, ARENA_ALIGN, &err)) {
			assert_int_equal(err.status, STATUS_BUG);
			assert_non_null(strstr(err.text, "would overwrite matrices"));
			found++;
		}
		stepper_release(&s);
	}
	assert_true(found > 0);
}

static void planned(struct memory_plan *m, unsigned rank, unsigned ranks, const char *training)
{
	struct error err = {0};
	struct shape s;
	struct config c;
	char text[512];

	snprintf(text, sizeof(text),
		 "model: {path: /m}\ndata: {train: /t, max_seq_length: 4096}\ntraining: {device: gpu, full_finetuning: true, "
		 "per_device_train_batch_size: 2, recompute: none%s}\n",
		 training);
	must(shape_by_name(&s, "qwen2-7b", &err), &err);
	must(config_parse(&c, "t", text, strlen(text), &err), &err);
	c.place.rank = rank;
	c.place.ranks = ranks;
	must(memory_plan(m, &s, &c, 1, &err), &err);
	config_release(&c);
}

/* FSDP2 takes 87.1e9 bytes of each of two cards for the same (docs/TARGETS.md). */
static void seven_billion_parameters_on_two_cards_need_less_than_fsdp2(void **state)
{
	(void)state;
	for (unsigned rank = 0; rank < 2; rank++) {
		struct memory_plan own, lent;

		planned(&own, rank, 2, ", zero_stage: 3, gradient_accumulation_steps: 2");
		planned(&lent, rank, 2, ", zero_stage: 3");
		assert_int_equal(own.shared, 0);
		assert_int_equal(own.arena_bytes - lent.arena_bytes, lent.shared);
		assert_true((double)lent.arena_bytes < 87.1e9);
		assert_true((double)lent.shared > 0.9 * (double)(lent.arena[MEM_TRAINED]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stage_has_the_same_bits),
		cmocka_unit_test(tensor_parallel_has_the_same_bits),
		cmocka_unit_test(a_tied_head_has_the_same_bits_if_the_gradient_is_divided),
		cmocka_unit_test(the_first_byte_of_an_overlap_is_an_error),
		cmocka_unit_test(seven_billion_parameters_on_two_cards_need_less_than_fsdp2),
	};

	fakes_take();
	return cmocka_run_group_tests_name("train_lending_ranks", tests, NULL, NULL);
}
