/* SPDX-License-Identifier: Apache-2.0 */
/* JSON schemas as grammars: each keyword takes what it should, refuses the rest, and names what it cannot do.
 */
#include <jansson.h>

#include "grammar_bed.h"

static void test_schema__types(void **state)
{
	(void)state;
	bed_expect("{\"type\": \"json_object\"}",
		   YES("{}", "{\"a\": 1}", "{\"a\":[1,2.5e+10,null,true,{\"b\":\"c\"}]}", "{\n  \"a\": []\n}",
		       " {}"),
		   NO("[]", "1", "{\"a\":1,}", "{\"a\" 1}", "{\"a\":01}", "{\"a\":\"\t\"}", "{a:1}", "{}}",
		      "{} "));
	bed_schema("{\"type\":\"integer\"}", YES("0", "-1", "123456789012345678"),
		   NO("01", "1.0", "1e5", "--1", "", "1234567890123456789"));
	bed_schema("{\"type\":\"number\"}", YES("0", "-0.5", "1e-05", "1.5E+10"),
		   NO(".5", "1.", "1e", "+1", "1e999"));
	bed_schema("{\"type\":[\"string\",\"null\"]}", YES("null", "\"\"", "\"x\""), NO("1", "true"));
	bed_schema("{\"type\":\"boolean\"}", YES("true", "false"), NO("True", "null"));
	bed_schema("{\"type\":\"string\",\"nullable\":true}", YES("null", "\"a\""), NO("1"));
	bed_schema("true", YES("1", "\"a\"", "[{}]", "null"), NO("", "x"));
	bed_schema("{}", YES("1", "{\"a\":1}"), NO("", "x"));
}

static void test_schema__strings(void **state)
{
	(void)state;
	bed_schema("{\"type\":\"string\"}",
		   YES("\"\"", "\"\xc3\xa9\"", "\"\xf0\x9f\x98\x80\"", "\"\\ud83d\\ude00\"",
		       "\"\\u00e9\\n\\/\"", "\"\x7f\""),
		   NO("\"", "\"\\ud83d\"", "\"\\ud83dx\"", "\"\\ude00\"", "\"\xc3\"", "\"\xed\xa0\x80\"",
		      "\"\xc0\x80\"", "\"\xf5\x80\x80\x80\"", "\"\n\"", "\"\\x\"", "\"\\u0000\"",
		      "\"\xff\""));
	bed_schema("{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
		   YES("\"ab\"", "\"\xf0\x9f\x98\x80\xc3\xa9\"", "\"\\ud83d\\ude00ab\"", "\"\\n\\n\\n\""),
		   NO("\"a\"", "\"abcd\"", "\"\xc3\xa9\""));
	bed_schema("{\"type\":\"string\",\"maxLength\":100000}", YES("\"\"", "\"abc\""), NO("\"abc"));
	/* more than an integer holds */
	bed_schema("{\"type\":\"string\",\"maxLength\":1e30}", YES("\"\"", "\"abc\""), NO("\"abc"));
	bed_schema("{\"type\":\"string\",\"pattern\":\"^[a-c]+$\"}", YES("\"abc\""),
		   NO("\"\"", "\"abd\"", "\"ab"));
	bed_schema("{\"type\":\"string\",\"pattern\":\"b\"}", YES("\"b\"", "\"abc\"", "\"\\nb\xc3\xa9\""),
		   NO("\"a\"", "\"\""));
	bed_schema("{\"type\":\"string\",\"pattern\":\"^[^a]$\"}",
		   YES("\"b\"", "\"\\\"\"", "\"\\\\\"", "\"\\n\"", "\"\\u001F\"", "\"\xc3\xa9\""),
		   NO("\"a\"", "\"\"\"", "\"\n\"", "\"\\\"", "\"bb\""));
	bed_schema("{\"type\":\"string\",\"pattern\":\"^[A-Z][a-z]*$\",\"minLength\":2,\"maxLength\":3}",
		   YES("\"Ab\"", "\"Abc\""), NO("\"A\"", "\"Abcd\"", "\"ab\""));
}

