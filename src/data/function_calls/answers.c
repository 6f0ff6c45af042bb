/* SPDX-License-Identifier: Apache-2.0 */
#include "data/function_calls/answers.h"
#include <ctype.h>

/* Turns a value into a list with one accepted value. Members of an object become such lists too. */
static json_t *accept(const json_t *value)
{
	json_t *out, *item;
	const char *key;
	size_t i;

	if (json_is_array(value)) {
		out = json_array();
		json_array_foreach(value, i, item) json_array_append_new(out, accept(item));
		return out;
	}
	if (!json_is_object(value))
		return json_incref((json_t *)value);
	out = json_object();
	json_object_foreach((json_t *)value, key, item)
		json_object_set_new(out, key, json_pack("[o]", accept(item)));
	return out;
}

/* Arguments may be given as JSON text. */
static json_t *accept_call(const struct chat_call *call)
{
	json_t *read = json_is_string(call->arguments)
			       ? json_loads(json_string_value(call->arguments), 0, NULL)
			       : json_incref((json_t *)call->arguments);
	json_t *out = json_is_object(read) ? json_pack("{so}", call->name, accept(read)) : NULL;

	json_decref(read);
	return out;
}

static bool accept_calls(json_t *accepted, const struct chat_message *m)
{
	for (size_t k = 0; k < m->call_count; k++)
		if (json_array_append_new(accepted, accept_call(&m->calls[k])))
			return false;
	return true;
}

/* Checks for [{name: {argument: [values]}}]. A value that is not in a list counts as a list of one;
 * bfcl-eval has two of these. */
static bool is_ground_truth(const json_t *truth)
{
	const json_t *call, *arguments;
	const char *name;
	size_t i;

	json_array_foreach(truth, i, call)
	{
		if (json_object_size(call) != 1)
			return false;
		json_object_foreach((json_t *)call, name,
				    arguments) if (!json_is_object(arguments)) return false;
	}
	return json_is_array(truth);
}

static enum status read_accepted(struct answer_task *t, struct chat *chat, struct error *err)
{
	const json_t *truth = json_object_get(chat->root, "ground_truth");
	const struct chat_message *last = chat->count ? &chat->messages[chat->count - 1] : NULL;
	bool spoke = last && last->role == CHAT_ASSISTANT;

	if (truth && !is_ground_truth(truth))
		return error_set(err, STATUS_BAD_INPUT,
				 "ground_truth is not a list of {name: {argument: [accepted values]}}");
	if (!truth && !spoke)
		return error_set(
			err, STATUS_BAD_INPUT,
			"there is no ground_truth, and the last message is not the assistant's, so there is "
			"no expected answer");
	t->accepted = truth ? json_incref((json_t *)truth) : json_array();
	if (!truth && !accept_calls(t->accepted, last))
		return error_set(err, STATUS_BAD_INPUT,
				 "the last message has a call whose arguments are not an object");
	return STATUS_OK;
}

/* Reads the conversation without the assistant's last message. */
static enum status read_prompt(struct answer_task *t, const struct chat *chat, struct error *err)
{
	bool spoke = chat->count && chat->messages[chat->count - 1].role == CHAT_ASSISTANT;
	json_t *messages = json_copy(json_object_get(chat->root, "messages"));
	json_t *root = json_copy(chat->root);

	if (spoke)
		json_array_remove(messages, json_array_size(messages) - 1);
	if (json_object_set_new(root, "messages", messages)) {
		json_decref(root);
		return error_set(err, STATUS_NO_RESOURCE, "a row");
	}
	return chat_read(&t->prompt, root, err);
}

enum status answer_task_read(struct answer_task *t, const struct rows *rows, size_t i,
			     enum rows_format format, struct error *err)
{
	struct error why = {0};
	struct chat chat;
	enum status st = rows_read(rows, i, format, &chat, err);

