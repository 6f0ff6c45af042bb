/* SPDX-License-Identifier: Apache-2.0 */
/* response_format, tools and tool_choice become the source of a grammar for the engine. */
#include "serve/protocol/request_internal.h"

#include "core/json/member.h"
#include "engine/grammar/source.h"

static bool set_grammar(struct request_reading *in, json_t *source, const char *param)
{
	struct request *r = in->r;

	if (!source)
		return request_out_of_memory(in->err);
	r->grammar = json_dumps(source, JSON_COMPACT);
	json_decref(source);
	if (!r->grammar)
		return request_out_of_memory(in->err);
	r->engine.grammar = r->grammar;
	r->engine.grammar_size = strlen(r->grammar);
	r->grammar_field = param;
	if (r->engine.grammar_size > REQUEST_SCHEMA_BYTES_MOST)
		return api_wrong(in->err, param, "%s has %zu bytes; %d is the most", param,
				 r->engine.grammar_size, REQUEST_SCHEMA_BYTES_MOST);
	return true;
}

/* A keyword that cannot be enforced is refused, unless the request says that it need not be. */
static bool read_schema(struct request_reading *in, const json_t *format, json_t **source)
{
	static const char place[] = "response_format.json_schema";
	const json_t *inner = json_object_get(format, "json_schema"), *schema;
	bool strict = true;
	const char *name;

	if (!json_is_object(inner))
		return api_wrong(in->err, place, "%s must be an object, not %s", place,
				 field_type_name(inner));
	schema = json_object_get(inner, "schema");
	if (!json_is_object(schema) && !json_is_boolean(schema))
		return api_wrong(in->err, "response_format.json_schema.schema",
				 "%s.schema must be an object, not %s", place, field_type_name(schema));
	if (!field_text_in(inner, place, "name", &name, in->err) ||
	    !field_bool_in(inner, place, "strict", &strict, in->err))
		return false;
	*source = json_pack("{ss sO sb}", "type", "json_schema", "schema", schema, "strict", strict);
	return *source || request_out_of_memory(in->err);
}

/* The grammar of the answer; NULL: any text. Owner of *source: caller, also after a failure. */
static bool read_format(struct request_reading *in, const json_t *body, json_t **source)
{
	const json_t *format = NULL;
	const char *type;

	*source = NULL;
	if (!field_object(body, "response_format", &format, in->err))
		return false;
	if (!format)
		return true;
	type = json_member_text(format, "type");
	if (!strcmp(type, "text"))
		return true;
	if (!strcmp(type, "json_schema"))
		return read_schema(in, format, source);
	if (strcmp(type, "json_object") != 0)
		return api_wrong(in->err, "response_format.type",
				 "response_format.type is \"%.40s\"; it must be text, json_object or "
				 "json_schema",
				 type);
	*source = json_pack("{ss}", "type", "json_object");
	return *source || request_out_of_memory(in->err);
}

/* The members of one tool's function, which is at `place`. */
static bool check_function(struct request_reading *in, const json_t *function, const char *place)
{
	const json_t *parameters = field_value(function, "parameters");
	const char *name = json_member_text(function, "name"), *description;
	bool strict;
	char where[64];

	if (!json_is_object(function))
		return api_wrong(in->err, place, "%s must be an object, not %s", place,
				 field_type_name(function));
	snprintf(where, sizeof(where), "%s.name", place);
	if (!*name || strlen(name) > 128)
		return api_wrong(in->err, where, "%s must be a text of 1 to 128 bytes", where);
	snprintf(where, sizeof(where), "%s.parameters", place);
	if (parameters && !json_is_object(parameters))
		return api_wrong(in->err, where, "%s must be an object, not %s", where,
				 field_type_name(parameters));
	return field_text_in(function, place, "description", &description, in->err) &&
	       field_bool_in(function, place, "strict", &strict, in->err);
}

static bool check_tools(struct request_reading *in, const json_t *tools)
{
	const json_t *tool;
	char place[48];
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		const char *type = json_member_text(tool, "type");

		snprintf(place, sizeof(place), "tools[%zu]", i);
		if (!json_is_object(tool))
			return api_wrong(in->err, place, "%s must be an object, not %s", place,
					 field_type_name(tool));
		snprintf(place, sizeof(place), "tools[%zu].type", i);
		if (strcmp(type, "function") != 0)
			return api_wrong(in->err, place, "%s is \"%.40s\"; only function is supported", place,
					 type);
		snprintf(place, sizeof(place), "tools[%zu].function", i);
		if (!check_function(in, json_object_get(tool, "function"), place))
			return false;
	}
	return true;
}

