/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a small model of random weights: what a step is must not depend on how it is cut. */
#include "test.h"

#include <math.h>
#include <unistd.h>
#include "core/file/file.h"
#include "train_step_bed.h"

static double worst_difference(const struct mat *a, const struct mat *b)
{
	const float *x = a->data, *y = b->data;
	double worst = 0, largest = 0;

	for (int64_t i = 0; i < a->cols; i++) {
		double d = fabs((double)x[i] - y[i]), v = fabs((double)x[i]);

		worst = d > worst ? d : worst;
		largest = v > largest ? v : largest;
	}
	assert_true(largest > 0);
	return worst / largest;
}

/* 8 x 1, 2 x 4, 1 x 8: the same loss, the same gradient, the same parameters. */
static void accumulation_changes_nothing(const char *lora, const char *training)
{
	struct stepper one, many;
	struct config c;
	double norm_one, norm_many;

	configure(&c, lora, training);
	begin(&one, &c);
	for (int each = 1; each <= 4; each *= 4) {
		double a, b;

		begin(&many, &c);
		if (each == 1) {
			a = step(&one, DOCS, 0, &norm_one);
		} else {
			stepper_release(&one);
			begin(&one, &c);
			a = step(&one, DOCS, 0, &norm_one);
		}
		b = step(&many, each, 0, &norm_many);
		assert_true(fabs(a - b) < 1e-5 * a);
		assert_true(fabs(norm_one - norm_many) < 1e-4 * norm_one);
		assert_true(worst_difference(&one.model->params.grad, &many.model->params.grad) < 1e-4);
		stepper_release(&many);
	}
	stepper_release(&one);
	config_release(&c);
}

static void accumulation_of_an_adapter(void **state)
{
	(void)state;
	accumulation_changes_nothing("lora: {r: 4, dropout: 0.1, modules_to_save: [lm_head]}", "");
}

static void accumulation_of_everything(void **state)
{
	(void)state;
	accumulation_changes_nothing("", "full_finetuning: true, gradient_checkpointing: true, "
					 "gradient_accumulation_steps: 8");
}

/* Documents [first, last) in micro-batches of `each`, the last of them smaller where they don't divide. */
static void micros(struct stepper *s, int first, int last, int each, uint64_t number, uint64_t targets)
{
	struct step_part took = {0};
	struct error err = {0};
	struct rows r;

	for (int d = first; d < last; d += each) {
		make(&r, &s->model->shape, d, d + each < last ? d + each : last);
		assert_int_equal(stepper_micro(s, &r.b, number, targets, &took, &err), STATUS_OK);
	}
}

static uint64_t targets_in(const struct stepper *s, int first, int last)
{
	struct rows r;

	make(&r, &s->model->shape, first, last);
	return (uint64_t)r.b.targets;
}

static void add_gradient(struct stepper *to, const struct stepper *from)
{
	float *sum = to->model->params.grad.data;
	const float *g = from->model->params.grad.data;

	for (size_t i = 0; i < to->model->params.length; i++)
		sum[i] += g[i];
	*(double *)to->sums.data += *(const double *)from->sums.data; /* the first: the loss */
}

/*
 * A step shared by `ranks` steppers: each has its part of the documents, gradients are summed, and then each
 * clips the sum. The first is the caller's.
 */
static void step_of_ranks(struct stepper *first, const struct config *c, int ranks, double *loss,
			  double *norm)
{
	struct stepper others[3], *rank[] = {first, &others[0], &others[1], &others[2]};
	struct error err = {0};

	for (int i = 0; i < ranks; i++) {
		begin(rank[i], c);
		assert_int_equal(stepper_begin(rank[i], &err), STATUS_OK);
		micros(rank[i], i * DOCS / ranks, (i + 1) * DOCS / ranks, 2, 0, targets_in(rank[i], 0, DOCS));
		if (i)
			add_gradient(rank[0], rank[i]);
	}
	assert_int_equal(stepper_end(rank[0], 1e-2, 0, loss, norm, &err), STATUS_OK);
	for (int i = 1; i < ranks; i++) {
		double sum, own;

		/* What is left in the first's gradient is the sum, before clipping: each steps by the same.
		 */
		memcpy(rank[i]->model->params.grad.data, rank[0]->model->params.grad.data,
		       rank[0]->model->params.length * sizeof(float));
		assert_int_equal(stepper_end(rank[i], 1e-2, 0, &sum, &own, &err), STATUS_OK);
		assert_true(own == *norm);
		assert_memory_equal(rank[i]->model->params.master.data, rank[0]->model->params.master.data,
				    rank[0]->model->params.length * sizeof(float));
		stepper_release(rank[i]);
	}
}

