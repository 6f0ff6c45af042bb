/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic, comparisons and slices as in Python. */
#include <math.h>
#include <string.h>
#include "text/jinja/run.h"

static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">="};

static bool is_whole(const struct value *v)
{
	return v->kind == VALUE_INT || v->kind == VALUE_BOOL;
}

static int64_t whole(const struct value *v)
{
	return v->kind == VALUE_BOOL ? v->truth : v->integer;
}

static double real(const struct value *v)
{
	return v->kind == VALUE_FLOAT ? v->real : (double)whole(v);
}

static bool overflow(struct jinja_run *r)
{
	return run_fail(r, "the result does not fit into 64 bits");
}

static bool whole_power(struct jinja_run *r, int64_t base, int64_t exponent, struct value *out)
{
	int64_t result = 1;

	if (exponent < 0) {
		if (!base)
			return run_fail(r, "division by zero");
		*out = value_float(pow((double)base, (double)exponent));
		return true;
	}
	if (base == 0 || base == 1 || base == -1) {
		*out = value_int(!exponent ? 1 : base == -1 && exponent % 2 == 0 ? 1 : base);
		return true;
	}
	for (; exponent; exponent--)
		if (__builtin_mul_overflow(result, base, &result))
			return overflow(r);
	*out = value_int(result);
	return true;
}

static bool whole_operate(struct jinja_run *r, enum operator op, int64_t a, int64_t b, struct value *out)
{
	int64_t result = 0;
	bool over = false;

	if (!b && op >= OP_DIVIDE && op <= OP_MODULO)
		return run_fail(r, "division by zero");
	switch (op) {
	case OP_ADD:
		over = __builtin_add_overflow(a, b, &result);
		break;
	case OP_SUBTRACT:
		over = __builtin_sub_overflow(a, b, &result);
		break;
	case OP_MULTIPLY:
		over = __builtin_mul_overflow(a, b, &result);
		break;
	case OP_DIVIDE:
		*out = value_float((double)a / (double)b);
		return true;
	case OP_FLOOR:
	case OP_MODULO: /* rounded down, so the remainder has the sign of b */
		over = a == INT64_MIN && b == -1;
		if (over)
			break;
		result = op == OP_FLOOR ? a / b - (a % b && (a % b < 0) != (b < 0))
					: a % b + (a % b && (a % b < 0) != (b < 0) ? b : 0);
		break;
	default:
		return whole_power(r, a, b, out);
	}
	*out = value_int(result);
	return !over || overflow(r);
}

static bool real_operate(struct jinja_run *r, enum operator op, double a, double b, struct value *out)
{
	double rest;

	if (b == 0 && op >= OP_DIVIDE && op <= OP_MODULO)
		return run_fail(r, "division by zero");
	switch (op) {
	case OP_ADD:
		*out = value_float(a + b);
		return true;
	case OP_SUBTRACT:
		*out = value_float(a - b);
		return true;
	case OP_MULTIPLY:
		*out = value_float(a * b);
		return true;
	case OP_DIVIDE:
		*out = value_float(a / b);
		return true;
	case OP_FLOOR:
	case OP_MODULO:
		rest = fmod(a, b);
		if (rest != 0 && (rest < 0) != (b < 0))
			rest += b;
		*out = value_float(op == OP_MODULO ? rest : floor((a - rest) / b + 0.5));
		return true;
	default:
		*out = value_float(pow(a, b));
		return !isnan(out->real) || run_fail(r, "the power of these numbers is no real number");
	}
}

static bool repeat(struct jinja_run *r, const struct value *v, int64_t times, struct value *out)
{
	struct jinja_output o = {0};
	size_t size = v->kind == VALUE_STRING ? v->string.size : v->list->count,
	       count = times > 0 ? (size_t)times : 0;

	if (size && count > r->limits.memory / size)
		return run_fail_limit(r, "memory");
	if (!run_charge(r, size * count / (v->kind == VALUE_STRING ? 64 : 1)))
		return false;
	if (v->kind == VALUE_STRING) {
		for (size_t i = 0; size && i < count; i++)
			output_add_string(&o, v);
		return output_take(r, &o, out);
	}
	if (!list_load(r, v->list) || !list_create(r, v->list->form, size * count, out))
		return false;
	for (size_t i = 0; i < size * count; i++)
		out->list->items[i] = v->list->items[i % size];
	return true;
}

static bool join_lists(struct jinja_run *r, const struct value *a, const struct value *b, struct value *out)
{
	struct list *x = a->list, *y = b->list;

	if (!list_load(r, x) || !list_load(r, y) || !list_create(r, x->form, x->count + y->count, out))
		return false;
	if (x->count)
		memcpy(out->list->items, x->items, x->count * sizeof(*x->items));
	if (y->count)
		memcpy(out->list->items + x->count, y->items, y->count * sizeof(*y->items));
	return true;
}

static bool is_list(const struct value *v)
{
	return v->kind == VALUE_LIST && v->list->form <= FORM_TUPLE;
}

static bool call_format(struct jinja_run *r, const struct value *a, const struct value *b, struct value *out)
{
	static const char name[] = "format";
	const struct function *format = filter_find(name, strlen(name));
	struct arguments args = {.values = (struct value *)b, .count = 1};

	if (b->kind == VALUE_LIST && b->list->form == FORM_TUPLE)
		args = (struct arguments){.values = b->list->items, .count = b->list->count};
	else if ((b->kind == VALUE_LIST || b->kind == VALUE_DICT) &&
		 !memchr(a->string.bytes, '%', a->string.size + 1))
		args.count = 0; /* Python does not miss a list's place in the format */
	return call_function(r, format, a, &args, out);
}

