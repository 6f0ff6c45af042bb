/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of probe attention: the double-precision gradients against differences of the function, the CPU
 * engine and cuDNN's graphs (the fake one runs them) verified in every element, and engines that err. */
#include "unit/attention_backward_bed.h"

#include <math.h>
#include "core/math/random.h"
#include "probe/attention/element_types.h"

/* -- by differences -- */

enum { Q_LEN = 5, KEYS = 7, DIM = 8 };

struct small {
	struct attention_problem p;
	float q[Q_LEN][DIM], k[KEYS][DIM], v[KEYS][DIM], d_o[Q_LEN][DIM];
};

static void small_row(const void *from, enum attention_tensor t, uint32_t b, uint32_t h, uint32_t row,
		      float *out)
{
	const struct small *s = from;

	(void)b, (void)h;
	memcpy(out, t == ATTENTION_K ? s->k[row] : s->v[row], sizeof(s->k[row]));
}

/* sum of dO times O, by the definition. */
static double value_of(const struct small *s)
{
	double total = 0, scale = attention_scale(&s->p);

	for (uint32_t i = 0; i < Q_LEN; i++) {
		struct attention_keys seen = attention_keys(&s->p, 0, i);
		double sum = 0, inner = 0;

		for (uint32_t j = seen.from; j < seen.to; j++) {
			double logit = 0, product = 0;

			for (unsigned d = 0; d < DIM; d++) {
				logit += scale * (double)s->q[i][d] * (double)s->k[j][d];
				product += (double)s->d_o[i][d] * (double)s->v[j][d];
			}
			sum += exp(logit);
			inner += exp(logit) * product;
		}
		total += seen.to > seen.from ? inner / sum : 0;
	}
	return total;
}

/* (f(x + h) - f(x - h)) / 2h of one element; h is a power of two that the element can take. */
static double difference(struct small *s, float *x)
{
	const float h = 0x1p-8f, was = *x;
	double above, below;

	*x = was + h;
	above = value_of(s);
	*x = was - h;
	below = value_of(s);
	*x = was;
	return (above - below) / (2 * (double)h);
}

static void make_small(struct small *s, enum attention_mask mask)
{
	float *all[] = {s->q[0], s->k[0], s->v[0], s->d_o[0]};
	unsigned count[] = {Q_LEN * DIM, KEYS * DIM, KEYS * DIM, Q_LEN * DIM};

	s->p = (struct attention_problem){.type = ATTENTION_F16,
					  .out_type = ATTENTION_F16,
					  .batch = 1,
					  .heads = 1,
					  .kv_heads = 1,
					  .q_len = Q_LEN,
					  .kv_len = KEYS,
					  .head_dim = DIM,
					  .mask = mask,
					  .window_left = 2,
					  .window_right = 1};
	for (unsigned t = 0; t < 4; t++)
		for (unsigned i = 0; i < count[t]; i++) /* multiples of 2^-8: a step changes them exactly */
			all[t][i] = (float)((int)(random_u32(7, t, i) >> 22) - 512) * 0x1p-8f;
}

static void test_gradients_are_differences_of_the_function(void **state)
{
	static const enum attention_mask masks[] = {ATTENTION_FULL, ATTENTION_CAUSAL, ATTENTION_WINDOW};

	(void)state;
	for (unsigned m = 0; m < 3; m++) {
		struct attention_gradient g;
		double d_q[Q_LEN][DIM];
		struct small s;
		const struct attention_rows rows = {small_row, &s};

		make_small(&s, masks[m]);
		assert_true(attention_gradient_alloc(&g, &s.p));
		attention_gradient_begin(&g, &s.p, &rows, 0, 0);
		for (uint32_t i = 0; i < Q_LEN; i++)
			attention_gradient_row(&g, &s.p, s.q[i], s.d_o[i], 0, i, d_q[i]);
		for (unsigned d = 0; d < DIM; d++) {
			for (unsigned i = 0; i < Q_LEN; i++)
				assert_float_equal(d_q[i][d], difference(&s, &s.q[i][d]), 2e-4);
			for (unsigned j = 0; j < KEYS; j++) {
				assert_float_equal(g.d_k[j * DIM + d], difference(&s, &s.k[j][d]), 2e-4);
				assert_float_equal(g.d_v[j * DIM + d], difference(&s, &s.v[j][d]), 2e-4);
			}
		}
		attention_gradient_free(&g);
	}
}