static bool has_tool(const json_t *tools, const char *name)
{
	const json_t *tool;
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		if (!strcmp(json_member_text(json_object_get(tool, "function"), "name"), name))
			return true;
	}
	return false;
}

struct choice_of_tool {
	const char *mode; /* "auto", "none", "required" or "named" */
	const char *name;
};

static bool read_tool_choice(struct request_reading *in, const json_t *body, const json_t *tools,
			     struct choice_of_tool *out)
{
	const json_t *choice = field_value(body, "tool_choice");
	const char *word = json_string_value(choice);

	*out = (struct choice_of_tool){.mode = tools ? "auto" : "none"};
	if (!choice)
		return true;
	if (word && (!strcmp(word, "auto") || !strcmp(word, "none") || !strcmp(word, "required"))) {
		out->mode = word;
	} else if (json_is_object(choice) && !strcmp(json_member_text(choice, "type"), "function")) {
		out->name = json_member_text(json_object_get(choice, "function"), "name");
		out->mode = "named";
	} else {
		return api_wrong(in->err, "tool_choice",
				 "tool_choice must be auto, none, required or {\"type\": \"function\", "
				 "\"function\": {\"name\": ..}}");
	}
	if (!tools && strcmp(out->mode, "none") != 0 && strcmp(out->mode, "auto") != 0)
		return api_wrong(in->err, "tool_choice", "tool_choice is given without tools");
	if (!tools)
		out->mode = "none";
	return true;
}

/* `answer`: the grammar of a text without a call; NULL: any text. */
static bool tool_grammar(struct request_reading *in, const json_t *tools, const struct choice_of_tool *choice,
			 const json_t *answer)
{
	struct grammar_tool_calls calls;
	json_t *source;

	if (choice->name && !has_tool(tools, choice->name))
		return api_wrong(in->err, "tool_choice", "tool_choice names \"%.80s\", which is not in tools",
				 choice->name);
	calls = (struct grammar_tool_calls){.format = call_form_name(prompter_calls(in->rules->prompter)),
					    .tools = tools,
					    .mode = choice->mode,
					    .name = choice->name,
					    .parallel = !in->r->one_call,
					    .answer = answer};
	source = grammar_source_tool_calls(&calls);
	return set_grammar(in, source, "tools");
}

static bool format_grammar(struct request_reading *in, const json_t *body)
{
	json_t *source;

	if (!read_format(in, body, &source))
		return false;
	return !source || set_grammar(in, source, "response_format");
}

bool request_grammar(struct request_reading *in, const json_t *body, const json_t *tools)
{
	struct choice_of_tool choice;
	bool parallel = true, good;
	json_t *answer = NULL;

	if (!field_bool(body, "parallel_tool_calls", &parallel, in->err) || !check_tools(in, tools) ||
	    !read_tool_choice(in, body, tools, &choice))
		return false;
	in->r->one_call = !parallel;
	if (!strcmp(choice.mode, "none"))
		return format_grammar(in, body);
	if (prompter_calls(in->rules->prompter) == CALL_FORM_NONE)
		return api_wrong(
			in->err, "tools",
			"the chat template of this model has no tool calls; start the server with one that "
			"has (--chat-template qwen2.5)");
	in->r->calls = true;
	in->r->must_call = strcmp(choice.mode, "auto") != 0;
	/* an answer that must call a tool has no text, but the format is checked all the same */
	good = read_format(in, body, &answer) &&
	       tool_grammar(in, tools, &choice, in->r->must_call ? NULL : answer);
	json_decref(answer);
	return good;
}

bool request_grammar_after_thought(struct request_reading *in)
{
	struct request *r = in->r;
	char *longer;

	if (!r->grammar)
		return true;
	longer = grammar_source_after_thought(r->grammar, r->think_open);
	if (!longer)
		return request_out_of_memory(in->err);
	free(r->grammar);
	r->grammar = longer;
	r->engine.grammar = r->grammar;
	r->engine.grammar_size = strlen(longer);
	return true;
}
