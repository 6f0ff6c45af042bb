/* SPDX-License-Identifier: Apache-2.0 */
/* The plan is the step without numbers: the same places, peaks and work; and what the literature's formulae
 * give. */
#include "unit/test.h"
#include <math.h>
#include "unit/model_bed.h"

enum { ALL = (1 << PEFT_TARGET_COUNT) - 1 };

static void test_plan__is_the_arena_that_is_used(void **state)
{
	static const struct bed_options cases[] = {
		{.family = FAMILY_QWEN2, .targets = ALL},
		{.family = FAMILY_QWEN3,
		 .targets = ALL,
		 .dropout = 0.1f,
		 .mode = RECOMPUTE_CHEAP,
		 .tied = true},
		{.family = FAMILY_LLAMA, .full = true, .mode = RECOMPUTE_FULL, .head_chunk = 9, .mlp_tile = 31},
		{.family = FAMILY_LLAMA,
		 .targets = 1 << PEFT_Q,
		 .save = PEFT_SAVE_HEAD,
		 .tied = true,
		 .threads = 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bed_options o = cases[i];
		struct bed real, plan;

		bed_open(&real, &o);
		o.plan = true;
		bed_open(&plan, &o);
		real.back.cost = plan.back.cost = (struct op_cost){0};
		bed_loss(&real, true);
		bed_loss(&plan, true);
		assert_true(plan.arena.peak > 0);
		assert_int_equal(plan.arena.peak, real.arena.peak);
		assert_int_equal(plan.arena.used, real.arena.used);
		assert_memory_equal(plan.arena.kind_peak, real.arena.kind_peak, sizeof(real.arena.kind_peak));
		assert_memory_equal(plan.arena.kind_at_peak, real.arena.kind_at_peak,
				    sizeof(real.arena.kind_peak));
		assert_true(plan.back.cost.flop > 0);
		assert_true(plan.back.cost.flop == real.back.cost.flop);
		assert_true(plan.back.cost.again == real.back.cost.again);
		assert_true(plan.back.cost.bytes == real.back.cost.bytes);
		assert_true(plan.back.cost.gemm_flop == real.back.cost.gemm_flop);
		bed_close(&real);
		bed_close(&plan);
	}
}

static const struct shape qwen2_7b = {
	.family = FAMILY_QWEN2,
	.hidden = 3584,
	.layers = 28,
	.heads = 28,
	.kv_heads = 4,
	.head_dim = 128,
	.ffn = 18944,
	.vocab = 152064,
	.context = 32768,
	.qkv_bias = true,
	.norm_eps = 1e-6,
	.rope_theta = 1e6,
};

/* One document of `length` rows, each with a target. GFLOP a token of forward and backward. */
static double planned(const struct model_options *options, enum recompute mode, int32_t length,
		      struct arena *arena)
{
	const int32_t start[] = {0, length};
	const struct batch batch = {
		.doc_start = start, .tokens = length, .docs = 1, .doc_len_max = length, .targets = length};
	struct error err = {0};
	struct saved saved;
	struct model *m;
	struct backend back;
	double loss = 0;

	*arena = (struct arena){0};
	plan_backend_cpu(&back, 2, arena);
	assert_int_equal(model_create(&m, &qwen2_7b, options, &err), STATUS_OK);
	assert_int_equal(model_place(m, &back, &err), STATUS_OK);
	assert_int_equal(saved_create(&saved, m, mode, &err), STATUS_OK);
	{
		const struct pass pass = {.model = m, .back = &back, .batch = &batch, .saved = &saved};

		assert_int_equal(model_forward(&pass, &err), STATUS_OK);
		assert_int_equal(model_backward(&pass, 1, &loss, &err), STATUS_OK);
	}
	saved_release(&saved);
	model_release(m);
	return back.cost.flop / length / 1e9;
}

/* Linear maps 4N (6N where all is trained), adapters 6P, attention 3.5 x causal: Qwen2-7B of 7.0703e9
 * parameters in products, P = 40,370,176 at r 16. */
static void test_plan__qwen2_7b_costs_what_the_formulae_say(void **state)
{
	const struct peft_config lora = {.rank = 16, .alpha = 32, .targets = ALL};
	const struct model_options with_lora = {.lora = &lora, .positions = 8192};
	const struct model_options full = {.full = true, .positions = 8192};
	const int32_t lengths[] = {1024, 2048, 4096, 8192};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		double n = 7.0703e9, p = 40370176, s = lengths[i];
		double attention = 4 * s / 2 * 28 * 128 * 28;
		struct arena arena;
		double found = planned(&with_lora, RECOMPUTE_NONE, lengths[i], &arena);

		assert_true(fabs(found - (4 * n + 6 * p + 3.5 * attention) / 1e9) < 0.005 * found);
		found = planned(&full, RECOMPUTE_NONE, lengths[i], &arena);
		assert_true(fabs(found - (6 * n + 3.5 * attention) / 1e9) < 0.005 * found);
	}
}

