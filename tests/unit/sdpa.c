/* SPDX-License-Identifier: Apache-2.0 */
/* Attention plans of every mask, type, layout and direction, and the search among them. */
#include "sdpa_bed.h"

/* All candidates, forward and (16 bits) backward. */
static void computes(const struct fixture *f, const struct attention_problem *p)
{
	bool backward = p->type != ATTENTION_E4M3;
	struct life l;

	begin(&l, f, p);
	plan(&l, SDPA_FORWARD, &l.forward);
	if (backward)
		plan(&l, SDPA_BACKWARD, &l.backward);
	for (unsigned i = 0; i < sdpa_plan_count(l.forward); i++) {
		assert_int_equal(sdpa_plan_select(l.forward, i, NULL), STATUS_OK);
		run_forward(&l);
		check_against_definition(&l, false);
	}
	for (unsigned i = 0; backward && i < sdpa_plan_count(l.backward); i++) {
		assert_int_equal(sdpa_plan_select(l.backward, i, NULL), STATUS_OK);
		run_backward(&l);
		check_against_definition(&l, true);
	}
	end(&l);
}

static void every_mask_and_type_is_computed(void **state)
{
	static const uint32_t sides[][2] = {
		{3, 1}, {0, 0}, {ATTENTION_UNBOUNDED, 2}, {2, ATTENTION_UNBOUNDED}, {5, 0}};

	for (unsigned type = 0; type < ATTENTION_TYPE_COUNT; type++) {
		struct attention_problem p = small((enum attention_type)type, ATTENTION_FULL);

		computes(*state, &p);
		p.mask = ATTENTION_CAUSAL;
		computes(*state, &p);
		p.q_len = p.kv_len;
		computes(*state, &p);
		p.mask = ATTENTION_WINDOW;
		for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
			p.window_left = sides[i][0];
			p.window_right = sides[i][1];
			p.q_len = i % 2 ? 9 : 12;
			computes(*state, &p);
		}
	}
}

static void layouts_and_lengths_are_obeyed(void **state)
{
	static const uint32_t q[] = {0, 7, 8, 17}, kv[] = {0, 12, 15, 25};
	struct attention_problem p = small(ATTENTION_BF16, ATTENTION_CAUSAL);

	/* Q, K and V of a token side by side, O by token. */
	p.q_len = p.kv_len;
	p.q = p.k = p.v = (struct attention_strides){12 * 64, 16, 64};
	p.o = (struct attention_strides){12 * 32, 16, 32};
	computes(*state, &p);
	p = small(ATTENTION_F16, ATTENTION_FULL);
	p.scale = 0.7;
	p.kv_heads = 2;
	computes(*state, &p);
	p.batch = 3;
	p.q_starts = q;
	p.kv_starts = kv;
	for (p.mask = ATTENTION_FULL; p.mask < ATTENTION_MASK_COUNT; p.mask++)
		computes(*state, &p);
}

/* Before 9.15.1 backward wants lengths where there are keys beside a multiple of 128. */
static void older_versions_get_what_they_need(void **state)
{
	const struct fixture *f = *state;
	struct fixture old = *f;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);

	setenv("FAKE_CUDNN", "version=90900", 1);
	assert_int_equal(sdpa_open(&old.sdpa, f->device, NULL, 0, NULL), STATUS_OK);
	computes(&old, &p);
	sdpa_close(&old.sdpa);
}

static void an_lse_is_optional(void **state)
{
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_FULL);
	struct life l;

	p.want_lse = false;
	begin(&l, *state, &p);
	plan(&l, SDPA_FORWARD, &l.forward);
	for (unsigned i = 0; i < sdpa_plan_count(l.forward); i++) {
		assert_int_equal(sdpa_plan_select(l.forward, i, NULL), STATUS_OK);
		run_forward(&l);
		check_against_definition(&l, false);
	}
	end(&l);
}

static void factors_of_fp8_are_applied(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_E4M3, ATTENTION_FULL);
	const float factors[] = {0.5F, 2.0F, 3.0F, 0.25F};
	gpu_ptr at;
	struct life l;

	begin(&l, f, &p);
	plan(&l, SDPA_FORWARD, &l.forward);
	assert_int_equal(gpu_alloc(f->device, &at, 64, NULL), STATUS_OK);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(gpu_copy_to(f->device, at + 16 * i, &factors[i], sizeof(float), NULL),
				 STATUS_OK);
	run_forward(&l);
	check_against_definition(&l, false);
	l.operands.descale_q = at;
	l.operands.descale_k = at + 16; /* 0.5 * 2: the same softmax */
	run_forward(&l);
	check_against_definition(&l, false);
	l.operands.descale_v = at + 32;
	l.operands.scale_o = at + 48;
	run_forward(&l);
	{
		double *o = unset(l.count[O]), *lse = unset(attention_lse_count(&p));

		ref_attention_run(
			&p, &(struct ref_attention){
				    .q = l.host[Q], .k = l.host[K], .v = l.host[V], .o = o, .lse = lse});
		for (uint64_t i = 0; i < l.count[O]; i++)
			o[i] *= 0.75;
		near(&l, O, o, 0x1p-3);
		free(o);
		free(lse);
	}
	gpu_free(f->device, &at);
	end(&l);
}

