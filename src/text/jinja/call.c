/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: arguments, macros, and functions of the program. */
#include <string.h>
#include "text/jinja/run.h"

/* Appends the items of *list and the entries of **dict to evaluated arguments. */
static bool add_many(struct jinja_run *r, const struct value *list, const struct value *dict,
		     struct arguments *a)
{
	struct value *items, *values, *names;
	size_t count, named = dict->kind == VALUE_DICT ? dict->dict->count : 0;

	if (dict->kind != VALUE_DICT && dict->kind != VALUE_UNDEFINED)
		return run_fail(r, "the argument after ** must be a dictionary");
	if (!value_items(r, list, &items, &count) || (named && !dict_load(r, dict->dict)))
		return false;
	values = run_take(r, (a->count + count + a->named_count + named) * sizeof(*values));
	names = run_take(r, (a->named_count + named) * sizeof(*names));
	if (!values || !names || !run_charge(r, count + named))
		return false;
	if (a->count)
		memcpy(values, a->values, a->count * sizeof(*values));
	if (count)
		memcpy(values + a->count, items, count * sizeof(*values));
	a->count += count;
	for (size_t i = 0; i < a->named_count + named; i++) {
		const struct dict_entry *e =
			i < a->named_count ? NULL : &dict->dict->entries[i - a->named_count];

		if (e && e->key.kind != VALUE_STRING)
			return run_fail(r, "the keys of the dictionary after ** must be strings");
		names[i] = e ? e->key : a->names[i];
		values[a->count + i] = e ? e->value : a->named[i];
	}
	a->values = values;
	a->named = values + a->count;
	a->names = names;
	a->named_count += named;
	return a->named_count <= NAMED_MAX || run_fail(r, "more than %d named arguments", NAMED_MAX);
}

bool arguments_evaluate(struct jinja_run *r, const struct node *call, struct arguments *out)
{
	struct value list = {0}, dict = {0};

	*out = (struct arguments){
		.count = call->count, .names = call->names, .named_count = call->other_count};
	if (call->count + call->other_count) {
		out->values = run_take(r, (call->count + call->other_count) * sizeof(*out->values));
		if (!out->values)
			return false;
		out->named = out->values + call->count;
	}
	for (size_t i = 0; i < call->count; i++)
		if (!evaluate(r, call->items[i], &out->values[i]))
			return false;
	for (size_t i = 0; i < call->other_count; i++)
		if (!evaluate(r, call->others[i], &out->named[i]))
			return false;
	if (!call->b && !call->c)
		return true;
	if ((call->b && !evaluate(r, call->b, &list)) || (call->c && !evaluate(r, call->c, &dict)))
		return false;
	if (call->c && dict.kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, &dict);
	return add_many(r, &list, &dict, out);
}

/* The place of a name in a list of names, or SIZE_MAX; *count is the number of names. */
static size_t parameter(const char *parameters, const struct value *name, size_t *count)
{
	size_t at = 0, found = SIZE_MAX;

	while (*parameters) {
		size_t size = strcspn(parameters, " ");

		if (name && size == name->string.size && !memcmp(parameters, name->string.bytes, size))
			found = at;
		at++;
		parameters += size + (parameters[size] == ' ');
	}
	*count = at;
	return found;
}

bool call_function(struct jinja_run *r, const struct function *f, const struct value *self,
		   const struct arguments *a, struct value *out)
{
	struct slots slots = {0};
	size_t most, at;

	if (*f->parameters == '*')
		return f->any(r, self, a, out);
	parameter(f->parameters, NULL, &most);
	if (a->count > most)
		return run_fail(r, "%s takes at most %zu arguments, but got %zu", f->name, most, a->count);
	for (size_t i = 0; i < a->count; i++)
		slots.at[i] = &a->values[i];
	for (size_t i = 0; i < a->named_count; i++) {
		at = parameter(f->parameters, &a->names[i], &most);
		if (at == SIZE_MAX || slots.at[at])
			return run_fail(
				r, at == SIZE_MAX ? "%s has no parameter \"%.*s\"" : "%s got \"%.*s\" twice",
				f->name, (int)(a->names[i].string.size < 60 ? a->names[i].string.size : 60),
				a->names[i].string.bytes);
		slots.at[at] = &a->named[i];
	}
	for (size_t i = 0; i < f->least; i++)
		if (!slots.at[i])
			return run_fail(r, "%s needs %zu argument%s", f->name, f->least,
					f->least > 1 ? "s" : "");
	return f->call(r, self, &slots, out);
}

/* The positional arguments from `from` on as a tuple. */
static bool rest(struct jinja_run *r, const struct arguments *a, size_t from, struct value *out)
{
	size_t count = a->count > from ? a->count - from : 0;

	if (!list_create(r, FORM_TUPLE, count, out))
		return false;
	if (count)
		memcpy(out->list->items, a->values + from, count * sizeof(*a->values));
	return true;
}

