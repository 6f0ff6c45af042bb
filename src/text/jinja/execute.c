/* SPDX-License-Identifier: Apache-2.0 */
/* Statements. */
#include <string.h>
#include "text/jinja/run.h"

bool frame_set(struct jinja_run *r, struct frame *f, int name, const struct value *v)
{
	struct binding *b;
	uint64_t seen = 0;

	for (b = f->first; b; b = b->next, seen++) {
		if (b->name == name) {
			b->value = *v;
			return run_charge(r, seen / 8);
		}
	}
	b = run_charge(r, seen / 8) ? run_take(r, sizeof(*b)) : NULL;
	if (!b)
		return false;
	*b = (struct binding){.name = name, .value = *v, .next = f->first};
	f->first = b;
	return true;
}

bool frame_push(struct jinja_run *r, struct frame *parent, struct frame **before)
{
	struct frame *f = run_take(r, sizeof(*f));

	*before = r->frame;
	if (!f)
		return false;
	f->parent = parent;
	r->frame = f;
	return true;
}

/* Assigns to [namespace].[attribute]. */
static bool assign_attribute(struct jinja_run *r, const struct node *target, const struct value *v)
{
	struct node name = {
		.kind = NODE_NAME, .name = target->name, .line = target->line, .column = target->column};
	struct value object;

	if (!evaluate(r, &name, &object))
		return false;
	if (object.kind != VALUE_NAMESPACE) {
		r->at = target;
		return run_fail(r, "only attributes of a namespace can be set, and \"%s\" is none",
				r->j->names[target->name]);
	}
	return dict_set(r, object.dict, &target->value, v);
}

bool assign(struct jinja_run *r, const struct node *target, const struct value *v)
{
	struct value *items;
	size_t count;

	if (target->kind == NODE_NAME)
		return frame_set(r, r->frame, target->name, v);
	if (target->kind == NODE_NAMESPACE)
		return assign_attribute(r, target, v);
	if (v->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, v);
	if (!value_items(r, v, &items, &count))
		return false;
	if (count != target->count) {
		r->at = target;
		return run_fail(r, "cannot assign %zu values to %zu variables", count, target->count);
	}
	for (size_t i = 0; i < count; i++)
		if (!assign(r, target->items[i], &items[i]))
			return false;
	return true;
}

static bool write_out(struct jinja_run *r, const struct value *v)
{
	struct jinja_output *o = r->out;
	size_t before = o->text.size;

	if (!write_value(r, o, v))
		return false;
	r->written += o->text.size - before;
	return r->written <= r->limits.output || run_fail_limit(r, "output");
}

bool capture(struct jinja_run *r, const struct node *body, struct value *out)
{
	struct jinja_output o = {0}, *before = r->out;
	bool good;

	r->out = &o;
	good = execute(r, body);
	r->out = before;
	if (good)
		return output_take(r, &o, out);
	jinja_output_release(&o);
	return false;
}

/* The items of a loop for which its condition holds. */
static bool filtered(struct jinja_run *r, const struct node *n, struct value **items, size_t *count)
{
	struct frame *before;
	struct value kept, holds;
	size_t at = 0;
	bool good = true;

	if (!list_create(r, FORM_LIST, *count, &kept))
		return false;
	for (size_t i = 0; i < *count && good; i++) {
		good = frame_push(r, r->frame, &before) && assign(r, n->a, &(*items)[i]) &&
		       evaluate(r, n->c, &holds);
		r->frame = before;
		if (good && value_truth(&holds))
			kept.list->items[at++] = (*items)[i];
	}
	*items = kept.list->items;
	*count = at;
	return good;
}

/* One turn of a loop. Variables that are set in it do not exist after it. */
static bool turn(struct jinja_run *r, const struct node *n, const struct value *loop)
{
	struct frame *before;
	bool good = frame_push(r, r->frame, &before) && frame_set(r, r->frame, r->j->loop, loop) &&
		    assign(r, n->a, &loop->loop->items[loop->loop->index]) && execute(r, n->body);

	r->frame = before;
	return good;
}

static bool run_for(struct jinja_run *r, const struct node *n)
{
	struct value iterable, loop = {.kind = VALUE_LOOP}, *items;
	size_t count;
	bool good = true, completed = false;

	if (!evaluate(r, n->b, &iterable))
		return false;
	r->at = n->b;
	if (!value_items(r, &iterable, &items, &count) || (n->c && !filtered(r, n, &items, &count)))
		return false;
	if (!count)
		return !n->otherwise || execute(r, n->otherwise);
	loop.loop = run_take(r, sizeof(*loop.loop));
	if (!loop.loop)
		return false;
	*loop.loop = (struct loop){.items = items, .count = count};
	while (good && loop.loop->index < count && r->signal != RUN_BREAK) {
		r->signal = RUN_ON;
		good = turn(r, n, &loop);
		completed |= r->signal == RUN_ON;
		loop.loop->index += r->signal != RUN_BREAK;
	}
	r->signal = RUN_ON;
	/* As in jinja2, `else` also follows a loop in which no turn reached its end. */
	return good && (completed || !n->otherwise || execute(r, n->otherwise));
}

