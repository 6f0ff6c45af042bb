/* SPDX-License-Identifier: Apache-2.0 */
/* Renders a conversation with a model's own template in Jinja. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/json/read.h"
#include "core/json/text.h"
#include "text/chat/template_internal.h"

/* Roles have no markup in them, so templates may make tokens of them: "<|" + role + "|>". */
static const char *const roles[] = {"system", "user", "assistant", "tool", NULL};

/* A call's arguments as an object or as text, whichever the template writes. */
static json_t *arguments_of(const struct template *t, const json_t *arguments)
{
	struct json_wrong why;
	struct text text = {0};
	json_t *out = NULL;

	if (json_is_string(arguments) && !t->arguments_as_text)
		out = json_read(json_string_value(arguments), json_string_length(arguments), 0, &why);
	if (json_is_string(arguments) || !t->arguments_as_text)
		return out ? out : json_incref((json_t *)arguments); /* numbers beyond 64 bits stay text */
	json_text_add(&text, arguments, 0);
	out = text.failed ? NULL : json_string(text_str(&text));
	text_release(&text);
	return out;
}

/* A call in the form that templates expect: {"type", "id", "function": {"name", "arguments"}}. */
static json_t *call_of(const struct template *t, const struct chat_call *call, const json_t *given)
{
	json_t *out = given && json_is_object(json_object_get(given, "function")) ? json_copy((json_t *)given)
										  : json_object();
	json_t *function =
		json_pack("{s:s, s:o}", "name", call->name, "arguments", arguments_of(t, call->arguments));

	if (!json_object_get(out, "type"))
		json_object_set_new(out, "type", json_string("function"));
	if (!function || json_object_set_new(out, "function", function)) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *calls_of(const struct template *t, const struct chat_message *m, const json_t *given)
{
	const json_t *list = json_object_get(given, "tool_calls");
	json_t *out = json_array();

	for (size_t i = 0; i < m->call_count; i++)
		if (json_array_append_new(out, call_of(t, &m->calls[i], json_array_get(list, i)))) {
			json_decref(out);
			return NULL;
		}
	return out;
}

/* A message as templates expect it: a usual name of its role, its calls as a list, and content. */
static json_t *message_of(const struct template *t, const struct chat_message *m, const json_t *given)
{
	json_t *out = json_copy((json_t *)given);
	bool failed = !out || json_object_set_new(out, "role", json_string(chat_role_name(m->role)));

	if (!failed && m->call_count)
		failed = json_object_set_new(out, "tool_calls", calls_of(t, m, given)) != 0;
	else if (!failed)
		json_object_del(out, "tool_calls");
	json_object_del(out, "function_call");
	json_object_del(out, "weight");
	if (!failed && !json_is_string(json_object_get(out, "content")))
		failed = json_object_set_new(out, "content", m->call_count ? json_null() : json_string("")) !=
			 0;
	if (failed) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *messages_of(const struct template *t, const struct chat *c)
{
	const json_t *given = json_object_get(c->root, "messages");
	json_t *out = json_array();

	for (size_t i = 0; i < c->count; i++)
		if (json_array_append_new(out, message_of(t, &c->messages[i], json_array_get(given, i)))) {
			json_decref(out);
			return NULL;
		}
	return out;
}

/* The values of a rendering, which live until it ends. */
struct values {
	json_t *messages, *special, *yes, *no, *none;
	enum jinja_source *sources; /* of the messages */
};

static void values_release(struct values *v)
{
	json_decref(v->messages);
	json_decref(v->special);
	free(v->sources);
}

static enum status values_make(struct values *v, const struct template *t, const struct chat *c,
			       const struct template_ask *ask, struct error *err)
{
	*v = (struct values){.messages = messages_of(t, c),
			     .special = json_object(),
			     .yes = json_true(),
			     .no = json_false(),
			     .none = json_null(),
			     .sources = calloc(c->count, sizeof(*v->sources))};
	if (!v->messages || !v->sources)
		return error_set(err, STATUS_NO_RESOURCE, "a conversation of %zu messages", c->count);
	for (size_t i = 0; i < c->count; i++)
		v->sources[i] = ask->control				? JINJA_TEMPLATE
				: c->messages[i].role == CHAT_ASSISTANT ? JINJA_ANSWER
									: JINJA_DATA;
	for (int i = 0; i < TOKENIZER_SPECIALS && t->tokenizer; i++) {
		const char *text = tokenizer_special(t->tokenizer, (enum tokenizer_special)i);

		if (*text)
			json_object_set_new(v->special, tokenizer_special_names[i], json_string(text));
	}
	return STATUS_OK;
}

static enum status set_all(struct jinja_run *r, const json_t *object, enum jinja_source source,
			   struct error *err)
{
	enum status st = STATUS_OK;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		if (!st)
			st = jinja_run_set(r, key, value, source, err);
	}
	return st;
}

/* The variables that transformers sets, after those of the request. */
static enum status set_variables(struct jinja_run *r, const struct values *v, const struct chat *c,
				 const struct template_ask *ask, struct error *err)
{
	enum jinja_source data = ask->control ? JINJA_TEMPLATE : JINJA_DATA;
	enum status st = STATUS_OK;

	if (ask->no_thinking)
		st = jinja_run_set(r, "enable_thinking", v->no, JINJA_DATA, err);
	if (!st)
		st = set_all(r, ask->variables, data, err);
	if (!st)
		st = set_all(r, v->special, JINJA_TEMPLATE, err);
	if (!st)
		st = jinja_run_set(r, "tools", c->tools ? c->tools : v->none, data, err);
	if (!st)
		st = jinja_run_set(r, "add_generation_prompt", ask->generation_prompt ? v->yes : v->no,
				   JINJA_DATA, err);
	return st ? st : jinja_run_set_list(r, "messages", v->messages, v->sources, "role", roles, err);
}

static void take_output(struct template_writer *w, const struct jinja_output *o)
{
	static const enum tokenizer_added added[] = {
		[JINJA_DATA] = ADDED_NONE, [JINJA_ANSWER] = ADDED_MARKUP, [JINJA_TEMPLATE] = ADDED_ALL};
	size_t begin = 0;

	for (size_t i = 0; i < o->count; begin = o->spans[i++].end)
		template_add(w, o->text.data + begin, o->spans[i].end - begin, added[o->spans[i].source]);
}

static enum status render(const struct template *t, const struct chat *c, struct template_writer *w,
			  struct error *err)
{
	const struct jinja *j = c->tools && t->jinja_tools ? t->jinja_tools : t->jinja;
	struct jinja_output out = {0};
	struct jinja_run *r = NULL;
	struct values v;
	enum status st = values_make(&v, t, c, w->ask, err);

	if (!st)
		st = jinja_run_create(&r, j, NULL, w->ask->now ? w->ask->now : (int64_t)time(NULL), err);
	if (!st)
		st = set_variables(r, &v, c, w->ask, err);
	if (!st)
		st = jinja_run_render(r, &out, err);
	if (!st)
		take_output(w, &out);
	jinja_output_release(&out);
	jinja_run_destroy(&r);
	values_release(&v);
	return st;
}

/* Whether the template renders a conversation with a call. */
static bool renders_calls(const struct template *t)
{
	static const char text[] =
		"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": null, "
		"\"tool_calls\": [{\"id\": \"abcdefghi\", \"type\": \"function\", \"function\": {\"name\": \"f\", "
		"\"arguments\": {\"x\": 1}}}]}]}";
	const struct template_ask ask = {.now = 1};
	struct template_text out = {0};
	struct chat c = {0};
	enum status st = chat_read(&c, json_loads(text, 0, NULL), NULL);

	if (!st)
		st = template_render(t, &c, &ask, &out, NULL);
	template_text_release(&out);
	chat_release(&c);
	return !st;
}

/* Most templates write a call's arguments with tojson; some join them as text, which fails for an object. */
static void choose_arguments(struct template *t)
{
	if (renders_calls(t))
		return;
	t->arguments_as_text = true;
	t->arguments_as_text = renders_calls(t);
}

/* The text that ends a turn: that of the recognized family, or the end-of-text token. */
static char *end_of(const struct template *native, const struct tokenizer *t)
{
	return strdup(native ? native->end : t ? tokenizer_special(t, SPECIAL_EOS) : "");
}

enum status template_of_jinja(struct template **out, const char *name, const char *text, const char *tools,
			      const struct tokenizer *t, struct error *err)
{
	const struct template *native = template_recognize(text);
	struct template *new = calloc(1, sizeof(*new));
	enum status st;

	*out = NULL;
	if (!new)
		return error_set(err, STATUS_NO_RESOURCE, "a chat template");
	new->own_name = strdup(native ? native->name : "of the model");
	new->own_end = end_of(native, t);
	if (!new->own_name || !new->own_end) {
		template_close(&new);
		return error_set(err, STATUS_NO_RESOURCE, "a chat template");
	}
	new->name = new->own_name;
	new->end = new->own_end;
	new->tools = strstr(text, "tool") || *tools;
	new->marked =
		strstr(text, "<tool_call>") || strstr(tools, "<tool_call>") || (native && native->marked);
	new->tokenizer = t;
	new->render = render;
	st = jinja_compile(&new->jinja, name, text, strlen(text), err);
	if (!st && *tools)
		st = jinja_compile(&new->jinja_tools, name, tools, strlen(tools), err);
	if (st) {
		template_close(&new);
		return st;
	}
	if (new->tools)
		choose_arguments(new);
	*out = new;
	return STATUS_OK;
}
