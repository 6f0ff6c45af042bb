/* SPDX-License-Identifier: Apache-2.0 */
/* What an attention is: which pairs a mask keeps, counted by hand, layouts, and every shape refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "gpu/attention/problem.h"

static struct attention_problem small(void)
{
	return (struct attention_problem){
		.type = ATTENTION_F16,
		.out_type = ATTENTION_F16,
		.batch = 2,
		.heads = 4,
		.kv_heads = 2,
		.q_len = 5,
		.kv_len = 7,
		.head_dim = 16,
	};
}

/* The header's own words, pair by pair. */
static bool kept(const struct attention_problem *p, int64_t i, int64_t j, int64_t q_len, int64_t kv_len)
{
	int64_t at = i + kv_len - q_len;

	switch (p->mask) {
	case ATTENTION_FULL:
		return true;
	case ATTENTION_CAUSAL:
		return j <= at;
	case ATTENTION_WINDOW:
		return (p->window_left == ATTENTION_UNBOUNDED || j >= at - (int64_t)p->window_left) &&
		       (p->window_right == ATTENTION_UNBOUNDED || j <= at + (int64_t)p->window_right);
	case ATTENTION_MASK_COUNT:
		break;
	}
	return false;
}

static void check_pairs(const struct attention_problem *p)
{
	double pairs = 0.0;

	for (uint32_t b = 0; b < p->batch; b++)
		for (uint32_t i = 0; i < attention_q_len(p, b); i++) {
			struct attention_keys keys = attention_keys(p, b, i);

			assert_true(keys.from <= keys.to);
			for (uint32_t j = 0; j < attention_kv_len(p, b); j++) {
				bool want = kept(p, i, j, attention_q_len(p, b), attention_kv_len(p, b));

				assert_int_equal(j >= keys.from && j < keys.to, want);
				pairs += want ? (double)p->heads : 0.0;
			}
		}
	assert_true(attention_pairs(p) == pairs);
	assert_true(attention_flop(p) == 4.0 * p->head_dim * pairs);
	assert_true(attention_flop_backward(p) == 10.0 * p->head_dim * pairs);
}

static void masks_keep_the_pairs_they_say(void **state)
{
	static const uint32_t sides[] = {0, 1, 3, 100, ATTENTION_UNBOUNDED};
	static const uint32_t lengths[][2] = {{5, 7}, {7, 5}, {6, 6}, {1, 9}, {9, 1}};
	struct attention_problem p = small();

	(void)state;
	for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
		p.q_len = lengths[l][0];
		p.kv_len = lengths[l][1];
		p.mask = ATTENTION_FULL;
		check_pairs(&p);
		p.mask = ATTENTION_CAUSAL;
		check_pairs(&p);
		p.mask = ATTENTION_WINDOW;
		for (size_t a = 0; a < sizeof(sides) / sizeof(sides[0]); a++)
			for (size_t b = 0; b < sizeof(sides) / sizeof(sides[0]); b++) {
				p.window_left = sides[a];
				p.window_right = sides[b];
				check_pairs(&p);
			}
	}
}

static void lengths_may_differ(void **state)
{
	static const uint32_t q[] = {0, 5, 5, 8}, kv[] = {0, 0, 7, 9};
	struct attention_problem p = small();

	(void)state;
	p.batch = 3;
	p.q_starts = q;
	p.kv_starts = kv;
	for (p.mask = ATTENTION_FULL; p.mask < ATTENTION_MASK_COUNT; p.mask++)
		check_pairs(&p);
	p.mask = ATTENTION_CAUSAL;
	assert_int_equal(attention_check(&p, NULL), STATUS_OK);
	assert_int_equal(attention_q_strides(&p).row, 4 * 16);
	assert_int_equal(attention_q_strides(&p).head, 16);
	assert_int_equal(attention_q_count(&p), 8 * 4 * 16);
	assert_int_equal(attention_k_count(&p), 9 * 2 * 16);
	assert_true(attention_bytes(&p) == (2.0 * 8 * 4 + 2.0 * 9 * 2) * 16 * 2);
}