static enum status twice(void *arg, bool *enough, struct error *err)
{
	(void)err;
	*enough = ++*(unsigned *)arg > 2;
	return STATUS_OK;
}

static enum status broken(void *arg, bool *enough, struct error *err)
{
	(void)arg, (void)enough;
	return error_set(err, STATUS_CANCELLED, "stopped");
}

static void a_search_lists_engines_and_knobs(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	struct sdpa_description d;
	struct sdpa_plan *m;
	unsigned asked = 0;
	const struct sdpa_pace pace = {twice, &asked}, stop = {broken, NULL};

	assert_int_equal(sdpa_plan_create(&m, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_first(m, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 1);
	sdpa_plan_describe(m, 0, &d);
	assert_string_equal(d.name, "composite engine1 knob24=3");
	assert_int_equal(d.workspace_bytes, 1024);
	assert_int_equal(sdpa_plan_candidates(m, 8, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 2);
	assert_int_equal(sdpa_plan_exhaust(m, 100, &stop, NULL), STATUS_CANCELLED);
	assert_int_equal(sdpa_plan_exhaust(m, 100, &pace, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 4); /* two engines with no knob turned */
	assert_int_equal(sdpa_plan_exhaust(m, 7, NULL, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 7);
	assert_int_equal(sdpa_plan_exhaust(m, 100, NULL, NULL), STATUS_OK);
	/* Of each engine: none, knob 24 at 1 or 3, knob 14 at 0 or 1, and both: 1 + 2 + 2 + 4. */
	assert_int_equal(sdpa_plan_count(m), 18);
	assert_int_equal(sdpa_plan_exhaust(m, 100, NULL, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 18);
	sdpa_plan_describe(m, 17, &d);
	assert_string_equal(d.name, "composite engine1 knob24=3 knob14=1");
	sdpa_plan_describe(m, 18, &d);
	assert_string_equal(d.name, "");
	assert_int_equal(sdpa_plan_select(m, 18, NULL), STATUS_BUG);
	sdpa_plan_destroy(&m);
}

/* The fused operation is asked first; where it is refused the composite is left. */
static void the_fused_operation_comes_first(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_FULL);
	struct sdpa_description d;
	struct sdpa_plan *m;

	assert_int_equal(sdpa_plan_create(&m, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_candidates(m, 8, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 4);
	sdpa_plan_describe(m, 0, &d);
	assert_string_equal(d.graph, "fused");
	sdpa_plan_describe(m, 2, &d);
	assert_string_equal(d.graph, "composite");
	sdpa_plan_destroy(&m);
	setenv("FAKE_CUDNN", "fused=3000", 1);
	assert_int_equal(sdpa_plan_create(&m, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_first(m, NULL), STATUS_OK);
	sdpa_plan_describe(m, 0, &d);
	assert_string_equal(d.graph, "composite");
	sdpa_plan_destroy(&m);
	setenv("FAKE_CUDNN", "fused=4000", 1);
	assert_int_equal(sdpa_plan_create(&m, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_VENDOR);
	assert_null(m);
}

/* More sets of operands in turn than are kept bound: each run writes its own O. */
static void operands_may_take_turns(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	gpu_ptr o[40] = {0};
	struct life l;

	begin(&l, f, &p);
	plan(&l, SDPA_FORWARD, &l.forward);
	for (unsigned turn = 0; turn < 3; turn++)
		for (unsigned i = 0; i < 40; i++) {
			if (!o[i])
				assert_int_equal(gpu_alloc(f->device, &o[i], l.count[O] * 2, NULL),
						 STATUS_OK);
			assert_int_equal(gpu_stream_fill32(f->stream, o[i], UINT32_MAX, l.count[O] / 2, NULL),
					 STATUS_OK);
			l.operands.o = o[i];
			run_forward(&l);
			assert_int_equal(gpu_stream_copy(f->stream, l.device[O], o[i], l.count[O] * 2, NULL),
					 STATUS_OK);
			if (turn == 0 || i % 13 == turn)
				check_against_definition(&l, false);
		}
	for (unsigned i = 0; i < 40; i++)
		gpu_free(f->device, &o[i]);
	end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_mask_and_type_is_computed),	 TEST(layouts_and_lengths_are_obeyed),
		TEST(older_versions_get_what_they_need), TEST(an_lse_is_optional),
		TEST(factors_of_fp8_are_applied),	 TEST(a_search_lists_engines_and_knobs),
		TEST(the_fused_operation_comes_first),	 TEST(operands_may_take_turns),
	};

	return cmocka_run_group_tests_name("sdpa", tests, NULL, NULL);
}
