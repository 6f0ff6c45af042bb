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

static bool expect_error(const char *source, const struct jinja_limits *limits, enum status due, const char *why)
{
	json_t *variables = json_pack("{s:s, s:[i,i], s:{s:s}}", "text", "hi", "list", 1, 2, "map", "a", "b");
	struct jinja_output out;
	struct error err = {0};
	enum status st = render(source, variables, limits, &out, &err);
	bool good;

	if (st != due || strcmp(err.text, why) != 0)
		print_message("%.60s: expected \"%s\", got status %d \"%s\"\n", source, why, st, err.text);
	good = st == due && !strcmp(err.text, why);
	jinja_output_release(&out);
	json_decref(variables);
	return good;
}

static void test_jinja__errors_say_what_and_where(void **state)
{
	static const struct {
		const char *source, *why;
	} cases[] = {
		/* reading */
		{"a\n\303\251 {{ 'x", "t:2:6: the string has no end"},
		{"{{ 'a\\", "t:1:4: the string has no end"},
		{"{{ '\\xq' }}", "t:1:5: this escape of a character is not valid"},
		{"{{ '\\ud800' }}", "t:1:5: this escape of a character is not valid"},
		{"{{ 99999999999999999999 }}", "t:1:4: this number does not fit into 64 bits"},
		{"{# x", "t:1:1: the comment {# has no end #}"},
		{"{% raw %} x", "t:1:1: {% raw %} has no {% endraw %}"},
		{"{{ x", "t:1:1: {{ has no end }}"},
		{"{% if x", "t:1:1: {% has no end %}"},
		{"{{ x) }}", "t:1:5: unexpected \")\"; no bracket is open for it"},
		{"{{ \303\251 }}", "t:1:4: names outside ASCII are not supported"},
		{"{{ ? }}", "t:1:4: this character has no meaning here"},
		/* structure */
		{"{{ }}", "t:1:4: expected an expression, but found }}"},
		{"{{ a b }}", "t:1:6: expected }}, but found \"b\""},
		{"{{ a.~ }}", "t:1:6: expected a name or a number after the dot, but found ~"},
		{"{{ a|1 }}", "t:1:6: expected the name of a filter, but found a number"},
		{"{{ a is 1 }}", "t:1:9: expected the name of a test, but found a number"},
		{"{{ a is string is defined }}", "t:1:16: a test cannot follow a test; put the first one in parentheses"},
		{"{{ f(a=1, 2) }}", "t:1:11: an argument without a name follows one with a name"},
		{"{{ f(a=1, a=2) }}", "t:1:11: the argument a is given twice"},
		{"{{ f(*a, *b) }}", "t:1:10: * can stand before one argument only"},
		{"{% 1 %}", "t:1:4: expected the name of a statement, but found a number"},
		{"{% endif %}", "t:1:4: {% endif %} closes nothing"},
		{"{% for x of y %}", "t:1:10: expected \"in\" after the variable of the loop"},
		{"{% for 1 in y %}", "t:1:8: expected the name of a variable, but found a number"},
		{"{% set none = 1 %}", "t:1:8: cannot assign to none"},
		{"{% set a.1 = 1 %}", "t:1:10: expected the name of an attribute, but found a number"},
		{"{% macro m(a=1, b) %}", "t:1:18: a parameter without a default follows one with a default"},
		{"{% call 1 %}{% endcall %}", "t:1:4: a call block needs a call, such as {% call name() %}"},
		{"{% continue %}", "t:1:4: continue is outside a loop"},
		{"{% for x in y %}", "t:1:4: {% for %} has no {% endfor %}"},
		/* rendering */
		{"{{ nope.x }}", "t:1:9: \"nope\" is undefined"},
		{"{{ map.x.y }}", "t:1:10: a value of type dictionary has no attribute \"x\""},
		{"\n  {{ text + 1 }}", "t:2:11: the operator + cannot be applied to values of type string and integer"},
		{"{{ -text }}", "t:1:4: a value of type string has no sign"},
		{"{{ +text }}", "t:1:4: a value of type string has no sign"},
		{"{{ text() }}", "t:1:4: a value of type string cannot be called"},
		{"{{ text < 1 }}", "t:1:4: values of type string and integer have no order"},
		{"{{ 1 in text }}", "t:1:4: a string can contain only strings, not a value of type integer"},
		{"{{ 1 // 0 }}", "t:1:6: division by zero"},
		{"{{ 2 ** 64 }}", "t:1:6: the result does not fit into 64 bits"},
		{"{{ -9223372036854775807 - 2 }}", "t:1:25: the result does not fit into 64 bits"},
		{"{{ 0 ** -1 }}", "t:1:6: division by zero"},
		{"{{ (-8.0) ** 0.5 }}", "t:1:11: the power of these numbers is no real number"},
		{"{{ list[::0] }}", "t:1:8: the step of a slice must be an integer other than 0"},
		{"{{ list['a':] }}", "t:1:8: a value of type string is no bound of a slice"},
		{"{{ {[]: 1} }}", "t:1:4: a list cannot be a key"},
		{"{% for a in 5 %}{% endfor %}", "t:1:13: cannot iterate over a value of type integer"},
		{"{% set a, b = 1, 2, 3 %}", "t:1:8: cannot assign 3 values to 2 variables"},
		{"{% set list.a = 1 %}", "t:1:8: only attributes of a namespace can be set, and \"list\" is none"},
		{"{{ range(1, 2, 0) }}", "t:1:4: the step of range cannot be 0"},
		{"{{ range(100001) }}", "t:1:4: range has 100001 items; at most 100000 are allowed"},
		{"{{ range(9223372036854775807) }}", "t:1:4: a bound of range is too large"},
		{"{{ namespace(1) }}", "t:1:4: namespace takes named arguments and at most one dictionary"},
		{"{{ text|upper(1) }}", "t:1:9: upper takes at most 0 arguments, but got 1"},
		{"{{ text|replace('a') }}", "t:1:9: replace needs 2 arguments"},
		{"{{ text|trim(x=1) }}", "t:1:9: trim has no parameter \"x\""},
		{"{{ text|indent(2, width=1) }}", "t:1:9: indent got \"width\" twice"},
		{"{{ text.split(1) }}", "t:1:9: argument 1 must be a string, not a value of type integer"},
		{"{{ text.split(' ', 'a') }}", "t:1:9: argument 2 must be an integer, not a value of type string"},
		{"{{ text is divisibleby }}", "t:1:9: the test divisibleby takes 1 arguments, but got 0"},
		{"{% macro m() %}{% endmacro %}{{ m(1) }}", "t:1:33: the macro takes at most 0 arguments, but got 1"},
		{"{% macro m() %}{% endmacro %}{{ m(a=1) }}", "t:1:33: the macro takes no argument \"a\" here"},
		{"{{ list|map('upper') }}", "t:1:1: a generator cannot be printed; add the filter list or join"},
		{"{{ range }}", "t:1:1: a value of type function cannot be printed"},
		{"{{ list|map('x')|list }}", "t:1:9: the filter \"x\" is not supported"},
		{"{{ list|select('x')|list }}", "t:1:9: the test of this filter is not supported"},
		{"{{ range|tojson }}", "t:1:10: tojson cannot write a value of type function"},
		{"{{ map.items()|tojson }}", "t:1:16: tojson cannot write this kind of list; add the filter list"},
		{"{{ 'x'|tojson(indent=100) }}", "t:1:8: tojson allows an indent of at most 64"},
		{"{{ {1: 2}|tojson(sort_keys=true) }}", "t:1:11: tojson can sort only keys that are strings"},
		{"{{ '%d'|format('a') }}", "t:1:9: %d needs a number, not a value of type string"},
		{"{{ '%s'|format() }}", "t:1:9: the format needs more than 0 values"},
		{"{{ 'a'|format(1) }}", "t:1:8: the format uses 0 of 1 values"},
		{"{{ '{'.format() }}", "t:1:8: format found a { without }"},
		{"{{ '{x:>5}'.format(x=1) }}", "t:1:13: format supports only fields such as {}, {0} and {name}"},
		{"{{ '{}'.format() }}", "t:1:9: format got no argument for the field {}"},
		{"{{ raise_exception('no') }}", "t:1:4: the chat template refuses the conversation: no"},
	};

	size_t wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		wrong += !expect_error(cases[i].source, NULL, STATUS_BAD_INPUT, cases[i].why);
	assert_int_equal(wrong, 0);
	assert_true(expect_error("{% do x %}", NULL, STATUS_UNSUPPORTED, "t:1:4: the statement \"do\" is not supported"));
	assert_true(expect_error("{{ x|nope }}", NULL, STATUS_UNSUPPORTED, "t:1:6: the filter \"nope\" is not supported"));
	assert_true(expect_error("{{ x is nope }}", NULL, STATUS_UNSUPPORTED, "t:1:9: the test \"nope\" is not supported"));
	assert_true(expect_error("{% for x in y recursive %}", NULL, STATUS_UNSUPPORTED,
		     "t:1:15: recursive loops are not supported"));
}

