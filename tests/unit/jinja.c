/* SPDX-License-Identifier: Apache-2.0 */
/* Templates rendered as by jinja2 (tests/oracles/jinja.py), with sources, limits and messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include "core/file/file.h"
#include "text/jinja/jinja.h"

static enum status render(const char *source, const json_t *variables, const struct jinja_limits *limits,
			  struct jinja_output *out, struct error *err)
{
	struct jinja *j = NULL;
	struct jinja_run *r = NULL;
	const char *key;
	json_t *value;
	enum status st = jinja_compile(&j, "t", source, strlen(source), err);

	*out = (struct jinja_output){0};
	if (!st)
		st = jinja_run_create(&r, j, limits, 0, err);
	json_object_foreach((json_t *)variables, key, value)
	{
		if (!st)
			st = jinja_run_set(r, key, value, JINJA_DATA, err);
	}
	if (!st)
		st = jinja_run_render(r, out, err);
	jinja_run_destroy(&r);
	jinja_destroy(&j);
	return st;
}

/* Each line: {"source", "variables", and "output" or "error": jinja2 refuses it}. */
static void test_jinja__as_the_reference(void **state)
{
	char path[512], *text, *at;
	struct error err = {0};
	size_t size, lines = 0, wrong = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/data/template/jinja.jsonl", SOURCE_DIR);
	if (file_read(&text, &size, path, 1 << 22, &err))
		fail_msg("%s", err.text);
	for (at = text; *at; at = strchr(at, '\n') + 1, lines++) {
		json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL);
		const json_t *expected = json_object_get(line, "output");
		const char *source = json_string_value(json_object_get(line, "source"));
		struct jinja_output out;
		enum status st;

		assert_non_null(source);
		err = (struct error){0};
		st = render(source, json_object_get(line, "variables"), NULL, &out, &err);
		if (!expected ? st == STATUS_OK
			      : st || out.text.size != json_string_length(expected) ||
					memcmp(text_str(&out.text), json_string_value(expected), out.text.size)) {
			print_message("line %zu: %s\n  expected %s\n  got      %s%s\n", lines + 1, source,
				      expected ? json_string_value(expected) : "an error",
				      st ? err.text : text_str(&out.text), st ? " (error)" : "");
			wrong++;
		}
		jinja_output_release(&out);
		json_decref(line);
	}
	free(text);
	assert_true(lines > 300);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jinja__as_the_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
