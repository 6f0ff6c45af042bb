/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: what may follow `is`. */
#include <string.h>
#include "text/jinja/run.h"
#include "text/jinja/value/unicode.h"

#define TEST(name)                                                                                           \
	static bool test_##name(struct jinja_run *r, const struct value *v, const struct value *argument,    \
				bool *out)

/* A test that needs neither the run nor an argument. */
#define PLAIN_TEST(name, condition)                                                                          \
	static bool test_##name(struct jinja_run *r, const struct value *v, const struct value *argument,    \
				bool *out)                                                                   \
	{                                                                                                    \
		(void)r, (void)argument;                                                                     \
		*out = (condition);                                                                          \
		return true;                                                                                 \
	}

PLAIN_TEST(defined, v->kind != VALUE_UNDEFINED)
PLAIN_TEST(undefined, v->kind == VALUE_UNDEFINED)
PLAIN_TEST(none, v->kind == VALUE_NONE)
PLAIN_TEST(string, v->kind == VALUE_STRING)
PLAIN_TEST(mapping, v->kind == VALUE_DICT)
PLAIN_TEST(boolean, v->kind == VALUE_BOOL)
PLAIN_TEST(true, v->kind == VALUE_BOOL && v->truth)
PLAIN_TEST(false, v->kind == VALUE_BOOL && !v->truth)
PLAIN_TEST(integer, v->kind == VALUE_INT)
PLAIN_TEST(float, v->kind == VALUE_FLOAT)
PLAIN_TEST(number, v->kind == VALUE_INT || v->kind == VALUE_FLOAT || v->kind == VALUE_BOOL)
PLAIN_TEST(iterable, v->kind == VALUE_UNDEFINED || v->kind == VALUE_STRING || v->kind == VALUE_LIST ||
			     v->kind == VALUE_DICT)
/* An undefined value has a length, and its items are asked for; jinja2 calls it a sequence. */
PLAIN_TEST(sequence, v->kind == VALUE_UNDEFINED || v->kind == VALUE_STRING || v->kind == VALUE_DICT ||
			     (v->kind == VALUE_LIST && v->list->form <= FORM_RANGE))
PLAIN_TEST(callable, v->kind == VALUE_MACRO || v->kind == VALUE_FUNCTION || v->kind == VALUE_METHOD ||
			     v->kind == VALUE_UNDEFINED)
PLAIN_TEST(escaped, false && v)

TEST(eq)
{
	return value_equal(r, v, argument, out);
}

TEST(ne)
{
	return compare(r, OP_UNEQUAL, v, argument, out);
}

TEST(lt)
{
	return compare(r, OP_LESS, v, argument, out);
}

TEST(le)
{
	return compare(r, OP_LESS_EQUAL, v, argument, out);
}

TEST(gt)
{
	return compare(r, OP_GREATER, v, argument, out);
}

TEST(ge)
{
	return compare(r, OP_GREATER_EQUAL, v, argument, out);
}

TEST(in)
{
	return value_contains(r, argument, v, out);
}

/* The same object: for values without an identity, the same kind and value. */
TEST(sameas)
{
	*out = false;
	if (v->kind != argument->kind || v->kind == VALUE_UNDEFINED)
		return true;
	if (v->kind == VALUE_LIST)
		*out = v->list == argument->list;
	else if (v->kind == VALUE_DICT)
		*out = v->dict == argument->dict;
	else
		return value_equal(r, v, argument, out);
	return true;
}

/* Whether dividing the value leaves a remainder. */
static bool leaves(struct jinja_run *r, const struct value *v, const struct value *by, int64_t remainder,
		   bool *out)
{
	const struct value due = value_int(remainder);
	struct value rest;

	if (v->kind == VALUE_STRING)
		return run_fail(r, "a string has no remainder");
	return operate(r, OP_MODULO, v, by, &rest) && value_equal(r, &rest, &due, out);
}

TEST(even)
{
	const struct value two = value_int(2);

	(void)argument;
	return leaves(r, v, &two, 0, out);
}

TEST(odd)
{
	const struct value two = value_int(2);

	(void)argument;
	return leaves(r, v, &two, 1, out);
}

TEST(divisibleby)
{
	return leaves(r, v, argument, 0, out);
}

/* Whether there is a letter with a case, and all have this one. */
static bool has_case(struct jinja_run *r, const struct value *v, bool (*is)(uint32_t),
		     bool (*other)(uint32_t), bool *out)
{
	struct value s;
	size_t taken;

	*out = false;
	if (!string_of(r, v, &s))
		return false;
	for (size_t at = 0; at < s.string.size; at += taken) {
		uint32_t code = string_code(&s, at, &taken);

		*out |= is(code);
		if (other(code)) {
			*out = false;
			break;
		}
	}
	return true;
}

TEST(upper)
{
	(void)argument;
	return has_case(r, v, unicode_is_upper, unicode_is_lower, out);
}

TEST(lower)
{
	(void)argument;
	return has_case(r, v, unicode_is_lower, unicode_is_upper, out);
}

TEST(filter)
{
	(void)r, (void)argument;
	*out = v->kind == VALUE_STRING && filter_find(v->string.bytes, v->string.size);
	return true;
}

TEST(test)
{
	(void)r, (void)argument;
	*out = v->kind == VALUE_STRING && test_find(v->string.bytes, v->string.size);
	return true;
}

static const struct test tests[] = {
	{"defined", 0, test_defined},
	{"undefined", 0, test_undefined},
	{"none", 0, test_none},
	{"string", 0, test_string},
	{"mapping", 0, test_mapping},
	{"boolean", 0, test_boolean},
	{"true", 0, test_true},
	{"false", 0, test_false},
	{"integer", 0, test_integer},
	{"float", 0, test_float},
	{"number", 0, test_number},
	{"iterable", 0, test_iterable},
	{"sequence", 0, test_sequence},
	{"callable", 0, test_callable},
	{"escaped", 0, test_escaped},
	{"even", 0, test_even},
	{"odd", 0, test_odd},
	{"upper", 0, test_upper},
	{"lower", 0, test_lower},
	{"filter", 0, test_filter},
	{"test", 0, test_test},
	{"eq", 1, test_eq},
	{"equalto", 1, test_eq},
	{"==", 1, test_eq},
	{"ne", 1, test_ne},
	{"!=", 1, test_ne},
	{"lt", 1, test_lt},
	{"lessthan", 1, test_lt},
	{"<", 1, test_lt},
	{"le", 1, test_le},
	{"<=", 1, test_le},
	{"gt", 1, test_gt},
	{"greaterthan", 1, test_gt},
	{">", 1, test_gt},
	{"ge", 1, test_ge},
	{">=", 1, test_ge},
	{"in", 1, test_in},
	{"sameas", 1, test_sameas},
	{"divisibleby", 1, test_divisibleby},
};

const struct test *test_find(const char *name, size_t size)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strlen(tests[i].name) == size && !memcmp(tests[i].name, name, size))
			return &tests[i];
	return NULL;
}
