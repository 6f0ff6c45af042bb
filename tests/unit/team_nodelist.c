/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "core/text/text.h"
#include "team/launcher/nodelist.h"

static const struct {
	const char *text, *names;
} good[] = {
	{"n1", "n1"},
	{"n[001-003,007]", "n001 n002 n003 n007"},
	{"a1,b[2-3]c[0-1]", "a1 b2c0 b2c1 b3c0 b3c1"},
	{"gpu-[09-10]", "gpu-09 gpu-10"},
	{"gpu[001-002,7],login1,rack[1-2]n[01-02]", "gpu001 gpu002 gpu7 login1 rack1n01 rack1n02 rack2n01 rack2n02"},
	{"n[9-11]", "n9 n10 n11"},
	{"a.b_c-d,e", "a.b_c-d e"},
	{"[1-2]x", "1x 2x"},
	{"n[5-5]", "n5"},
};

static const struct {
	const char *text, *says;
} bad[] = {
	{"", "empty"},
	{"a,,b", "empty"},
	{"a,", "empty"},
	{",a", "empty"},
	{"n[1-2", "not closed"},
	{"n[]", "numbers"},
	{"n[1,]", "numbers"},
	{"n[a-b]", "numbers"},
	{"n[1-2-3]", "numbers"},
	{"n[1-]", "no end"},
	{"n[3-1]", "backwards"},
	{"n[[1-2]]", "inside another bracket"},
	{"n[1-2[3]]", "inside another bracket"},
	{"n]1", "character"},
	{"n 1", "character"},
	{"n;rm", "character"},
	{"n[1-1000000]", "more than"},
	{"n[0000000001]", "nine digits"},
	{"a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]i[1]", "eight brackets"},
};

static void test_nodelist__lists_as_slurm_writes_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct error err = {0};
		struct nodelist l;
		struct text t = {0};

		assert_int_equal(nodelist_parse(&l, good[i].text, 1000, &err), STATUS_OK);
		for (size_t n = 0; n < l.count; n++)
			text_addf(&t, "%s%s", n ? " " : "", l.name[n]);
		assert_string_equal(text_str(&t), good[i].names);
		text_release(&t);
		nodelist_release(&l);
		nodelist_release(&l);
	}
}

static void test_nodelist__what_is_wrong_is_refused_with_its_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = {0};
		struct nodelist l;

		assert_int_equal(nodelist_parse(&l, bad[i].text, 1000, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, bad[i].says));
		assert_int_equal(l.count, 0);
		assert_null(l.name);
	}
}

static void test_nodelist__names_have_a_limit(void **state)
{
	struct error err = {0};
	struct nodelist l;
	char name[400];

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(nodelist_parse(&l, name, 10, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "too long"));
	error_clear(&err);
	memcpy(name + 250, "[1-123456789]", 14);
	assert_int_equal(nodelist_parse(&l, name, 1 << 20, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "too long"));
}

static void test_nodelist__tasks_of_a_node(void **state)
{
	static const struct {
		const char *text;
		unsigned index, tasks; /* 0: refused */
	} rows[] = {
		{"4", 0, 4},	      {"2(x3),1", 0, 2}, {"2(x3),1", 2, 2}, {"2(x3),1", 3, 1}, {"2(x3),1", 4, 0}, {"8(x2)", 1, 8},
		{"1,2,3(x2)", 3, 3}, {"", 0, 0},	 {"x", 0, 0},	    {"2(3)", 5, 0},    {"2(x3", 0, 0},	  {"2(x3)4", 5, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		unsigned tasks = 0;
		enum status st = nodelist_tasks(&tasks, rows[i].text, rows[i].index, &err);

		assert_int_equal(st, rows[i].tasks ? STATUS_OK : STATUS_BAD_INPUT);
		assert_int_equal(tasks, rows[i].tasks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodelist__lists_as_slurm_writes_them),
		cmocka_unit_test(test_nodelist__what_is_wrong_is_refused_with_its_reason),
		cmocka_unit_test(test_nodelist__names_have_a_limit),
		cmocka_unit_test(test_nodelist__tasks_of_a_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
