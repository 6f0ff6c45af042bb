/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "core/text/text.h"
#include "core/input/tree.h"

static struct tree *parsed(const char *text)
{
	struct error err = {0};
	struct tree *tree = NULL;

	assert_int_equal(tree_parse(&tree, "f", text, strlen(text), &err), STATUS_OK);
	return tree;
}

static void test_tree__yaml_knows_its_lines(void **state)
{
	struct tree *t =
		parsed("# head\na: 1\nlist:\n  - x\n  - 'true'\nmap:\n  b: |\n    two\n    lines\nnone:\n");
	const struct tree *list = tree_get(t, "list");

	(void)state;
	assert_int_equal(t->kind, TREE_MAP);
	assert_int_equal(t->count, 4);
	assert_string_equal(tree_text(t, "a", "?"), "1");
	assert_int_equal(tree_get(t, "a")->line, 2);
	assert_int_equal(list->line, 3);
	assert_int_equal(list->items[0]->line, 4);
	assert_false(list->items[0]->quoted);
	assert_true(list->items[1]->quoted);
	assert_string_equal(tree_text(tree_get(t, "map"), "b", "?"), "two\nlines\n");
	assert_int_equal(tree_get(t, "none")->kind, TREE_NULL);
	assert_null(tree_get(t, "absent"));
	assert_null(tree_get(list, "a"));
	assert_string_equal(tree_text(t, "list", "fallback"), "fallback");
	assert_string_equal(t->items[3]->file, "f");
	tree_free(t);
}

static void test_tree__json_comes_by_the_same_door(void **state)
{
	struct tree *t =
		parsed("{\"a\": [1, 2.5, -3e4, true, null, \"x\\n\\u00e9\\/\"],\n \"b\": {\"c\": {}}}");
	const struct tree *a = tree_get(t, "a");

	(void)state;
	assert_int_equal(a->count, 6);
	assert_string_equal(a->items[2]->text, "-3e4");
	assert_int_equal(a->items[4]->kind, TREE_NULL);
	assert_string_equal(a->items[5]->text, "x\n\xc3\xa9/");
	assert_int_equal(tree_get(t, "b")->line, 2);
	assert_int_equal(tree_get(tree_get(t, "b"), "c")->kind, TREE_MAP);
	tree_free(t);
}

static void test_tree__an_empty_file_is_a_null(void **state)
{
	struct tree *t = parsed("# nothing\n");
	static const char *const names[] = {"a", NULL};

	(void)state;
	assert_int_equal(t->kind, TREE_NULL);
	assert_int_equal(tree_check_keys(t, names, NULL), STATUS_OK);
	tree_free(t);
	tree_free(NULL);
}