static void test_schema__formats(void **state)
{
	(void)state;
	bed_schema("{\"type\":\"string\",\"format\":\"date\"}", YES("\"2024-12-31\"", "\"1999-02-28\""),
		   NO("\"2024-13-01\"", "\"2024-02-30\"", "\"2024-04-31\"", "\"24-01-01\""));
	bed_schema("{\"type\":\"string\",\"format\":\"date-time\"}", YES("\"2024-12-31T23:59:59.5Z\""),
		   NO("\"2024-12-31\"", "\"2024-12-31T24:00:00Z\""));
	bed_schema("{\"type\":\"string\",\"format\":\"time\"}", YES("\"12:00:00+02:00\""), NO("\"12:00\""));
	bed_schema("{\"type\":\"string\",\"format\":\"uuid\"}",
		   YES("\"123e4567-e89b-12d3-a456-426614174000\""), NO("\"123e4567\""));
	bed_schema("{\"type\":\"string\",\"format\":\"ipv4\"}", YES("\"255.0.10.199\""),
		   NO("\"256.0.0.1\"", "\"01.0.0.1\""));
	bed_schema("{\"type\":\"string\",\"format\":\"ipv6\"}",
		   YES("\"2001:db8::1\"", "\"::\"", "\"1:2:3:4:5:6:7:8\""), NO("\"1:2:3\"", "\"12345::\""));
	bed_schema("{\"type\":\"string\",\"format\":\"email\"}", YES("\"a.b@example.org\""),
		   NO("\"a\"", "\"@b.c\""));
	bed_schema("{\"type\":\"string\",\"format\":\"uri\"}", YES("\"https://example.org/a?b=c#d\""),
		   NO("\"x y\""));
	bed_schema("{\"type\":\"string\",\"format\":\"duration\"}", YES("\"P1DT2H\"", "\"P3W\""),
		   NO("\"P\"", "\"1D\""));
	bed_schema("{\"type\":\"string\",\"format\":\"date\",\"maxLength\":10}", YES("\"2024-12-31\""), NULL);
}

static void test_schema__integers(void **state)
{
	(void)state;
	bed_schema("{\"type\":\"integer\",\"minimum\":7,\"maximum\":1234}",
		   YES("7", "10", "99", "100", "1234"), NO("6", "0", "1235", "2000", "-7", "9999", "07"));
	bed_schema("{\"type\":\"integer\",\"minimum\":-15,\"exclusiveMaximum\":3}",
		   YES("-15", "-9", "0", "2"), NO("-16", "3", "-100"));
	bed_schema("{\"type\":\"integer\",\"minimum\":1700000000000000000,\"maximum\":9223372036854775806}",
		   YES("1700000000000000000", "1999999999999999999", "9223372036854775806"),
		   NO("999999999999999999", "1699999999999999999", "9223372036854775807",
		      "17000000000000000000"));
	bed_schema("{\"type\":\"integer\",\"maximum\":-2000000000000000000}",
		   YES("-2000000000000000000", "-9223372036854775807"),
		   NO("-1999999999999999999", "0", "-9223372036854775808"));
	bed_schema("{\"type\":\"integer\",\"minimum\":9223372036854775807}", YES("9223372036854775807"),
		   NO("9223372036854775806", "9", "-9223372036854775807"));
	bed_schema("{\"type\":\"integer\",\"minimum\":-9223372036854775808,\"maximum\":1e30}",
		   YES("-9223372036854775807", "0", "9223372036854775807"), NO("9223372036854775808"));
	/* none that can be enforced: any integer */
	bed_schema("{\"type\":\"integer\",\"minimum\":1e30}", YES("0", "-5"), NO("1.5"));
	bed_schema("{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":0}",
		   YES("0", "7", "999999999999999999"), NO("1", "-7", "9999999999999999997"));
	bed_schema("{\"type\":\"integer\",\"exclusiveMinimum\":0.5}", YES("1", "99999"), NO("0", "-1"));
	bed_schema("{\"type\":\"integer\",\"multipleOf\":7}", YES("0", "7", "-14", "700"), NO("1", "71"));
	bed_schema("{\"type\":\"integer\",\"multipleOf\":5,\"minimum\":3,\"maximum\":11}", YES("5", "10"),
		   NO("0", "15", "7"));
}

