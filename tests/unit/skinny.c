/* SPDX-License-Identifier: Apache-2.0 */
/* What the GEMM kernels for few rows take, and what they refuse with which words. */
#include "test.h"

#include "gpu/matmul/skinny.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_skinny__good_problems_are_taken),
		cmocka_unit_test(test_skinny__what_the_kernels_cannot_do_is_refused),
	};

	return cmocka_run_group_tests_name("skinny", tests, NULL, NULL);
}