static void test_tree__what_we_do_not_take_names_its_line(void **state)
{
	static const char *const texts[][2] = {
		{"a: 1\nb: &x 2\n", "f:2: YAML anchors are not supported"},
		{"a: *x\n", "f:1: YAML aliases are not supported: write the value itself"},
		{"a: !!int 1\n", "f:1: YAML tags are not supported"},
		{"a: !t [1]\n", "f:1: YAML tags are not supported"},
		{"a: &l {b: 1}\n", "f:1: YAML anchors are not supported"},
		{"&k a: 1\n", "f:1: YAML anchors are not supported"},
		{"a: 1\nb: 2\na: 3\n", "f:3: key \"a\" is given twice"},
		{"{\"a\":1,\"a\":2}", "f:1: key \"a\" is given twice"},
		{"[1]: 2\n", "f:1: a key must be text, not a map or a list"},
		{"a: 1\n---\nb: 2\n", "f:2: a second document starts here, but only one is supported"},
		{"a: \"x\\0y\"\n", "f:1: text holds a NUL"},
		{"\"x\\0y\": 1\n", "f:1: text holds a NUL"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error err = {0};
		struct tree *t = NULL;

		assert_int_equal(tree_parse(&t, "f", texts[i][0], strlen(texts[i][0]), &err),
				 STATUS_BAD_INPUT);
		assert_string_equal(err.text, texts[i][1]);
		assert_null(t);
	}
}

static void test_tree__broken_text_is_refused(void **state)
{
	static const char *const texts[] = {"a: [1, 2\n", "a: b: c\n",	 "\x80\n", "a: \"x\n",
					    "{",	  "a:\n\t- 1\n", "}",	   "%YAML 9.9\n---\na: 1\n"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error err = {0};
		struct tree *t = NULL;

		assert_int_equal(tree_parse(&t, "f", texts[i], strlen(texts[i]), &err), STATUS_BAD_INPUT);
		assert_memory_equal(err.text, "f:", 2);
		assert_int_equal(tree_parse(&t, "f", texts[i], strlen(texts[i]), NULL), STATUS_BAD_INPUT);
	}
}

static void nest(struct text *text, int depth)
{
	int i;

	for (i = 0; i < depth; i++)
		text_add(text, "[");
	for (i = 0; i < depth; i++)
		text_add(text, "]");
}

static void test_tree__limits_hold(void **state)
{
	struct text text = {0};
	struct error err = {0};
	struct tree *t = NULL;
	char *large = calloc(1, (16 << 20) + 1);

	(void)state;
	nest(&text, 64);
	assert_int_equal(tree_parse(&t, "f", text.data, text.size, &err), STATUS_OK);
	tree_free(t);
	text_release(&text);
	nest(&text, 65);
	assert_int_equal(tree_parse(&t, "f", text.data, text.size, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "f:1: nested too deeply");
	text_release(&text);
	error_clear(&err);
	assert_non_null(large);
	assert_int_equal(tree_parse(&t, "f", large, (16 << 20) + 1, &err), STATUS_BAD_INPUT);
	free(large);
	error_clear(&err);
	assert_int_equal(tree_read(&t, "/nowhere.yaml", &err), STATUS_UNAVAILABLE);
}

static void test_tree__checked_reads(void **state)
{
	struct tree *t = parsed("n: 1.5\nw: 0.7kW\nbad: nan\nbig: 1e999\nq: \"1\"\nyes: true\nlist: [1]\n");
	struct error err = {0};
	double value = 9;
	bool flag = false;

	(void)state;
	assert_int_equal(tree_f64_unit(t, "n", "", &value, &err), STATUS_OK);
	assert_true(value == 1.5);
	assert_int_equal(tree_f64_unit(t, "absent", "", &value, &err), STATUS_OK);
	assert_int_equal(tree_f64_unit(t, "w", "W", &value, &err), STATUS_OK);
	assert_true(value == 700);
	assert_int_equal(tree_f64_unit(t, "bad", "", &value, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "f:3: bad: \"nan\" is not a finite decimal number");
	assert_int_equal(tree_f64_unit(t, "big", "", &value, NULL), STATUS_BAD_INPUT);
	assert_int_equal(tree_f64_unit(t, "q", "", &value, NULL), STATUS_BAD_INPUT);
	assert_int_equal(tree_f64_unit(t, "list", "", &value, NULL), STATUS_BAD_INPUT);
	assert_true(value == 700);
	assert_int_equal(tree_bool(t, "yes", &flag, NULL), STATUS_OK);
	assert_true(flag);
	assert_int_equal(tree_bool(t, "n", &flag, NULL), STATUS_BAD_INPUT);
	assert_int_equal(tree_bool(t, "absent", &flag, NULL), STATUS_OK);
	tree_free(t);
}

static void test_tree__an_unknown_key_is_answered_with_the_nearest(void **state)
{
	static const char *const names[] = {"seconds", "size", NULL};
	struct tree *t = parsed("size: 1\nsecond: 2\n"), *far = parsed("elsewhere: 1\n"),
		    *list = parsed("[]");
	struct error err = {0};

	(void)state;
	assert_int_equal(tree_check_keys(t, names, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "f:2: unknown key \"second\", did you mean \"seconds\"");
	error_clear(&err);
	assert_int_equal(tree_check_keys(far, names, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "f:1: unknown key \"elsewhere\"");
	assert_int_equal(tree_check_keys(list, names, NULL), STATUS_BAD_INPUT);
	tree_free(t);
	tree_free(far);
	tree_free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree__yaml_knows_its_lines),
		cmocka_unit_test(test_tree__json_comes_by_the_same_door),
		cmocka_unit_test(test_tree__an_empty_file_is_a_null),
		cmocka_unit_test(test_tree__what_we_do_not_take_names_its_line),
		cmocka_unit_test(test_tree__broken_text_is_refused),
		cmocka_unit_test(test_tree__limits_hold),
		cmocka_unit_test(test_tree__checked_reads),
		cmocka_unit_test(test_tree__an_unknown_key_is_answered_with_the_nearest),
	};

	return cmocka_run_group_tests_name("core_tree", tests, NULL, NULL);
}