static void layouts_are_packed_where_nothing_is_said(void **state)
{
	struct attention_problem p = small();
	struct attention_strides s = attention_k_strides(&p);

	(void)state;
	assert_int_equal(s.row, 16);
	assert_int_equal(s.head, 7 * 16);
	assert_int_equal(s.batch, 2 * 7 * 16);
	assert_int_equal(attention_v_count(&p), 2 * 2 * 7 * 16);
	assert_int_equal(attention_o_count(&p), 2 * 4 * 5 * 16);
	assert_int_equal(attention_lse_count(&p), 2 * 4 * 5);
	/* Q, K and V side by side in one row, as a projection leaves them. */
	p.q = (struct attention_strides){.batch = 5 * 128, .head = 16, .row = 128};
	assert_int_equal(attention_check(&p, NULL), STATUS_OK);
	assert_int_equal(attention_q_count(&p), 5 * 128 + 3 * 16 + 4 * 128 + 16);
	assert_true(fabs(attention_scale(&p) - 0.25) < 1e-15);
	p.scale = 0.5;
	assert_true(attention_scale(&p) == 0.5);
}

static void descriptions_name_what_differs(void **state)
{
	struct attention_problem p = small();
	char text[96];

	(void)state;
	attention_describe(&p, text, sizeof(text));
	assert_string_equal(text, "B2 H4/2 S5x7 D16 fp16");
	p.kv_heads = 4;
	p.kv_len = 5;
	p.type = ATTENTION_E4M3;
	p.mask = ATTENTION_WINDOW;
	p.window_left = 128;
	p.window_right = ATTENTION_UNBOUNDED;
	attention_describe(&p, text, sizeof(text));
	assert_string_equal(text, "B2 H4 S5 D16 e4m3 to fp16 window 128:all");
}

static void refused(const struct attention_problem *p, const char *word)
{
	struct error err = {0};

	assert_int_equal(attention_check(p, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, word))
		fail_msg("\"%s\" does not name \"%s\"", err.text, word);
}

static void what_does_not_fit_is_named(void **state)
{
	static const uint32_t late[] = {3, 5, 8}, back[] = {0, 6, 5}, shorter[] = {0, 4, 8};
	struct attention_problem p;

	(void)state;
#define WITH(change, word)                                                                                   \
	do {                                                                                                 \
		p = small();                                                                                 \
		change;                                                                                      \
		refused(&p, word);                                                                           \
	} while (0)
	WITH(p.batch = 0, "batch is 0");
	WITH(p.kv_heads = 0, "value heads is 0");
	WITH(p.kv_heads = 3, "not a multiple of 3");
	WITH(p.q_len = UINT32_MAX, "query length");
	WITH(p.kv_len = 0, "key length is 0");
	WITH(p.head_dim = 0, "dimension of 0");
	WITH(p.head_dim = 12, "dimension of 12");
	WITH(p.head_dim = 264, "dimension of 264");
	WITH(p.type = ATTENTION_TYPE_COUNT, "type");
	WITH(p.out_type = ATTENTION_BF16, "output must be fp16");
	WITH(p.mask = ATTENTION_MASK_COUNT, "mask");
	WITH(p.scale = (double)NAN, "scale");
	WITH(p.o.row = 8, "strides of O");
	WITH(p.k = ((struct attention_strides){.batch = 1000, .head = 20, .row = 40}),
	     "of K are not multiples");
	WITH(p.v = ((struct attention_strides){.head = 16, .row = 32}), "strides of V");
	WITH(p.q_starts = shorter, "together or not at all");
	WITH((p.q_starts = late, p.kv_starts = late), "starts at token 3");
	WITH((p.q_starts = back, p.kv_starts = back), "starts at token 6 and ends at 5");
	WITH((p.q_starts = shorter, p.kv_starts = shorter), "4 tokens, but the given maximum is 5");
#undef WITH
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_keep_the_pairs_they_say),
		cmocka_unit_test(lengths_may_differ),
		cmocka_unit_test(layouts_are_packed_where_nothing_is_said),
		cmocka_unit_test(descriptions_name_what_differs),
		cmocka_unit_test(what_does_not_fit_is_named),
	};

	return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