static void test_jinja__limits_hold(void **state)
{
	static const struct jinja_limits small = {.steps = 50000, .memory = 1 << 20, .output = 1000, .depth = 50};
	static const struct {
		const char *source, *why;
	} cases[] = {
		{"{% for a in range(900) %}{{ a }}{% endfor %}", "output"},
		{"{% set ns = namespace(x='abcdefgh') %}{% for a in range(16) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		 "memory"},
		{"{{ 'a' * 2000000 }}", "memory"},
		{"{{ [1] * 2000000 }}", "memory"},
		{"{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "nesting"},
		{"{% set ns = namespace(x=[]) %}{% for a in range(60) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
		 "nesting"},
		{"{% set ns = namespace(x=[], y=[]) %}{% for a in range(60) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] "
		 "%}{% endfor %}{{ ns.x == ns.y }}",
		 "nesting"},
		{"{{ ('a' * 9000)|replace('a', 'b' * 9000) }}", "memory"},
	};
	struct text deep = {0};
	char why[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jinja_output out;
		struct error err = {0};

		assert_int_equal(render(cases[i].source, NULL, &small, &out, &err), STATUS_NO_RESOURCE);
		snprintf(why, sizeof(why), "the template exceeds its limit of %s", cases[i].why);
		if (!strstr(err.text, why))
			fail_msg("%s: %s", cases[i].source, err.text);
		jinja_output_release(&out);
	}
	assert_true(expect_error("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}",
				 &(struct jinja_limits){.steps = 10000, .memory = 1 << 28, .output = 1, .depth = 50},
				 STATUS_NO_RESOURCE, "t:1:39: the template exceeds its limit of steps"));
	assert_true(expect_error("{% macro m(x) %}{{ [m(x)] }}{% endmacro %}{{ m(1) }}", NULL, STATUS_NO_RESOURCE,
				 "t:1:17: the template exceeds its limit of nesting"));
	text_add(&deep, "{% macro m() %}{{ 1");
	for (int i = 0; i < 60000; i++)
		text_add(&deep, "+1");
	text_add(&deep, " }}{% endmacro %}{{ m(1, a=2) }}");
	assert_true(expect_error(text_str(&deep), NULL, STATUS_BAD_INPUT,
				 "t:1:120040: the macro takes at most 0 arguments, but got 1"));
	text_release(&deep);
	for (int i = 0; i < 1100; i++)
		text_addf(&deep, "{{ x%d }}", i);
	assert_true(expect_error(text_str(&deep), NULL, STATUS_BAD_INPUT,
				 "t:1:10114: the template has more than 1024 variables"));
	text_release(&deep);
	for (int i = 0; i < 300; i++)
		text_add(&deep, i ? "(" : "{{ ");
	assert_true(expect_error(text_str(&deep), NULL, STATUS_BAD_INPUT, "t:1:204: brackets are nested too deeply"));
	text_release(&deep);
	for (int i = 0; i < 300; i++)
		text_add(&deep, i ? "not " : "{{ ");
	text_add(&deep, "1 }}");
	assert_true(expect_error(text_str(&deep), NULL, STATUS_BAD_INPUT, "t:1:804: more than 200 constructs are nested"));
	text_release(&deep);
}

static void test_jinja__a_source_is_text_of_bounded_size(void **state)
{
	char *large = malloc(JINJA_SOURCE_MAX + 2);
	struct jinja *j = NULL;
	struct error err = {0};

	(void)state;
	memset(large, 'x', JINJA_SOURCE_MAX + 1);
	large[JINJA_SOURCE_MAX + 1] = 0;
	assert_int_equal(jinja_compile(&j, "t", large, JINJA_SOURCE_MAX + 1, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "t: the template has 1048577 bytes; at most 1048576 are allowed");
	free(large);
	err = (struct error){0};
	assert_int_equal(jinja_compile(&j, "t", "a\0b", 3, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "t: byte 1 of the template is not UTF-8");
	err = (struct error){0};
	assert_int_equal(jinja_compile(&j, "t", "a\xc3(", 3, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "t: byte 1 of the template is not UTF-8");
	assert_null(j);
}

/* The sources of the output as letters: d, a, t for each byte. */
static void expect_sources(const char *source, const char *text, const char *sources)
{
	static const char letters[] = "dat";
	json_t *list = json_loads("[{\"role\": \"user\", \"content\": \"ab\"}, {\"role\": \"evil\", \"content\": \"cd\"}]",
				  0, NULL);
	struct jinja_output out = {0};
	struct jinja_run *r = NULL;
	struct jinja *j = NULL;
	struct error err = {0};
	size_t at = 0;

	if (jinja_compile(&j, "t", source, strlen(source), &err) || jinja_run_create(&r, j, NULL, 0, &err) ||
	    jinja_run_set_list(r, "m", list, (const enum jinja_source[]){JINJA_DATA, JINJA_ANSWER}, "role",
			       (const char *const[]){"user", NULL}, &err) ||
	    jinja_run_render(r, &out, &err))
		fail_msg("%s", err.text);
	assert_string_equal(text_str(&out.text), text);
	for (size_t i = 0; i < out.count; i++)
		for (; at < out.spans[i].end; at++)
			if (sources[at] != letters[out.spans[i].source])
				fail_msg("%s: byte %zu of %s is not from %c", source, at, text, sources[at]);
	jinja_output_release(&out);
	jinja_run_destroy(&r);
	jinja_destroy(&j);
	json_decref(list);
}

static void test_jinja__each_byte_keeps_its_source(void **state)
{
	(void)state;
	expect_sources("x{{ m[0].content }}{{ m[1].content }}", "xabcd", "tddaa");
	expect_sources("{{ m[0].role }}{{ m[1].role }}", "userevil", "ttttaaaa");
	expect_sources("{{ '<' + m[0].content ~ '>' }}{{ 1 }}", "<ab>1", "tddtd");
	expect_sources("{{ ('x' + m[0].content)[1:] }}{{ ('x' + m[0].content)[::-1] }}", "abbax", "ddddt");
	expect_sources("{{ ('x' + m[0].content)|upper }}{{ m[0].content.replace('a', '(') }}", "XAB(b", "tddtd");
	expect_sources("{{ [m[0].content, 'y']|join('-') }}{{ m[0].content|tojson }}", "ab-y\"ab\"", "ddttdddd");
	expect_sources("{% set x %}<{{ m[1].content }}{% endset %}{{ x }}{{ x.split('c')[0] }}", "<cd<", "taat");
	expect_sources("{% macro f(x) %}{{ x }}!{% endmacro %}{{ f(m[0].content) }}", "ab!", "ddt");
	expect_sources("{{ '%s|%s' % (m[0].content, 'z') }}{{ '{}'.format(m[0].content) }}", "ab|zab", "ddttdd");
}

/* Also if it begins with more digits than an integer has. With 9 digits or fewer it is an index. */
static void test_jinja__an_attribute_of_many_digits_is_a_name(void **state)
{
	static const char source[] = "{{ m|map(attribute='99999999999999999999x')|list }}"
				     "{{ m|map(attribute='99999999999999999999')|list }}"
				     "{{ [[7, 8]]|map(attribute='000000001')|list }}";
	json_t *variables = json_loads("{\"m\": [{\"99999999999999999999x\": 5, \"99999999999999999999\": 6}]}", 0, NULL);
	struct jinja_output out;
	struct error err = {0};

	(void)state;
	if (render(source, variables, NULL, &out, &err))
		fail_msg("%s", err.text);
	assert_string_equal(text_str(&out.text), "[5][6][8]");
	jinja_output_release(&out);
	json_decref(variables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jinja__as_the_reference),
		cmocka_unit_test(test_jinja__errors_say_what_and_where),
		cmocka_unit_test(test_jinja__limits_hold),
		cmocka_unit_test(test_jinja__a_source_is_text_of_bounded_size),
		cmocka_unit_test(test_jinja__each_byte_keeps_its_source),
		cmocka_unit_test(test_jinja__an_attribute_of_many_digits_is_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