static void test_schema__numbers(void **state)
{
	(void)state;
	bed_schema("{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
		   YES("0", "1", "0.5", "0.999999", "1.000"), NO("1.001", "-0.1", "2", "1e0"));
	bed_schema("{\"type\":\"number\",\"minimum\":-2.5,\"maximum\":10.25}",
		   YES("-2.5", "-2.50", "-2.49", "-1", "10.25", "10.2", "10", "9.99"),
		   NO("-2.51", "-3", "10.26", "10.251", "11"));
	bed_schema("{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}",
		   YES("0.1", "0.001", "0.99"), NO("0", "1", "0.0", "1.0", "-0.5"));
	bed_schema("{\"type\":\"number\",\"minimum\":0.00025}", YES("0.00025", "0.001", "7"),
		   NO("0.0002", "0"));
	bed_schema("{\"type\":\"number\",\"maximum\":-1.5}", YES("-1.5", "-2", "-100.25"),
		   NO("-1.4", "0", "1"));
	bed_schema("{\"type\":\"number\",\"minimum\":1.5e18}",
		   YES("1500000000000000000.5", "2000000000000000000"),
		   NO("1499999999999999999", "999999999999999999", "0.5"));
	bed_schema("{\"type\":\"number\",\"minimum\":3,\"exclusiveMinimum\":true}", YES("3.1", "4"),
		   NO("3", "3.0"));
}

static void test_schema__arrays(void **state)
{
	(void)state;
	bed_schema("{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
		   YES("[]", "[1]", "[1, 2,3]", "[\n  1\n]"), NO("[,]", "[1,]", "[\"a\"]", "[1 2]"));
	bed_schema("{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":3}",
		   YES("[1,2]", "[1,2,3]"), NO("[]", "[1]", "[1,2,3,4]"));
	bed_schema(
		"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":false}",
		YES("[]", "[1]", "[1,\"a\"]"), NO("[\"a\"]", "[1,\"a\",2]"));
	bed_schema("{\"type\":\"array\",\"items\":[{\"type\":\"integer\"}],\"minItems\":1}",
		   YES("[1]", "[1,\"a\"]"), NO("[]", "[\"a\"]"));
	bed_schema("{\"type\":\"array\",\"maxItems\":0}", YES("[]"), NO("[1]"));
	bed_schema("{\"type\":\"array\",\"minItems\":2,\"maxItems\":1000000}", YES("[1,2]"), NO("[1]"));
}