/* -- engines -- */

static const char *const cases[] = {
	"batch=2 heads=2 seq=24 head_dim=32",
	"batch=1 heads=4 kv_heads=2 seq=20 kv_seq=33 head_dim=32 mask=causal type=bf16",
	"batch=1 heads=2 seq=30 head_dim=32 mask=window left=7 layout=bshd",
	"batch=3 heads=2 seq=16 head_dim=32 lengths=5+16+9 mask=causal",
	"batch=1 heads=2 seq=40 head_dim=16 data=large",
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void test_the_cpu_is_right_in_every_element(void **state)
{
	static const char *const more[] = {
		"batch=1 heads=1 seq=1 head_dim=8",
		"batch=1 heads=2 seq=50 kv_seq=20 mask=causal head_dim=24 type=bf16", /* rows that keep
											 nothing */
		"batch=1 heads=6 kv_heads=2 seq=90 mask=window left=20 right=5",
		"batch=2 heads=2 seq=150 head_dim=128 type=bf16",
	};
	struct bed *b = *state;

	for (size_t i = 0; i < CASES + sizeof(more) / sizeof(more[0]); i++) {
		const char *words = i < CASES ? cases[i] : more[i - CASES];

		begin(b, &attention_cpu_engine, words);
		verified(b, words);
		end(b);
	}
}

static void test_cudnn_is_right_in_every_element(void **state)
{
	struct bed *b = *state;

	for (size_t i = 0; i < CASES; i++) {
		begin(b, &attention_cudnn_engine, cases[i]);
		verified(b, cases[i]);
		end(b);
	}
}

/* -- engines that err -- */

static struct {
	const struct attention_access *real;
	enum { LAZY, WIDER, OFF_SCALE, ONE_ELEMENT, TWO_KEYS, LATE } how;
	enum attention_tensor t;
	uint64_t at;
	unsigned runs;
} fault;

static enum status faulty_run(void *state, unsigned set, struct error *err)
{
	struct attention *a = state;
	struct attention_problem keep = a->c.problem;
	enum status st;

	fault.runs++;
	if (fault.how == LAZY)
		return STATUS_OK;
	if (fault.how == WIDER)
		a->c.problem.window_left++;
	if (fault.how == OFF_SCALE)
		a->c.problem.scale = attention_scale(&keep) * 1.02;
	st = fault.real->run(state, set, err);
	a->c.problem = keep;
	return st;
}

static enum status faulty_read(void *state, unsigned set, enum attention_tensor t, void *data,
			       struct error *err)
{
	const struct attention_problem *p = &((struct attention *)state)->c.problem;
	enum status st = fault.real->read(state, set, t, data, err);
	uint16_t *x = data;

	if (t != fault.t)
		return st;
	if (fault.how == ONE_ELEMENT || (fault.how == LATE && set == 1))
		x[fault.at] ^= 1 << 14;
	if (fault.how == TWO_KEYS) { /* rows 3 and 4 */
		char keep[2 * ATTENTION_HEAD_DIM_MAX], *rows = data;
		size_t bytes = 2 * p->head_dim;

		memcpy(keep, rows + 3 * bytes, bytes);
		memmove(rows + 3 * bytes, rows + 4 * bytes, bytes);
		memcpy(rows + 4 * bytes, keep, bytes);
	}
	return st;
}

static struct wrong verify_faulty(struct bed *b, const char *words, int how, enum attention_tensor t,
				  uint64_t at)
{
	struct attention_access access;
	struct wrong wrong;

	begin(b, &attention_cpu_engine, words);
	fault.real = b->state->access;
	fault.how = how;
	fault.t = t;
	fault.at = at;
	fault.runs = 0;
	access = *fault.real;
	access.run = faulty_run;
	access.read = faulty_read;
	b->state->access = &access;
	attention_verify(b->state, &wrong, &b->err);
	if (how == LATE) {
		assert_int_equal(b->err.status, STATUS_OK);
		for (uint64_t n = 0; n < 3; n++)
			assert_int_equal(b->engine->enqueue(b->state, n, &b->err), STATUS_OK);
		attention_verify(b->state, &wrong, &b->err);
	}
	b->state->access = fault.real;
	assert_true(fault.runs > 0);
	end(b);
	return wrong;
}

static void test_an_engine_that_errs_is_found(void **state)
{
	static const struct {
		const char *words;
		int how;
		enum attention_tensor t;
		uint64_t at;
		const char *says;
	} faults[] = {
		{"batch=1 heads=2 seq=64", LAZY, 0, 0, "exact pass with means of V"},
		{"batch=1 heads=2 seq=100 mask=window left=30", WIDER, 0, 0, "exact pass with means of V"},
		{"batch=1 heads=2 seq=100", OFF_SCALE, 0, 0, "dQ batch 0 head 0"},
		{"batch=2 heads=3 seq=64", ONE_ELEMENT, ATTENTION_D_Q, (4 * 64 + 17) * 64 + 9,
		 "dQ batch 1 head 1 row 17 column 9: expected"},
		{"batch=2 heads=3 seq=64", ONE_ELEMENT, ATTENTION_D_V, (4 * 64 + 17) * 64 + 9,
		 "dV batch 1 head 1 row 17 column 9: expected"},
		{"batch=2 heads=6 kv_heads=3 seq=64 layout=bshd", ONE_ELEMENT, ATTENTION_D_K,
		 ((64 + 17) * 3 + 1) * 64 + 9, "dK batch 1 head 1 row 17 column 9: expected 0, found"},
		{"batch=1 heads=1 seq=100 mask=causal type=bf16", TWO_KEYS, ATTENTION_D_V, 0,
		 "dV batch 0 head 0 row 3"},
		{"batch=1 heads=1 seq=100 mask=causal type=bf16", TWO_KEYS, ATTENTION_D_K, 0, "exact pass with K = 0: "},
		{"batch=2 heads=3 seq=64", LATE, ATTENTION_D_K, 5, "after timing: "},
		{"batch=2 heads=3 seq=64", LATE, ATTENTION_D_K, (3 * 64 + 17) * 64 + 9, "after timing: "},
	};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct wrong w = verify_faulty(b, faults[i].words, faults[i].how, faults[i].t, faults[i].at);

		if (b->err.status != STATUS_MISMATCH || !w.count || !strstr(b->err.text, faults[i].says))
			fail_msg("%zu: \"%s\" lacks \"%s\"", i, b->err.text, faults[i].says);
	}
}