static bool run_if(struct jinja_run *r, const struct node *n)
{
	struct value v;

	for (size_t i = 0; i < n->count; i += 2) {
		if (!evaluate(r, n->items[i], &v))
			return false;
		if (value_truth(&v))
			return execute(r, n->items[i + 1]);
	}
	return !n->otherwise || execute(r, n->otherwise);
}

/* Applies a chain of filters, whose innermost one has no input, to a text. */
static bool apply_filters(struct jinja_run *r, const struct node *n, const struct value *text,
			  struct value *out)
{
	struct arguments a;
	struct value in = *text;

	if (!run_enter(r))
		return false;
	if (n->a && !apply_filters(r, n->a, text, &in))
		return false;
	run_leave(r);
	r->at = n;
	return arguments_evaluate(r, n, &a) && call_function(r, n->function, &in, &a, out);
}

static bool run_set(struct jinja_run *r, const struct node *n)
{
	struct frame *before;
	struct value v;
	bool good;

	if (n->kind == NODE_SET)
		return evaluate(r, n->b, &v) && assign(r, n->a, &v);
	good = frame_push(r, r->frame, &before) && capture(r, n->body, &v);
	r->frame = before;
	return good && (!n->b || apply_filters(r, n->b, &v, &v)) && assign(r, n->a, &v);
}

static bool macro_value(struct jinja_run *r, const struct node *n, struct value *out)
{
	struct macro *m = run_take(r, sizeof(*m));

	if (!m)
		return false;
	*m = (struct macro){.node = n, .frame = r->frame};
	*out = (struct value){.kind = VALUE_MACRO, .macro = m};
	return true;
}

static bool run_call_block(struct jinja_run *r, const struct node *n)
{
	struct value f, caller, out;
	struct arguments a;

	if (!macro_value(r, n->b, &caller) || !evaluate(r, n->a->a, &f) || !arguments_evaluate(r, n->a, &a))
		return false;
	a.caller = &caller;
	return call_value(r, &f, &a, &out) && write_out(r, &out);
}

static bool run_with(struct jinja_run *r, const struct node *n)
{
	struct frame *before, *inner;
	struct value v;
	bool good = frame_push(r, r->frame, &before);

	inner = r->frame;
	for (size_t i = 0; good && i < n->count; i += 2) {
		r->frame = before; /* the values do not see each other */
		good = evaluate(r, n->items[i + 1], &v);
		r->frame = inner;
		good = good && assign(r, n->items[i], &v);
	}
	good = good && execute(r, n->body);
	r->frame = before;
	return good;
}

static bool run_filtered(struct jinja_run *r, const struct node *n)
{
	struct frame *before;
	struct value v;
	bool good = frame_push(r, r->frame, &before) && capture(r, n->body, &v);

	r->frame = before;
	return good && apply_filters(r, n->a, &v, &v) && write_out(r, &v);
}

static bool run_scope(struct jinja_run *r, const struct node *n)
{
	struct frame *before;
	bool good = frame_push(r, r->frame, &before) && execute(r, n->body);

	r->frame = before;
	return good;
}

static bool run_macro(struct jinja_run *r, const struct node *n)
{
	struct value v;

	return macro_value(r, n, &v) && frame_set(r, r->frame, n->name, &v);
}

static bool print(struct jinja_run *r, const struct node *n)
{
	struct value v;

	return evaluate(r, n->a, &v) && write_out(r, &v);
}

static bool body(struct jinja_run *r, const struct node *n)
{
	for (size_t i = 0; i < n->count && r->signal == RUN_ON; i++)
		if (!execute(r, n->items[i]))
			return false;
	return true;
}

static bool execute_node(struct jinja_run *r, const struct node *n)
{
	switch (n->kind) {
	case NODE_BODY:
		return body(r, n);
	case NODE_TEXT:
		return write_out(r, &n->value);
	case NODE_PRINT:
		return print(r, n);
	case NODE_FOR:
		return run_for(r, n);
	case NODE_IF:
		return run_if(r, n);
	case NODE_SET:
	case NODE_SET_BLOCK:
		return run_set(r, n);
	case NODE_MACRO:
		return run_macro(r, n);
	case NODE_CALL_BLOCK:
		return run_call_block(r, n);
	case NODE_FILTERED:
		return run_filtered(r, n);
	case NODE_WITH:
		return run_with(r, n);
	case NODE_SCOPE:
		return run_scope(r, n);
	case NODE_BREAK:
	case NODE_CONTINUE:
		r->signal = n->kind == NODE_BREAK ? RUN_BREAK : RUN_CONTINUE;
		return true;
	default:
		return run_fail(r, "this is no statement");
	}
}

bool execute(struct jinja_run *r, const struct node *n)
{
	bool good;

	r->at = n;
	if (!run_charge(r, 1) || !run_enter(r))
		return false;
	good = execute_node(r, n);
	run_leave(r);
	return good;
}
