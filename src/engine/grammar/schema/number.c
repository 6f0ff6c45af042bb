/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "engine/grammar/schema/number_range.h"
#include "engine/grammar/schema/schema.h"

/* A bound of a schema: the keyword's value, and whether the value itself is outside. */
struct bound {
	const json_t *value;
	bool open;
};

static const json_t *number_of(struct builder *b, const json_t *schema, const char *keyword)
{
	const json_t *value = json_object_get(schema, keyword);

	if (value && !json_is_number(value)) {
		builder_fail(b, STATUS_BAD_INPUT, "\"%s\" is not a number", keyword);
		return NULL;
	}
	return value;
}

/* The stricter of a closed and an open bound; `sign` is 1 for lower bounds. Until draft 4, the keyword of the
 * open bound was a boolean beside the closed one. */
static struct bound bound_of(struct builder *b, const json_t *schema, const char *closed, const char *open,
			     int sign)
{
	const json_t *near = number_of(b, schema, closed), *far;

	if (json_is_boolean(json_object_get(schema, open)))
		return (struct bound){near, near && json_is_true(json_object_get(schema, open))};
	far = number_of(b, schema, open);
	if (!far || (near && sign * json_number_value(near) > sign * json_number_value(far)))
		return (struct bound){near, false};
	return (struct bound){far, true};
}

/* A bound beyond all integers that a text here can have is not enforced: it would leave none. `sign` is 1 for
 * lower bounds. */
static struct bound within_reach(struct builder *b, struct bound bound, int sign)
{
	const int64_t whole = json_integer_value(bound.value), last = sign * INTEGER_MOST;
	bool beyond;

	if (json_is_integer(bound.value))
		beyond = whole == INT64_MIN ? sign < 0 : whole == last && bound.open;
	else
		beyond = sign * json_number_value(bound.value) >= (double)INTEGER_MOST;
	if (!bound.value || !beyond)
		return bound;
	builder_unenforced(b, "a %s of %g is not enforced: numbers have at most 19 digits here",
			   sign > 0 ? "minimum" : "maximum", json_number_value(bound.value));
	return (struct bound){NULL, false};
}

/* The first integer within the bound; `sign` is 1 for lower bounds. */
static int64_t integer_bound(struct bound bound, int sign)
{
	double value;
	int64_t whole;

	if (!bound.value)
		return -sign * INTEGER_MOST;
	if (json_is_integer(bound.value)) {
		whole = json_integer_value(bound.value);
		whole = whole < -INTEGER_MOST ? -INTEGER_MOST : whole;
		return bound.open ? whole + sign : whole;
	}
	value = json_number_value(bound.value);
	if (fabs(value) >= (double)INTEGER_MOST)
		return value > 0 ? INTEGER_MOST : -INTEGER_MOST;
	whole = (int64_t)(sign > 0 ? ceil(value) : floor(value));
	return bound.open && (double)whole == value ? whole + sign : whole;
}

static bool decimal_bound(struct builder *b, struct bound bound, struct decimal *out)
{
	bool fits = true;

	if (json_is_integer(bound.value))
		*out = decimal_from_integer(json_integer_value(bound.value));
	else
		fits = decimal_from_double(out, json_number_value(bound.value));
	out->open = bound.open;
	if (!fits)
		builder_unenforced(b, "a bound with more than %d digits behind the point is not enforced",
				   FRACTION_DIGITS);
	return fits;
}

static struct expr *real_range(struct builder *b, struct bound low, struct bound high)
{
	struct decimal least, most;
	bool has_low = low.value && decimal_bound(b, low, &least);
	bool has_high = high.value && decimal_bound(b, high, &most);

	return decimal_range(b, has_low ? &least : NULL, has_high ? &most : NULL);
}

/* The step if it is a whole number; 0: none, or it is not enforced. */
static int64_t step_of(struct builder *b, const json_t *schema)
{
	const json_t *value = number_of(b, schema, "multipleOf");
	double step = json_number_value(value);

	if (!value)
		return 0;
	if (step <= 0) {
		builder_fail(b, STATUS_BAD_INPUT, "\"multipleOf\" is not more than 0");
		return 0;
	}
	if (step != floor(step) || step > 1e15) {
		builder_unenforced(b, "\"multipleOf\" of a fraction or of more than 1e15 is not enforced");
		return 0;
	}
	return (int64_t)step;
}

struct expr *schema_number(struct schemas *s, const json_t *schema, bool integer)
{
	struct builder *b = s->b;
	struct bound low = bound_of(b, schema, "minimum", "exclusiveMinimum", 1);
	struct bound high = bound_of(b, schema, "maximum", "exclusiveMaximum", -1);
	int64_t step = step_of(b, schema);
	bool too_many = false;
	struct expr *e;

	low = within_reach(b, low, 1);
	high = within_reach(b, high, -1);
	if (b->status)
		return NULL;
	if (step > 1) {
		e = multiple_range(b, step, integer_bound(low, 1), integer_bound(high, -1), &too_many);
		if (!too_many)
			return e || b->status ? e : expr_group(b, EXPR_CHOICE);
		builder_unenforced(b, "\"multipleOf\" beside these bounds is not enforced");
	}
	integer |= step == 1;
	if (!low.value && !high.value)
		return integer ? json_any_integer(b) : json_any_number(b);
	e = integer ? integer_range(b, integer_bound(low, 1), integer_bound(high, -1))
		    : real_range(b, low, high);
	return e || b->status ? e : expr_group(b, EXPR_CHOICE);
}