static void test_schema__objects(void **state)
{
	(void)state;
	bed_schema(
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"},"
		"\"c\":{\"type\":\"null\"}},\"required\":[\"b\"]}",
		YES("{\"b\":\"x\"}", "{\"a\":1, \"b\":\"\"}", "{\"b\": \"x\", \"c\": null}",
		    "{\n  \"a\": 1,\n  \"b\": \"x\",\n  \"c\": null\n}"),
		NO("{}", "{\"a\":1}", "{\"b\":\"x\",\"a\":1}", "{\"b\":1}", "{\"b\":\"x\",}",
		   "{\"b\":\"x\",\"d\":1}", "{\"b\":\"x\",\"b\":\"x\"}"));
	bed_schema(
		"{\"properties\":{\"a\":{\"type\":\"integer\"}},\"additionalProperties\":{\"type\":\"boolean\"}}",
		YES("{}", "{\"a\":1}", "{\"a\":1,\"ab\":true}", "{\"x\":false,\"\":true}",
		    "{\"\xc3\xa9\":true}"),
		NO("{\"a\":true}", "{\"x\":1}", "{\"x\":true,\"a\":1}", "{\"\\u0061\":true}"));
	bed_schema("{\"type\":\"object\",\"required\":[\"q\"]}", YES("{\"q\":[]}", "{\"q\":1,\"r\":2}"),
		   NO("{}"));
	bed_schema("{\"type\":\"object\",\"additionalProperties\":false}", YES("{}", "{ }"), NO("{\"a\":1}"));
	bed_schema("{\"type\":\"object\",\"patternProperties\":{\"^x-\":{\"type\":\"integer\"}}}",
		   YES("{}", "{\"x-a\":1,\"x-b\":2}"), NO("{\"a\":1}", "{\"x-a\":\"b\"}"));
	bed_schema(
		"{\"type\":\"object\",\"maxProperties\":2,\"additionalProperties\":{\"type\":\"integer\"}}",
		YES("{}", "{\"a\":1,\"b\":2}"), NO("{\"a\":1,\"b\":2,\"c\":3}"));
	bed_schema(
		"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"additionalProperties\":false,"
		"\"minProperties\":2}",
		YES("{\"a\":1,\"c\":2}", "{\"a\":1,\"b\":2,\"c\":3}"), NO("{}", "{\"b\":1}"));
	bed_schema(
		"{\"type\":\"object\",\"properties\":{\"a\\\"b\":{\"type\":\"null\"}},\"required\":[\"a\\\"b\"]}",
		YES("{\"a\\\"b\":null}"), NO("{\"a\":null}"));
}

static void test_schema__values(void **state)
{
	(void)state;
	bed_schema("{\"enum\":[\"red\",\"rose\",1,null,{\"a\":[1,2]},0.1]}",
		   YES("\"red\"", "\"rose\"", "1", "null", "{\"a\": [1, 2]}", "{\"a\":[1,2]}", "0.1"),
		   NO("\"r\"", "2", "{}", "\"reds\""));
	bed_schema("{\"type\":\"string\",\"enum\":[\"a\",1]}", YES("\"a\""), NO("1"));
	bed_schema("{\"const\":\"a\\nb\"}", YES("\"a\\nb\""), NO("\"a\nb\"", "\"a\""));
	bed_schema("{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"maxLength\":1}]}",
		   YES("12", "\"a\""), NO("\"ab\"", "1.5"));
	bed_schema("{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"boolean\"}]}", YES("null", "true"), NO("1"));
	bed_schema(
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},"
		"\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
		YES("{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"b\":2}"), NO("{}"));
}

static void test_schema__references_and_merges(void **state)
{
	(void)state;
	bed_schema(
		"{\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":"
		"{\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}},"
		"\"$ref\":\"#/$defs/n\"}",
		YES("{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}"),
		NO("{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2}}"));
	bed_schema("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", YES("[]", "[[],[[]]]"), NO("[1]"));
	bed_schema(
		"{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]},"
		"{\"properties\":{\"a\":{\"minimum\":5},\"b\":{\"type\":\"null\"}}}]}",
		YES("{\"a\":5}", "{\"a\":7,\"b\":null}"), NO("{\"a\":4}", "{}", "{\"a\":5,\"b\":1}"));
	bed_schema("{\"allOf\":[{\"enum\":[1,2,3]},{\"enum\":[2,3,4]}]}", YES("2", "3"), NO("1", "4"));
	bed_schema(
		"{\"$ref\":\"#/$defs/s\",\"maxLength\":2,\"$defs\":{\"s\":{\"type\":\"string\",\"minLength\":1}}}",
		YES("\"a\"", "\"ab\""), NO("\"\"", "\"abc\""));
	bed_schema("{\"allOf\":[{\"type\":[\"integer\",\"string\"]},{\"type\":[\"number\",\"null\"]}]}",
		   YES("1"), NO("\"a\"", "null", "1.5"));
	bed_schema("{\"allOf\":[{\"anyOf\":[{\"minimum\":10},{\"maximum\":3}]},{\"anyOf\":[{\"maximum\":20},"
		   "{\"maximum\":1}]}],\"type\":\"integer\"}",
		   YES("0", "3", "10", "20"), NO("4", "21"));
	bed_schema(
		"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"}],\"allOf\":[{\"items\":{\"type\":"
		"[\"integer\",\"null\"],\"minimum\":3}}]}",
		YES("[3]", "[4,null]"), NO("[null]", "[2]"));
}

