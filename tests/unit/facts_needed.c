/* SPDX-License-Identifier: Apache-2.0 */
/* What a suite needs to know of the machine before it is planned. */
#include "probe/registry.h"
#include "run/suite/facts_needed.h"
#include "test.h"

static void scope_cases(struct facts_needed *s, const char *cases)
{
	struct suite *suite = NULL;
	struct error err = {0};
	char text[1024];

	snprintf(text, sizeof(text), "name: tiny\ncases:\n%s", cases);
	if (suite_parse(&suite, "tiny.yaml", text, strlen(text), &err))
		fail_msg("%s", err.text);
	facts_needed_of(s, suite, probe_list);
	suite_free(suite);
}

static bool wants(const struct facts_needed *s, const char *lib)
{
	for (const char *const *l = s->machine.libs; l && *l; l++)
		if (!strcmp(*l, lib))
			return true;
	return false;
}

static void test_scope__a_cpu_case_opens_its_own_libraries_and_no_vendor_layer(void **state)
{
	static const char *const others[] = {"openblas_wheel", "mkl", "aocl"};
	struct facts_needed s;

	(void)state;
	scope_cases(&s, "  - {probe: gemm, target: cpu, engine: openblas}\n  - {probe: memory, target: "
			"'cpu:node0'}\n");
	assert_int_equal(s.machine.up_to, LAYER_HOST);
	assert_true(wants(&s, "openblas"));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_true(wants(&s, others[i])); /* what is tried where OpenBLAS is slow */
	assert_int_equal(s.count, 4);
}

static void test_scope__without_an_engine_all_that_may_do_it_are_asked(void **state)
{
	struct facts_needed s;

	(void)state;
	scope_cases(&s, "  - {probe: gemm}\n");
	assert_int_equal(s.machine.up_to, LAYER_HOST);
	assert_true(wants(&s, "openblas"));
	assert_true(wants(&s, "onednn"));
	assert_false(wants(&s, "cublaslt"));
}

static void test_scope__a_gpu_case_needs_the_vendors_layers(void **state)
{
	struct facts_needed s;

	(void)state;
	scope_cases(&s, "  - {probe: gemm, target: gpu0, engine: cublaslt}\n");
	assert_int_equal(s.machine.up_to, LAYER_CUDA);
	assert_true(wants(&s, "cublaslt"));
	assert_true(wants(&s, "cuda"));
	assert_int_equal(s.count, 2);
}

static void test_scope__a_probe_that_has_no_cpu_engine_goes_to_the_gpu(void **state)
{
	struct facts_needed s;

	(void)state;
	scope_cases(&s, "  - {probe: dispatch}\n");
	assert_int_equal(s.machine.up_to, LAYER_CUDA);
}

static void test_scope__a_reading_or_an_unknown_probe_wants_everything(void **state)
{
	static const char *const cases[] = {"  - {probe: gemm}\n  - {probe: versions}\n",
					    "  - {probe: gem}\n"};
	struct facts_needed s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		scope_cases(&s, cases[i]);
		assert_int_equal(s.machine.up_to, LAYER_SOFTWARE);
		assert_null(s.machine.libs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scope__a_cpu_case_opens_its_own_libraries_and_no_vendor_layer),
		cmocka_unit_test(test_scope__without_an_engine_all_that_may_do_it_are_asked),
		cmocka_unit_test(test_scope__a_gpu_case_needs_the_vendors_layers),
		cmocka_unit_test(test_scope__a_probe_that_has_no_cpu_engine_goes_to_the_gpu),
		cmocka_unit_test(test_scope__a_reading_or_an_unknown_probe_wants_everything),
	};

	return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
