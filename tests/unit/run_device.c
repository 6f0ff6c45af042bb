/* SPDX-License-Identifier: Apache-2.0 */
/* By which word one GPU is listed alone. */
#include "run/worker/device.h"
#include "test.h"

static void test_run_device__the_word_of_a_gpu_among_those_listed(void **state)
{
	static const struct {
		const char *list;
		int index;
		const char *word; /* NULL: none */
	} rows[] = {
		{NULL, 0, "0"},
		{NULL, 3, "3"},
		{NULL, -1, NULL}, /* CUDA does not list it */
		{"2,3", 0, "2"},
		{"2,3", 1, "3"},
		{"2,3", 2, NULL},
		{"2, 3 ,1", 1, "3"},
		{"GPU-1f2e3d4c,GPU-5a", 1, "GPU-5a"},
		{"", 0, NULL},
		{",1", 0, NULL},
		{"2,3", -1, NULL},
	};
	char word[16];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(device_listed(word, sizeof(word), rows[i].list, rows[i].index),
				 rows[i].word != NULL);
		if (rows[i].word)
			assert_string_equal(word, rows[i].word);
	}
	assert_false(device_listed(word, sizeof(word), "GPU-0123456789abcdef", 0)); /* does not fit */
	assert_false(device_listed(word, 2, NULL, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_device__the_word_of_a_gpu_among_those_listed),
	};

	return cmocka_run_group_tests_name("run_device", tests, NULL, NULL);
}
