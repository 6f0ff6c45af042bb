/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/marks.h"
#include "engine/grammar/schema/tools.h"

/* chatml: <tool_call>, a call, </tool_call>, several times. llama: the answer is one call. mistral:
 * [TOOL_CALLS] and a list of calls. */
struct format {
	const char *name;
	const char *mark;      /* begins the calls; "": the whole answer is a call */
	const char *arguments; /* name of the member that holds them */
	const char *end;       /* ends each call */
	bool list;	       /* calls are one JSON list behind the mark */
};

static const struct format formats[] = {
	{"chatml", "<tool_call>", "arguments", "</tool_call>", false},
	{"llama", "", "parameters", "", false},
	{"mistral", "[TOOL_CALLS]", "arguments", "", true},
};

/* The first bytes of a call without a mark. Any other text is an answer. */
static const char bare_call[] = "{\"name\"";

struct tools {
	struct builder *b;
	const struct format *format;
	const json_t *list;
	const char *only; /* name of the tool that must be called; NULL: any */
	bool parallel, automatic;
};

static const struct format *find_format(struct builder *b, const json_t *source)
{
	const char *name = json_string_value(json_object_get(source, "format"));

	for (size_t i = 0; name && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	builder_fail(b, STATUS_BAD_INPUT, "\"format\" is not chatml, llama or mistral");
	return NULL;
}

static void read_mode(struct tools *t, const json_t *source)
{
	const char *mode = json_string_value(json_object_get(source, "mode"));
	const char *name = json_string_value(json_object_get(source, "name"));

	t->parallel = json_is_true(json_object_get(source, "parallel"));
	t->automatic = mode && !strcmp(mode, "auto");
	if (!mode || (!t->automatic && strcmp(mode, "required") != 0 && strcmp(mode, "named") != 0))
		builder_fail(t->b, STATUS_BAD_INPUT, "\"mode\" is not auto, required or named");
	else if (!strcmp(mode, "named") && !name)
		builder_fail(t->b, STATUS_BAD_INPUT, "mode named needs \"name\"");
	else if (!strcmp(mode, "named"))
		t->only = name;
}

static const char *name_of(const json_t *tool)
{
	const json_t *function = json_object_get(tool, "function");

	return json_string_value(json_object_get(function ? function : tool, "name"));
}

/* `"NAME", "arguments": {..}` behind `"name":`, for one tool. */
static struct expr *tool_call(struct tools *t, const json_t *tool)
{
	struct builder *b = t->b;
	const json_t *function = json_object_get(tool, "function"), *parameters, *strict;
	struct expr *e = expr_group(b, EXPR_SEQUENCE);
	bool was_strict = b->strict;
	json_t *name;
	size_t old;

	function = function ? function : tool;
	parameters = json_object_get(function, "parameters");
	strict = json_object_get(function, "strict");
	if (!json_string_length(json_object_get(function, "name"))) {
		builder_fail(b, STATUS_BAD_INPUT, "a tool has no name");
		return NULL;
	}
	name = json_object_get(function, "name");
	expr_add(b, e, json_literal(b, name));
	expr_add(b, e, expr_words(b, ","));
	expr_add(b, e, json_space(b));
	expr_add(b, e, expr_words(b, "\""));
	expr_add(b, e, expr_words(b, t->format->arguments));
	expr_add(b, e, expr_words(b, "\":"));
	expr_add(b, e, json_space(b));
	old = builder_path(b, "parameters");
	if (strict)
		b->strict = json_is_true(strict);
	expr_add(b, e,
		 parameters && !json_is_null(parameters) ? schema_parse(b, parameters) : json_any_object(b));
	b->strict = was_strict;
	builder_path_end(b, old);
	return e;
}

/* The tools that may be called, as a rule: what follows `"name":` up to the arguments' end. */
static uint32_t any_call(struct tools *t)
{
	struct builder *b = t->b;
	struct expr *choice = expr_group(b, EXPR_CHOICE);
	const json_t *tool;
	size_t i, old = builder_path(b, "tools");

	json_array_foreach(t->list, i, tool)
	{
		size_t place = builder_path_index(b, i);
		const char *name = name_of(tool);

		if (!t->only || (name && !strcmp(name, t->only)))
			expr_add(b, choice, tool_call(t, tool));
		builder_path_end(b, place);
	}
	builder_path_end(b, old);
	if (!b->status && !choice->first && t->only)
		builder_fail(b, STATUS_BAD_INPUT, "no tool has the name \"%.60s\"", t->only);
	return b->status ? 0 : expr_make_rule(b, choice);
}

/* `: "NAME", "arguments": {..} }` and the mark that ends a call. */
static struct expr *call_tail(struct tools *t, uint32_t calls)
{
	struct builder *b = t->b;
	struct expr *e = expr_add(b, expr_group(b, EXPR_SEQUENCE), expr_words(b, ":"));

	expr_add(b, e, json_space(b));
	expr_add(b, e, expr_rule(b, calls));
	expr_add(b, e, json_space(b));
	expr_add(b, e, expr_words(b, "}"));
	if (t->format->end[0]) {
		expr_add(b, e, json_pattern(b, "[ \n]?"));
		expr_add(b, e, expr_words(b, t->format->end));
	}
	return e;
}

static struct expr *whole_call(struct tools *t, uint32_t calls)
{
	struct builder *b = t->b;
	struct expr *e = expr_group(b, EXPR_SEQUENCE);

	if (t->format->end[0])
		expr_add(b, e, json_pattern(b, "[ \n]?"));
	expr_add(b, e, expr_words(b, "{"));
	expr_add(b, e, json_space(b));
	expr_add(b, e, expr_words(b, "\"name\""));
	return expr_add(b, e, call_tail(t, calls));
}

/* The text behind the first mark. */
static struct expr *marked_calls(struct tools *t, uint32_t calls)
{
	struct builder *b = t->b;
	struct expr *e = expr_group(b, EXPR_SEQUENCE), *more = expr_group(b, EXPR_SEQUENCE);

	if (t->format->list) {
		expr_add(b, e, json_pattern(b, " ?\\["));
		expr_add(b, e, whole_call(t, calls));
		expr_add(b, more, expr_words(b, ","));
		expr_add(b, more, json_space(b));
		expr_add(b, more, whole_call(t, calls));
	} else {
		expr_add(b, e, whole_call(t, calls));
		expr_add(b, more, json_pattern(b, "[ \n]{0,2}"));
		expr_add(b, more, expr_words(b, t->format->mark));
		expr_add(b, more, whole_call(t, calls));
	}
	if (t->parallel)
		expr_add(b, e, expr_repeat(b, more, 0, REPEAT_FOREVER));
	return t->format->list ? expr_add(b, e, expr_words(b, "]")) : e;
}

static void build_answers(struct tools *t, uint32_t calls, uint32_t from, uint32_t to)
{
	struct builder *b = t->b;
	uint32_t behind = build_node(b);

	if (b->status)
		return;
	if (t->format->mark[0]) {
		if (t->automatic) {
			build_until(b, from, t->format->mark, behind, to);
		} else {
			struct expr *begin =
				expr_add(b, expr_group(b, EXPR_SEQUENCE), json_pattern(b, "[ \n]{0,2}"));

			build_expr(b, expr_add(b, begin, expr_words(b, t->format->mark)), from, behind);
		}
		build_expr(b, marked_calls(t, calls), behind, to);
	} else if (t->automatic) {
		build_beginning(b, from, bare_call, behind, to);
		build_expr(b, call_tail(t, calls), behind, to);
	} else {
		build_expr(b, whole_call(t, calls), from, to);
	}
}

void tools_build(struct builder *b, const json_t *source, bool must_call, uint32_t from, uint32_t to)
{
	struct tools t = {.b = b, .format = find_format(b, source), .list = json_object_get(source, "tools")};
	uint32_t any;

	read_mode(&t, source);
	t.automatic = t.automatic && !must_call;
	if (t.list && !json_is_array(t.list))
		builder_fail(b, STATUS_BAD_INPUT, "\"tools\" is not a list");
	if (b->status)
		return;
	if (!json_array_size(t.list)) {
		if (!t.automatic)
			builder_fail(b, STATUS_BAD_INPUT, "a call is required, but \"tools\" is empty");
		any = build_node(b);
		build_empty(b, from, any);
		build_byte(b, any, 0, 255, any);
		build_empty(b, any, to);
		return;
	}
	build_answers(&t, any_call(&t), from, to);
}