/* -- options -- */

static void test_what_it_costs_and_who_refuses_it(void **state)
{
	struct bed *b = *state;
	struct work w;

	assert_int_equal(options(b, "heads=96 mask=causal kv_heads=24"), STATUS_OK);
	cpu_bench_make(&b->bench);
	w = probe_attention.work(&b->bench.machine, &b->bench.target, &b->opts);
	assert_true(w.flop == 10.0 * 64 * 16 * 96 * 512 * 513 / 2);
	/* Q, O and dO, K and V, the log-sum-exp; dQ, dK and dV. */
	assert_true(w.read_bytes == 16.0 * 512 * (64 * 2 * (3 * 96 + 2 * 24) + 4 * 96));
	assert_true(w.write_bytes == 16.0 * 512 * 64 * 2 * (96 + 2 * 24));
	assert_int_equal(options(b, "type=e4m3"), STATUS_BAD_INPUT);
	assert_int_equal(options(b, "pattern=mask"), STATUS_BAD_INPUT);
	assert_non_null(strstr(b->err.text, "types of 16 bits, without block lists"));
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients_are_differences_of_the_function),
		test(the_cpu_is_right_in_every_element),
		test(cudnn_is_right_in_every_element),
		test(an_engine_that_errs_is_found),
		test(what_it_costs_and_who_refuses_it),
	};

	return cmocka_run_group_tests_name("attention_backward", tests, NULL, NULL);
}