	*t = (struct answer_task){0};
	if (st)
		return st;
	st = read_accepted(t, &chat, &why);
	if (!st)
		st = read_prompt(t, &chat, &why);
	chat_release(&chat);
	if (!st)
		return STATUS_OK;
	answer_task_release(t);
	return error_set(err, st, "%s:%zu: %s", rows->path, rows->place[i].line, why.text);
}

void answer_task_release(struct answer_task *t)
{
	chat_release(&t->prompt);
	json_decref(t->accepted);
	*t = (struct answer_task){0};
}

/* Types of JSON, and their names in JSON Schema and bfcl-eval. */
enum kind { KIND_TEXT, KIND_INTEGER, KIND_NUMBER, KIND_TRUTH, KIND_LIST, KIND_MAP, KIND_NONE };

static enum kind kind_of(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		return KIND_TEXT;
	case JSON_INTEGER:
		return KIND_INTEGER;
	case JSON_REAL:
		return KIND_NUMBER;
	case JSON_TRUE:
	case JSON_FALSE:
		return KIND_TRUTH;
	case JSON_ARRAY:
		return KIND_LIST;
	case JSON_OBJECT:
		return KIND_MAP;
	default:
		return KIND_NONE;
	}
}

/* KIND_NONE: no type is given, or more than one. */
static enum kind kind_of_schema(const json_t *schema)
{
	static const struct {
		const char *word;
		enum kind kind;
	} words[] = {{"string", KIND_TEXT},   {"any", KIND_TEXT},     {"integer", KIND_INTEGER},
		     {"number", KIND_NUMBER}, {"float", KIND_NUMBER}, {"boolean", KIND_TRUTH},
		     {"array", KIND_LIST},    {"tuple", KIND_LIST},   {"object", KIND_MAP},
		     {"dict", KIND_MAP}};
	const char *word = json_string_value(json_object_get(schema, "type"));

	for (size_t i = 0; word && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(word, words[i].word))
			return words[i].kind;
	return KIND_NONE;
}

static bool is_empty_text(const json_t *value)
{
	return json_is_string(value) && !json_string_length(value);
}

/* Type of the first accepted value other than "", which marks an optional argument. */
static enum kind kind_of_accepted(const json_t *accepted)
{
	const json_t *value;
	size_t i;

	json_array_foreach(accepted, i, value) if (!is_empty_text(value)) return kind_of(value);
	return KIND_NONE;
}

/* The next byte that counts in a comparison; 0 at the end. */
static char next_of_text(const char **at)
{
	while (**at && strchr(" ,./-_*^", **at))
		(*at)++;
	if (!**at)
		return 0;
	return *(*at)++ == '\'' ? '"' : (char)tolower((unsigned char)(*at)[-1]);
}

static bool same_text(const char *a, const char *b)
{
	char x, y;

	do {
		x = next_of_text(&a);
		y = next_of_text(&b);
	} while (x && x == y);
	return x == y;
}

static bool may_be_left_out(const json_t *accepted)
{
	const json_t *one;
	size_t i;

	json_array_foreach(accepted, i, one) if (is_empty_text(one)) return true;
	return false;
}

static bool is_accepted(const json_t *value, const json_t *accepted, bool loose);

/* Whether each member of `value` is among the values accepted for its key. */
static bool same_map(const json_t *value, const json_t *map)
{
	const json_t *one;
	const char *key;

	json_object_foreach((json_t *)value, key, one)
	{
		const json_t *accepted = json_object_get(map, key);

		if (!accepted || !is_accepted(one, accepted, json_is_string(one)))
			return false;
	}
	json_object_foreach((json_t *)map, key,
			    one) if (!json_object_get(value, key) && !may_be_left_out(one)) return false;
	return true;
}

/* Compares numbers by value, as Python does. `loose`: the texts in a list are compared like texts, without
 * case, blanks and punctuation. */
