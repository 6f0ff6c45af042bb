/* SPDX-License-Identifier: Apache-2.0 */
/* A set of expectations as one text, as a run keeps it; what is no such text; folders that are too much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/file/file.h"
#include "judge/expect/expect.h"

#define SOURCES "sources: {s: {title: a test, date: 2026-11-21}}\n"

static char dir[] = "/tmp/assay-kept-XXXXXX";

static int begin(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/assay-kept-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int end(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static const char *put(const char *name, const char *text, size_t size)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write(path, text, size, NULL), STATUS_OK);
	return path;
}

static void test_kept__the_set_read_from_its_text_is_the_set_of_the_folder(void **state)
{
	struct expectations *folder = NULL, *kept = NULL;
	struct error err = {0};
	const struct text *text;

	(void)state;
	assert_int_equal(expectations_load(&folder, SOURCE_DIR "/expectations", &err), STATUS_OK);
	text = expectations_text(folder);
	assert_true(text->size > 10000);
	if (expectations_load(&kept, put(JUDGE_EXPECTATIONS_FILE, text->data, text->size), &err))
		fail_msg("%s", err.text);
	assert_string_equal(expectations_hash(kept), expectations_hash(folder));
	assert_int_equal(expectations_text(kept)->size, text->size);
	assert_int_equal(kept->band_count, folder->band_count);
	assert_int_equal(kept->rule_count, folder->rule_count);
	assert_int_equal(kept->band[0].line, folder->band[0].line);
	assert_int_equal(strncmp(kept->band[0].file, "expectations/", 13),
			 0); /* of no folder of one machine */
	expectations_free(kept);
	expectations_free(folder);
}

static void test_kept__the_built_in_set_is_not_kept(void **state)
{
	struct expectations *e = NULL;

	(void)state;
	assert_int_equal(expectations_load(&e, NULL, NULL), STATUS_OK);
	assert_int_equal(expectations_text(e)->size, 0);
	expectations_free(e);
}

static void test_kept__what_is_no_such_text_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"", "holds no expectations"},
		{"own.yaml", "byte 0"},
		{"own.yaml 3", "byte 0"},
		{"own.yaml 4\nabc", "byte 0"},
		{"own.yaml -1\n", "byte 0"},
		{"own.yaml x\n", "byte 0"},
		{"own.yaml 99999999999999999999999\n", "byte 0"},
		{" 0\n", "byte 0"},
		{"a\x01.yaml 0\n", "byte 0"},
		{"own.yaml 10\nbands: []\nmore", "byte 22"},
		{"own.yaml 10\nbands: 17\n\n", "expectations/own.yaml:1: bands must be a list"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct expectations *e = NULL;
		struct error err = {0};

		assert_int_equal(expectations_load(&e, put("kept", rows[i].text, strlen(rows[i].text)), &err),
				 STATUS_BAD_INPUT);
		assert_null(e);
		if (!strstr(err.text, rows[i].why))
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, err.text, rows[i].why);
	}
}

static void test_kept__a_folder_is_held_against_itself(void **state)
{
	static const char wide[] =
		SOURCES "bands:\n - {name: wide, when: {probe: gemm, type: fp64}, rate: [1 TFLOPS, 9 TFLOPS],"
			" basis: {cards: 1, runs: 1, windows: 1 s}, source: s, confidence: low}\n";
	struct expectations *e = NULL;
	struct error err = {0};

	(void)state;
	put("own.yaml", wide, sizeof(wide) - 1);
	assert_int_equal(expectations_load(&e, dir, &err), STATUS_BAD_INPUT);
	assert_null(e);
	assert_non_null(strstr(err.text, "/own.yaml:3: range wide is wider than a factor of two"));
}

static void test_kept__a_folder_of_too_much_is_refused(void **state)
{
	static char blank[(4 << 20) - 1];
	struct expectations *e = NULL;
	struct error err = {0};
	char name[64];

	(void)state;
	memset(blank, '#', sizeof(blank));
	memcpy(blank + sizeof(blank) - 5, "\n{}\n\n", 5);
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "big%u.yaml", i);
		put(name, blank, sizeof(blank));
	}
	assert_int_equal(expectations_load(&e, dir, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, "holds more than 16777216 bytes of expectations"))
		fail_msg("%s", err.text);
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "%s/big%u.yaml", dir, i);
		unlink(name);
	}
	err = (struct error){0};
	for (unsigned i = 0; i <= EXPECT_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "%u.yaml", i);
		put(name, "{}\n", 3);
	}
	assert_int_equal(expectations_load(&e, dir, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, "holds more than 1024 files"))
		fail_msg("%s", err.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_kept__##name, begin, end)
		T(the_set_read_from_its_text_is_the_set_of_the_folder),
		T(the_built_in_set_is_not_kept),
		T(what_is_no_such_text_is_refused_with_its_place),
		T(a_folder_is_held_against_itself),
		T(a_folder_of_too_much_is_refused),
#undef T
	};

	return cmocka_run_group_tests_name("judge_kept", tests, NULL, NULL);
}