/* Arguments that no parameter takes: an error, unless the macro reads varargs or kwargs. */
static bool bind_rest(struct jinja_run *r, const struct node *n, const struct arguments *a, const bool *taken)
{
	struct value more, named;

	if (a->count > n->count && !n->reads_varargs)
		return run_fail(r, "the macro takes at most %zu arguments, but got %zu", n->count, a->count);
	if ((n->reads_varargs || n->reads_kwargs) &&
	    (!rest(r, a, n->count, &more) || !dict_create(r, VALUE_DICT, a->named_count, &named)))
		return false;
	for (size_t i = 0; i < a->named_count; i++) {
		if (taken[i])
			continue;
		if (!n->reads_kwargs)
			return run_fail(r, "the macro takes no argument \"%.*s\" here",
					(int)(a->names[i].string.size < 60 ? a->names[i].string.size : 60),
					a->names[i].string.bytes);
		if (!dict_set(r, named.dict, &a->names[i], &a->named[i]))
			return false;
	}
	if (!n->reads_varargs && !n->reads_kwargs)
		return true;
	return frame_set(r, r->frame, r->j->varargs, &more) && frame_set(r, r->frame, r->j->kwargs, &named);
}

/* Binds parameter i to its argument, its default or undefined. */
static bool bind(struct jinja_run *r, const struct node *n, size_t i, const struct arguments *a, bool *taken)
{
	const char *name = r->j->names[n->items[i]->name];
	size_t first_default = n->count - n->other_count;
	struct value v = {.kind = VALUE_UNDEFINED, .undefined = {name, strlen(name), NULL}};

	if (i < a->count) {
		v = a->values[i];
	} else {
		bool found = false;

		for (size_t k = 0; k < a->named_count && !found; k++) {
			found = value_is(&a->names[k], name);
			if (found) {
				v = a->named[k];
				taken[k] = true;
			}
		}
		if (!found && i >= first_default && !evaluate(r, n->others[i - first_default], &v))
			return false;
	}
	return frame_set(r, r->frame, n->items[i]->name, &v);
}

static bool call_macro(struct jinja_run *r, const struct macro *m, const struct arguments *a,
		       struct value *out)
{
	const struct node *n = m->node, *at = r->at;
	enum run_signal signal = r->signal;
	struct value none = {.kind = VALUE_UNDEFINED, .undefined = {"caller", 6, NULL}};
	bool taken[NAMED_MAX] = {0};
	struct frame *before;
	bool good;

	if (!run_enter(r))
		return false;
	good = frame_push(r, m->frame, &before);
	for (size_t i = 0; good && i < n->count; i++)
		good = bind(r, n, i, a, taken);
	r->at = good ? at : r->at;
	good = good && bind_rest(r, n, a, taken) &&
	       frame_set(r, r->frame, r->j->caller, a->caller ? a->caller : &none);
	good = good && capture(r, n->body, out);
	r->signal = signal;
	r->frame = before;
	if (good)
		r->at = at;
	run_leave(r);
	return good;
}

bool call_value(struct jinja_run *r, const struct value *f, const struct arguments *a, struct value *out)
{
	switch (f->kind) {
	case VALUE_UNDEFINED:
		return run_fail_undefined(r, f);
	case VALUE_MACRO:
		return call_macro(r, f->macro, a, out);
	case VALUE_FUNCTION:
		return call_function(r, f->function, NULL, a, out);
	case VALUE_METHOD:
		return call_function(r, f->method->function, &f->method->self, a, out);
	default:
		return run_fail(r, "a value of type %s cannot be called", value_type(f));
	}
}

bool test_value(struct jinja_run *r, const struct test *t, const struct value *v, const struct arguments *a,
		bool *out)
{
	if (a->count != t->arguments || a->named_count)
		return run_fail(r, "the test %s takes %zu arguments, but got %zu", t->name, t->arguments,
				a->count + a->named_count);
	return t->call(r, v, a->values, out);
}

const struct function *function_among(const struct function *table, size_t count, const char *name,
				      size_t size)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(table[i].name) == size && !memcmp(table[i].name, name, size))
			return &table[i];
	return NULL;
}

bool slot_int(struct jinja_run *r, const struct slots *s, size_t i, int64_t *out)
{
	const struct value *v = s->at[i];

	if (!v)
		return true;
	if (v->kind != VALUE_INT && v->kind != VALUE_BOOL)
		return run_fail(r, "argument %zu must be an integer, not a value of type %s", i + 1,
				value_type(v));
	*out = v->kind == VALUE_INT ? v->integer : v->truth;
	return true;
}

bool slot_string(struct jinja_run *r, const struct slots *s, size_t i, const struct value **out)
{
	const struct value *v = s->at[i];

	if (!v)
		return true;
	if (v->kind != VALUE_STRING)
		return run_fail(r, "argument %zu must be a string, not a value of type %s", i + 1,
				value_type(v));
	*out = v;
	return true;
}