static void strict(const char *schema, const char *words)
{
	struct text source = {0};

	text_addf(&source, "{\"type\": \"json_schema\", \"strict\": true, \"schema\": %s}", schema);
	bed_refused(text_str(&source), NULL, STATUS_UNSUPPORTED, words);
	text_release(&source);
}

/* A deep place leaves room for what is wrong there. */
static void test_schema__the_place_of_an_error_is_shortened(void **state)
{
	struct text source = {0};

	(void)state;
	text_add(&source, "{\"type\": \"json_schema\", \"schema\": ");
	for (int i = 0; i < 50; i++)
		text_add(&source, "{\"properties\":{\"name\":");
	text_add(&source, "{\"type\":\"nothing\"}");
	for (int i = 0; i < 50; i++)
		text_add(&source, "}}");
	text_add(&source, "}");
	bed_refused(text_str(&source), NULL, STATUS_BAD_INPUT, "..: \"type\" is not null, boolean");
	text_release(&source);
}

static void test_schema__unenforced_is_named(void **state)
{
	struct grammar_vocab *v = bed_vocab();
	struct grammar *g;

	(void)state;
	strict("{\"properties\":{\"a\":{\"not\":{}}}}", "schema.properties.a: keyword \"not\"");
	strict("{\"type\":\"array\",\"uniqueItems\":true}", "\"uniqueItems\"");
	strict("{\"if\":{},\"then\":{}}", "\"if\"");
	strict("{\"type\":\"string\",\"format\":\"color\"}", "\"color\"");
	strict("{\"type\":\"string\",\"format\":\"date\",\"pattern\":\"a\"}", "\"format\" beside");
	strict("{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", "\"oneOf\"");
	strict("{\"type\":\"number\",\"multipleOf\":0.01}", "\"multipleOf\"");
	strict("{\"type\":\"number\",\"minimum\":1e-300}", "digits behind the point");
	strict("{\"type\":\"number\",\"minimum\":1e20}", "a minimum of 1e+20 is not enforced");
	strict("{\"type\":\"integer\",\"minimum\":1e19}", "a minimum of 1e+19 is not enforced");
	strict("{\"type\":\"integer\",\"exclusiveMinimum\":9223372036854775807}", "a minimum of 9.22337e+18");
	strict("{\"type\":\"integer\",\"maximum\":-9223372036854775808}", "a maximum of -9.22337e+18");
	strict("{\"type\":\"integer\",\"exclusiveMaximum\":-9223372036854775807}", "a maximum of");
	strict("{\"type\":\"number\",\"maximum\":-1e300}", "a maximum of -1e+300 is not enforced");
	strict("{\"type\":\"string\",\"enum\":[\"a\"],\"minLength\":2}", "beside \"enum\"");
	strict("{\"type\":\"object\",\"minProperties\":2}", "\"minProperties\"");
	strict("{\"type\":\"string\",\"pattern\":\"^(ab|c)*$\",\"maxLength\":5}", "\"minLength\" and");
	strict("{\"type\":\"object\",\"properties\":{\"a\":{}},\"patternProperties\":{\"b\":{}}}",
	       "\"patternProperties\"");
	strict("{\"type\":\"object\",\"maxProperties\":100,\"additionalProperties\":true}", "more than 64");
	strict("{\"type\":\"integer\",\"multipleOf\":101}", "\"multipleOf\" beside");
	strict("{\"allOf\":[{\"type\":\"string\",\"pattern\":\"a\"},{\"pattern\":\"b\"}]}",
	       "different \"pattern\"");
	g = bed_compile(
		v,
		"{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\",\"uniqueItems\":true,\"not\":{}}}");
	assert_int_equal(grammar_warnings(g), 2);
	assert_string_equal(grammar_warning(g, 1), "schema: keyword \"uniqueItems\" is not enforced");
	assert_string_equal(grammar_warning(g, 2), "");
	grammar_release(&g);
	grammar_vocab_destroy(&v);
}

