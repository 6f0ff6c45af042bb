/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions. */
#include <string.h>
#include "text/jinja/run.h"

struct value undefined_attribute(const struct value *object, const struct value *name)
{
	bool text = name->kind == VALUE_STRING;

	return (struct value){.kind = VALUE_UNDEFINED,
			      .undefined = {text ? name->string.bytes : "[..]", text ? name->string.size : 4,
					    value_type(object)}};
}

static bool name(struct jinja_run *r, int id, struct value *out)
{
	uint64_t seen = 0;

	*out = r->root[id];
	for (const struct frame *f = r->frame; f; f = f->parent) {
		for (const struct binding *b = f->first; b; b = b->next, seen++) {
			if (b->name == id) {
				*out = b->value;
				return run_charge(r, seen / 8);
			}
		}
	}
	return run_charge(r, seen / 8);
}

static bool loop_attribute(struct jinja_run *r, const struct value *object, const struct value *name,
			   struct value *out)
{
	const struct loop *l = object->loop;

	(void)r;
	if (value_is(name, "index"))
		*out = value_int((int64_t)l->index + 1);
	else if (value_is(name, "index0"))
		*out = value_int((int64_t)l->index);
	else if (value_is(name, "revindex"))
		*out = value_int((int64_t)(l->count - l->index));
	else if (value_is(name, "revindex0"))
		*out = value_int((int64_t)(l->count - l->index) - 1);
	else if (value_is(name, "first"))
		*out = value_bool(l->index == 0);
	else if (value_is(name, "last"))
		*out = value_bool(l->index + 1 == l->count);
	else if (value_is(name, "length"))
		*out = value_int((int64_t)l->count);
	else if (value_is(name, "depth"))
		*out = value_int(1); /* deeper only in recursive loops */
	else if (value_is(name, "depth0"))
		*out = value_int(0);
	else if (value_is(name, "previtem") && l->index)
		*out = l->items[l->index - 1];
	else if (value_is(name, "nextitem") && l->index + 1 < l->count)
		*out = l->items[l->index + 1];
	else
		*out = undefined_attribute(object, name);
	return true;
}

static bool method_value(struct jinja_run *r, const struct value *object, const struct value *name,
			 bool *found, struct value *out)
{
	const struct function *f = method_find(object, name);
	struct method *m;

	*found = f != NULL;
	if (!f)
		return true;
	m = run_take(r, sizeof(*m));
	if (!m)
		return false;
	*m = (struct method){.function = f, .self = *object};
	*out = (struct value){.kind = VALUE_METHOD, .method = m};
	return true;
}

static bool entry(struct jinja_run *r, const struct value *object, const struct value *key, struct value *out)
{
	struct dict_entry *found;

	if (!dict_find(r, object->dict, key, &found))
		return false;
	*out = found ? found->value : undefined_attribute(object, key);
	return true;
}

bool attribute_of(struct jinja_run *r, const struct value *object, const struct value *name,
		  struct value *out)
{
	bool found;

	if (object->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, object);
	if (!method_value(r, object, name, &found, out) || found)
		return !r->status;
	if (method_is_forbidden(object, name)) {
		*out = undefined_attribute(object, name);
		return true;
	}
	if (object->kind == VALUE_LOOP)
		return loop_attribute(r, object, name, out);
	if (object->kind == VALUE_DICT || object->kind == VALUE_NAMESPACE)
		return entry(r, object, name, out);
	*out = undefined_attribute(object, name);
	return true;
}

/* The place of a Python index, which counts from the end if negative. False: there is no such item. */
static bool place(int64_t index, size_t count, size_t *out)
{
	if (index < 0)
		index += (int64_t)count;
	*out = (size_t)index;
	return index >= 0 && (uint64_t)index < count;
}

static bool item_at(struct jinja_run *r, const struct value *object, int64_t index, struct value *out)
{
	size_t at, begin;

	if (object->kind == VALUE_STRING) {
		if (!run_charge_bytes(r, object->string.size) || !place(index, string_length(object), &at))
			return !r->status;
		begin = string_offset(object, at);
		*out = string_part(object, begin, string_offset(object, at + 1));
	} else if (object->list->form <= FORM_RANGE) {
		if (!list_load(r, object->list))
			return false;
		if (place(index, object->list->count, &at))
			*out = object->list->items[at];
	}
	return true;
}

bool item_of(struct jinja_run *r, const struct value *object, const struct value *key, struct value *out)
{
	bool found = false;

	*out = undefined_attribute(object, key);
	if (object->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, object);
	if (object->kind == VALUE_DICT) {
		if (key->kind == VALUE_DICT || (key->kind == VALUE_LIST && key->list->form != FORM_TUPLE))
			return true;
		if (!entry(r, object, key, out))
			return false;
		if (out->kind == VALUE_UNDEFINED && key->kind == VALUE_STRING)
			return method_value(r, object, key, &found, out);
		return true;
	}
	if ((object->kind == VALUE_STRING || object->kind == VALUE_LIST) &&
	    (key->kind == VALUE_INT || key->kind == VALUE_BOOL))
		return item_at(r, object, key->kind == VALUE_INT ? key->integer : key->truth, out);
	return key->kind != VALUE_STRING || attribute_of(r, object, key, out);
}

static bool evaluate_all(struct jinja_run *r, const struct node *const *items, size_t count,
			 struct value *out)
{
	for (size_t i = 0; i < count; i++)
		if (!evaluate(r, items[i], &out[i]))
			return false;
	return true;
}