static void gradients_of_ranks_are_summed_before_they_are_clipped(void **state)
{
	struct stepper one, many;
	double loss[2], norm[2];
	struct config c;

	(void)state;
	configure(&c, "lora: {r: 4, dropout: 0.1, modules_to_save: [lm_head]}", "max_grad_norm: 0.01");
	step_of_ranks(&one, &c, 1, &loss[0], &norm[0]);
	assert_true(norm[0] > 0.02); /* it was clipped */
	for (int ranks = 2; ranks <= 4; ranks *= 2) {
		step_of_ranks(&many, &c, ranks, &loss[1], &norm[1]);
		assert_true(fabs(loss[0] - loss[1]) < 1e-5 * loss[0]);
		assert_true(fabs(norm[0] - norm[1]) < 1e-4 * norm[0]);
		assert_true(worst_difference(&one.model->params.m, &many.model->params.m) < 1e-4);
		assert_true(worst_difference(&one.model->params.v, &many.model->params.v) < 1e-4);
		stepper_release(&many);
	}
	stepper_release(&one);
	config_release(&c);
}

/* A window of fewer, smaller micro-batches after a full one: its loss and gradient are those of one batch. */
static void a_short_last_window_is_one_batch(void **state)
{
	static const int cut[] = {0, 5, DOCS};
	struct stepper whole, parts;
	struct config c;

	(void)state;
	configure(&c, "lora: {r: 4, dropout: 0.1, modules_to_save: [lm_head]}", "");
	begin(&whole, &c);
	begin(&parts, &c);
	for (int i = 0; i < 2; i++) {
		uint64_t targets = targets_in(&whole, cut[i], cut[i + 1]);
		double loss[2], norm[2];
		struct error err = {0};

		assert_int_equal(stepper_begin(&whole, &err), STATUS_OK);
		assert_int_equal(stepper_begin(&parts, &err), STATUS_OK);
		micros(&whole, cut[i], cut[i + 1], DOCS, (uint64_t)i, targets);
		micros(&parts, cut[i], cut[i + 1], i ? 2 : 1, (uint64_t)i, targets); /* 5 x 1; 2 and 1 */
		assert_true(worst_difference(&whole.model->params.grad, &parts.model->params.grad) < 1e-4);
		assert_int_equal(stepper_end(&whole, 1e-4, (uint64_t)i, &loss[0], &norm[0], &err), STATUS_OK);
		assert_int_equal(stepper_end(&parts, 1e-4, (uint64_t)i, &loss[1], &norm[1], &err), STATUS_OK);
		assert_true(loss[0] > 0 && fabs(loss[0] - loss[1]) < 1e-5 * loss[0]);
		assert_true(fabs(norm[0] - norm[1]) < 1e-4 * norm[0]);
	}
	stepper_release(&whole);
	stepper_release(&parts);
	config_release(&c);
}

/* Ten steps, and five, a checkpoint, another process's five: bit for bit, with dropout and clipping. */
static void a_resumed_run_is_the_uninterrupted_one(void **state)
{
	char run[] = "/tmp/train_step.XXXXXX";
	struct stepper whole, cut;
	struct config c;
	double loss[10], norm, first = 0;

	(void)state;
	assert_non_null(mkdtemp(run));
	configure(&c, "lora: {r: 4, dropout: 0.2}", "max_grad_norm: 0.5");
	begin(&whole, &c);
	for (uint64_t i = 0; i < 10; i++) {
		loss[i] = step(&whole, 4, i, &norm);
		if (i == 4)
			save(run, &whole, 5);
	}
	begin(&cut, &c);
	load(run, &cut);
	for (uint64_t i = 5; i < 10; i++) {
		first = step(&cut, 4, i, &norm);
		assert_true(first == loss[i]);
	}
	assert_memory_equal(cut.model->params.master.data, whole.model->params.master.data,
			    whole.model->params.length * sizeof(float));
	assert_memory_equal(cut.model->params.v.data, whole.model->params.v.data,
			    whole.model->params.length * sizeof(float));
	assert_true(loss[9] < loss[0]);
	stepper_release(&whole);
	stepper_release(&cut);
	config_release(&c);
	file_remove_tree(run);
}

/* A full micro-batch uses the arena to its last byte; its work is what the plan counts, but for what is made
 * again; without targets in half of its rows it is less. */