bool operate(struct jinja_run *r, enum operator op, const struct value *a, const struct value *b,
	     struct value *out)
{
	if (a->kind == VALUE_STRING && op == OP_MODULO)
		return call_format(r, a, b, out);
	if (a->kind == VALUE_UNDEFINED || b->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, a->kind == VALUE_UNDEFINED ? a : b);
	if (is_whole(a) && is_whole(b))
		return whole_operate(r, op, whole(a), whole(b), out);
	if ((is_whole(a) || a->kind == VALUE_FLOAT) && (is_whole(b) || b->kind == VALUE_FLOAT))
		return real_operate(r, op, real(a), real(b), out);
	if (op == OP_ADD && a->kind == VALUE_STRING && b->kind == VALUE_STRING)
		return string_join(r, a, b, out);
	if (op == OP_ADD && is_list(a) && is_list(b) && a->list->form == b->list->form)
		return join_lists(r, a, b, out);
	if (op == OP_MULTIPLY && is_whole(b) && (a->kind == VALUE_STRING || is_list(a)))
		return repeat(r, a, whole(b), out);
	if (op == OP_MULTIPLY && is_whole(a) && (b->kind == VALUE_STRING || is_list(b)))
		return repeat(r, b, whole(a), out);
	return run_fail(r, "the operator %s cannot be applied to values of type %s and %s", signs[op],
			value_type(a), value_type(b));
}

bool negate(struct jinja_run *r, const struct value *v, struct value *out)
{
	if (v->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, v);
	if (v->kind == VALUE_FLOAT) {
		*out = value_float(-v->real);
		return true;
	}
	if (!is_whole(v))
		return run_fail(r, "a value of type %s has no sign", value_type(v));
	if (whole(v) == INT64_MIN)
		return overflow(r);
	*out = value_int(-whole(v));
	return true;
}

bool compare(struct jinja_run *r, enum operator op, const struct value *a, const struct value *b, bool *out)
{
	int order = 0;

	if (op == OP_EQUAL || op == OP_UNEQUAL) {
		if (!value_equal(r, a, b, out))
			return false;
		*out ^= op == OP_UNEQUAL;
		return true;
	}
	if (op == OP_IN || op == OP_NOT_IN) {
		if (!value_contains(r, b, a, out))
			return false;
		*out ^= op == OP_NOT_IN;
		return true;
	}
	if (!value_order(r, a, b, &order))
		return false;
	if ((a->kind == VALUE_FLOAT && isnan(a->real)) || (b->kind == VALUE_FLOAT && isnan(b->real)))
		*out = false;
	else
		*out = op == OP_LESS	     ? order < 0
		       : op == OP_LESS_EQUAL ? order <= 0
		       : op == OP_GREATER    ? order > 0
					     : order >= 0;
	return true;
}

/* The bound of a slice, from -1 to count; a bound that is not given has a default. */
static bool bound(struct jinja_run *r, const struct value *v, int64_t count, int64_t step, int64_t unset,
		  int64_t *out)
{
	int64_t least = step < 0 ? -1 : 0, most = step < 0 ? count - 1 : count;

	*out = unset;
	if (v->kind == VALUE_NONE)
		return true;
	if (!is_whole(v))
		return run_fail(r, "a value of type %s is no bound of a slice", value_type(v));
	*out = whole(v);
	if (*out < 0)
		*out = *out < -count ? least : *out + count;
	*out = *out < least ? least : *out > most ? most : *out;
	return true;
}

static bool step_of(struct jinja_run *r, const struct value *v, int64_t *out)
{
	*out = 1;
	if (v->kind == VALUE_NONE)
		return true;
	if (!is_whole(v) || !whole(v))
		return run_fail(r, "the step of a slice must be an integer other than 0");
	*out = whole(v) < -INT32_MAX ? -INT32_MAX : whole(v) > INT32_MAX ? INT32_MAX : whole(v);
	return true;
}

static bool slice_string(struct jinja_run *r, const struct value *s, int64_t from, int64_t to, int64_t step,
			 struct value *out)
{
	struct jinja_output o = {0};
	struct value *items;
	size_t count;

	if (step == 1) {
		size_t begin = string_offset(s, (size_t)from);

		*out = string_part(s, begin, to > from ? string_offset(s, (size_t)to) : begin);
		return true;
	}
	if (!value_items(r, s, &items, &count))
		return false;
	for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
		output_add_string(&o, &items[i]);
	return output_take(r, &o, out);
}

bool slice_of(struct jinja_run *r, const struct value *v, const struct value bounds[3], struct value *out)
{
	bool list = v->kind == VALUE_LIST && v->list->form <= FORM_RANGE;
	int64_t step = 1, from, to, steps, count;
	size_t length;

	if (v->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, v);
	if (v->kind != VALUE_STRING && !list)
		return run_fail(r, "a value of type %s has no slices", value_type(v));
	if (!value_length(r, v, &length) || !step_of(r, &bounds[2], &step))
		return false;
	count = (int64_t)length;
	if (!bound(r, &bounds[0], count, step, step > 0 ? 0 : count - 1, &from) ||
	    !bound(r, &bounds[1], count, step, step > 0 ? count : -1, &to))
		return false;
	if (v->kind == VALUE_STRING)
		return slice_string(r, v, from, to, step, out);
	steps = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
	if (!list_load(r, v->list) || !list_create(r, v->list->form, steps > 0 ? (size_t)steps : 0, out))
		return false;
	for (size_t i = 0; i < out->list->count; i++)
		out->list->items[i] = v->list->items[from + (int64_t)i * step];
	return true;
}