static void bad(const char *schema, enum status status, const char *words)
{
	struct text source = {0};

	text_addf(&source, "{\"type\": \"json_schema\", \"schema\": %s}", schema);
	bed_refused(text_str(&source), NULL, status, words);
	text_release(&source);
}

static void test_schema__malformed(void **state)
{
	(void)state;
	bad("1", STATUS_BAD_INPUT, "neither an object");
	bad("{\"type\":\"str\"}", STATUS_BAD_INPUT, "\"type\" is not");
	bad("{\"type\":[]}", STATUS_BAD_INPUT, "empty list");
	bad("{\"properties\":[]}", STATUS_BAD_INPUT, "\"properties\" is not an object");
	bad("{\"properties\":{\"a\":1}}", STATUS_BAD_INPUT, "schema.properties.a: a schema is neither");
	bad("{\"required\":1}", STATUS_BAD_INPUT, "\"required\" is not a list");
	bad("{\"required\":[1]}", STATUS_BAD_INPUT, "something else than names");
	bad("{\"type\":\"string\",\"minLength\":-1}", STATUS_BAD_INPUT, "\"minLength\"");
	bad("{\"type\":\"string\",\"minLength\":1.5}", STATUS_BAD_INPUT, "\"minLength\"");
	bad("{\"type\":\"string\",\"maxLength\":-1e30}", STATUS_BAD_INPUT, "\"maxLength\"");
	bad("{\"type\":\"string\",\"pattern\":1}", STATUS_BAD_INPUT, "\"pattern\" is not a text");
	bad("{\"type\":\"string\",\"pattern\":\"(\"}", STATUS_BAD_INPUT,
	    "schema.pattern: regular expression");
	bad("{\"type\":\"integer\",\"minimum\":\"a\"}", STATUS_BAD_INPUT, "\"minimum\" is not a number");
	bad("{\"type\":\"integer\",\"multipleOf\":0}", STATUS_BAD_INPUT, "\"multipleOf\"");
	bad("{\"properties\":{\"a\":{\"type\":\"array\",\"minItems\":-1}}}", STATUS_BAD_INPUT,
	    "schema.properties.a: \"minItems\"");
	bad("{\"type\":\"array\",\"items\":1}", STATUS_BAD_INPUT, "schema.items: a schema is neither");
	bad("{\"type\":\"array\",\"prefixItems\":{}}", STATUS_BAD_INPUT, "\"prefixItems\" is not a list");
	bad("{\"enum\":1}", STATUS_BAD_INPUT, "\"enum\" is not a list");
	bad("{\"anyOf\":[]}", STATUS_BAD_INPUT, "at least one");
	bad("{\"allOf\":1}", STATUS_BAD_INPUT, "\"allOf\" is not a list");
	bad("{\"allOf\":[1]}", STATUS_BAD_INPUT, "neither an object");
	bad("{\"$ref\":1}", STATUS_BAD_INPUT, "\"$ref\" is not a text");
	bad("{\"$ref\":\"#/$defs/x\"}", STATUS_BAD_INPUT, "leads to nothing");
	bad("{\"$ref\":\"http://x/y\"}", STATUS_UNSUPPORTED, "not a JSON pointer");
	bad("{\"$ref\":\"#\"}", STATUS_UNSUPPORTED, "left recursion");
	bad("{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", STATUS_UNSUPPORTED, "left recursion");
	bad("{\"$ref\":\"#\",\"title\":\"x\",\"type\":\"null\"}", STATUS_NO_RESOURCE,
	    "lead back to themselves");
	bad("{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}",
	    STATUS_BAD_INPUT, "no text of nesting");
	bad("false", STATUS_BAD_INPUT, "no text");
	bad("{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", STATUS_BAD_INPUT, "no text");
	bad("{\"allOf\":[{\"const\":1},{\"const\":2}]}", STATUS_BAD_INPUT, "no text");
	bad("{\"type\":\"integer\",\"minimum\":5,\"maximum\":4}", STATUS_BAD_INPUT, "no text");
	bad("{\"type\":\"number\",\"minimum\":0.5,\"maximum\":0.4}", STATUS_BAD_INPUT, "no text");
	bad("{\"type\":\"array\",\"minItems\":2,\"maxItems\":1}", STATUS_BAD_INPUT, "no text");
	bad("{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", STATUS_BAD_INPUT, "no text");
	bad("{\"type\":\"integer\",\"multipleOf\":10,\"minimum\":11,\"maximum\":19}", STATUS_BAD_INPUT,
	    "no text");
	bad("{\"allOf\":[{\"items\":[{}]},{\"items\":{}}]}", STATUS_UNSUPPORTED, "write \"prefixItems\"");
	bad("{\"allOf\":[{\"patternProperties\":{\"a\":{}}},{\"properties\":{\"a\":{}}}]}",
	    STATUS_UNSUPPORTED, "\"patternProperties\" cannot be merged");
}