static void test_plan__qwen2_7b_needs_what_its_parts_need(void **state)
{
	const struct peft_config lora = {.rank = 16, .alpha = 32, .targets = ALL};
	const struct model_options with_lora = {.lora = &lora, .positions = 4096};
	size_t saved[3];
	struct arena arena;

	(void)state;
	for (int mode = 0; mode < 3; mode++) {
		planned(&with_lora, mode, 4096, &arena);
		saved[mode] = arena.kind_peak[MEM_SAVED];
		/* All 7,615,616,512 parameters once, and the table of RoPE. */
		assert_true(fabs((double)arena.kind_peak[MEM_WEIGHTS] - 4.0 * (7615616512.0 + 4096 * 128)) <
			    1e6);
		assert_int_equal(arena.kind_peak[MEM_TRAINED], 4 * 40370176);
		assert_int_equal(arena.kind_peak[MEM_OPTIMISER], 8 * 40370176);
	}
	assert_true(saved[RECOMPUTE_FULL] < saved[RECOMPUTE_CHEAP] &&
		    saved[RECOMPUTE_CHEAP] < saved[RECOMPUTE_NONE]);
	/* 29 rows of the hidden size, and what down's adapters made. */
	assert_int_equal(saved[RECOMPUTE_FULL], (size_t)(29 * 3584 + 28 * 16) * 4096 * 4);
}

static void test_plan__refuses_what_no_memory_holds(void **state)
{
	struct arena arena = {0};
	struct error err = {0};
	struct mat m = {.rows = INT64_MAX / 4, .cols = 16, .dtype = DTYPE_F32};

	(void)state;
	assert_int_equal(arena_mat(&arena, MEM_SAVED, &m, "x", &err), STATUS_BAD_INPUT);
	assert_int_equal(arena.used, 0);
}

static void test_arena__a_full_block_names_what_did_not_fit(void **state)
{
	static uint8_t block[1024];
	struct arena arena = {.base = block, .size = sizeof(block)};
	struct mat m = {.rows = 2, .cols = 64, .dtype = DTYPE_F32},
		   more = {.rows = 3, .cols = 64, .dtype = DTYPE_F32};
	struct error err = {0};

	(void)state;
	assert_int_equal(arena_mat(&arena, MEM_SAVED, &m, "first", &err), STATUS_OK);
	assert_int_equal(arena_mat(&arena, MEM_SCRATCH, &more, "second", &err), STATUS_NO_RESOURCE);
	assert_string_equal(err.text, "second needs 768 bytes, but only 512 of the block's 1024 are free");
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
	assert_int_equal(arena.used, 512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan__is_the_arena_that_is_used),
		cmocka_unit_test(test_plan__qwen2_7b_costs_what_the_formulae_say),
		cmocka_unit_test(test_plan__qwen2_7b_needs_what_its_parts_need),
		cmocka_unit_test(test_plan__refuses_what_no_memory_holds),
		cmocka_unit_test(test_arena__a_full_block_names_what_did_not_fit),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
