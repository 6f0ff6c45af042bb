/* SPDX-License-Identifier: Apache-2.0 */
/* What the GEMM kernels for few rows take, and what they refuse with which words. */
#include "test.h"

#include "gpu/matmul/skinny_adapters.h"
#include "must.h"

static const struct skinny_problem good = {.w = 1024,
					   .x = 2048,
					   .y = 4096,
					   .rows = 64,
					   .outputs = 200,
					   .k = 336,
					   .row_w = 336,
					   .row_x = 336,
					   .row_y = 200};

static void assert_refused(const struct skinny_problem *p, const char *why)
{
	struct error err = {0};

	if (skinny_check(p, &err) == STATUS_OK || !strstr(err.text, why))
		fail_msg("\"%s\" lacks \"%s\"", err.text, why);
}

static void test_skinny__good_problems_are_taken(void **state)
{
	struct skinny_problem p = good;
	struct error err = {0};

	(void)state;
	must(skinny_check(&p, &err), &err);
	p.bias = 8;
	p.residual = 4096;
	p.row_residual = 200;
	must(skinny_check(&p, &err), &err);
	p.w_scale = 16;
	p.rows = 128;
	must(skinny_check(&p, &err), &err);
	p.x_scale = 4;
	p.rows = 256;
	must(skinny_check(&p, &err), &err);
	p.bias = p.residual = 0;
	p.swiglu = true;
	must(skinny_check(&p, &err), &err);
}

static void test_skinny__what_the_kernels_cannot_do_is_refused(void **state)
{
	struct skinny_problem p = good;

	(void)state;
	p.rows = 0;
	assert_refused(&p, "of kind bf16 has 1 to 256 rows, not 0");
	p.rows = 257;
	assert_refused(&p, "not 257");
	p.rows = 129;
	p.w_scale = 16;
	assert_refused(&p, "of kind mixed has 1 to 128 rows, not 129");
	p = good;
	p.outputs = 204;
	assert_refused(&p, "a multiple of 8 outputs and of 8 elements along k, not 204 and 336");
	p = good;
	p.k = 340;
	assert_refused(&p, "not 200 and 340");
	p.k = 328;
	p.w_scale = 16;
	assert_refused(&p, "of 16 elements along k");
	p = good;
	p.swiglu = true;
	p.bias = 8;
	assert_refused(&p, "neither bias nor residual");
	p = good;
	p.x_scale = 16;
	assert_refused(&p, "activations in E4M3 need weights in E4M3");
	p = good;
	p.w = 1032;
	assert_refused(&p, "does not begin at a multiple of 16 bytes");
	p = good;
	p.row_x = 340;
	assert_refused(&p, "does not begin at a multiple of 16 bytes");
}

static void assert_refused_with(const struct skinny_adapters *ad, const struct skinny_problem *p,
				const char *why)
{
	struct error err = {0};

	if (skinny_adapters_check(p, ad, &err) == STATUS_OK || !strstr(err.text, why))
		fail_msg("\"%s\" lacks \"%s\"", err.text, why);
}

static const struct skinny_adapters good_adapters = {.a = 16,
						     .b = 16,
						     .x = 16,
						     .u = 16,
						     .adapter = 4,
						     .width = 64,
						     .rank = 16,
						     .parts = 2,
						     .begin = {0, 128},
						     .count = {64, 72},
						     .row_a = 336,
						     .row_b = 64,
						     .row_x = 336,
						     .row_u = 128};

static void test_skinny__adapters_are_taken_or_refused(void **state)
{
	struct skinny_adapters ad = good_adapters;
	struct skinny_problem p = good;
	struct error err = {0};

	(void)state;
	must(skinny_adapters_check(&p, &ad, &err), &err);
	p.w_scale = 16;
	assert_refused_with(&ad, &p, "activations of the weights' type");
	p.x_scale = 16;
	must(skinny_adapters_check(&p, &ad, &err), &err);
	p = good;
	p.rows = 257;
	assert_refused_with(&ad, &p, "1 to 256 rows");
	p = good;
	ad.rank = 12;
	assert_refused_with(&ad, &p, "not 2 parts of rank 12");
	ad = good_adapters;
	ad.parts = 4;
	assert_refused_with(&ad, &p, "1 to 3 parts");
	ad = good_adapters;
	ad.row_u = 132;
	assert_refused_with(&ad, &p, "one of its rows, does not begin at a multiple of 16 bytes");
	ad = good_adapters;
	ad.begin[1] = 96;
	assert_refused_with(&ad, &p, "begin at multiples of 64 outputs, not at 96");
	ad.begin[1] = 32;
	assert_refused_with(&ad, &p, "part 1 of adapters has rows 32 to 104 of a GEMM of 200");
	ad.begin[1] = 192;
	assert_refused_with(&ad, &p, "part 1 of adapters has rows 192 to 264 of a GEMM of 200");
	ad = good_adapters;
	p.swiglu = true;
	assert_refused_with(&ad, &p, "begin at multiples");
	ad.begin[1] = 200;
	ad.count[0] = ad.count[1] = 200;
	must(skinny_adapters_check(&p, &ad, &err), &err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_skinny__good_problems_are_taken),
		cmocka_unit_test(test_skinny__what_the_kernels_cannot_do_is_refused),
		cmocka_unit_test(test_skinny__adapters_are_taken_or_refused),
	};

	return cmocka_run_group_tests_name("skinny", tests, NULL, NULL);
}
