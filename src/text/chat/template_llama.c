/* SPDX-License-Identifier: Apache-2.0 */
/* Llama 3: <|start_header_id|>role<|end_header_id|>, two newlines, text without surrounding blanks,
 * <|eot_id|>. */
#include "core/text/utf8.h"
#include "text/chat/template_internal.h"
#include "text/jinja/value/unicode.h"

static void header(struct template_writer *w, const char *role)
{
	template_own(w, "<|start_header_id|>");
	template_own(w, role);
	template_own(w, "<|end_header_id|>\n\n");
}

static const char *trim(const char *text, size_t *size)
{
	size_t taken, at;
	const char *last;

	while (*text && unicode_is_space(utf8_decode(text, &taken)))
		text += taken;
	last = text;
	for (at = 0; text[at]; at += taken)
		if (!unicode_is_space(utf8_decode(text + at, &taken)))
			last = text + at + taken;
	*size = (size_t)(last - text);
	return text;
}

static void said(struct template_writer *w, const char *text)
{
	size_t size;

	text = trim(text, &size);
	template_said(w, text, size);
}

static void turn(struct template_writer *w, const char *role, const char *content)
{
	header(w, role);
	said(w, content);
	template_own(w, "<|eot_id|>");
}

static void answer(struct template_writer *w, const struct chat_message *m)
{
	size_t size;
	const char *text = trim(m->content, &size);

	header(w, "assistant");
	template_answer(w, text, size, false, !m->untrained);
	template_answer(w, "<|eot_id|>", 10, true, !m->untrained);
}

static enum status render_llama3(const struct template *t, const struct chat *c, struct template_writer *w,
				 struct error *err)
{
	(void)t, (void)err;
	template_own(w, "<|begin_of_text|>");
	for (size_t i = 0; i < c->count; i++) {
		if (c->messages[i].role == CHAT_ASSISTANT)
			answer(w, &c->messages[i]);
		else
			turn(w, chat_role_name(c->messages[i].role), c->messages[i].content);
	}
	if (w->ask->generation_prompt)
		header(w, "assistant");
	return STATUS_OK;
}

static enum status answer_call(struct template_writer *w, const struct chat_message *m, size_t i,
			       struct error *err)
{
	bool trained = !m->untrained;

	if (m->call_count != 1)
		return error_set(
			err, STATUS_BAD_INPUT,
			"messages[%zu]: it has %zu calls, but Llama 3.1's template allows one per turn", i,
			m->call_count);
	header(w, "assistant");
	template_answer(w, "{\"name\": \"", 10, true, trained);
	template_answer(w, m->calls[0].name, strlen(m->calls[0].name), false, trained);
	template_answer(w, "\", \"parameters\": ", 17, true, trained);
	template_arguments(w, &m->calls[0], trained);
	template_answer(w, "}", 1, true, trained);
	template_answer(w, "<|eot_id|>", 10, true, trained);
	return STATUS_OK;
}

/* The tools are listed before the first question. */
static void question_with_tools(struct template_writer *w, const json_t *tools, const char *question)
{
	const json_t *tool;
	size_t i;

	header(w, "user");
	template_own(
		w, "Given the following functions, please respond with a JSON for a function call with its "
		   "proper arguments that best answers the given prompt.\n\nRespond in the format {\"name\": "
		   "function name, \"parameters\": dictionary of argument name and its value}.Do not use "
		   "variables.\n\n");
	json_array_foreach(tools, i, tool)
	{
		template_json(w, tool, 4);
		template_own(w, "\n\n");
	}
	said(w, question);
	template_own(w, "<|eot_id|>");
}

/* The template writes the answer as JSON, even if it is a text. */
static void tool_answer(struct template_writer *w, const char *content)
{
	json_t *value = json_string(content);

	header(w, "ipython");
	if (value)
		template_json(w, value, 0);
	w->out->failed |= !value;
	template_own(w, "<|eot_id|>");
	json_decref(value);
}

/* Uses the template's default date, because rows must not change from day to day. */
static enum status render_llama31(const struct template *t, const struct chat *c, struct template_writer *w,
				  struct error *err)
{
	size_t i = c->messages[0].role == CHAT_SYSTEM;
	enum status st = STATUS_OK;

	(void)t;
	template_own(w, "<|begin_of_text|>");
	header(w, "system");
	template_own(w, c->tools ? "Environment: ipython\n" : "");
	template_own(w, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
	if (i)
		said(w, c->messages[0].content);
	template_own(w, "<|eot_id|>");
	if (c->tools) {
		if (i == c->count)
			return error_set(
				err, STATUS_BAD_INPUT,
				"Llama 3.1's template lists tools in the first question, but there is no question");
		question_with_tools(w, c->tools, c->messages[i++].content);
	}
	for (; !st && i < c->count; i++) {
		const struct chat_message *m = &c->messages[i];

		if (m->call_count)
			st = answer_call(w, m, i, err);
		else if (m->role == CHAT_ASSISTANT)
			answer(w, m);
		else if (m->role != CHAT_TOOL)
			turn(w, chat_role_name(m->role), m->content);
		else
			tool_answer(w, m->content);
	}
	if (w->ask->generation_prompt)
		header(w, "assistant");
	return st;
}

const struct template template_llama3 = {
	.name = "llama3",
	.end = "<|eot_id|>",
	.known = (const char *const[]){"<|start_header_id|>", "<|eot_id|>", NULL},
	.render = render_llama3,
};

const struct template template_llama31 = {
	.name = "llama3.1",
	.end = "<|eot_id|>",
	.known = (const char *const[]){"<|start_header_id|>", "Cutting Knowledge Date", NULL},
	.tools = true,
	.render = render_llama31,
};