static void the_plan_is_what_is_used(void **state)
{
	static const char *const modes[] = {"recompute: none", "recompute: cheap", "recompute: full"};
	double flop = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct stepper s, plan;
		struct step_part took = {0}, half = {0};
		struct error err = {0};
		struct config c;
		static int32_t token[DOCS * LENGTH_MAX], position[DOCS * LENGTH_MAX],
			trained[DOCS * LENGTH_MAX], target[DOCS * LENGTH_MAX], start[DOCS + 1];
		struct batch b = {.token = token,
				  .position = position,
				  .target = target,
				  .doc_start = start,
				  .trained = trained,
				  .tokens = DOCS * LENGTH_MAX,
				  .docs = DOCS,
				  .doc_len_max = LENGTH_MAX,
				  .targets = DOCS * LENGTH_MAX};
		double loss, norm;

		configure(&c, "lora: {r: 4, dropout: 0.1}", modes[i]);
		begin(&s, &c);
		for (int k = 0; k < DOCS * LENGTH_MAX; k++) {
			token[k] = target[k] = k % 50;
			position[k] = k % LENGTH_MAX;
			trained[k] = k;
			start[k / LENGTH_MAX + 1] = (k / LENGTH_MAX + 1) * LENGTH_MAX;
		}
		assert_int_equal(stepper_plan(&plan, &s.model->shape, &c, THREADS, &err), STATUS_OK);
		assert_int_equal(stepper_begin(&s, &err), STATUS_OK);
		assert_int_equal(stepper_micro(&s, &b, 0, (uint64_t)b.targets, &took, &err), STATUS_OK);
		assert_int_equal(stepper_end(&s, 1e-3, 0, &loss, &norm, &err), STATUS_OK);
		assert_int_equal(s.arena.peak, plan.arena.peak);
		assert_memory_equal(s.arena.kind_at_peak, plan.arena.kind_at_peak,
				    sizeof(plan.arena.kind_at_peak));
		assert_true(plan.backward.again > 0 && plan.forward.again == 0);
		assert_true(fabs(took.flop - (plan.forward.flop + plan.backward.flop -
					      plan.backward.again)) <= 1e-9 * took.flop);
		assert_true(i == 0 || fabs(took.flop - flop) <= 1e-9 * flop);
		flop = took.flop;
		b.targets /= 2;
		for (int k = DOCS * LENGTH_MAX / 2; k < DOCS * LENGTH_MAX; k++)
			target[k] = BATCH_UNTRAINED;
		assert_int_equal(stepper_micro(&s, &b, 1, (uint64_t)b.targets, &half, &err), STATUS_OK);
		assert_true(half.flop > 0 && half.flop < flop);
		stepper_release(&s);
		stepper_release(&plan);
		config_release(&c);
	}
}

/* AdamW by its definition, in double: decay apart, corrections, the norm scaled down to max_norm. */
static void the_optimiser_is_the_definition(void **state)
{
	enum { N = 5 };
	struct param table[2] = {{.rows = 1, .cols = 3, .decay = 1},
				 {.rows = 1, .cols = 2, .offset = 3, .decay = 0}};
	float memory[4][N] = {{1, -2, 3, 0.5f, 4}, {3, 4, 0, 0, 12}};
	double x[N], m[N] = {0}, v[N] = {0};
	struct params p = {.table = table, .count = 2, .length = N};
	struct mat *flat[] = {&p.master, &p.grad, &p.m, &p.v};
	const struct optimiser o = {
		.beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .decay = 0.1f, .max_norm = 1};
	const struct cpu_options options = {.threads = 1};
	static uint8_t place[65536] __attribute__((aligned(ARENA_ALIGN)));
	struct arena arena = {.base = place, .size = sizeof(place)};
	struct error err = {0};
	struct backend back;
	double squares;

	(void)state;
	for (int i = 0; i < 4; i++)
		*flat[i] = (struct mat){.data = memory[i], .rows = 1, .cols = N, .ld = N, .dtype = DTYPE_F32};
	for (int i = 0; i < N; i++)
		x[i] = memory[0][i];
	assert_int_equal(cpu_backend_create(&back, &options, &arena, &err), STATUS_OK);
	for (int t = 1; t <= 6; t++) {
		squares = 0;
		assert_int_equal(optimiser_squares(&back, &p, &squares, &err), STATUS_OK);
		assert_int_equal(optimiser_step(&o, &back, &p, 0.01, (uint64_t)t, &squares, &err), STATUS_OK);
		assert_true(fabs(sqrt(squares) - 13) < 1e-6);
		for (int i = 0; i < N; i++) {
			double g = memory[1][i] / (13 + 1e-6), decay = i < 3 ? 0.1 : 0;

			x[i] -= 0.01 * decay * x[i];
			m[i] = 0.9 * m[i] + 0.1 * g;
			v[i] = 0.99 * v[i] + 0.01 * g * g;
			x[i] -= 0.01 * m[i] / (1 - pow(0.9, t)) / (sqrt(v[i] / (1 - pow(0.99, t))) + 1e-8);
			assert_true(fabs(memory[0][i] - x[i]) < 1e-5);
		}
	}
	memory[1][2] = NAN; /* nothing is changed */
	squares = 0;
	assert_int_equal(optimiser_squares(&back, &p, &squares, &err), STATUS_OK);
	assert_int_equal(optimiser_step(&o, &back, &p, 0.01, 7, &squares, &err), STATUS_OK);
	assert_false(isfinite(squares));
	assert_true(fabs(memory[0][0] - x[0]) < 1e-5);
	cpu_backend_release(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accumulation_of_an_adapter),
		cmocka_unit_test(accumulation_of_everything),
		cmocka_unit_test(gradients_of_ranks_are_summed_before_they_are_clipped),
		cmocka_unit_test(a_short_last_window_is_one_batch),
		cmocka_unit_test(a_resumed_run_is_the_uninterrupted_one),
		cmocka_unit_test(the_plan_is_what_is_used),
		cmocka_unit_test(the_optimiser_is_the_definition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
