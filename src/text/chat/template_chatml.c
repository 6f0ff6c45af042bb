/* SPDX-License-Identifier: Apache-2.0 */
/* ChatML: <|im_start|>role, newline, text, <|im_end|>, newline. Used by Qwen2, 2.5, 3, SmolLM2 and plain
 * ChatML. */
#include "text/chat/template_internal.h"

static void header(struct template_writer *w, const char *role)
{
	template_own(w, "<|im_start|>");
	template_own(w, role);
	template_own(w, "\n");
}

static void turn(struct template_writer *w, const char *role, const char *content)
{
	header(w, role);
	template_said(w, content, strlen(content));
	template_own(w, "<|im_end|>\n");
}

/* The newline after the end of a turn belongs to the template and is not trained. */
static void end_answer(struct template_writer *w, bool trained)
{
	template_answer(w, "<|im_end|>", strlen("<|im_end|>"), true, trained);
	template_own(w, "\n");
}

static void tool_section(struct template_writer *w, const json_t *tools)
{
	const json_t *tool;
	size_t i;

	template_own(
		w, "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are "
		   "provided with function signatures within <tools></tools> XML tags:\n<tools>");
	json_array_foreach(tools, i, tool)
	{
		template_own(w, "\n");
		template_json(w, tool, 0);
	}
	template_own(w, "\n</tools>\n\nFor each function call, return a json object with function name and "
			"arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": "
			"<function-name>, "
			"\"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n");
}

/* Writes the system turn, with tools if there are any. Returns true if it contains the first message. */
static bool open_chat(const struct template *t, const struct chat *c, struct template_writer *w)
{
	bool given = c->messages[0].role == CHAT_SYSTEM;
	const char *system = given ? c->messages[0].content : t->system;

	if (c->tools) {
		header(w, "system");
		if (given)
			template_said(w, system, strlen(system));
		else if (system)
			template_own(w, system);
		if (system)
			template_own(w, "\n\n");
		tool_section(w, c->tools);
	} else if (given) {
		turn(w, "system", system);
	} else if (system) {
		header(w, "system");
		template_own(w, system);
		template_own(w, "<|im_end|>\n");
	}
	return given;
}

static void answer_calls(struct template_writer *w, const struct chat_message *m, bool after_content)
{
	bool trained = !m->untrained;

	for (size_t i = 0; i < m->call_count; i++) {
		const char *name = m->calls[i].name;

		if (i || after_content)
			template_answer(w, "\n", 1, true, trained);
		template_answer(w, "<tool_call>\n{\"name\": \"", 22, true, trained);
		template_answer(w, name, strlen(name), false, trained);
		template_answer(w, "\", \"arguments\": ", 16, true, trained);
		template_arguments(w, &m->calls[i], trained);
		template_answer(w, "}\n</tool_call>", 14, true, trained);
	}
}

static void answer(struct template_writer *w, const struct chat_message *m)
{
	size_t size = strlen(m->content);

	header(w, "assistant");
	template_answer(w, m->content, size, false, !m->untrained);
	answer_calls(w, m, size > 0);
	end_answer(w, !m->untrained);
}

/* Consecutive answers of tools form one turn of the user. */
static void tool_answer(struct template_writer *w, const struct chat *c, size_t i)
{
	const struct chat_message *m = &c->messages[i];

	if (!i || c->messages[i - 1].role != CHAT_TOOL)
		template_own(w, "<|im_start|>user");
	template_own(w, "\n<tool_response>\n");
	template_said(w, m->content, strlen(m->content));
	template_own(w, "\n</tool_response>");
	if (i + 1 == c->count || c->messages[i + 1].role != CHAT_TOOL)
		template_own(w, "<|im_end|>\n");
}

static enum status render(const struct template *t, const struct chat *c, struct template_writer *w,
			  struct error *err)
{
	size_t i = open_chat(t, c, w) ? 1 : 0;

	(void)err;
	for (; i < c->count; i++) {
		if (c->messages[i].role == CHAT_ASSISTANT)
			answer(w, &c->messages[i]);
		else if (c->messages[i].role == CHAT_TOOL)
			tool_answer(w, c, i);
		else
			turn(w, chat_role_name(c->messages[i].role), c->messages[i].content);
	}
	if (w->ask->generation_prompt)
		header(w, "assistant");
	return STATUS_OK;
}

/* Qwen3 keeps thoughts only after the last question: the last user turn that is not a wrapped answer of a
 * tool. */
static size_t last_question(const struct chat *c)
{
	static const char open[] = "<tool_response>", close[] = "</tool_response>";
	size_t i;

	for (i = c->count; i--;) {
		const char *text = c->messages[i].content;
		size_t size = strlen(text);

		if (c->messages[i].role == CHAT_USER &&
		    (strncmp(text, open, strlen(open)) != 0 || size < strlen(close) ||
		     strcmp(text + size - strlen(close), close) != 0))
			return i;
	}
	return c->count - 1;
}