static bool same(const json_t *value, const json_t *one, bool loose)
{
	const json_t *item;
	size_t i;

	if (json_is_number(value) && json_is_number(one))
		return json_number_value(value) == json_number_value(one);
	if (json_is_string(value) && json_is_string(one) && loose)
		return same_text(json_string_value(value), json_string_value(one));
	if (json_is_object(value) && json_is_object(one))
		return same_map(value, one);
	if (!json_is_array(value) || !json_is_array(one))
		return json_equal(value, one);
	if (json_array_size(value) != json_array_size(one))
		return false;
	json_array_foreach(value, i, item) if (!same(item, json_array_get(one, i),
						     loose && json_is_string(item))) return false;
	return true;
}

static bool is_accepted(const json_t *value, const json_t *accepted, bool loose)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(accepted))
		return same(value, accepted, loose);
	json_array_foreach(accepted, i, one) if (same(value, one, loose)) return true;
	return false;
}

/* Whether the items of a list have the types of one of the accepted lists, or of the function's parameter. */
static bool items_fit(const json_t *value, const json_t *accepted, enum kind item)
{
	const json_t *list, *one;
	size_t i, k;

	json_array_foreach(accepted, i, list)
	{
		enum kind first = json_is_array(list) ? kind_of_accepted(list) : KIND_NONE;
		bool fits = true;

		if (json_is_array(list))
			json_array_foreach(value, k, one) fits =
				fits && (kind_of(one) == item || kind_of(one) == first);
		if (fits)
			return true;
	}
	return false;
}

/* `wanted`: the type in the function's description, or else that of the accepted values. */
static bool type_fits(const json_t *value, const json_t *accepted, const json_t *schema, enum kind wanted)
{
	enum kind kind = kind_of(value), item = kind_of_schema(json_object_get(schema, "items"));

	if (kind == KIND_INTEGER && wanted == KIND_NUMBER)
		kind = KIND_NUMBER;
	if (kind != wanted)
		return kind == kind_of_accepted(accepted);
	return wanted != KIND_LIST || item == KIND_NONE || items_fit(value, accepted, item);
}

static bool argument_fits(const json_t *value, const json_t *accepted, const json_t *schema)
{
	enum kind stated = kind_of_schema(schema), first = kind_of_accepted(accepted);
	enum kind wanted = stated != KIND_NONE ? stated : first != KIND_NONE ? first : kind_of(value);

	if (!type_fits(value, accepted, schema, wanted))
		return false;
	if (wanted == KIND_LIST && !json_array_size(value) && may_be_left_out(accepted))
		return true;
	/* the accepted value has another type than the parameter: it is the name of a variable, compared
	 * literally */
	return is_accepted(value, accepted, first == KIND_NONE || first == wanted);
}

static const json_t *function_of(const json_t *tools, const char *name)
{
	const json_t *tool, *function, *said;
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		function = json_object_get(tool, "function");
		function = function ? function : tool;
		said = json_object_get(function, "name");
		if (json_is_string(said) && !strcmp(json_string_value(said), name))
			return function;
	}
	return NULL;
}

/* Checks the arguments of a call of the right function. *why is "" or the first error. */
static bool arguments_fit(const struct tool_call *call, const json_t *accepted, const json_t *function,
			  char why[240])
{
	const json_t *parameters = json_object_get(function, "parameters");
	const json_t *properties = json_object_get(parameters, "properties");
	const json_t *value, *name;
	const char *key;
	size_t i;

	json_array_foreach(json_object_get(parameters, "required"), i,
			   name) if (json_is_string(name) &&
				     !json_object_get(call->arguments, json_string_value(name)))
	{
		snprintf(why, 240, "%.60s: %.60s is missing", call->name, json_string_value(name));
		return false;
	}
	json_object_foreach(call->arguments, key, value)
	{
		const json_t *values = json_object_get(accepted, key),
			     *schema = json_object_get(properties, key);

		if (!values || (properties && !schema)) {
			snprintf(why, 240, "%.60s: %.60s is not a parameter", call->name, key);
			return false;
		}
		if (!argument_fits(value, values, schema)) {
			char *text = json_dumps(value, JSON_ENCODE_ANY);

			snprintf(why, 240, "%.60s: %.60s: %.60s is not accepted", call->name, key,
				 text ? text : "?");
			free(text);
			return false;
		}
	}
	json_object_foreach((json_t *)accepted, key,
			    value) if (!json_object_get(call->arguments, key) && !may_be_left_out(value))
	{
		snprintf(why, 240, "%.60s: %.60s is missing", call->name, key);
		return false;
	}
	return true;
}