/* Random walks through the masks of schemas: each finished text parses. */
static void test_schema__walks_parse(void **state)
{
	static const char *const schemas[] = {
		"{\"type\":\"object\"}",
		"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":3},\"abc\":{\"type\":\"number\"}},"
		"\"required\":[\"abc\"],\"additionalProperties\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}",
		"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^[^a-z]*x?$\"},\"minItems\":2}",
	};
	struct grammar_vocab *v = bed_vocab();
	uint32_t mask[(BED_COUNT + 31) / 32], random = 5;
	struct error err = {0};
	int finished = 0;

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		struct text source = {0}, text = {0};
		struct grammar_state *s;
		struct grammar *g;
		int32_t id;

		text_addf(&source, "{\"type\":\"json_schema\",\"schema\":%s}", schemas[i % 3]);
		g = bed_compile(v, text_str(&source));
		s = bed_state(g);
		for (int token = 0; token < 300 && !grammar_is_complete(s); token++) {
			assert_int_equal(grammar_mask(s, mask, &err), STATUS_OK);
			do {
				random = random * 1664525 + 1013904223;
				id = random >> 30 ? (int32_t)((random >> 8) % BED_COUNT)
						  : "\"}]"[(random >> 8) % 3];
			} while (!(mask[id / 32] >> id % 32 & 1));
			assert_int_equal(grammar_accept(s, id), GRAMMAR_ACCEPTED);
			text_add_bytes(&text, id < 256 ? &(char){(char)id} : bed_tokens[id - BED_FIRST],
				       id < 256 ? 1 : strlen(bed_tokens[id - BED_FIRST]));
		}
		if (grammar_is_complete(s)) {
			json_t *root = json_loadb(text_str(&text), text.size, 0, NULL);

			if (!root)
				fail_msg("%s", text_str(&text));
			json_decref(root);
			finished++;
		}
		grammar_state_destroy(&s);
		grammar_release(&g);
		text_release(&source);
		text_release(&text);
	}
	assert_true(finished > 100);
	grammar_vocab_destroy(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schema__types),
		cmocka_unit_test(test_schema__strings),
		cmocka_unit_test(test_schema__formats),
		cmocka_unit_test(test_schema__integers),
		cmocka_unit_test(test_schema__numbers),
		cmocka_unit_test(test_schema__arrays),
		cmocka_unit_test(test_schema__objects),
		cmocka_unit_test(test_schema__values),
		cmocka_unit_test(test_schema__references_and_merges),
		cmocka_unit_test(test_schema__the_place_of_an_error_is_shortened),
		cmocka_unit_test(test_schema__unenforced_is_named),
		cmocka_unit_test(test_schema__malformed),
		cmocka_unit_test(test_schema__walks_parse),
	};

	return cmocka_run_group_tests_name("grammar_schema", tests, NULL, NULL);
}