static bool list(struct jinja_run *r, const struct node *n, struct value *out)
{
	return list_create(r, n->kind == NODE_TUPLE ? FORM_TUPLE : FORM_LIST, n->count, out) &&
	       evaluate_all(r, n->items, n->count, out->list->items);
}

static bool dict(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct value key, item;

	if (!dict_create(r, VALUE_DICT, n->count / 2, out))
		return false;
	for (size_t i = 0; i < n->count; i += 2)
		if (!evaluate(r, n->items[i], &key) || !evaluate(r, n->items[i + 1], &item) ||
		    !dict_set(r, out->dict, &key, &item))
			return false;
	return true;
}

static bool condition(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct value chosen;

	if (!evaluate(r, n->b, &chosen))
		return false;
	if (value_truth(&chosen))
		return evaluate(r, n->a, out);
	if (n->c)
		return evaluate(r, n->c, out);
	*out = (struct value){.kind = VALUE_UNDEFINED, .undefined = {"the inline if without else", 26, NULL}};
	return true;
}

static bool comparison(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct value left, right;
	bool holds = true;

	if (!evaluate(r, n->a, &left))
		return false;
	for (size_t i = 0; i < n->count && holds; i++) {
		if (!evaluate(r, n->items[i]->a, &right) ||
		    !compare(r, n->items[i]->op, &left, &right, &holds))
			return false;
		left = right;
	}
	*out = value_bool(holds);
	return true;
}

static bool concat(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct jinja_output o = {0};
	struct value part;

	for (size_t i = 0; i < n->count; i++) {
		if (!evaluate(r, n->items[i], &part) || !write_value(r, &o, &part)) {
			jinja_output_release(&o);
			return false;
		}
	}
	return output_take(r, &o, out);
}

static bool binary(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct value a, b;

	return evaluate(r, n->a, &a) && evaluate(r, n->b, &b) && operate(r, n->op, &a, &b, out);
}

static bool slice(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct value object, bounds[3] = {value_none(), value_none(), value_none()};

	if (!evaluate(r, n->a, &object))
		return false;
	for (int i = 0; i < 3; i++)
		if (n->items[i] && !evaluate(r, n->items[i], &bounds[i]))
			return false;
	return slice_of(r, &object, bounds, out);
}

static bool attribute(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct value object;

	return evaluate(r, n->a, &object) && attribute_of(r, &object, &n->value, out);
}

static bool item(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct value object, key;

	return evaluate(r, n->a, &object) && evaluate(r, n->b, &key) && item_of(r, &object, &key, out);
}

static bool call(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct arguments a;
	struct value f;

	return evaluate(r, n->a, &f) && arguments_evaluate(r, n, &a) && call_value(r, &f, &a, out);
}

static bool filter(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct arguments a;
	struct value in;

	return evaluate(r, n->a, &in) && arguments_evaluate(r, n, &a) &&
	       call_function(r, n->function, &in, &a, out);
}

static bool test(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct arguments a;
	struct value v;
	bool holds;

	if (!evaluate(r, n->a, &v) || !arguments_evaluate(r, n, &a) ||
	    !test_value(r, n->test, &v, &a, &holds))
		return false;
	*out = value_bool(holds);
	return true;
}

/* `and` and `or` give one of their operands. */
static bool logical(struct jinja_run *r, const struct node *n, struct value *out)
{
	if (!evaluate(r, n->a, out))
		return false;
	return value_truth(out) == (n->kind == NODE_OR) || evaluate(r, n->b, out);
}

static bool unary(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct value v;

	if (!evaluate(r, n->a, &v))
		return false;
	if (n->kind == NODE_NEGATE)
		return negate(r, &v, out);
	if (n->kind == NODE_NOT) {
		*out = value_bool(!value_truth(&v));
		return true;
	}
	*out = v.kind == VALUE_BOOL ? value_int(v.truth) : v;
	if (v.kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, &v);
	return out->kind == VALUE_INT || out->kind == VALUE_FLOAT ||
	       run_fail(r, "a value of type %s has no sign", value_type(&v));
}

static bool evaluate_node(struct jinja_run *r, const struct node *n, struct value *out)
{
	switch (n->kind) {
	case NODE_CONSTANT:
		*out = n->value;
		return true;
	case NODE_NAME:
		return name(r, n->name, out);
	case NODE_TUPLE:
	case NODE_LIST:
		return list(r, n, out);
	case NODE_DICT:
		return dict(r, n, out);
	case NODE_CONDITION:
		return condition(r, n, out);
	case NODE_AND:
	case NODE_OR:
		return logical(r, n, out);
	case NODE_NOT:
	case NODE_NEGATE:
	case NODE_PLUS:
		return unary(r, n, out);
	case NODE_COMPARE:
		return comparison(r, n, out);
	case NODE_BINARY:
		return binary(r, n, out);
	case NODE_CONCAT:
		return concat(r, n, out);
	case NODE_ATTRIBUTE:
		return attribute(r, n, out);
	case NODE_ITEM:
		return item(r, n, out);
	case NODE_SLICE:
		return slice(r, n, out);
	case NODE_CALL:
		return call(r, n, out);
	case NODE_FILTER:
		return filter(r, n, out);
	case NODE_TEST:
		return test(r, n, out);
	default:
		return run_fail(r, "this is no expression");
	}
}

bool evaluate(struct jinja_run *r, const struct node *n, struct value *out)
{
	const struct node *before = r->at;
	bool good;

	r->at = n;
	if (!run_charge(r, 1) || !run_enter(r))
		return false;
	good = evaluate_node(r, n, out);
	run_leave(r);
	if (good)
		r->at = before;
	return good;
}