static const char *name_of(const json_t *accepted)
{
	return json_object_iter_key(json_object_iter((json_t *)accepted));
}

/* Assigns to each expected call the first unassigned call that fits. */
static bool match(const struct answer_task *t, const struct tool_calls *calls, bool names_alone, bool *taken,
		  char why[240])
{
	const json_t *accepted;
	size_t i, k;

	memset(taken, 0, calls->count * sizeof(*taken));
	json_array_foreach(t->accepted, i, accepted)
	{
		const char *name = name_of(accepted);
		const json_t *function = function_of(t->prompt.tools, name);

		snprintf(why, 240, "%.60s is not called", name);
		for (k = 0; k < calls->count; k++)
			if (!taken[k] && !strcmp(calls->calls[k].name, name) &&
			    (names_alone ||
			     arguments_fit(&calls->calls[k], json_object_get(accepted, name), function, why)))
				break;
		if (k == calls->count)
			return false;
		taken[k] = true;
	}
	why[0] = '\0';
	return true;
}

void answer_judge(struct answer_verdict *v, const struct answer_task *t, const struct tool_calls *calls)
{
	size_t wanted = json_array_size(t->accepted);
	bool *taken = calloc(calls->count + 1, sizeof(*taken));

	*v = (struct answer_verdict){.valid = !calls->broken && (calls->count > 0) == (wanted > 0)};
	if (!taken) {
		snprintf(v->why, sizeof(v->why), "no memory for %zu calls", calls->count);
		return;
	}
	if (calls->broken)
		snprintf(v->why, sizeof(v->why), "a call cannot be parsed");
	else if (calls->count != wanted)
		snprintf(v->why, sizeof(v->why), "%zu calls instead of %zu", calls->count, wanted);
	else
		v->names = match(t, calls, true, taken, v->why);
	if (v->names)
		v->exact = match(t, calls, false, taken, v->why);
	free(taken);
}

void answer_count(struct answer_totals *totals, const struct answer_verdict *v, enum answer_end end)
{
	totals->rows++;
	totals->valid += v->valid;
	totals->names += v->names;
	totals->exact += v->exact;
	totals->cut += end == ANSWER_CUT;
	totals->refused += end == ANSWER_REFUSED;
	totals->ended_valid += v->valid && end == ANSWER_ENDED;
}

json_t *answer_totals_json(const struct answer_totals *t)
{
	double rows = t->rows ? (double)t->rows : 1;

	return json_pack("{sI sI sf sI sf sI sf}", "rows", (json_int_t)t->rows, "valid", (json_int_t)t->valid,
			 "valid_share", (double)t->valid / rows, "names", (json_int_t)t->names, "names_share",
			 (double)t->names / rows, "exact", (json_int_t)t->exact, "exact_share",
			 (double)t->exact / rows);
}

uint64_t answer_totals_ended(const struct answer_totals *t)
{
	return t->rows - t->cut - t->refused;
}

void answer_totals_ended_json(const struct answer_totals *t, json_t *out)
{
	const uint64_t ended = answer_totals_ended(t);

	json_object_set_new(out, "cut", json_integer((json_int_t)t->cut));
	json_object_set_new(out, "refused", json_integer((json_int_t)t->refused));
	json_object_set_new(out, "ended", json_integer((json_int_t)ended));
	json_object_set_new(out, "ended_valid", json_integer((json_int_t)t->ended_valid));
	json_object_set_new(out, "ended_valid_share",
			    json_real(ended ? (double)t->ended_valid / (double)ended : 0));
}