struct span {
	const char *begin;
	size_t size;
};

static struct span strip_lines(struct span s, bool left, bool right)
{
	while (left && s.size && *s.begin == '\n') {
		s.begin++;
		s.size--;
	}
	while (right && s.size && s.begin[s.size - 1] == '\n')
		s.size--;
	return s;
}

static const char *last_of(const char *text, const char *word)
{
	const char *found = NULL;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		found = at;
	return found;
}

/* Splits a message into thought and answer. The thought is the message's own field, or the text before
 * </think>. */
static void split_thought(const struct chat_message *m, struct span *thought, struct span *said)
{
	static const char open[] = "<think>", close[] = "</think>";
	const char *end = strstr(m->content, close), *at;

	*thought = (struct span){m->reasoning, strlen(m->reasoning)};
	*said = (struct span){m->content, strlen(m->content)};
	if (m->has_reasoning || !end)
		return;
	*thought = strip_lines((struct span){m->content, (size_t)(end - m->content)}, false, true);
	for (at = m->content; (at = strstr(at, open)) && at + strlen(open) <= thought->begin + thought->size;
	     at = thought->begin)
		*thought = (struct span){at + strlen(open),
					 (size_t)(thought->begin + thought->size - at) - strlen(open)};
	*thought = strip_lines(*thought, true, false);
	at = last_of(m->content, close) + strlen(close);
	*said = strip_lines((struct span){at, strlen(at)}, true, false);
}

static void thinking_answer(struct template_writer *w, const struct chat_message *m, bool behind_question,
			    bool last)
{
	struct span thought, said;
	bool trained = !m->untrained, after_content;

	split_thought(m, &thought, &said);
	after_content = said.size > 0;
	header(w, "assistant");
	if (behind_question && (last || thought.size)) {
		thought = strip_lines(thought, true, true);
		said = strip_lines(said, true, false);
		template_answer(w, "<think>\n", 8, true, trained);
		template_answer(w, thought.begin, thought.size, false, trained);
		template_answer(w, "\n</think>\n\n", 11, true, trained);
	}
	template_answer(w, said.begin, said.size, false, trained);
	answer_calls(w, m, after_content);
	end_answer(w, trained);
}

static enum status render_qwen3(const struct template *t, const struct chat *c, struct template_writer *w,
				struct error *err)
{
	size_t question = last_question(c), i = open_chat(t, c, w) ? 1 : 0;

	(void)err;
	for (; i < c->count; i++) {
		if (c->messages[i].role == CHAT_ASSISTANT)
			thinking_answer(w, &c->messages[i], i > question, i + 1 == c->count);
		else if (c->messages[i].role == CHAT_TOOL)
			tool_answer(w, c, i);
		else
			turn(w, chat_role_name(c->messages[i].role), c->messages[i].content);
	}
	if (w->ask->generation_prompt) {
		header(w, "assistant");
		if (w->ask->no_thinking)
			template_own(w, "<think>\n\n</think>\n\n");
	}
	return STATUS_OK;
}

const struct template template_chatml = {
	.name = "chatml",
	.end = "<|im_end|>",
	.marked = true,
	.known = (const char *const[]){"<|im_start|>", "<|im_end|>", NULL},
	.foreign = (const char *const[]){"tool", "think", "You are", NULL},
	.render = render,
};

const struct template template_qwen2 = {
	.name = "qwen2",
	.end = "<|im_end|>",
	.marked = true,
	.system = "You are a helpful assistant.",
	.known = (const char *const[]){"<|im_start|>", "You are a helpful assistant", NULL},
	.foreign = (const char *const[]){"tool", "think", NULL},
	.render = render,
};

const struct template template_qwen25 = {
	.name = "qwen2.5",
	.end = "<|im_end|>",
	.marked = true,
	.system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
	.known = (const char *const[]){"<|im_start|>", "You are Qwen, created by Alibaba Cloud",
				       "<tool_call>", NULL},
	.tools = true,
	.render = render,
};

const struct template template_qwen3 = {
	.name = "qwen3",
	.end = "<|im_end|>",
	.marked = true,
	.known = (const char *const[]){"<|im_start|>", "<think>", "<tool_response>", NULL},
	.tools = true,
	.render = render_qwen3,
};

/* The 2507 version, which has no thoughts. */
const struct template template_qwen3_instruct = {
	.name = "qwen3-instruct",
	.end = "<|im_end|>",
	.marked = true,
	.known = (const char *const[]){"<|im_start|>", "<tool_call>", "<tool_response>", NULL},
	.foreign = (const char *const[]){"think", "You are Qwen", "You are a helpful", NULL},
	.tools = true,
	.render = render,
};

const struct template template_smollm2 = {
	.name = "smollm2",
	.end = "<|im_end|>",
	.marked = true,
	.system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
	.known = (const char *const[]){"<|im_start|>", "named SmolLM, trained by Hugging Face", NULL},
	.render = render,
};
